"""The card of a trained model, written from what its run stored and what `camit evaluate --json` measured.

    python -m camit.training.card RUN scores.json ... > RUN/README.md

No figure in it is typed by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from camit.checkpoint import load_checkpoint
from camit.errors import InputError
from camit.training.examples import Report
from camit.training.run import Position, RunFolder
from camit.training.settings import Settings


class _Figures(msgspec.Struct, frozen=True):
    corpus: str
    lines: int
    lowercase: bool
    direction: str
    bleu: float
    chrf: float
    perplexity: float


class _How(msgspec.Struct, frozen=True):
    beam: int


class _Scores(msgspec.Struct, frozen=True):
    """What the card needs of the file that `camit evaluate --json` writes."""

    settings: _How
    scores: tuple[_Figures, ...]


def card(run: Path, scores: Sequence[Path]) -> str:
    """Markdown: the network, its data, its training, its scores."""
    folder = RunFolder(run)
    settings = folder.settings()
    found = folder.state()
    position = found[1] if found else Position()
    parts = [
        _network(run, settings),
        _data(folder, settings),
        _training(settings, position),
        _validation(folder),
        _scores(scores),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _network(run: Path, settings: Settings) -> str:
    checkpoint = load_checkpoint(run)
    config = checkpoint.network.config
    count = sum(p.numel() for p in checkpoint.network.parameters())
    kinds = {"pieces": "sentencepiece pieces", "words": "words, the rest UNK"}
    return "\n".join(
        [
            f"# {checkpoint.name}: {settings.source} to {settings.target}",
            "",
            f"One encoder, a forward and a backward decoder ({config.arch}): d {config.d}, "
            f"inner size {config.ff}, {config.encoder_layers} encoder and "
            f"{config.decoder_layers} decoder layers, {count / 1e6:.1f} M parameters, stored as fp16.",
            f"Vocabularies: {len(checkpoint.source):,} {kinds[checkpoint.source.kind]} ({settings.source}), "
            f"{len(checkpoint.target):,} {kinds[checkpoint.target.kind]} ({settings.target}).",
        ]
    )


def _data(folder: RunFolder, settings: Settings) -> str:
    reports = [
        msgspec.json.decode(path.read_bytes(), type=Report)
        for path in sorted(folder.cache.glob("*/report.json"))
    ]
    by_name = {Path(report.path).name: report for report in reports}
    lines = [
        "## Training data",
        "",
        "| corpus | lines kept | of | target pieces | weight | lines joined |",
        "|---|---|---|---|---|---|",
    ]
    for mixture in settings.train:
        report = by_name.get(Path(mixture.path).name)
        if report is not None:
            lines.append(
                f"| {Path(mixture.path).name} | {report.kept:,} | {report.lines:,} | "
                f"{report.target_pieces / 1e6:.2f} M | {mixture.weight:g} | {mixture.join:.0%} |"
            )
    rule = settings.cleaning
    lines += [
        "",
        f"Left out: lines of more than {rule.longest} pieces, of unequal length (ratio over {rule.ratio:g}) "
        f"and copies of a pair beyond {rule.copies}. Joined lines are neighbours of one document.",
    ]
    return "\n".join(lines)


def _training(settings: Settings, position: Position) -> str:
    batch = settings.batch or settings.preset_or_error().batch
    return "\n".join(
        [
            "## Training",
            "",
            f"{position.seconds / 3600:.2f} hours, {position.step:,} steps of about {batch:,} target pieces, "
            f"{position.pieces / 1e6:.1f} M target pieces in all"
            + (f", starting from the weights of `{Path(settings.init).name}`." if settings.init else "."),
            f"Adam, learning rate {settings.rate:g} after {settings.warmup:,} steps of warm-up, falling with "
            f"1/sqrt(step) from step {settings.hold:,} and to nearly nothing in the last "
            f"{settings.cooldown:.0%} of the budget; label smoothing {settings.smoothing:g}, "
            f"gradients clipped at {settings.clip:g}, weights averaged with decay {settings.average:g}."
            + (
                f" The model is a mean: {settings.keep_start:.0%} of it are the weights it started from."
                if settings.keep_start
                else ""
            ),
            "",
            "```",
            command_line(settings),
            "```",
        ]
    )


def command_line(settings: Settings) -> str:
    """The command that makes this run; corpora and models by their names."""
    words = ["camit train"]
    if settings.init:
        words.append(f"--init {Path(settings.init).name}")
    words += [f"--source {settings.source} --target {settings.target}", f"--arch {settings.arch}"]
    words.append(f"--preset {settings.preset}")
    for mixture in settings.train:
        words.append(f"--train {Path(mixture.path).name}={mixture.weight:g}")
        if mixture.join:
            words.append(f"--join {Path(mixture.path).name}={mixture.join:g}")
    words += [f"--dev {Path(path).name}" for path in settings.dev]
    defaults = Settings(train=())
    numbers = "vocabulary batch rate warmup smoothing sampled clip dropout average seed"
    for name in numbers.split():
        if getattr(settings, name) != getattr(defaults, name):
            words.append(f"--{name} {getattr(settings, name):g}")
    if settings.keep_start:
        words.append(f"--keep-start {settings.keep_start:g}")
    if settings.precision != defaults.precision:
        words.append(f"--precision {settings.precision}")
    for name in ("minutes", "steps", "pieces"):
        if getattr(settings, name) is not None:
            words.append(f"--{name} {getattr(settings, name):.12g}")
    return " \\\n  ".join([*words, "--out DIR"])


def _validation(folder: RunFolder) -> str:
    if not folder.log.exists():
        return ""
    last: dict[str, dict[str, Any]] = {}
    for line in folder.log.read_bytes().splitlines():
        record = msgspec.json.decode(line, type=dict[str, Any])
        if record["kind"] == "validation":
            last[record["corpus"]] = record
    if not last:
        return ""
    rows = [
        f"| {name} | {r['pieces'] / 1e6:.1f} M | {r['forward']:.3f} | {r['backward']:.3f} |"
        for name, r in last.items()
    ]
    head = [
        "## Validation during training",
        "",
        "Negative log-probability per piece, averaged weights, last measured after so many target pieces:",
        "",
        "| corpus | after | forward | backward |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def _scores(files: Sequence[Path]) -> str:
    if not files:
        return ""
    lines = [
        "## Scores",
        "",
        "Printed by `camit evaluate` (sacrebleu):",
        "",
        "| corpus | lines | beam | case | decoder | BLEU | chrF | perplexity |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for file in files:
        try:
            content = msgspec.json.decode(file.read_bytes(), type=_Scores)
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(
                f"{file} holds no scores ({error}); give a file that `camit evaluate --json` wrote."
            ) from error
        lines += [
            f"| {s.corpus} | {s.lines:,} | {content.settings.beam} | "
            f"{'ignored' if s.lowercase else 'counts'} | {s.direction} | "
            f"{s.bleu:.2f} | {s.chrf:.2f} | {s.perplexity:.2f} |"
            for s in content.scores
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(card(Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]]), end="")
