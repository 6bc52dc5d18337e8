"""The second stage of a run: its revision memory trained on documents, some from every corpus."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from camit.training.memory import Document, GateReport, GateTraining, documents_of, train_gates
from camit.training.run import RunFolder
from camit.training.settings import Settings
from camit.translator import load


def run_memory_stage(
    settings: Settings, folder: RunFolder, progress: Callable[[str], None] = lambda line: None
) -> GateReport:
    """Train the gates for the model in the run's folder, and store them beside it."""
    documents = sample_documents([Path(m.path) for m in settings.train], settings.memory_lines, settings.seed)
    how = GateTraining(sentences=settings.memory_lines, seed=settings.seed)
    gates, report = train_gates(load(folder.path), documents, how, progress)
    gates.save(folder.path)
    folder.append_log({"kind": "memory", **asdict(report)})
    return report


def sample_documents(corpora: Sequence[Path], lines: int, seed: int) -> list[Document]:
    """Random documents with about `lines` lines in all, from each corpus the same share."""
    rng = random.Random(seed)
    chosen: list[Document] = []
    for path in corpora:
        share = lines / len(corpora)
        for document in _reservoir(path, max(2, round(share / 2)), rng):
            if share <= 0:
                break
            chosen.append(document)
            share -= len(document)
    rng.shuffle(chosen)
    return chosen


def _reservoir(path: Path, size: int, rng: random.Random) -> list[Document]:
    """Some documents of a file, each as likely as any other, in one pass over it."""
    kept: list[Document] = []
    for seen, document in enumerate(documents_of(path)):
        if len(kept) < size:
            kept.append(document)
        elif (place := rng.randrange(seen + 1)) < size:
            kept[place] = document
    rng.shuffle(kept)
    return kept
