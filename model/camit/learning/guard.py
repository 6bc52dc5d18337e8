"""What the base model knew, so that learning can be held to it: sentences that ship with a model, each with
the model's own translation, and what the base model expects at each of their places.

The guard set must not drift from the base model; the replay set is learned from a little in every lesson.
What is compared is the cross-entropy with what the base model itself expects at each place: that is least for
the base model, so nothing can look better than it really is by growing more sure of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from camit.errors import CheckpointError
from camit.networks import State
from camit.search.direction import Direction
from camit.search.problem import Phrase
from camit.search.scoring import follow
from camit.translator import Translator

GUARD, REPLAY = "guard.tsv", "replay.tsv"
EXPECTED = 64  # pieces of each place that are kept of what the base model expects; the others count together


@dataclass(frozen=True)
class Expected:
    """What a model expects at some places: its likeliest pieces, and the rest together."""

    pieces: Tensor  # [places, k]
    p: Tensor  # [places, k]
    rest: Tensor  # [places]

    def loss(self, logp: Tensor) -> Tensor:
        """Cross-entropy with log-probabilities [places, vocabulary], summed."""
        mine = logp.gather(1, self.pieces)
        others = torch.log((1.0 - mine.exp().sum(1)).clamp(min=1e-7))
        return -(self.p * mine).sum() - (self.rest * others).sum()


def expected(logp: Tensor, most: int = EXPECTED) -> Expected:
    values, pieces = logp.topk(min(most, logp.shape[1]), dim=1)
    p = values.exp()
    return Expected(pieces, p, (1.0 - p.sum(1)).clamp(min=0.0))


class Places(NamedTuple):
    """All places of some known sentences, one behind the other, as one decoder comes to them."""

    place: Tensor  # [places, d_p], see `Features`
    last: Tensor  # [places] the piece before it
    wanted: Tensor  # [places] the piece that stands there
    end: Tensor  # [places] bool: it is the end of a sentence
    attention: Tensor  # [places, source]

    def cut(self, start: int, stop: int) -> Places:
        return Places(*(x[start:stop] for x in self))

    def select(self, chosen: Sequence[int]) -> Places:
        return Places(*(x[list(chosen)] for x in self))


def places_along(direction: Direction, start: State, targets: Sequence[Phrase]) -> Places:
    features = follow(direction, start, targets)
    device = features.place.device
    lengths = torch.tensor([len(pieces) for pieces in targets], device=device)
    real = torch.arange(features.place.shape[1], device=device) <= lengths.unsqueeze(1)
    end = direction.decoder.last_piece
    said = [piece for pieces in targets for piece in (*direction.feed(direction.order(pieces)), end)]
    wanted = torch.tensor(said, device=device)
    return Places(features.place[real], features.last[real], wanted, wanted == end, features.attention[real])


@dataclass(eq=False)
class Batch:
    """A few sentences of the guard or the replay set."""

    ids: Sequence[Sequence[int]]
    targets: Sequence[Phrase]
    expected: Sequence[Expected] = ()  # for each direction
    read: Sequence[Places] = ()  # for each direction, where lessons move only what comes behind

    @property
    def places(self) -> int:
        """Of both directions."""
        return 2 * sum(len(pieces) + 1 for pieces in self.targets)


@dataclass(eq=False)
class Baseline:
    """Both sets, and what lessons need to know of the base model; found out once, in the first lesson."""

    guard: Sequence[Batch]
    replay: Sequence[Batch]
    loss: float | None = None  # of the guard set, per place; None: not known yet
    # How large each gradient usually is; None: not known yet, empty: there is nothing to learn it from.
    usual: Sequence[Tensor] | None = None


def batches(translator: Translator, texts: Sequence[tuple[str, str]], size: int) -> list[Batch]:
    """Sentences with their translations, so many at once."""
    encode = translator.target_vocabulary.encode
    ids = [translator.encode_source(source) for source, _ in texts]
    targets = [tuple(encode(target)) for _, target in texts]
    return [Batch(ids[at : at + size], targets[at : at + size]) for at in range(0, len(texts), size)]


def load_pairs(directory: Path | None, name: str) -> list[tuple[str, str]]:
    """Sentences with the base model's translations that ship with a checkpoint; none without the file."""
    if directory is None or not (directory / name).is_file():
        return []
    pairs = []
    for number, line in enumerate((directory / name).read_text("utf-8").splitlines(), 1):
        columns = line.split("\t")
        if len(columns) != 2 or not all(columns):
            raise CheckpointError(
                f"{directory / name}, line {number}: need source<TAB>translation; got {line!r}."
            )
        pairs.append((columns[0], columns[1]))
    return pairs
