"""`camit train`: the trainer on the command line, alone or under `torchrun`."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from camit.errors import CamitError, TrainingError

# glibc told to keep memory: a step allocates and frees hundreds of megabytes, and giving pages back to the
# system to take them again costs more than half of the time. Huge pages, where the system has them, gain
# another tenth. Threads that wait must sleep: others may need the core.
ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "OMP_WAIT_POLICY": "PASSIVE",
}


def train(
    context: typer.Context,
    train: Annotated[
        list[str],
        typer.Option(help="Corpus, TSV or TSV.gz: document, source, reference. FILE=3 counts threefold."),
    ] = [],  # noqa: B006
    dev: Annotated[list[Path], typer.Option(help="Corpus whose loss is measured while training.")] = [],  # noqa: B006
    source: Annotated[str, typer.Option(help="Source language, as zh.")] = "zh",
    target: Annotated[str, typer.Option(help="Target language, as en.")] = "en",
    out: Annotated[Path, typer.Option(help="Folder of the run, and of the model it makes.")] = ...,  # type: ignore[assignment]
    arch: Annotated[str, typer.Option(help="transformer or rnnsearch.")] = "transformer",
    preset: Annotated[
        str, typer.Option(help="small (as shipped), paper (the paper's size) or tiny (a toy).")
    ] = "small",
    init: Annotated[
        str | None, typer.Option(help="Start from this model's vocabularies and weights.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    minutes: Annotated[float | None, typer.Option(help="Training time, all sittings together.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of updates.")] = None,
    pieces: Annotated[float | None, typer.Option(help="Number of target pieces.")] = None,
    join: Annotated[
        list[str], typer.Option(help="Share of lines joined to their neighbours: 0.1 for all, or FILE=0.4.")
    ] = [],  # noqa: B006
    vocabulary: Annotated[int | None, typer.Option(help="Entries of each vocabulary.")] = None,
    batch: Annotated[
        int | None, typer.Option(help="Target pieces of a batch, all processes together.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Learning rate after warm-up.")] = 1e-3,
    warmup: Annotated[int, typer.Option(help="Steps of warm-up.")] = 500,
    smoothing: Annotated[float, typer.Option(help="Label smoothing.")] = 0.1,
    sampled: Annotated[
        float, typer.Option(help="Share of the vocabulary scored beside a batch's own pieces; 1 is all.")
    ] = 1.0,
    clip: Annotated[float, typer.Option(help="Largest norm of a gradient.")] = 1.0,
    dropout: Annotated[
        float | None, typer.Option(help="Dropout; left out, the preset decides, with --init there is none.")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="Of products: fp32, bf16 (about twice as fast on a CPU with AMX), or auto.")
    ] = "auto",
    average: Annotated[float, typer.Option(help="Decay of the averaged weights.")] = 0.9995,
    keep_start: Annotated[
        float, typer.Option(help="Share of the weights of --init in the model at the end; 0.5 is the mean.")
    ] = 0.0,
    checkpoint_minutes: Annotated[float, typer.Option(help="Time between checkpoints.")] = 5.0,
    validate_minutes: Annotated[float, typer.Option(help="Time between validations.")] = 15.0,
    memory_lines: Annotated[
        int, typer.Option(help="Lines of documents to train the revision memory on at the end; 0 for none.")
    ] = 2_500,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
    json: Annotated[Path | None, typer.Option(help="Write the result for machines.")] = None,
) -> None:
    """Train a model: one encoder, a forward and a backward decoder.

    Example: camit train --train talks.tsv.gz=3 --train web.tsv.gz --dev dev.tsv --source zh --target en
    --out run --minutes 600; later: camit train --out run --resume.
    """
    given = _given(context)
    console = Console(stderr=True)

    from camit.checkpoint import check_writable, write_atomically
    from camit.training.distributed import Processes
    from camit.training.progress import Display
    from camit.training.run import RunFolder
    from camit.training.start import make_trainer

    processes = Processes.join()
    folder = RunFolder(out)
    trainer: Any = None
    try:
        if processes.first:
            folder.prepare(resume=resume)
            if json is not None:
                check_writable(json, folder.files)  # it may be in the folder that was just made
        processes.barrier()
        settings = _settings(given, folder.settings() if resume else None)
        if processes.first and json is not None:
            check_writable(json, (*settings.dev, *(mixture.path for mixture in settings.train)))
        processes.barrier()
        with Display(console if processes.first else Console(quiet=True)) as display:
            trainer = make_trainer(
                settings,
                folder,
                processes,
                report=lambda report: _print_report(console, report) if processes.first else None,
                show=display.show,
            )
            if resume:
                trainer.resume()
            if processes.first:
                folder.save_settings(settings)
            before = {
                number: signal.signal(number, lambda *_: trainer and trainer.stop())
                for number in (signal.SIGINT, signal.SIGTERM)
            }
            try:
                finished = trainer.run()
            finally:  # what comes after the run has no way to stop and save
                for number, handler in before.items():
                    signal.signal(number, handler or signal.SIG_DFL)
        result = {
            "position": trainer.position,
            "validation": [asdict(v) for v in trainer.validations],
            "settings": settings,
        }
        # The rest is for the first process alone; the others need not wait for it.
        processes.barrier()
        trainer = None
        processes.leave()
        if processes.first and json is not None:
            write_atomically(json, msgspec.json.format(msgspec.json.encode(result), indent=1))
        if processes.first and not finished:
            console.print(f"stopped and saved; go on with: camit train --out {out} --resume", soft_wrap=True)
        elif processes.first and settings.memory_lines:
            _train_memory(console, folder, settings)
    except OSError as error:
        raise TrainingError(
            f"{error.filename or out} cannot be read or written ({error.strerror or error}); what the run "
            "had stored before is untouched. Make room or check the folder, then start again or add --resume."
        ) from error
    finally:
        trainer = None
        processes.leave()


def _train_memory(console: Console, folder: Any, settings: Any) -> None:
    """The second stage, with the model the first one wrote; the model is good without it too."""
    from camit.training.memory_stage import run_memory_stage

    try:
        with console.status("training the revision memory") as status:
            report = run_memory_stage(settings, folder, progress=status.update)
    except CamitError as error:
        console.print(
            f"the revision memory keeps its untrained gates: {error}", highlight=False, soft_wrap=True
        )
        return
    console.print(
        f"revision memory: {report.forward:+.1f} forward, {report.backward:+.1f} backward in log-probability "
        f"per 1,000 held-out words, {report.copyable:,} of {report.words:,} of which the memory holds",
        highlight=False,
        soft_wrap=True,
    )


def restart_with_environment() -> None:
    """Start this process again with the variables set that only count when a process starts."""
    if sys.platform != "linux" or all(name in os.environ for name in ENVIRONMENT):
        return
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _given(context: typer.Context) -> dict[str, Any]:
    """The options that stand on the command line, as opposed to defaults."""
    return {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name).name == "COMMANDLINE"  # type: ignore[union-attr]
        and name not in ("out", "resume", "json")
    }


def _settings(given: dict[str, Any], stored: Any) -> Any:
    from camit.training.batches import Mixture
    from camit.training.settings import Settings

    values = dict(given)
    mixtures = () if stored is None else stored.train
    if corpora := values.pop("train", None):
        known = {mixture.path: mixture.join for mixture in mixtures}
        read = [_corpus(spec) for spec in corpora]
        mixtures = tuple(Mixture(path=p, weight=w, join=known.get(p, 0.0)) for p, w in read)
    if not mixtures:
        raise TrainingError("there is nothing to train on; name a corpus: --train FILE.tsv")
    values["train"] = _joined(mixtures, values.pop("join", []))
    if "dev" in values:
        values["dev"] = tuple(str(path.absolute()) for path in values["dev"])
    settings = Settings(**values) if stored is None else msgspec.structs.replace(stored, **values)
    if stored is None and settings.init is not None:
        for name in ("vocabulary", "preset"):
            if getattr(settings, name) != getattr(Settings(train=()), name):
                raise TrainingError(
                    f"--init {settings.init} brings its own vocabularies and sizes, which "
                    f"--{name} {getattr(settings, name)} cannot change; leave out one of the two."
                )
    if stored is not None:
        for name in ("source", "target", "arch", "preset", "init", "vocabulary"):
            if getattr(settings, name) != getattr(stored, name):
                raise TrainingError(
                    f"this run has --{name} {getattr(stored, name)}, which --resume cannot change to "
                    f"{getattr(settings, name)}; leave it out, or start a new run in another --out."
                )
    settings.check()
    return settings


def _corpus(spec: str) -> tuple[str, float]:
    """Path and weight of --train."""
    path, _, weight = spec.rpartition("=")
    if not path or Path(spec).exists():  # a file may have "=" in its name
        path, weight = spec, "1"
    return str(Path(path).absolute()), _number(weight, f"--train {spec}")


def _joined(mixtures: tuple[Any, ...], options: list[str]) -> tuple[Any, ...]:
    """The corpora with the shares of --join: one for a file counts more than one for all."""
    names = sorted({Path(mixture.path).name for mixture in mixtures})
    shares: dict[str, float] = {}  # by name, "" for all
    for option in options:
        name, _, value = option.rpartition("=")
        if name and Path(name).name not in names:
            raise TrainingError(
                f"--join {option}: no corpus of this run has that name; it reads {', '.join(names)}."
            )
        shares[Path(name).name] = _number(value, f"--join {option}")
    return tuple(
        msgspec.structs.replace(m, join=shares.get(Path(m.path).name, shares.get("", m.join)))
        for m in mixtures
    )


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TrainingError(f"{option}: {text!r} is no number; write for example FILE.tsv=3.") from None


def _print_report(console: Console, report: Any) -> None:
    console.print(
        f"{Path(report.path).name}: {report.kept:,} of {report.lines:,} lines, "
        f"{report.target_pieces / 1e6:.2f} M target pieces; dropped {report.too_long:,} too long, "
        f"{report.unequal:,} of unequal length, {report.duplicate:,} duplicates",
        highlight=False,
        soft_wrap=True,
    )
