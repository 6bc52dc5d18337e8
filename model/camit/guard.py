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

import torch
from torch import Tensor

from camit.errors import CheckpointError
from camit.networks import Encoded, Features, State
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


def distributions(direction: Direction, start: State, targets: Sequence[Phrase]) -> tuple[Tensor, Tensor]:
    """Log-probabilities of all pieces at all places of known sentences, the ends too [places, vocabulary],
    and the places as they are compared [places, d_p]."""
    features = follow(direction, start, targets)
    lengths = torch.tensor([len(pieces) for pieces in targets], device=features.s.device)
    real = torch.arange(features.s.shape[1], device=features.s.device) <= lengths.unsqueeze(1)
    logp = direction.predict(Features(*(x[real] for x in features)))
    return logp, direction.decoder.compared(features.place[real])


@dataclass(eq=False)
class Batch:
    """A few sentences of the guard or the replay set."""

    ids: Sequence[Sequence[int]]
    targets: Sequence[Phrase]
    encoded: Encoded | None = None  # kept where the encoder never learns
    expected: Sequence[Expected] = ()  # for each direction

    @property
    def places(self) -> int:
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
