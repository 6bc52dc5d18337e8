"""The command line: `camit translate` is a filter, and what a person can mend is told in one line."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import camit
from camit import cli
from camit.checkpoint import Checkpoint, save_checkpoint
from tests.helpers import tiny_translator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    tiny = tiny_translator()
    folder = tmp_path_factory.mktemp("tiny")
    save_checkpoint(Checkpoint("tiny", tiny.network, tiny.source_vocabulary, tiny.target_vocabulary), folder)
    return str(folder)


class Terminal:
    """Calls the command line as a shell does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        """Exit status, standard output and standard error."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "argv", ["camit", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        with pytest.raises(SystemExit) as done:
            cli.main()
        return int(done.value.code or 0), *self._capsys.readouterr()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


def test_a_line_in_is_a_line_out(shell: Terminal, model: str) -> None:
    sentences = ["the cat sat.", "", "the\x0cdog\u2028ran.", "   ", "a big red dog"]
    status, out, err = shell("translate", "--model", model, "--beam", "2", stdin="\n".join(sentences) + "\n")
    translator = camit.load(model)
    assert out.split("\n") == [
        *[translator.translate(text, beam=2).text if text.strip() else "" for text in sentences],
        "",
    ]
    assert (status, err) == (0, "")


def test_the_last_line_needs_no_end_and_a_mark_at_the_start_is_none_of_the_text(
    shell: Terminal, model: str
) -> None:
    plain = shell("translate", "--model", model, stdin="the cat\nthe dog\n")
    assert shell("translate", "--model", model, stdin=b"\xef\xbb\xbfthe cat\r\nthe dog") == plain


def test_nothing_in_nothing_out(shell: Terminal, model: str) -> None:
    assert shell("translate", "--model", model) == (0, "", "")


def test_machines_get_lines_scores_and_tokens(shell: Terminal, model: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    status, out, _ = shell("translate", "--model", model, "--json", str(path), stdin="the cat\n\nthe dog\n")
    found = json.loads(path.read_text("utf-8"))
    assert status == 0
    assert found["settings"] == {"model": model, "beam": 4}
    assert [row["line"] for row in found["translations"]] == [1, 3]
    first = found["translations"][0]["translation"]
    assert first["source"] == "the cat" and first["text"] == out.split("\n")[0]
    assert {"text", "probability", "attention"} <= first["tokens"][0].keys()


def test_the_embedded_model_is_the_default(shell: Terminal) -> None:
    status, out, _ = shell("translate", stdin="我们明天见。\n")
    assert status == 0 and "tomorrow" in out.lower()


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--beam", "0"], b"", "beam must be a whole number from 1 to 64"),
        ([], b"the cat\n\nthe \xff dog\n", "standard input, line 3: not UTF-8"),
        ([], b"the cat\n\n\x00\n", "standard input, line 3 is empty"),
        ([], b"\n" + b"a" * 20_000, "standard input, line 2 has 20,000 characters"),
        ([], b"\n" + b"# " * 2_000, "standard input, line 2 has 4000 pieces"),
        (["--model", "[/red]"], b"", "[/red]"),
    ],
)
def test_what_a_person_can_mend_is_one_line(
    shell: Terminal, model: str, arguments: list[str], stdin: bytes, message: str
) -> None:
    status, out, err = shell("translate", "--model", model, *arguments, stdin=stdin)
    assert (status, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str) -> None:
    shown = CliRunner().invoke(cli.app, [command, "--help"], prog_name="camit")
    assert shown.exit_code == 0 and f"Usage: camit {command}" in shown.output


def test_an_unknown_command_is_refused(shell: Terminal) -> None:
    status, _, err = shell("translat")
    assert status == 2 and "translat" in err


def test_the_list_of_commands_names_each_with_a_line_of_help(shell: Terminal) -> None:
    status, out, _ = shell("--help")
    listed = dict(re.findall(r"^\W*([a-z]+) {2,}(\S.*?) *\W*$", out.partition("Commands")[2], re.MULTILINE))
    assert status == 0
    assert list(listed) == list(cli.COMMANDS) and all(listed.values())
