"""Online learning: after each confirmed sentence one small, guarded step (the paper's "Online Learning").

Both decoders learn the confirmed text. A fixed guard set, sentences with the base model's own translations,
must not get worse beyond a margin, or the step is taken back and reported as rejected. Weights are never
changed in place: a snapshot is a reference, and restoring it is exact.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from camit.errors import CheckpointError, InputError, SessionError
from camit.search.grid import Phrase
from camit.search.scoring import read_sources, score
from camit.translator import Translator

Preset = Literal["default", "paper"]
Pair = tuple[Sequence[int], Phrase]  # source ids, target pieces
GUARD_STEP = 8  # sentences of the guard set read at once


@dataclass(frozen=True)
class LearningSettings:
    """How a lesson is given; the comments say how the numbers were chosen."""

    parameters: Literal["all", "decoders"] = "decoders"
    rate: float = 1e-2
    steps: int = 1
    replay: int = 4  # sentences of the replay set in each step
    margin: float = 0.01  # by how much the guard set's loss may rise above the base model's
    guarded: bool = True


PRESETS: dict[str, LearningSettings] = {
    "default": LearningSettings(),
    "paper": LearningSettings(parameters="all", rate=1e-5, steps=1, replay=0, guarded=False),
}


@dataclass(frozen=True)
class Lesson:
    """What happened when a sentence was confirmed."""

    accepted: bool
    before: float  # mean log-probability per piece of the confirmed sentence, both directions
    after: float
    guard: float  # relative change of the guard set's loss against the base model
    seconds: float
    reason: str


Learned = Mapping[str, Tensor]  # parameters that differ from the checkpoint, by name


class OnlineLearner:
    """Teaches a translator what a person confirmed.

    >>> learner = OnlineLearner(translator)  # doctest: +SKIP
    >>> learner.learn(source_ids, target_pieces).accepted  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        translator: Translator,
        *,
        preset: Preset = "default",
        settings: LearningSettings | None = None,
        guard: Sequence[tuple[str, str]] | None = None,
        replay: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        if preset not in PRESETS:
            raise InputError(f"unknown learning preset {preset!r}; choose one of {', '.join(PRESETS)}.")
        self.enabled = True
        self.settings = settings or PRESETS[preset]
        self._translator = translator
        self._network = translator.network
        self._lessons: tuple[Lesson, ...] = ()
        chosen = {
            id(p)
            for part in (
                [self._network]
                if self.settings.parameters == "all"
                else [self._network.forward_decoder, self._network.backward_decoder]
            )
            for p in part.parameters()
        }
        self._parameters: dict[str, nn.Parameter] = {
            name: p for name, p in self._network.named_parameters() if id(p) in chosen
        }
        self._base: dict[str, Tensor] = {name: p.data for name, p in self._parameters.items()}
        self._guard = self._pairs(load_pairs(translator.directory, "guard.tsv") if guard is None else guard)
        self._replay = self._pairs(
            load_pairs(translator.directory, "replay.tsv") if replay is None else replay
        )
        self._next_replay = 0
        self._guard_base = self._loss_of(self._guard) if self._guard else 0.0

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        return self._lessons

    def learn(self, source_ids: Sequence[int], target_pieces: Phrase) -> Lesson:
        """One guarded step on a confirmed sentence; the network is in eval mode before and after."""
        steps = self.study(source_ids, target_pieces)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                lesson: Lesson = done.value
                return lesson

    def study(self, source_ids: Sequence[int], target_pieces: Phrase) -> Generator[None, None, Lesson]:
        """`learn` in short steps, so that whoever drives it can do something more urgent in between.

        On the way the network may wear weights that are not accepted yet: let nobody translate with it.
        """
        started = time.perf_counter()
        pair: Pair = (source_ids, target_pieces)
        before = -self._loss_of([pair])
        yield
        if not self.enabled:
            change = yield from self._guard_steps()
            return self._note(Lesson(False, before, before, change, 0.0, "learning is switched off"))
        saved, replayed = self._state(), self._next_replay
        try:
            yield from self._step([pair, *self._next_replays()])
            after = -self._loss_of([pair])
            yield
            change = yield from self._guard_steps()
        except BaseException:  # also when the session is closed in the middle of a lesson
            self._put(saved)
            self._next_replay = replayed
            raise
        accepted, reason = True, "learned"
        if not _finite(after, change):
            accepted, reason = False, "the step led to numbers that are not finite"
        elif self.settings.guarded and not self._guard:
            reason = "learned; this model has no guard set"
        elif self.settings.guarded and change > self.settings.margin:
            accepted, reason = (
                False,
                (f"the guard set would get worse by {change:.1%}, more than {self.settings.margin:.1%}"),
            )
        if not accepted:
            self._put(saved)
            after, change = before, self._lessons[-1].guard if self._lessons else 0.0
        return self._note(Lesson(accepted, before, after, change, time.perf_counter() - started, reason))

    def snapshot(self) -> tuple[Learned, tuple[Lesson, ...], int]:
        """The exact state; cheap, since weights are never changed in place."""
        return self._state(), self._lessons, self._next_replay

    def restore(self, snapshot: tuple[Learned, tuple[Lesson, ...], int]) -> None:
        """Back to exactly this state."""
        weights, self._lessons, self._next_replay = snapshot
        self._put(weights)

    def reset(self) -> None:
        """Back to the checkpoint's own weights."""
        self._put(self._base)

    def offset(self) -> bytes:
        """What was learned, as data: the changed weights in safetensors format."""
        changed = {
            name: p.data.contiguous()
            for name, p in self._parameters.items()
            if p.data_ptr() != self._base[name].data_ptr()
        }
        return safetensors.torch.save(changed, metadata={"next_replay": str(self._next_replay)})

    def load_offset(self, data: bytes) -> None:
        """Take up what `offset` wrote, on the same model."""
        try:
            changed = safetensors.torch.load(data)
        except safetensors.SafetensorError as error:
            raise SessionError(f"the learned weights cannot be read ({error}); learn anew.") from error
        for name, tensor in changed.items():
            if name not in self._base or tensor.shape != self._base[name].shape:
                raise SessionError(
                    f"learned weights {name!r} do not fit the model {self._translator.name!r}."
                )
            if not bool(torch.isfinite(tensor).all()):
                raise SessionError(f"learned weights {name!r} hold NaN or infinity; learn anew.")
        self._put({**self._base, **changed})

    # Inside

    def _note(self, lesson: Lesson) -> Lesson:
        self._lessons = (*self._lessons, lesson)
        return lesson

    def _state(self) -> Learned:
        return {name: p.data for name, p in self._parameters.items()}

    def _put(self, weights: Learned) -> None:
        for name, p in self._parameters.items():
            p.data = weights[name]
        self._changed()

    def _changed(self) -> None:
        """Let a network that keeps packed copies of its weights make them anew."""
        if callable(hook := getattr(self._network, "weights_changed", None)):
            hook()

    def _step(self, batch: Sequence[Pair]) -> Generator[None, None, None]:
        pieces = 2 * sum(len(target) + 1 for _, target in batch)
        for _ in range(self.settings.steps):
            total: list[Tensor | None] = [None] * len(self._parameters)
            for pair in batch:  # one sentence at a time: a click waits for no more than that
                # inference_mode(False): a worker may run under it, and its tensors cannot learn.
                with torch.inference_mode(False), torch.enable_grad():
                    loss = self._loss([pair]) / pieces
                    gradients: Sequence[Tensor | None] = torch.autograd.grad(
                        loss, list(self._parameters.values()), allow_unused=True
                    )
                total = [
                    new if old is None else old if new is None else old + new
                    for old, new in zip(total, gradients, strict=True)
                ]
                yield
            for p, gradient in zip(self._parameters.values(), total, strict=True):
                if gradient is not None:
                    p.data = p.data - self.settings.rate * gradient
        self._changed()

    def _loss(self, batch: Sequence[Pair]) -> Tensor:
        """Loss summed over the pieces of both directions."""
        directions = self._translator.directions
        sources = read_sources(self._network, directions, [ids for ids, _ in batch])
        targets = [pieces for _, pieces in batch]
        total = torch.zeros(())
        for direction in (directions.forward, directions.backward):
            total = total - score(direction, sources.start(direction), range(len(batch)), targets).logp.sum()
        return total

    def _loss_of(self, pairs: Sequence[Pair]) -> float:
        """Mean loss per piece over both directions."""
        with torch.inference_mode():
            return float(self._loss(pairs)) / (2 * sum(len(target) + 1 for _, target in pairs))

    def _guard_steps(self) -> Generator[None, None, float]:
        """Relative change of the guard set's loss against the base model, a few sentences at a time."""
        if not self._guard:
            return 0.0
        total = 0.0
        for first in range(0, len(self._guard), GUARD_STEP):
            with torch.inference_mode():
                total += float(self._loss(self._guard[first : first + GUARD_STEP]))
            yield
        return total / (2 * sum(len(target) + 1 for _, target in self._guard)) / self._guard_base - 1.0

    def _next_replays(self) -> list[Pair]:
        """The next few of the replay set, round and round."""
        count = min(self.settings.replay, len(self._replay))
        chosen = [self._replay[(self._next_replay + i) % len(self._replay)] for i in range(count)]
        self._next_replay += count
        return chosen

    def _pairs(self, texts: Sequence[tuple[str, str]]) -> list[Pair]:
        vocabulary = self._translator.target_vocabulary
        return [(self._translator.encode_source(s), tuple(vocabulary.encode(t))) for s, t in texts]


def _finite(*values: float) -> bool:
    return all(value - value == 0.0 for value in values)


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
