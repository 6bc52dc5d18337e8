"""Batches: which lines are read in which order, joined to longer examples or alone, with next to no padding.

A *round* reads every corpus as often as its weight says. It is a pure function of data, settings, seed and
round number, so the place of a run in its data is two numbers: round and batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from camit.text import PAD, UNSPACED_LANGUAGES, Vocabulary
from camit.training.examples import Examples, Ids, joints

GOES_ON = 0.6  # how often a joined example takes one more line
LONGEST_JOINED = 110  # target pieces from which on no further line is joined
SENTENCE_ENDS = "。！？!?…」”."

Integers = np.ndarray[Any, np.dtype[np.int64]]


class Mixture(msgspec.Struct, frozen=True, kw_only=True):
    """How one corpus takes part in training."""

    path: str
    weight: float = 1.0  # how often a round reads it
    join: float = 0.0  # share of its lines from which on neighbours are joined to one example


@dataclass(frozen=True)
class Batch:
    """Sentences of nearly the same length; piece ids padded at the end with 0."""

    source: Tensor  # [sentences, source]
    target: Tensor  # [sentences, target], without BOS and EOS

    @property
    def pieces(self) -> int:
        """Target pieces, the end mark of each sentence counted."""
        return int((self.target != PAD).sum()) + len(self.target)

    def shard(self, rank: int, count: int) -> Batch:
        """The part of this batch that one of `count` processes works on; never empty."""
        rank = min(rank, len(self.source) - 1)
        return Batch(self.source[rank::count], self.target[rank::count])

    def to(self, device: torch.device) -> Batch:
        return Batch(self.source.to(device, non_blocking=True), self.target.to(device, non_blocking=True))


@dataclass(frozen=True)
class _Plan:
    """The examples of a round (corpus, first line, number of lines), their order, and where batches begin."""

    corpus: Integers
    first: Integers
    count: Integers
    order: Integers
    starts: Integers


class BatchSource:
    """Gives batch number i of round r."""

    def __init__(
        self,
        corpora: Sequence[Examples],
        mixtures: Sequence[Mixture],
        *,
        source: Vocabulary,
        pieces: int,
        seed: int,
    ) -> None:
        self._corpora, self._mixtures = corpora, mixtures
        self._pieces, self._seed = pieces, seed
        self._round = -1
        self._plan: _Plan | None = None
        self._joints = joints(source) if source.language in UNSPACED_LANGUAGES and source.spaced else None
        ends = [i for i in range(len(source)) if source.piece(i)[-1] in SENTENCE_ENDS]
        self._ends = np.zeros(len(source), dtype=bool)
        self._ends[ends] = True

    @property
    def digest(self) -> str:
        """Changes when rounds would: a stored position means nothing then."""
        sizes = [(len(c), int(c.source_offsets[-1]), int(c.target_offsets[-1])) for c in self._corpora]
        settings = [(m.weight, m.join) for m in self._mixtures]
        return hashlib.sha256(msgspec.json.encode((sizes, settings, self._pieces, self._seed))).hexdigest()[
            :16
        ]

    def batches_in(self, round_: int) -> int:
        """How many batches this round has."""
        return len(self._planned(round_).starts) - 1

    def batch(self, round_: int, index: int) -> Batch:
        """One batch; the same arguments give the same batch, always."""
        plan = self._planned(round_)
        rows = plan.order[plan.starts[index] : plan.starts[index + 1]]
        rng = np.random.default_rng((self._seed, round_, 1, index))
        attach = rng.random(len(rows)) < 0.5
        sides: tuple[list[Ids], list[Ids]] = ([], [])
        for row, attached in zip(rows.tolist(), attach.tolist(), strict=True):
            corpus = self._corpora[plan.corpus[row]]
            first, count = int(plan.first[row]), int(plan.count[row])
            sides[0].append(self._source(corpus, first, count, attached))
            start, stop = corpus.target_offsets[first], corpus.target_offsets[first + count]
            sides[1].append(corpus.target[start:stop])
        return Batch(pad(sides[0]), pad(sides[1]))

    def _source(self, corpus: Examples, first: int, count: int, attached: bool) -> Ids:
        lines = [
            corpus.source[corpus.source_offsets[i] : corpus.source_offsets[i + 1]]
            for i in range(first, first + count)
        ]
        if count > 1 and attached and self._joints is not None:
            # Chinese writes no space between sentences; half of the joined examples are written so.
            for i in range(1, count):
                if self._ends[lines[i - 1][-1]]:
                    head = self._joints[lines[i][0]]
                    lines[i] = np.concatenate(([head] if head else [], lines[i][1:])).astype(np.int32)
        return lines[0] if count == 1 else np.concatenate(lines)

    def _planned(self, round_: int) -> _Plan:
        if self._plan is None or self._round != round_:
            self._plan, self._round = self._make_plan(round_), round_
        return self._plan

    def _make_plan(self, round_: int) -> _Plan:
        rng = np.random.default_rng((self._seed, round_, 0))
        parts: list[tuple[Integers, Integers, Integers]] = []
        lengths: list[tuple[Integers, Integers]] = []
        for number, (corpus, mixture) in enumerate(zip(self._corpora, self._mixtures, strict=True)):
            for copy in range(int(np.ceil(mixture.weight))):
                first, count = _join(corpus, mixture.join, rng)
                share = min(1.0, mixture.weight - copy)
                if share < 1.0:
                    chosen = rng.random(len(first)) < share
                    if not chosen.any():  # a round is never empty
                        chosen[rng.integers(len(first))] = True
                    first, count = first[chosen], count[chosen]
                parts.append((np.full(len(first), number), first, count))
                lengths.append(
                    (
                        corpus.source_offsets[first + count] - corpus.source_offsets[first],
                        corpus.target_offsets[first + count] - corpus.target_offsets[first] + 1,
                    )
                )
        corpora, firsts, counts = (np.concatenate([part[i] for part in parts]) for i in range(3))
        sources, targets = (np.concatenate([length[i] for length in lengths]) for i in range(2))
        order, starts = _group(sources, targets, self._pieces, rng)
        return _Plan(corpora, firsts, counts, order, starts)


def _join(corpus: Examples, share: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """First line and number of lines of each example: most lines alone, some joined to the following ones."""
    n = len(corpus)
    if share <= 0.0 or n < 2:
        return np.arange(n), np.ones(n, dtype=np.int64)
    # Runs of single lines and runs of joined lines take turns; both run lengths are geometric.
    turns = n + 2
    alone = rng.geometric(min(share, 0.999), turns)
    together = rng.geometric(1.0 - GOES_ON, turns)
    total = np.cumsum(alone + together)
    turns = int(np.searchsorted(total, n)) + 1
    runs = np.stack((alone[:turns], together[:turns]), axis=1).ravel()
    linked = np.repeat(np.tile([False, True], turns), runs)[:n] & corpus.follows
    linked[0] = False
    # Cut what grew too long: a line starts anew where the pieces of its group fill another example.
    group = np.cumsum(~linked) - 1
    begin = corpus.target_offsets[:-1]
    before = begin - begin[np.flatnonzero(~linked)][group]
    slot = before // LONGEST_JOINED
    linked[1:] &= slot[1:] == slot[:-1]
    first = np.flatnonzero(~linked)
    return first, np.diff(np.append(first, n))


def _group(
    sources: Integers, targets: Integers, pieces: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Examples sorted by length and cut into batches of about `pieces` target pieces, in random order."""
    shuffled = rng.permutation(len(targets))
    # Source lengths rise and fall in turns, so that they are alike where two target lengths meet.
    turning = np.where(targets % 2 == 0, sources, -sources)
    order = shuffled[np.lexsort((turning[shuffled], targets[shuffled]))]
    starts = [0]
    longest_source = longest_target = 0
    for i, (s, t) in enumerate(zip(sources[order].tolist(), targets[order].tolist(), strict=True)):
        longest_source, longest_target = max(longest_source, s), max(longest_target, t)
        size = i + 1 - starts[-1]
        if size > 1 and (size * longest_target > pieces or size * longest_source > 1.5 * pieces):
            starts.append(i)
            longest_source, longest_target = s, t
    starts.append(len(order))
    sizes = np.diff(starts)
    turn = rng.permutation(len(sizes))
    parts = [order[starts[i] : starts[i + 1]] for i in turn]
    return np.concatenate(parts), np.concatenate(([0], np.cumsum(sizes[turn])))


def pad(rows: Sequence[Ids]) -> Tensor:
    """Rows of ids as one matrix, padded at the end with 0."""
    result = np.full((len(rows), max((len(row) for row in rows), default=0)), PAD, dtype=np.int64)
    for i, row in enumerate(rows):
        result[i, : len(row)] = row
    return torch.from_numpy(result)
