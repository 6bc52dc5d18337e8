"""`camit translate`: lines in, translations out, like any filter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from camit.checkpoint import check_writable, write_atomically
from camit.errors import InputError

BATCH = 32


def translate(
    model: Annotated[str, typer.Option(help="Embedded model or checkpoint directory.")] = "zh-en",
    beam: Annotated[int, typer.Option(help="Width of the search.")] = 4,
    json: Annotated[
        Path | None, typer.Option(help="Write translations with scores, tokens and attention for machines.")
    ] = None,
) -> None:
    """Translate standard input, one sentence a line; an empty line stays empty."""
    from camit.search.revise import check_beam
    from camit.text import normalise
    from camit.translator import load

    check_beam(beam)
    if json is not None:
        check_writable(json)
    if sys.stdin.isatty():
        Console(stderr=True).print("Type a sentence a line; end with Ctrl-D.", style="dim")
    lines = _lines()
    translator = load(model)
    filled = [n for n, line in enumerate(lines) if line.strip()]
    for n in filled:  # before any work is done, and by the number of the line
        translator.encode_source(normalise(lines[n], what=_line(n + 1)), what=_line(n + 1))
    texts = [""] * len(lines)
    found = []
    with Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("translating", total=len(filled))
        translations = translator.translate_batch(
            [lines[n] for n in filled],
            beam=beam,
            batch=BATCH,
            progress=lambda done: progress.advance(task, done),
        )
    for n, translation in zip(filled, translations, strict=True):
        texts[n] = translation.text
        found.append({"line": n + 1, "translation": translation})
    sys.stdout.write("".join(text + "\n" for text in texts))
    if json is not None:
        content = {"settings": {"model": model, "beam": beam}, "translations": found}
        write_atomically(json, msgspec.json.format(msgspec.json.encode(content), indent=1))


def _lines() -> list[str]:
    data = sys.stdin.buffer.read()
    try:
        # Not splitlines: it splits at form feeds and the like too, and a line in must be a line out.
        return data.decode("utf-8-sig").removesuffix("\n").split("\n") if data else []
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{_line(line)}: not UTF-8; convert it first, e.g. with iconv.") from None


def _line(number: int) -> str:
    return f"standard input, line {number}"
