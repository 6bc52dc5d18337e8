"""`camit bench`: how long a person waits on this machine, and with --peers how long elsewhere."""

from __future__ import annotations

import platform
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from camit.bench.clock import (
    REVISIONS,
    Comparison,
    Figures,
    Reading,
    Timing,
    compare,
    measure,
    read_memory,
    recall_places,
)
from camit.bench.sentences import SENTENCES
from camit.checkpoint import check_writable, write_atomically
from camit.errors import InputError


def bench(
    model: Annotated[str, typer.Option(help="Embedded model or checkpoint directory.")] = "zh-en",
    beam: Annotated[int, typer.Option(help="Width of the search.")] = 4,
    rounds: Annotated[int, typer.Option(help="How often each sentence is opened and revised.")] = 10,
    peers: Annotated[
        bool, typer.Option("--peers", help="Time CTranslate2 and transformers beside it.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="Threads of every engine. [default: torch's own]")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures for machines.")] = None,
) -> None:
    """Time opening, revising and asking for alternatives, for sentences of 10, 20 and 40 words."""
    import torch

    from camit.search.revise import check_beam
    from camit.translator import load

    check_beam(beam)
    if json is not None:
        check_writable(json)
    if rounds < 1:
        raise InputError(f"--rounds must be at least 1, not {rounds}.")
    if peers and (missing := [name for name in ("ctranslate2", "transformers") if find_spec(name) is None]):
        raise InputError(f"--peers needs {' and '.join(missing)}: pip install 'camit-widget[bench]'.")
    if threads is not None:
        torch.set_num_threads(threads)
    translator = load(model)
    comparisons: list[Comparison] = []
    with Progress(transient=True, console=Console(stderr=True)) as progress:
        steps = sum(map(len, SENTENCES.values())) * (rounds + 1) + (4 if peers else 2) * (rounds + 1)
        task = progress.add_task("timing", total=steps)

        def done() -> None:
            progress.advance(task)

        figures = [measure(translator, words, beam=beam, rounds=rounds, done=done) for words in SENTENCES]
        reading = read_memory(translator, 20, beam=beam, rounds=rounds, done=done)
        recalling = recall_places(translator, 20, beam=beam, rounds=rounds, done=done)
        if peers:
            from camit.bench.peers import CTranslate2, HuggingFace

            revision = next(f.revision for f in figures if f.words == 20)
            with tempfile.TemporaryDirectory() as directory:
                same = CTranslate2(translator, Path(directory), torch.get_num_threads())
                for peer, against in ((same, revision), (HuggingFace(translator), None)):
                    comparisons.append(
                        compare(translator, peer, 20, beam=beam, rounds=rounds, revision=against, done=done)
                    )
    console = Console(width=110)
    console.print(_waits(figures))
    console.print("goals at 20 words: open 60, revision 60 (150), alternatives 20", style="dim")
    console.print(_revisions(figures))
    console.print(_looked_up("entries", "the whole memory read at each", reading))
    console.print("goal: at most 10 %", style="dim")
    console.print(_looked_up("places", "as many places recalled at each as ever are", recalling))
    if comparisons:
        console.print(_beside(comparisons))
        console.print("goals: 3 or less beside CTranslate2, 0.25 or less beside transformers", style="dim")
    if json is not None:
        settings = {
            "model": model,
            "beam": beam,
            "rounds": rounds,
            "threads": torch.get_num_threads(),
            "torch": str(torch.__version__),
            "machine": platform.processor() or platform.machine(),
        }
        content = {
            "settings": settings,
            "figures": figures,
            "memory": reading,
            "recall": recalling,
            "peers": comparisons,
        }
        write_atomically(json, msgspec.json.format(msgspec.json.encode(content), indent=1))


def _waits(figures: list[Figures]) -> Table:
    table = Table(title="milliseconds until the answer is there: median (95 %)")
    for heading in ("words", "written", "open", "revision", "alternatives", "completions"):
        table.add_column(heading, justify="right")
    for f in figures:
        each = (f.open, f.revision, f.alternatives, f.completions)
        table.add_row(str(f.words), f"{f.written:.0f}", *map(_shown, each))
    return table


def _revisions(figures: list[Figures]) -> Table:
    table = Table(title="a revision behind others of the same sentence")
    for heading in ("words", *(f"no. {k + 1}" for k in range(REVISIONS))):
        table.add_column(heading, justify="right")
    for f in figures:
        table.add_row(str(f.words), *map(_shown, f.revisions))
    return table


def _looked_up(what: str, how: str, reading: Reading) -> Table:
    table = Table(title=f"milliseconds of a step of the search at 20 words, {how}")
    for heading in (what, "without", "reading", "added"):
        table.add_column(heading, justify="right")
    shown = (f"{t.median:.2f} ({t.p95:.2f})" for t in (reading.without, reading.reading))
    table.add_row(str(reading.entries), *shown, f"{reading.ratio:+.1%}")
    return table


def _beside(comparisons: list[Comparison]) -> Table:
    table = Table(title="one plain beam search, 20 words, in turns")
    for heading in ("engine", "theirs", "ours", "ours / theirs", "our revision / theirs"):
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for c in comparisons:
        revision = "" if c.revision_ratio is None else f"{c.revision_ratio:.2f}"
        table.add_row(c.name, _shown(c.translation), _shown(c.ours), f"{c.ratio:.2f}", revision)
    return table


def _shown(timing: Timing) -> str:
    return f"{timing.median:.0f} ({timing.p95:.0f})"
