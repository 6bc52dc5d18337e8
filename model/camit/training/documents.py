"""Documents to train the revision memory on: stretches of neighbouring lines, some from every corpus."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from camit.training.memory import Document, documents_of


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
