"""Simulations, whole: the same whoever plays them; figures, tables and page; errors that help."""

from __future__ import annotations

import json
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import camit
from camit import cli
from camit.checkpoint import Checkpoint, save_checkpoint
from camit.corpus import documents, looks_lowercased
from camit.errors import CamitError, CorpusError, InputError
from camit.learning import OnlineLearner
from camit.memory import RevisionMemory
from camit.memory.gate import Gates
from camit.simulate import history
from camit.simulate.corpus import read_lines, with_capitals
from camit.simulate.elsewhere import elsewhere
from camit.simulate.metrics import Sentence
from camit.simulate.plot import plot
from camit.simulate.report import Page, write_results
from camit.simulate.run import PLAYING, Experiment, Run, prepare, simulate
from camit.simulate.store import Store
from camit.simulate.tables import build, table_name
from tests.helpers import piece_vocabulary, tiny_network, word_vocabulary

LINES = [
    "one\tthe cat sat\tThe cat sat on the mat.\tA cat sat there.",
    "one\ta dog ran\tA dog ran.\tThe dog ran, and ran.",
    "two\tthe red log\tThe log is red.\tIt is a red log.",
    "two\tnot now\tNot now!\tNot ever.",
    "three\tthe big mat\tThe mat is big.\tA big mat.",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    source, target = piece_vocabulary("xx"), piece_vocabulary()
    network = tiny_network("transformer", source=len(source), target=len(target), scale=2.0)
    folder = tmp_path_factory.mktemp("tiny")
    save_checkpoint(Checkpoint("tiny", network, source, target), folder)
    return str(folder)


@pytest.fixture(scope="module")
def word_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    source, target = word_vocabulary(language="xx"), word_vocabulary()
    network = tiny_network("rnnsearch", source=len(source), target=len(target), scale=2.0)
    folder = tmp_path_factory.mktemp("words")
    save_checkpoint(Checkpoint("words", network, source, target), folder)
    return str(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "tiny.tsv"
    path.write_text("".join(line + "\n" for line in LINES), "utf-8")
    return str(path)


def experiment(model: str, corpus: str, **more: object) -> Experiment:
    settings: dict[str, object] = {"user": "ideal-fast", "revisions": 2, "beam": 2, **more}
    return msgspec.convert({"model": model, "corpus": corpus, **settings}, Experiment)


def untimed(run: Run) -> list[Sentence]:
    """Sentences without the seconds, the only thing that may differ."""
    return [
        msgspec.structs.replace(
            sentence, turns=tuple(msgspec.structs.replace(turn, seconds=None) for turn in sentence.turns)
        )
        for sentence in run.sentences
    ]


def call(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["camit", "simulate", *arguments])
    try:
        cli.main()
    except SystemExit as done:
        if done.code:
            raise


@pytest.mark.parametrize("history", [False, True], ids=["lines", "documents"])
def test_two_processes_give_exactly_the_results_of_one(model: str, corpus: str, history: bool) -> None:
    chosen = experiment(model, corpus, memory=history, learning=history, user="random", revisions=1)
    told: list[int] = []
    alone, shared = simulate(chosen), simulate(chosen, processes=2, progress=told.append)
    assert untimed(alone) == untimed(shared)
    assert alone.figures.revisions == shared.figures.revisions
    assert sum(told) == len(LINES)


def test_a_run_is_reproducible_by_seed_and_knows_where_it_came_from(model: str, corpus: str) -> None:
    first, second = (simulate(experiment(model, corpus, user="random", seed=3)) for _ in range(2))
    assert untimed(first) == untimed(second)
    assert untimed(first) != untimed(simulate(experiment(model, corpus, user="random", seed=4)))
    assert first.provenance.corpus == second.provenance.corpus
    assert first.settings.lowercase is False and first.settings.no_change_is_a_candidate is False


def test_a_new_document_begins_without_history(model: str, corpus: str) -> None:
    chosen = experiment(model, corpus, memory=True, learning=True, user="left-to-right", revisions=1)
    plain = simulate(experiment(model, corpus, user="left-to-right", revisions=1))
    found = simulate(chosen)
    firsts = [0, 2, 4]  # the first lines of the three documents
    assert [found.sentences[n].outputs for n in firsts] == [plain.sentences[n].outputs for n in firsts]


def test_the_command_writes_the_figures_for_machines(
    model: str,
    corpus: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target, image = tmp_path / "run.json", tmp_path / "run.svg"
    options = [
        "--model",
        model,
        "--corpus",
        corpus,
        "--user",
        "left-to-right",
        "--revisions",
        "2",
        "--limit",
        "3",
    ]
    call(*options, "--json", str(target), "--plot", str(image), monkeypatch=monkeypatch)
    found = json.loads(target.read_text())
    assert [q["k"] for q in found["revisions"]] == [0, 1, 2]
    assert {"bleu", "chrf", "ter"} <= found["revisions"][0].keys()
    assert {
        "revisions_per_sentence",
        "success_rate",
        "wsr",
        "mar",
        "ksmr",
        "changed_tokens_per_turn",
        "unk",
        "repeated_mistakes",
        "one_shot_recall",
        "same_source",
    } <= found.keys()
    assert {"p50", "p95"} <= found["seconds"].keys()
    assert found["settings"]["user"] == "left-to-right" and found["settings"]["limit"] == 3
    assert found["settings"]["no_change_is_a_candidate"] is False
    assert "BLEU" in capsys.readouterr().out
    assert ET.fromstring(image.read_text()).tag.endswith("svg")
    assert Run.from_json(target.read_bytes()).sentences[0].references == tuple(LINES[0].split("\t")[2:])
    call(*options, "--against", str(target), monkeypatch=monkeypatch)
    assert "2          +0.00  unknown" in capsys.readouterr().out  # three sentences are no sample
    call(*options, "--against", str(target), "--format", "json", monkeypatch=monkeypatch)
    run, against = json.loads(capsys.readouterr().out)
    assert run["settings"]["limit"] == 3 and against["rows"][2][1] == "+0.00"
    assert against["columns"][3] == "later halves" and against["rows"][2][3] == "+0.00"


def test_tables_share_runs_and_a_stored_run_is_not_played_again(
    model: str, corpus: str, tmp_path: Path
) -> None:
    played: list[str] = []

    def store() -> Store:
        def announce(chosen: Experiment, lines: int) -> object:
            played.append(f"{chosen.protocol} {chosen.revisions}")
            return lambda done: None

        return Store(tmp_path / "runs", 1, announce)  # type: ignore[arg-type]

    base = experiment(model, corpus, user="left-to-right")
    first = store()
    multi = build("multi", base, first.get)
    ideal = build("ideal", base, first.get)
    assert len(played) == 5  # three protocols with four revisions, which also answer for two, and two more
    assert store().get(msgspec.structs.replace(base, protocol="bidirectional")).settings.revisions == 2
    assert len(played) == 5
    assert ideal.rows[0][0] == "no revision" and len(ideal.rows) == 6
    assert multi.rows[2][0] == "bidirectional"
    assert ideal.rows[5][1] == multi.rows[2][2]  # BLEU after one revision, in both tables
    assert "bidirectional" in ideal.as_text() and "| bidirectional |" in ideal.as_markdown()
    assert json.loads(ideal.as_json())["columns"][0] == "protocol"


def test_the_results_page_lists_every_run_and_no_text_of_the_corpus(
    model: str, word_model: str, corpus: str, tmp_path: Path
) -> None:
    page = tmp_path / "RESULTS.md"
    store = Store(None, 1, lambda chosen, lines: lambda done: None)
    base = experiment(model, corpus, user="left-to-right", limit=3)
    tables = write_results(page, Page((base,), word_model, "camit simulate ..."), store)
    text = page.read_text()
    assert [table.name for table in tables] == ["multi", "ideal", "effort", "history", "unk"]
    assert all(name in text for name in ("replace only", "unidirectional, grid", "+OL+RM", "UNK", "KSMR"))
    assert len(re.findall(r"^\| tiny\.tsv, lines 1-3 \(", text, re.MULTILINE)) == len(store.runs) == 10
    assert "The cat sat" not in text + (tmp_path / "results" / "results.json").read_text()
    assert (tmp_path / "results" / "tiny-1-3.svg").is_file()
    assert str(tmp_path) not in text


def test_each_corpus_may_have_its_own_number_of_lines(
    model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("x\t狗\tA big dog ran.\nx\t猫\tThe cat.\n", encoding="utf-8")
    page = tmp_path / "RESULTS.md"
    options = ("--model", model, "--user", "left-to-right", "--limit", "3", "--results", str(page))
    call("--corpus", f"{corpus}=2-3", "--corpus", f"{other}=1", *options, monkeypatch=monkeypatch)
    assert "| tiny.tsv, lines 2-3 (" in page.read_text()
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert {(run["settings"]["corpus"], run["sentences"]) for run in found} == {
        ("tiny.tsv", 2),
        ("other.tsv", 1),
    }


def test_the_results_page_finds_what_is_wrong_before_it_plays(
    model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camit.simulate.store.simulate", lambda *given, **more: pytest.fail("played"))
    base = experiment(model, corpus, user="left-to-right")
    missing = msgspec.structs.replace(base, corpus="missing.tsv")
    for page, message in (
        (Page((base, missing), None, "..."), "missing.tsv"),
        (Page((base,), "no-such-model", "..."), "no-such-model"),
        (Page((base, base), None, "..."), "named twice"),
        (Page((base,), model, "..."), "writes pieces"),
    ):
        with pytest.raises(CamitError, match=message):
            write_results(tmp_path / "RESULTS.md", page, Store(None, 1, lambda chosen, lines: print))


def test_two_slices_of_a_corpus_have_a_section_and_a_plot_each(
    model: str, corpus: str, tmp_path: Path
) -> None:
    base = experiment(model, corpus, user="left-to-right", revisions=1, limit=1)
    slices = (base, msgspec.structs.replace(base, skip=1))
    store = Store(None, 1, lambda chosen, lines: lambda done: None)
    write_results(tmp_path / "RESULTS.md", Page(slices, None, "camit simulate ..."), store)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "## tiny, lines 1-1" in text and "## tiny, lines 2-2" in text and "left-to-right* user" in text
    assert {path.name for path in (tmp_path / "results").glob("*.svg")} == {"tiny-1-1.svg", "tiny-2-2.svg"}
    assert "So far" not in text and "| all by hand |" in text
    assert "/" not in {run["settings"]["model"] for run in _runs(tmp_path)}.pop()


def _runs(folder: Path) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = json.loads((folder / "results" / "results.json").read_text())
    return found


def test_a_stored_run_is_cut_to_what_is_asked_for(model: str, corpus: str, tmp_path: Path) -> None:
    def get(**more: object) -> Run:
        store = Store(tmp_path, 1, lambda chosen, lines: lambda done: None)
        return store.get(experiment(model, corpus, user="left-to-right", **more))

    longer, asked = get(revisions=3), get(revisions=1)
    assert len(list(tmp_path.iterdir())) == 1
    assert len(asked.figures.revisions) == 2 and asked.settings.revisions == 1
    assert asked.figures.revisions == longer.figures.revisions[:2]
    assert asked.figures.wsr == simulate(asked.settings).figures.wsr
    # What is confirmed, and so all later lines, depends on the last revision.
    get(revisions=3, memory=True)
    get(revisions=1, memory=True)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_stored_run_is_not_used_for_other_gates(
    model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Experiment] = []

    def play(chosen: Experiment, **more: Any) -> Run:
        played.append(chosen)
        return simulate(chosen, **more)

    monkeypatch.setattr("camit.simulate.store.simulate", play)
    own = tmp_path / "own"
    shutil.copytree(model, own)
    chosen = experiment(str(own), corpus, user="left-to-right", revisions=1, memory=True, limit=2)
    for _ in range(2):
        Store(tmp_path / "runs", 1, lambda chosen, lines: lambda done: None).get(chosen)
    assert len(played) == 1
    d = camit.load(str(own)).network.config.d
    Gates(d, d).save(own)
    Store(tmp_path / "runs", 1, lambda chosen, lines: lambda done: None).get(chosen)
    assert len(played) == 2


def test_what_is_learned_and_remembered_here_is_scored_elsewhere(
    model: str,
    corpus: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("x\t狗\tA big dog ran.\nx\t猫\tThe cat.\n", encoding="utf-8")
    told = {"model": model, "corpus": corpus}
    learning = Experiment(**told, learning=True)
    there = Experiment(**{**told, "corpus": str(other)})
    drifts = elsewhere(learning, there)
    assert [d.lessons for d in drifts] == [2, 2, 1] and all(d.accepted <= d.lessons for d in drifts)
    assert len({d.before for d in drifts}) == 1 and any(d.after.loss != d.before.loss for d in drifts)
    assert all(d.entries == 0 for d in drifts)
    second = Experiment(**told, learning=True, skip=2, limit=2)
    assert elsewhere(second, there) == drifts[1:2]  # each document starts anew
    remembering = elsewhere(Experiment(**told, memory=True), there)
    assert all(d.entries and not d.lessons and d.after.loss == d.before.loss for d in remembering)
    call("--corpus", corpus, "--model", model, "--elsewhere", f"{other}=1", monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    assert "other.tsv after tiny.tsv" in shown and "2 of 2" in shown


def test_a_corpus_is_read_in_order_with_all_references(corpus: str) -> None:
    lines = read_lines(corpus)
    assert [len(document) for document in documents(lines)] == [2, 2, 1]
    assert lines[3].references == ("Not now!", "Not ever.")
    assert [line.line for line in read_lines(corpus, limit=2)] == [1, 2]
    assert [line.line for line in read_lines(corpus, limit=2, skip=2)] == [3, 4]
    with pytest.raises(InputError, match="skip fewer"):
        read_lines(corpus, skip=5)
    assert not looks_lowercased(lines)


def test_a_user_writes_capitals_where_the_references_lost_theirs(model: str, tmp_path: Path) -> None:
    path = tmp_path / "small.tsv"
    path.write_text('d\t你好\thello. "what?" wait... no, it\'s McRae\nd\t什么\twhat?\n', encoding="utf-8")
    lines = read_lines(path)
    assert looks_lowercased(lines)
    assert with_capitals(lines)[0].references == ('Hello. "What?" Wait... no, it\'s McRae',)
    settled, told = prepare(experiment(model, str(path)))
    assert settled.lowercase and told[1].references == ("What?",)
    as_written = prepare(experiment(model, str(path), lowercase=False))[1]
    assert as_written[1].references == ("what?",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("d\t你好\thello\nd\t你好\n", "line 2"),
        ("d\t你好\thello\nd\t你好\thello\thi\n", "line 2.*2 reference"),
        ("d\t你好\thello\thi\nd\t你好\thello\t\n", "line 2"),
        ("d\t\thello\n", "line 1"),
        ("d\t你好\thello\nonly one column\n", "line 2"),
        (f"d\t{'好' * 6000}\thello\n", "line 1.*characters"),
    ],
    ids=["empty", "no reference", "more columns", "empty column", "no source", "no columns", "too long"],
)
def test_a_corpus_that_is_none_is_refused_by_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(CorpusError, match=message):
        read_lines(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--protocol", "sideways"], "unidirectional-grid"),
        (["--preset", "mine"], "default, paper"),
        (["--user", "me"], "left-to-right"),
        (["--table", "first"], "history"),
        (["--limit", "0"], "limit"),
        (["--revisions", "-1"], "revisions"),
        (["--beam", "0"], "beam"),
        (["--stability", "2"], "stability"),
        (["--processes", "0"], "processes"),
        (["--format", "pdf"], "markdown"),
        (["--confirmed", "maybe"], "screen"),
        (["--corpus", "other.tsv"], "--results"),
        (["--corpus", "other.tsv=3-2", "--results", "page.md"], "first before the last"),
        (["--json", "no/such/folder/run.json"], "no/such/folder"),
        (["--plot", "run.png"], "run.svg"),
        (["--plot", "."], "SVG"),
        (["--plot", "run.svg", "--elsewhere", "other.tsv"], "--plot"),
        (["--against", "no-such-run.json"], "no-such-run.json"),
        (["--against", "run.json", "--table", "ideal"], "--against"),
        (["--word-model", "rnn"], "--results"),
        (["--runs", __file__], "--runs"),
        (["--json", "same.svg", "--plot", "./same.svg"], "two results at once"),
        (["--json", "results/results.json", "--results", "page.md"], "two results at once"),
        (["--json", "x" * 255], "cannot be written"),
        (["--limit", "9" * 25], "limit"),
    ],
)
def test_wrong_options_are_one_line_that_says_what_is_right(
    corpus: str,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        call("--corpus", corpus, *options, monkeypatch=monkeypatch)
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_what_is_read_is_not_written_over(
    model: str,
    corpus: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = tmp_path / "mine.tsv"
    mine.write_bytes(Path(corpus).read_bytes())
    for options in (["--json", str(mine)], ["--results", str(mine)], ["--json", f"{tmp_path}/./mine.tsv"]):
        with pytest.raises(SystemExit):
            call("--corpus", f"{mine}=2", "--model", model, *options, monkeypatch=monkeypatch)
        assert "would be written over" in capsys.readouterr().err
    assert mine.read_bytes() == Path(corpus).read_bytes()


@pytest.mark.parametrize(
    ("room", "option", "message"),
    [
        ("command", "--json", "run.json could not be written (No space left on device)"),
        ("store", "--runs", "run.json could not keep a run (No space left on device)"),
    ],
)
def test_figures_are_shown_though_they_cannot_be_stored(
    model: str,
    corpus: str,
    room: str,
    option: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(f"camit.simulate.{room}.write_atomically", full)
    options = ("--model", model, "--revisions", "0", option, str(tmp_path / "run.json"))
    with pytest.raises(SystemExit):
        call("--corpus", f"{corpus}=2", *options, monkeypatch=monkeypatch)
    shown = capsys.readouterr()
    assert "BLEU" in shown.out and message in " ".join(shown.err.split())


def test_a_corpus_of_other_languages_is_refused(tmp_path: Path) -> None:
    swapped = tmp_path / "swapped.tsv"
    swapped.write_text("d\tGood morning.\t早上好。\nd\tThank you.\t谢谢。\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"swapped\.tsv, line 1.*'zh'.*swapped"):
        prepare(Experiment(model="zh-en", corpus=str(swapped)))
    swapped.write_text("d\t早上好。\tGood morning.\t早上好。\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"swapped\.tsv, line 1: the reference column is not 'en'"):
        prepare(Experiment(model="zh-en", corpus=str(swapped)))


def test_a_word_too_long_to_be_told_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "long.tsv"
    path.write_text(f"d\t你好。\tHello.\nd\t你好。\t{'zyx' * 400}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"long\.tsv, line 2: the reference has \d+ pieces"):
        simulate(Experiment(model="zh-en", corpus=str(path)))


def test_stored_files_that_are_no_runs_are_passed_over(model: str, corpus: str, tmp_path: Path) -> None:
    chosen = experiment(model, corpus, user="left-to-right", revisions=1, limit=2)
    odd = tmp_path / "ti[1]ny.tsv"
    odd.write_bytes(Path(corpus).read_bytes())
    runs = tmp_path / "runs"
    (runs / "ti[1]ny-folder.json").mkdir(parents=True)
    (runs / "ti[1]ny-half.json").write_bytes(b'{"a": "\xff"}')
    played: list[Experiment] = []

    def announce(one: Experiment, lines: int) -> Callable[[int], None]:
        played.append(one)
        return lambda done: None

    for _ in range(2):
        Store(runs, 1, announce).get(msgspec.structs.replace(chosen, corpus=str(odd)))
    assert len(played) == 1


def test_results_that_are_none_and_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError, match="simulate --json"):
        Run.from_json(b'{"a": 1}')
    with pytest.raises(CamitError, match="multi"):
        table_name("best")


def test_a_plot_has_a_line_and_a_label_for_each_name() -> None:
    found = ET.fromstring(plot("BLEU <after>", {"a & b": [1.0, 20.0, 30.0], "c": [1.0, 29.9]}))
    lines = [one for one in found.iter() if one.tag.endswith("polyline")]
    labels = [one.text or "" for one in found.iter() if one.tag.endswith("text")]
    assert [len(line.attrib["points"].split()) for line in lines] == [3, 2]
    assert "a & b 30.0" in labels and "c 29.9" in labels
    with pytest.raises(InputError):
        plot("nothing", {})


# What results depend on


def test_a_stored_run_is_of_all_the_code_that_plays() -> None:
    package = Path(camit.__file__).parent
    # Names of errors and languages, and what is asked before and after a run.
    idle = {"errors.py", "training/languages.py"}
    playing = {path for pattern in PLAYING for path in package.glob(pattern)}
    reached, waiting = set[Path](), [package / "simulate" / "run.py"]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        for name in re.findall(r"^ *from camit\.([\w.]+) import", path.read_text("utf-8"), re.MULTILINE):
            module = package.joinpath(*name.split("."))
            found = (
                module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__init__.py"
            )
            if found not in reached and str(found.relative_to(package)) not in idle:
                waiting.append(found)
    unseen = {str(path.relative_to(package)) for path in reached - playing}
    assert not unseen - {"glossary.py"}  # which no simulated user reads


def test_the_papers_own_memory_and_learning_can_be_played(
    model: str, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[object] = []
    for name in ("RevisionMemory", "OnlineLearner"):
        made = getattr(history, name)

        def watched(translator: camit.Translator, *, preset: str, made: Any = made) -> Any:
            played.append(made(translator, preset=preset))
            return played[-1]

        monkeypatch.setattr(history, name, watched)
    simulate(experiment(model, corpus, revisions=1, memory=True, learning=True, preset="paper"))
    memory, learner = played[:2]
    assert isinstance(memory, RevisionMemory) and memory.settings.paper
    assert isinstance(learner, OnlineLearner) and learner.moves_all
