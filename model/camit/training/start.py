"""From settings to a trainer: vocabularies, network, encoded corpora, dev sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from camit.checkpoint import Checkpoint, load_checkpoint
from camit.corpus import Pair, read_corpus
from camit.errors import CorpusError, TrainingError
from camit.networks import Network, build
from camit.text import Vocabulary
from camit.training.batches import Batch, BatchSource, pad
from camit.training.distributed import Processes
from camit.training.examples import Report, encode_corpus
from camit.training.languages import LANGUAGE_SAMPLE, check_languages
from camit.training.precision import check_precision
from camit.training.run import RunFolder
from camit.training.settings import Settings
from camit.training.trainer import DevSet, Tick, Trainer
from camit.training.vocabulary import train_vocabularies

DEV_PIECES = 3_000  # of a batch
DEV_TRANSLATED = 120  # lines of a dev set that are translated for BLEU at each validation


def make_trainer(
    settings: Settings,
    folder: RunFolder,
    processes: Processes,
    *,
    report: Callable[[Report], None] = lambda report: None,
    show: Callable[[Tick], None] = lambda tick: None,
) -> Trainer:
    """Everything a run needs, made or found in its folder."""
    check_precision(settings.precision, processes.device)
    # A slip of the pen is told now, not after hours of encoding.
    for path in map(Path, (*settings.dev, *(mixture.path for mixture in settings.train))):
        check_languages(path, list(read_corpus(path, LANGUAGE_SAMPLE)), settings.source, settings.target)
    # The first process makes what is missing on disk, the others then find it there.
    for turn in (True, False):
        if processes.first == turn:
            network, vocabularies = _network(settings, folder)
            corpora = [
                encode_corpus(Path(mixture.path), *vocabularies, settings.cleaning, folder.cache)
                for mixture in settings.train
            ]
        processes.barrier()
    for corpus in corpora:
        report(corpus.report)
        if len(corpus) == 0:
            raise CorpusError(
                f"{corpus.report.path}: cleaning left none of {corpus.report.lines} lines; "
                "is it text of the two languages, one sentence per line?"
            )
    batch = settings.batch or settings.preset_or_error().batch
    data = BatchSource(corpora, settings.train, source=vocabularies[0], pieces=batch, seed=settings.seed)
    dev = [_dev_set(Path(path), vocabularies) for path in settings.dev]
    return Trainer(
        settings,
        folder,
        network,
        vocabularies,
        data,
        dev,
        processes,
        name=folder.path.resolve().name,
        show=show,
    )


def _network(settings: Settings, folder: RunFolder) -> tuple[Network, tuple[Vocabulary, Vocabulary]]:
    import torch

    torch.manual_seed(settings.seed)
    preset = settings.preset_or_error()
    dropout = preset.network.dropout if settings.init is None else 0.0
    if settings.dropout is not None:
        dropout = settings.dropout
    if (folder.path / "config.json").exists():
        # A run that is resumed has a model of its own by now, and its weights know no other vocabularies:
        # the cache may have been cleared, --train may name other text, the model it came from may be gone.
        return _warm_start(load_checkpoint(folder.path), dropout)
    if settings.init is not None:
        start = load_checkpoint(settings.init)
        languages = (start.source.language, start.target.language)
        if languages != (settings.source, settings.target):
            raise TrainingError(
                f"--init {settings.init} translates {languages[0]} to {languages[1]}, not {settings.source} "
                f"to {settings.target}; leave out --init, or name its languages."
            )
        if start.network.config.arch != settings.arch:
            raise TrainingError(
                f"--init {settings.init} is a {start.network.config.arch}, not a {settings.arch}; "
                f"say --arch {start.network.config.arch}."
            )
        return _warm_start(start, dropout)
    vocabularies = train_vocabularies(settings, preset, folder.cache)
    config = msgspec.structs.replace(
        preset.network,
        source_size=len(vocabularies[0]),
        target_size=len(vocabularies[1]),
        dropout=dropout,
    )
    return build(config), vocabularies


def _warm_start(start: Checkpoint, dropout: float) -> tuple[Network, tuple[Vocabulary, Vocabulary]]:
    network = build(msgspec.structs.replace(start.network.config, dropout=dropout))
    network.load_state_dict(start.network.state_dict())
    return network, (start.source, start.target)


def _dev_set(path: Path, vocabularies: tuple[Vocabulary, Vocabulary]) -> DevSet:
    pairs = list(read_corpus(path))
    return DevSet(path.name, dev_batches(path, pairs, *vocabularies), pairs[:DEV_TRANSLATED])


def dev_batches(path: Path, pairs: Sequence[Pair], source: Vocabulary, target: Vocabulary) -> list[Batch]:
    """The lines of a corpus as they are, sorted by length, for measuring losses."""
    check_languages(path, pairs, source.language, target.language)
    rows = [
        (
            np.array(source.feed(source.encode(pair.source)), dtype=np.int32),
            np.array(target.feed(target.encode(pair.target)), dtype=np.int32),
        )
        for pair in pairs
    ]
    rows.sort(key=lambda row: (len(row[1]), len(row[0])))
    batches: list[Batch] = []
    start = 0
    for stop in range(1, len(rows) + 1):
        if stop == len(rows) or (stop + 1 - start) * (len(rows[stop][1]) + 1) > DEV_PIECES:
            chunk = rows[start:stop]
            batches.append(Batch(pad([row[0] for row in chunk]), pad([row[1] for row in chunk])))
            start = stop
    return batches
