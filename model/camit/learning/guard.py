"""What the base model knew, so that learning can be held to it: sentences that ship with a model, each with
the model's own translation, and what the base model expects at each of their places.

The guard set must not drift from the base model; the replay set is learned from a little in every lesson.
What is compared is the cross-entropy with what the base model itself expects at each place: that is least for
the base model, so nothing can look better than it really is by growing more sure of itself.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from camit.errors import CheckpointError
from camit.learning.pupil import Places, Pupil
from camit.learning.recollection import Asked, Kept
from camit.learning.settings import LearningSettings
from camit.search.problem import Phrase
from camit.search.recall import Recalled
from camit.translator import Translator

GUARD, REPLAY = "guard.tsv", "replay.tsv"
GUARD_STEP = 8  # sentences of the guard set read at once
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


def baseline_of(
    translator: Translator,
    guard: Sequence[tuple[str, str]] | None,
    replay: Sequence[tuple[str, str]] | None,
    settings: LearningSettings,
) -> Baseline:
    """The same one for all learners of a model that ask the same; without sentences, those of the model."""
    guard, replay = (
        load_pairs(translator.directory, name) if given is None else given
        for name, given in ((GUARD, guard), (REPLAY, replay))
    )
    size = settings.replay or GUARD_STEP
    frozen = (tuple(map(tuple, pairs)) for pairs in (guard, replay))
    return translator.shared(
        (Baseline, settings.parameters, settings.step, size, *frozen),
        lambda: Baseline(batches(translator, guard, GUARD_STEP), batches(translator, replay, size)),
    )


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


class Change(NamedTuple):
    """By how much the guard set's loss is above the base model's, relatively."""

    weights: float
    recall: float = 0.0  # what the recalled sentences add to it

    @property
    def both(self) -> float:
        return self.weights + self.recall


class Guard:
    """Watches how far a pupil is from what the base model knew."""

    def __init__(self, translator: Translator, pupil: Pupil, baseline: Baseline) -> None:
        self.baseline = baseline
        self._translator = translator
        self._pupil = pupil
        self._asked = [Asked(batch.ids, translator.source_vocabulary) for batch in baseline.guard]
        self._sentences: tuple[Kept, ...] = ()  # those of which is known what is recalled
        self._along: dict[int, list[Recalled]] = {}  # by batch of the guard set and direction

    def expect(self) -> Generator[None, None, None]:
        """Ask the base model, once, what it expects along the sentences of both sets."""
        if self.baseline.loss is not None:
            return
        worn, total = self._pupil.weights(), 0.0
        for batch in (*self.baseline.guard, *self.baseline.replay):
            self._pupil.wear(self._pupil.base)
            with torch.inference_mode(False), torch.no_grad():  # these tensors are used in learning
                read = self._pupil.along(batch.ids, batch.targets)
                now = self._pupil.predict(read)
                batch.expected = [expected(logp) for logp in now]
                batch.read = () if self._pupil.moves_all else read
                total += float(self.drift(batch, now)) if batch in self.baseline.guard else 0.0
            self._pupil.wear(worn)
            yield
        self.baseline.loss = total / max(1, sum(batch.places for batch in self.baseline.guard))

    def read(self, batch: Batch) -> Sequence[Places]:
        return batch.read or self._pupil.along(batch.ids, batch.targets)

    def drift(self, batch: Batch, now: Sequence[Tensor]) -> Tensor:
        """Cross-entropy of log-probabilities with what the base model expects, summed over places and
        directions."""
        losses = [e.loss(logp) for e, logp in zip(batch.expected, now, strict=True)]
        return losses[0] + losses[1]

    def change(self, sentences: tuple[Kept, ...]) -> Generator[None, None, Change]:
        """Relative change of the guard set's loss against the base model, a few sentences at a time; the
        translator recalls these sentences."""
        if sentences != self._sentences:
            self._sentences, self._along = sentences, {}
        plain = recalling = 0.0
        for number, batch in enumerate(self.baseline.guard):
            with torch.inference_mode():
                read = self.read(batch)
                now = self._pupil.predict(read)
                plain += float(self.drift(batch, now))
                if self._sentences:
                    recalled = self._recalled(number, batch, read)
                    mixed = [r.mix(logp) for r, logp in zip(recalled, now, strict=True)]
                    recalling += float(self.drift(batch, mixed))
            yield
        if not self.baseline.loss:
            return Change(0.0)
        base = self.baseline.loss * sum(batch.places for batch in self.baseline.guard)
        return Change(plain / base - 1.0, (recalling - plain) / base if self._sentences else 0.0)

    def _recalled(self, number: int, batch: Batch, read: Sequence[Places]) -> list[Recalled]:
        """What is recalled along a batch of the guard set, for each direction. Places stay where they are
        while weights learn, so this is found out once for all that is recalled at a time."""
        if number not in self._along:
            lengths = [len(pieces) + 1 for pieces in batch.targets]
            along = []
            for direction, recall, places, commons in zip(
                self._pupil.directions,
                self._translator.directions.recalls or (),
                read,
                self._asked[number].common(self._sentences),
                strict=True,
            ):
                compared, begins = direction.decoder.compared(places.place), direction.begins(places.last)
                asked = (torch.split(x, lengths) for x in (compared, begins, places.attention))
                found = []
                for common, place, begin, attention in zip(commons, *asked, strict=True):
                    here, width = recall.here(common), len(common.shared)
                    nothing = Recalled.nothing(begin)
                    found.append(here.at(place, begin, attention[:, :width]) if here else nothing)
                along.append(Recalled.joined(found))
            self._along[number] = along
        return self._along[number]
