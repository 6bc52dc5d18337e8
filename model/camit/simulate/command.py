"""`camit simulate`: one simulation, one of the paper's tables, or the whole results page."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, get_args

import msgspec
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from camit.checkpoint import check_writable, write_atomically
from camit.errors import InputError
from camit.search.revise import Settings
from camit.simulate.elsewhere import elsewhere as drift_elsewhere
from camit.simulate.history import Preset
from camit.simulate.metrics import compare, later_half
from camit.simulate.report import Page, curves, write_results
from camit.simulate.run import Experiment, Run, prepare
from camit.simulate.store import Store
from camit.simulate.tables import Table, build, p_text, recall_text, table_name

FORMATS = ("text", "markdown", "json")
Progressing = Callable[[int], None]


def simulate(
    corpus: Annotated[
        list[str],
        typer.Option(
            help="TSV, gzip or not: document, source, reference(s). FILE=300 plays its first 300 lines, "
            "FILE=501-800 those. Repeat it for --results."
        ),
    ],
    model: Annotated[str, typer.Option(help="Embedded name or checkpoint directory.")] = "zh-en",
    user: Annotated[str, typer.Option(help="ideal, ideal-fast, left-to-right or random.")] = "ideal",
    protocol: Annotated[
        str,
        typer.Option(
            help="replace-only, unidirectional, unidirectional-free, unidirectional-grid or bidirectional."
        ),
    ] = "bidirectional",
    revisions: Annotated[int, typer.Option(help="At most so many revisions of a sentence.")] = 4,
    memory: Annotated[bool, typer.Option("--memory", help="Remember fixes over a document.")] = False,
    learning: Annotated[bool, typer.Option("--learning", help="Learn online over a document.")] = False,
    preset: Annotated[
        str, typer.Option(help="Of memory and learning: default, or paper for the paper's own.")
    ] = "default",
    limit: Annotated[
        int | None, typer.Option(help="Only so many lines of a corpus that is given without =LINES.")
    ] = None,
    lowercase: Annotated[
        bool | None,
        typer.Option(
            "--lowercase/--no-lowercase",
            help="Compare without case. [default: if many references begin with a small letter]",
        ),
    ] = None,
    may_pass: Annotated[
        bool,
        typer.Option("--may-pass", help='Let "no change" be a candidate of the user. It is none by default.'),
    ] = False,
    confirmed: Annotated[
        str, typer.Option(help="What memory and learning get in the end: reference or screen.")
    ] = "reference",
    beam: Annotated[int, typer.Option(help="Beam size.")] = 4,
    stability: Annotated[
        float, typer.Option(help="0 to 1: how much a revision keeps of the screen.")
    ] = Settings().stability,
    seed: Annotated[int, typer.Option(help="Of the random user.")] = 1,
    processes: Annotated[int, typer.Option(help="Split the corpus; the results are the same.")] = 1,
    table: Annotated[
        str | None,
        typer.Option(
            help="ideal, multi, history or unk: one of the paper's tables instead of one run. "
            "It sets protocol, revisions, memory and learning itself."
        ),
    ] = None,
    elsewhere: Annotated[
        str | None,
        typer.Option(
            help="Instead of one run: confirm each document with --memory, --learning or (neither named) "
            "both, and score this other corpus (FILE or FILE=LINES) before and after."
        ),
    ] = None,
    results: Annotated[Path | None, typer.Option(help="Write the whole results page to this file.")] = None,
    word_model: Annotated[
        str | None, typer.Option(help="With --results: the word-level model for unknown words.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Directory that keeps finished runs, to go on after a stop.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="The --json of an earlier run: paired bootstrap against it.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Of what is printed: text, markdown or json.")
    ] = "text",
    json: Annotated[Path | None, typer.Option(help="Write everything for machines to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write BLEU against revisions to this SVG file.")] = None,
) -> None:
    """Play a corpus with a simulated user, and print what it took and what came of it."""
    if form not in FORMATS:
        raise InputError(f"unknown format {form!r}; choose one of {', '.join(FORMATS)}.")
    if confirmed not in ("reference", "screen"):
        raise InputError(f"confirmed must be reference or screen, not {confirmed!r}.")
    if preset not in get_args(Preset):
        raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(get_args(Preset))}.")
    if len(corpus) > 1 and results is None:
        raise InputError("several corpora need --results; give one --corpus for a single run or table.")
    base = Experiment(
        model=model,
        corpus=corpus[0],
        user=user,
        protocol=protocol,
        revisions=revisions,
        memory=memory,
        learning=learning,
        preset="paper" if preset == "paper" else "default",
        limit=limit,
        lowercase=lowercase,
        no_change_is_a_candidate=may_pass,
        confirmed="screen" if confirmed == "screen" else "reference",
        beam=beam,
        stability=stability,
        seed=seed,
    )
    base, *others = (_on(base, spec) for spec in corpus)
    base.rules()
    other_lines = (
        None if elsewhere is None else _on(msgspec.structs.replace(base, limit=None, skip=0), elsewhere)
    )
    _check_outputs(
        table=table,
        elsewhere=elsewhere,
        results=results,
        against=against,
        json=json,
        plot=plot,
        read=[
            *(one.corpus for one in (base, *others, *([other_lines] if other_lines else []))),
            *([against] if against else []),
        ],
    )
    if word_model is not None and results is None:
        raise InputError("--word-model goes with --results; for one table of unknown words use --model.")
    other = _other_run(against, base) if against is not None else None
    with _progress() as bars:
        store = Store(runs, processes, _announcer(bars))
        if results is not None:
            page = Page((base, *others), word_model, _command_line())
            tables = write_results(results, page, store)
        elif table is not None:
            tables = [build(table_name(table), base, store.get)]
        elif other_lines is not None:
            tables = [_elsewhere(base, other_lines, _announcer(bars))]
        else:
            tables = []
            run = store.get(base)
    content = b"[" + b",".join(one.as_json() for one in tables) + b"]\n" if tables else run.to_json()
    unwritten = [*store.unwritten, *_unwritten(json, content)]
    if plot is not None:
        unwritten += _unwritten(plot, curves(Path(base.corpus).name, store.answers).encode())
    if not tables:
        tables = [summary(run)]
        if other is not None and against is not None:
            tables.append(_against(run, other, against.name))
    if form == "json":
        documents = [run.to_json() if one.name == "run" else one.as_json() for one in tables]
        print((documents[0] if len(documents) == 1 else b"[" + b",".join(documents) + b"]").decode())
    else:
        for one in tables:
            print(one.as_markdown() if form == "markdown" else one.as_text())
    if unwritten:  # told last: the figures, which took so long, are shown whatever happens
        raise InputError(" ".join(unwritten))


def _unwritten(path: Path | None, content: bytes) -> list[str]:
    """Write a result; what went wrong with it, if anything did."""
    if path is None:
        return []
    try:
        write_atomically(path, content)
    except OSError as error:
        return [f"{path} could not be written ({error.strerror}); make room, or choose another file."]
    return []


def _check_outputs(
    *,
    table: str | None,
    elsewhere: str | None,
    results: Path | None,
    against: Path | None,
    json: Path | None,
    plot: Path | None,
    read: Sequence[Path | str],
) -> None:
    """What was asked for can be written, and goes together: told before the work, not after."""
    if sum(asked is not None for asked in (table, elsewhere, results)) > 1:
        raise InputError("--table, --elsewhere and --results are three things; ask for one of them.")
    if against is not None and (table or elsewhere or results):
        raise InputError("--against compares one run with another; leave out --table and the like.")
    if plot is not None and (elsewhere or results):
        raise InputError("--plot goes with one run or a table; the results page has its own plots.")
    if plot is not None and plot.suffix != ".svg":
        raise InputError(f"a plot is an SVG file; call it {plot.stem or 'bleu'}.svg.")
    outputs = [path for path in (json, plot, results) if path is not None]
    taken = [results.parent / "results" / "results.json"] if results is not None else []
    for path in outputs:
        if path.resolve() in (other.resolve() for other in taken):
            raise InputError(f"{path} cannot be two results at once; give each its own name.")
        taken.append(path)
        check_writable(path, read)


_LINES = re.compile(r"(?P<path>.+)=(?:(?P<first>\d+)-)?(?P<last>\d+)")


def _on(base: Experiment, spec: str) -> Experiment:
    """The experiment on a corpus as it was named: FILE, FILE=300 or FILE=501-800."""
    found = _LINES.fullmatch(spec)
    if found is None or Path(spec).is_file():
        return msgspec.structs.replace(base, corpus=spec)
    first, last = int(found["first"] or 1), int(found["last"])
    if not 1 <= first <= last:
        raise InputError(f"{spec}: the lines of a corpus count from 1, the first before the last.")
    return msgspec.structs.replace(base, corpus=found["path"], skip=first - 1, limit=last - first + 1)


def summary(run: Run) -> Table:
    """The figures of one run as a table."""
    f = run.figures
    rows = [
        (
            str(q.k),
            f"{q.bleu:.2f}",
            f"{q.chrf:.2f}",
            f"{q.ter:.2f}",
            f"{100 * q.success_rate:.1f} %",
            str(q.unk),
        )
        for q in f.revisions
    ]
    s = run.settings
    history = _history(s)
    notes = [
        f"revisions per sentence {f.revisions_per_sentence:.2f}, success rate {100 * f.success_rate:.1f} %, "
        f"WSR {f.wsr:.3f}, MAR {f.mar:.3f}, KSMR {f.ksmr:.3f}",
        f"words changed per turn {f.changed_tokens_per_turn:.2f}, repeated mistakes {f.repeated_mistakes} "
        f"({f.same_source.repeated_mistakes} of the same source word), one-shot recall "
        f"{recall_text(f.one_shot_recall)} ({recall_text(f.same_source.one_shot_recall)})",
        f"BLEU {f.signatures['bleu']}",
        f'"no change" is {"" if s.no_change_is_a_candidate else "not "}a candidate of the user',
    ]
    if f.seconds is not None:
        notes.append(
            f"seconds per revision p50 {f.seconds.p50:.3f}, p95 {f.seconds.p95:.3f} "
            f"({f.seconds.measured} measured, one thread); whole run {run.provenance.seconds:.0f} s"
        )
    return Table(
        "run",
        f"{Path(s.corpus).name}, {f.sentences} sentences, {s.user} user, {s.protocol}{history}",
        ("revisions", "BLEU", "chrF", "TER", "success", "UNK"),
        tuple(rows),
        tuple(notes),
    )


def _elsewhere(
    base: Experiment, other: Experiment, announce: Callable[[Experiment, int], Progressing]
) -> Table:
    """What the documents of a corpus leave behind for another one."""
    if not (base.memory or base.learning):
        base = msgspec.structs.replace(base, memory=True, learning=True)
    drifts = drift_elsewhere(base, other, lambda lines: announce(base, lines))
    rows = [
        (
            d.document,
            str(d.entries),
            f"{d.accepted} of {d.lessons}",
            f"{d.before.loss:.4f}",
            f"{d.after.loss / d.before.loss - 1.0:+.2%}",
            f"{d.before.bleu:.2f}",
            f"{d.after.bleu - d.before.bleu:+.2f}",
        )
        for d in drifts
    ]
    return Table(
        "elsewhere",
        f"{Path(other.corpus).name} after {Path(base.corpus).name}",
        ("document", "entries", "lessons accepted", "loss", "change", "BLEU", "change"),
        tuple(rows),
        (
            "Loss: negative log-probability per piece of the references, mean of both directions, as "
            "learning leaves it. BLEU: of drafts, with what is remembered and learned.",
        ),
    )


def _other_run(path: Path, base: Experiment) -> Run:
    """A run to compare with; it must be one of the same lines."""
    try:
        other = Run.from_json(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); give a file written by --json."
        ) from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    _, lines = prepare(base)
    if [(line.line, line.references) for line in lines] != [(s.line, s.references) for s in other.sentences]:
        raise InputError(f"{path} is a run of other lines; simulate both with the same corpus and limit.")
    return other


def _against(run: Run, other: Run, name: str) -> Table:
    """One run beside another, over whole documents and over their later halves."""
    rows = []
    for k in range(min(len(run.figures.revisions), len(other.figures.revisions))):
        cells = [str(k)]
        for part in (list, later_half):
            ours, theirs = part(run.sentences), part(other.sentences)
            found = compare(ours, theirs, run.judge, k)
            cells += [f"{found.difference:+.2f}", p_text(found, len(ours))]
        rows.append(tuple(cells))
    return Table(
        "against",
        f"Against {name} ({other.settings.protocol})",
        ("revisions", "BLEU", "p", "later halves", "p"),
        tuple(rows),
        ("p: paired bootstrap (sacrebleu's, about one-sided). Later halves: of each document.",),
    )


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _announcer(bars: Progress) -> Callable[[Experiment, int], Progressing]:
    def announce(experiment: Experiment, lines: int) -> Progressing:
        name = f"{Path(experiment.corpus).name}  {experiment.protocol}{_history(experiment)}"
        task = bars.add_task(name, total=lines)
        return lambda done: bars.advance(task, done)

    return announce


def _command_line() -> str:
    """What was typed, without the directories of the machine it was typed on."""
    return shlex.join(map(_without_directories, sys.argv))


def _without_directories(word: str) -> str:
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return option + equals + (Path(value).name if "/" in value else value)


def _history(settings: Experiment) -> str:
    """What carries over from line to line."""
    parts = " +memory" * settings.memory + " +learning" * settings.learning
    return f"{parts} ({settings.preset}'s)" if parts and settings.preset != "default" else parts
