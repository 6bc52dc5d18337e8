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

from camit.errors import TrainingError

# glibc told to keep memory: a step allocates and frees hundreds of megabytes, and giving pages back to the
# system to take them again costs more than half of the time. Threads that wait must sleep: others may need
# the core.
ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
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
    clip: Annotated[float, typer.Option(help="Largest norm of a gradient.")] = 1.0,
    dropout: Annotated[float | None, typer.Option(help="Dropout; the preset decides when left out.")] = None,
    average: Annotated[float, typer.Option(help="Decay of the averaged weights.")] = 0.9995,
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
        processes.barrier()
        settings = _settings(given, folder.settings() if resume else None)
        processes.barrier()
        with Display(console if processes.first else Console(quiet=True)) as display:
            trainer = make_trainer(
                settings,
                folder,
                processes,
                report=lambda report: _print_report(console, report) if processes.first else None,
                show=display.show,
            )
            if processes.first:
                folder.save_settings(settings)
            if resume:
                trainer.resume()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: trainer and trainer.stop())
            finished = trainer.run()
        if processes.first and not finished:
            console.print(f"stopped and saved; go on with: camit train --out {out} --resume", soft_wrap=True)
        elif processes.first and settings.memory_lines:
            _train_memory(console, folder, settings)
        processes.barrier()
        if processes.first and json is not None:
            result = {
                "position": trainer.position,
                "validation": [asdict(v) for v in trainer.validations],
                "settings": settings,
            }
            json.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
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
    except TrainingError as error:
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
    corpora = values.pop("train", None)
    shares = values.pop("join", None)
    if corpora is not None:
        values["train"] = tuple(_mixture(spec, shares or [], Mixture) for spec in corpora)
    elif stored is None:
        raise TrainingError("there is nothing to train on; name a corpus: --train FILE.tsv")
    if "dev" in values:
        values["dev"] = tuple(str(path.absolute()) for path in values["dev"])
    settings = Settings(**values) if stored is None else msgspec.structs.replace(stored, **values)
    if stored is not None:
        for name in ("source", "target", "arch", "preset", "init", "vocabulary"):
            if getattr(settings, name) != getattr(stored, name):
                raise TrainingError(
                    f"this run has --{name} {getattr(stored, name)}, which --resume cannot change to "
                    f"{getattr(settings, name)}; leave it out, or start a new run in another --out."
                )
    settings.check()
    return settings


def _mixture(spec: str, shares: list[str], mixture: Any) -> Any:
    path, _, weight = spec.rpartition("=")
    if not path or Path(spec).exists():  # a file may have "=" in its name
        path, weight = spec, "1"
    join = 0.0
    for share in shares:
        name, _, value = share.rpartition("=")
        if not name or Path(name).name == Path(path).name:
            join = _number(value, f"--join {share}")
    return mixture(path=str(Path(path).absolute()), weight=_number(weight, f"--train {spec}"), join=join)


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
