"""Online learning: after each confirmed sentence one small, guarded step (the paper's "Online Learning").

Both decoders learn the words of the confirmed text, but not where it ends, and unlearn words of the machine's
own draft that were wrong where lessons had led to them (`mistakes.py`). Two small sets of sentences ship with
a model, each with the model's own translation. The replay set holds the step back where the base model knew
better, and tells how large the gradient of each weight usually is, by which it is divided (Krause et al.
2018, "Dynamic Evaluation of Neural Sequence Models"). The guard set must not drift from the base model beyond
a margin (`guard.py`). Where it would, what was learned fades a little to make room for the new lesson; where
that does not help, the step is taken back and reported as rejected.

Beside the step, the sentence itself is kept: what stood where is recalled when a later sentence comes to a
place much like it (`recollection.py`). The guard watches over both, and both are taken back together.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from torch import Tensor

from camit.errors import InputError, SessionError
from camit.learning.guard import Batch, Change, Guard, baseline_of
from camit.learning.mistakes import departures, mistakes
from camit.learning.pupil import Places, Pupil, Weights
from camit.learning.recollection import Kept, keep, recalls, restored, stored, with_sentence
from camit.learning.settings import PRESETS, LearningSettings, Preset
from camit.search.problem import Phrase
from camit.search.recall import NOBODY
from camit.translator import Translator

Pair = tuple[Sequence[int], Phrase]  # source ids, target pieces
# When the guard set would drift beyond its margin, what was learned fades until this share of it is used, so
# that not every lesson from then on has to; but to no less than this of itself, or nothing would be learned.
ROOM, LEAST_KEPT = 0.8, 0.5
RECALLED = 0.5  # of the margin, at most, is for what is recalled; the rest is for the weights
# Of the mean size of gradients, added to the usual size of each, since some are next to nothing.
DAMPING = 0.1
# By how much lessons must have raised the probability of a word in a draft, at least, for it to be unlearned
# where it was wrong.
LED = 0.02
UNMEASURED = 0.25  # of the rate, where no sentences tell how large gradients usually are


@dataclass(frozen=True)
class Lesson:
    """What happened when a sentence was confirmed."""

    accepted: bool
    # Mean log-probability per piece of the confirmed sentence, its end too, in both directions; by the
    # network, without what is recalled.
    before: float
    after: float
    guard: float  # relative change of the guard set's loss against the base model
    seconds: float
    reason: str
    draft: int = NOBODY  # which was confirmed
    skipped: bool = False  # learning was switched off, so nothing was tried, and nothing rejected


@dataclass(frozen=True)
class Knowledge:
    """The exact state of a learner."""

    weights: Weights
    sentences: tuple[Kept, ...]  # that are recalled
    lessons: tuple[Lesson, ...]
    replayed: int  # batches of the replay set


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
        self._lessons: tuple[Lesson, ...] = ()
        self._sentences: tuple[Kept, ...] = ()
        translator.set_recalls(None)
        self._pupil = Pupil(translator, self.settings.parameters)
        self._baseline = baseline_of(translator, guard, replay, self.settings)
        self._guard = Guard(translator, self._pupil, self._baseline)
        self._next_replay = 0

    @property
    def moves_all(self) -> bool:
        """Do lessons move what comes before `Features.place`, too, so that what was read has to be read
        anew?"""
        return self._pupil.moves_all

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        return self._lessons

    def learn(
        self,
        source_ids: Sequence[int],
        target_pieces: Phrase,
        draft: int = NOBODY,
        drafted: Phrase = (),
    ) -> Lesson:
        """One guarded step on a confirmed sentence; the network is in eval mode before and after. What is
        recalled of it is said to be from this draft. `drafted`: what the machine had written by itself."""
        steps = self.study(source_ids, target_pieces, draft, drafted)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                lesson: Lesson = done.value
                return lesson

    def study(
        self,
        source_ids: Sequence[int],
        target_pieces: Phrase,
        draft: int = NOBODY,
        drafted: Phrase = (),
    ) -> Generator[None, None, Lesson]:
        """`learn` in short steps, so that whoever drives it can do something more urgent in between.

        On the way the network may wear weights that are not accepted yet: let nobody translate with it.
        """
        started = time.perf_counter()
        pair: Pair = (source_ids, target_pieces)
        places = self._pupil.reader([source_ids], [target_pieces])
        before = -self._pupil.mean_loss(places())
        yield
        known = self._lessons[-1].guard if self._lessons else 0.0
        if not self.enabled:
            seconds = time.perf_counter() - started
            reason = "learning is switched off"
            return self._note(Lesson(False, before, before, known, seconds, reason, draft, skipped=True))
        saved = self.snapshot()
        try:
            yield from self._guard.expect()
            yield from self._measure()
            mistaken = self._mistaken(pair, drafted)
            yield
            yield from self._step(places, mistaken)
            after = -self._pupil.mean_loss(places())
            yield
            change, recalled = yield from self._keep(pair, draft)
            kept = self._kept(change)
            if LEAST_KEPT <= kept < 1.0:
                self._fade(kept)
                after = -self._pupil.mean_loss(places())
                yield
                change = yield from self._guard.change(self._sentences)
        except BaseException:  # also when the session is closed in the middle of a lesson
            self.restore(saved)
            raise
        margin = self.settings.margin
        accepted, reason = True, "learned"
        if not math.isfinite(after) or not math.isfinite(change.both):
            accepted, reason = False, "the step led to numbers that are not finite"
        elif after <= before and kept < 1.0:
            accepted, reason = False, "the guard leaves no room for it beside what was learned before"
        elif after <= before:
            accepted, reason = False, "the step did not make the sentence more probable"
        elif self.settings.guarded and not self._baseline.guard:
            reason = "learned; this model has no guard set"
        elif self.settings.guarded and change.both > margin:
            accepted = False
            reason = f"the guard set would get worse by {change.both:.1%}, more than {margin:.1%}"
        elif kept < 1.0:
            reason = f"learned; all that was learned fades by {1 - kept:.0%} to stay within the guard"
        if not accepted:
            self._pupil.wear(saved.weights)
            self._recall(saved.sentences)
            after, change = before, Change(known)
        elif self.settings.recall and self._baseline.guard and not recalled:
            reason += "; the guard leaves no room to recall it word by word"
        seconds = time.perf_counter() - started
        return self._note(Lesson(accepted, before, after, change.both, seconds, reason, draft))

    def recalled_as(self, source_ids: Sequence[int]) -> int | None:
        """The draft that this very source was confirmed as, if that is recalled."""
        for kept in self._sentences:
            if kept.source == tuple(source_ids):
                return None if kept.draft == NOBODY else kept.draft
        return None

    def snapshot(self) -> Knowledge:
        """The exact state; cheap, since weights are never changed in place."""
        return Knowledge(self._pupil.weights(), self._sentences, self._lessons, self._next_replay)

    def restore(self, snapshot: Knowledge) -> None:
        """Back to exactly this state."""
        self._lessons, self._next_replay = snapshot.lessons, snapshot.replayed
        self._pupil.wear(snapshot.weights)
        self._recall(snapshot.sentences)

    def reset(self) -> None:
        """Back to the checkpoint's own weights, with nothing to recall, as if there had been no lessons."""
        self.restore(self.knowledge(None))

    def offset(self, of: Knowledge | None = None) -> bytes:
        """What was learned, now or then, as data: changed weights and recalled sentences in safetensors
        format."""
        of = of or self.snapshot()
        changed = {
            name: weights
            for name, weights in of.weights.items()
            if weights.data_ptr() != self._pupil.base[name].data_ptr()
        }
        # As arrays: of tensors, safetensors makes a ctypes type for each new length, and keeps it for ever.
        tensors = {**changed, **stored(of.sentences)}
        return safetensors.numpy.save({name: x.contiguous().cpu().numpy() for name, x in tensors.items()})

    def load_offset(self, data: bytes) -> None:
        """Take up what `offset` wrote, on the same model."""
        self.restore(self.knowledge(data, self._lessons, self._next_replay))

    def knowledge(self, offset: bytes | None, lessons: Sequence[Lesson] = (), replayed: int = 0) -> Knowledge:
        """What `offset` wrote on the same model, or None for what the checkpoint knows; only looked at, not
        taken up."""
        changed: dict[str, Tensor] = {}
        if offset is not None:
            try:
                changed = safetensors.torch.load(offset)
            except safetensors.SafetensorError as error:
                raise SessionError(f"the learned weights cannot be read ({error}); learn anew.") from error
        vocabularies = self._translator.source_vocabulary, self._translator.target_vocabulary
        sentences = restored(changed, *map(len, vocabularies))
        for name, tensor in changed.items():
            if name not in self._pupil.base or tensor.shape != self._pupil.base[name].shape:
                raise SessionError(
                    f"learned weights {name!r} do not fit the model {self._translator.name!r}."
                )
            if tensor.dtype != self._pupil.base[name].dtype or not bool(torch.isfinite(tensor).all()):
                raise SessionError(
                    f"learned weights {name!r} are of another kind, or not finite; learn anew."
                )
        # Most are recalled now, too: those are not read again.
        known = {(s.source, s.target, s.draft): s for s in self._sentences}
        network, recalled = self._translator.network, sentences if self.settings.recall else []
        kept = tuple(
            known.get(sentence) or keep(network, self._pupil.plain, *sentence) for sentence in recalled
        )
        return Knowledge({**self._pupil.base, **changed}, kept, tuple(lessons), replayed)

    # Inside

    def _note(self, lesson: Lesson) -> Lesson:
        self._lessons = (*self._lessons, lesson)
        return lesson

    def _recall(self, sentences: tuple[Kept, ...]) -> None:
        if sentences != self._sentences:
            self._translator.set_recalls(recalls(sentences, self._translator.source_vocabulary))
            self._sentences = sentences

    def _keep(self, pair: Pair, draft: int) -> Generator[None, None, tuple[Change, bool]]:
        """Recall a sentence from now on, if the guard has room for it; if need be, the older half of those
        that were recalled so far goes. Nothing is recalled where no guard set can tell what that does."""
        settings, before = self.settings, self._sentences
        if not settings.recall or (settings.guarded and not self._baseline.guard):
            return (yield from self._guard.change(self._sentences)), False
        ids, pieces = pair
        fed = tuple(self._translator.target_vocabulary.feed(pieces))
        new = keep(self._pupil.network, self._pupil.plain, ids, fed, draft)
        for earlier in (before, before[len(before) // 2 + 1 :]):
            self._recall(with_sentence(earlier, new))
            yield
            change = yield from self._guard.change(self._sentences)
            if not settings.guarded or change.recall <= RECALLED * settings.margin:
                return change, True
        self._recall(before)
        return (yield from self._guard.change(self._sentences)), False

    def _kept(self, change: Change) -> float:
        """The part of what the weights learned that the guard has room for beside what is recalled: its loss
        grows with the square of the distance from the base model."""
        margin = self.settings.margin - max(0.0, change.recall)
        if not self.settings.guarded or not math.isfinite(change.both) or change.weights <= margin:
            return 1.0
        return math.sqrt(max(0.0, ROOM * margin / change.weights))

    def _fade(self, kept: float) -> None:
        """Go back towards the base model, to this part of the distance."""
        with torch.inference_mode(False), torch.no_grad():
            for name, p in self._pupil.parameters.items():
                p.data = torch.lerp(self._pupil.base[name], p.data, kept)

    def _step(
        self, places: Callable[[], Sequence[Places]], mistaken: Callable[[], Sequence[Places]] | None
    ) -> Generator[None, None, None]:
        settings, pupil, guard = self.settings, self._pupil, self._guard
        parameters = list(pupil.parameters.values())
        pulls = [lambda: pupil.loss(places(), ends=settings.ends) / (2 * settings.pieces)]
        if mistaken is not None:
            pulls.append(lambda: settings.mistakes * pupil.unlikelihood(mistaken()) / (2 * settings.pieces))
        if self._baseline.replay and settings.replay:
            batch = self._baseline.replay[self._next_replay % len(self._baseline.replay)]
            self._next_replay += 1
            pulls.append(
                lambda: settings.weight * guard.drift(batch, pupil.predict(guard.read(batch))) / batch.places
            )
        total = [torch.zeros_like(p.data) for p in parameters]
        for pull in pulls:
            total = [a + b for a, b in zip(total, pupil.gradients(pull), strict=True)]
            yield
        taught = sum(lesson.accepted for lesson in self._lessons)
        rate = settings.rate / math.sqrt(1.0 + taught / settings.slows)
        if settings.step == "sign":
            total = [gradient.sign() for gradient in total]
        else:
            if self._baseline.usual:
                total = [
                    gradient / usual for gradient, usual in zip(total, self._baseline.usual, strict=True)
                ]
            else:
                rate *= UNMEASURED
            length = math.sqrt(sum(float(gradient.square().sum()) for gradient in total))
            rate *= min(1.0, settings.clip / length) if length else 1.0
        with torch.inference_mode(False), torch.no_grad():
            for p, gradient in zip(parameters, total, strict=True):
                p.data = p.data - rate * gradient

    def _measure(self) -> Generator[None, None, None]:
        """Find out, once, how large the base model's gradients are along the replay set: for each weight the
        root mean square over its sentences, 1 in the mean over the weights."""
        if self._baseline.usual is not None or self.settings.step == "sign":
            return
        worn = self._pupil.weights()
        squares = [torch.zeros_like(weights) for weights in self._pupil.base.values()]
        for batch in self._baseline.replay or self._baseline.guard:
            for row in range(len(batch.ids)):
                self._pupil.wear(self._pupil.base)
                gradients = self._pupil.gradients(functools.partial(self._loss_along, batch, row))
                self._pupil.wear(worn)
                squares = [total + g.square() for total, g in zip(squares, gradients, strict=True)]
                yield
        sizes = [square.sqrt() for square in squares]
        mean = sum(float(size.sum()) for size in sizes) / sum(size.numel() for size in sizes)
        self._baseline.usual = [size / mean + DAMPING for size in sizes] if mean else []

    def _loss_along(self, batch: Batch, row: int) -> Tensor:
        """Mean loss per piece of a sentence of the replay or the guard set."""
        start, length = sum(len(pieces) + 1 for pieces in batch.targets[:row]), len(batch.targets[row])
        places = [p.cut(start, start + length + 1) for p in self._guard.read(batch)]
        return self._pupil.loss(places, ends=False) / (2 * max(1, length))

    def _mistaken(self, pair: Pair, drafted: Phrase) -> Callable[[], Sequence[Places]] | None:
        """The places where each decoder goes wrong in the machine's draft, led there by earlier lessons."""
        if not self.settings.mistakes:
            return None
        ids, pieces = pair
        wrong = mistakes(self._translator.target_vocabulary, drafted, pieces)
        mirrored = [(len(drafted) - stop, len(drafted) - start) for start, stop in reversed(wrong)]
        at = [
            departures(direction.order(drafted), direction.order(pieces), spans)
            for direction, spans in zip(self._pupil.directions, (wrong, mirrored), strict=True)
        ]
        if not any(at):
            return None
        read = self._pupil.reader([ids], [drafted])

        def chosen(at: Sequence[Sequence[int]]) -> list[Places]:
            return [p.select(places) for p, places in zip(read(), at, strict=True)]

        def chances() -> list[list[float]]:
            with torch.inference_mode():
                return [torch.exp(-loss).tolist() for loss in self._pupil.losses(chosen(at))]

        now, worn = chances(), self._pupil.weights()
        self._pupil.wear(self._pupil.base)
        base = chances()
        self._pupil.wear(worn)
        led = [
            [place for place, p, once in zip(*each, strict=True) if p > once + LED]
            for each in zip(at, now, base, strict=True)
        ]
        return (lambda: chosen(led)) if any(led) else None
