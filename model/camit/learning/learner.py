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

Weights are never changed in place: a snapshot is a reference, and restoring it is exact.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple

import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.errors import InputError, SessionError
from camit.learning.guard import (
    GUARD,
    REPLAY,
    Baseline,
    Batch,
    Places,
    batches,
    expected,
    load_pairs,
    places_along,
)
from camit.learning.mistakes import departures, mistakes
from camit.learning.recollection import Asked, Kept, keep, recalls, restored, stored, with_sentence
from camit.search.problem import Phrase
from camit.search.recall import NOBODY, Recalled
from camit.search.scoring import Directions, read_sources
from camit.search.threads import threads_for
from camit.translator import Translator

Preset = Literal["default", "paper"]
Pair = tuple[Sequence[int], Phrase]  # source ids, target pieces
GUARD_STEP = 8  # sentences of the guard set read at once
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
class LearningSettings:
    """How a lesson is given; the comments say how the numbers were chosen."""

    parameters: Literal["all", "adaptable"] = "adaptable"
    # How far each weight moves: by its gradient over the usual size of it, or all as far.
    #
    # `step`, `rate` and `weight` were chosen by how much more probable each next sentence was before it was
    # learned from (log-probability per piece), and by how much the guard set's loss rose. On 349 lines of
    # talks and 519 of dialogue, with a constant rate:
    #   plain gradients, rate 0.2, weight 0.5        0.057, 0.064    2.1, 2.7 %
    #   scaled, rate 0.8, weight 2                   0.089, 0.064    2.7, 1.5 %
    #     the same with rate 1.6                     0.056 on talks
    #     the same with weight 0.5                   as much         3.3, 2.0 %
    #     the same without the replay set            0.033 on dialogue
    #     and three earlier sentences in each step   0.022, 0.019
    #   divided by covariances (K-FAC)               0.085, 0.059    0.8, 0.6 %
    step: Literal["scaled", "sign"] = "scaled"
    # On four beginnings of documents (80, 60 and 70 lines of talks, 170 of dialogue) 0.7 gains 0.065, 0.052,
    # 0.054, 0.052 per piece and the loss on the other kind of text changes by +0.37, +0.24, +0.16, -0.10 %;
    # with 1.0 it is 0.057, 0.047, 0.057, 0.057 and +1.17, +0.71, +0.79, +0.09 %: as much, for three times the
    # harm elsewhere. A larger `weight` does not help there (4 and 8 after the first talk: +1.07, +1.05 %).
    rate: float = 0.7
    # The rate falls as 1 / sqrt(1 + lessons / slows). On a document of 767 lines of dialogue its later half
    # gains 0.060 with 1 that falls, 0.040 with 0.8 that does not; on talks it makes no difference.
    slows: float = 50.0
    pieces: int = 20  # of a sentence that moves weights by the rate; a shorter one says less
    # The longest gradient, when scaled; nineteen of twenty are shorter. A sentence that makes no sense must
    # not turn everything over.
    clip: float = 3.0
    replay: int = 2  # sentences of the replay set in each step
    weight: float = 2.0  # of the replay set beside the confirmed sentence
    # By how much the guard set's loss may rise above the base model's: documents of some hundred lines stay
    # below it.
    margin: float = 0.05
    guarded: bool = True
    # Whether the end of a sentence (for the backward decoder, its beginning) is learned like its pieces. Each
    # sentence has one: learned each time, it comes ever sooner. On 1,086 lines of dialogue drafts have 6,309
    # words without memory and learning, with both 6,143 if ends are learned (21.8 BLEU) and 6,279 if not
    # (22.2); with plain gradients. On 715 lines of talks it made no difference to BLEU.
    ends: bool = False
    # What words of the machine's draft count that were wrong and that lessons had made more probable: each
    # adds -log(1 - p), so that it gets less probable (Welleck et al. 2020, "Neural Text Generation with
    # Unlikelihood Training"). Without them a rare word that was learned is soon said everywhere. What drafts
    # gain with learning and a memory that trusted its entries wherever attention is, in BLEU, on 1,086 lines
    # of dialogue and 887 of talks; in brackets later halves, where chance is about 0.5:
    #   nothing is unlearned                      0.91 (0.32), 0.36 (0.18)
    #   these words count twice                   0.80 (0.04), 0.56 (0.72)
    #     four times                              0.68 (0.17) on dialogue
    #   all that was not confirmed, twice         0.87 (0.92), -0.04 (-0.41), and talks get 5 % shorter
    #   of that, what each decoder writes first   0.70 (0.29) on dialogue
    # After 80 lines of a talk the loss on dialogue is up by 0.42 % without them, and by 0.65, 0.71 and 1.01 %
    # if they count once, 1.5 times and twice.
    mistakes: float = 1.5
    recall: bool = True  # confirmed sentences are recalled while later ones are written

    def __post_init__(self) -> None:
        if self.recall and self.parameters == "all":
            raise InputError(
                'sentences cannot be recalled where all parameters learn: give recall=False, or "adaptable".'
            )


PRESETS: dict[str, LearningSettings] = {
    "default": LearningSettings(),
    # One step on everything, as long for every weight as Adam's first: the paper names Adam and this rate.
    "paper": LearningSettings(
        parameters="all",
        step="sign",
        rate=1e-5,
        slows=math.inf,
        replay=0,
        guarded=False,
        ends=True,
        mistakes=0.0,
        recall=False,
    ),
}


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


Weights = Mapping[str, Tensor]  # the parameters that learn, by name


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
        network = translator.network
        self._plain = Directions.of(network, translator.target_vocabulary)  # which recall nothing
        self._directions = self._plain.both
        self._sentences: tuple[Kept, ...] = ()
        self._along_guard: dict[int, list[Recalled]] = {}  # by batch of the guard set and direction
        translator.set_recalls(None)
        moved = (
            list(network.parameters())
            if self.moves_all
            else [p for direction in self._directions for p in direction.decoder.adaptable]
        )
        chosen = set(map(id, moved))
        self._parameters: dict[str, nn.Parameter] = {
            name: p for name, p in network.named_parameters() if id(p) in chosen
        }
        self._base: dict[str, Tensor] = {name: p.data for name, p in self._parameters.items()}
        guard, replay = (
            load_pairs(translator.directory, name) if given is None else given
            for name, given in ((GUARD, guard), (REPLAY, replay))
        )
        self._next_replay = 0
        size = self.settings.replay or GUARD_STEP
        self._baseline = translator.shared(
            (Baseline, self.settings.parameters, self.settings.step, size, *map(_frozen, (guard, replay))),
            lambda: Baseline(batches(translator, guard, GUARD_STEP), batches(translator, replay, size)),
        )
        self._asked = [Asked(batch.ids, translator.source_vocabulary) for batch in self._baseline.guard]

    @property
    def moves_all(self) -> bool:
        """Do lessons move what comes before `Features.place`, too, so that what was read has to be read
        anew?"""
        return self.settings.parameters == "all"

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
        places = self._reader([source_ids], [target_pieces])
        before = -self._mean_loss(places())
        yield
        known = self._lessons[-1].guard if self._lessons else 0.0
        if not self.enabled:
            seconds = time.perf_counter() - started
            reason = "learning is switched off"
            return self._note(Lesson(False, before, before, known, seconds, reason, draft, skipped=True))
        saved = self.snapshot()
        try:
            yield from self._expect()
            yield from self._measure()
            mistaken = self._mistaken(pair, drafted)
            yield
            yield from self._step(places, mistaken)
            after = -self._mean_loss(places())
            yield
            change, recalled = yield from self._keep(pair, draft)
            kept = self._kept(change)
            if LEAST_KEPT <= kept < 1.0:
                self._fade(kept)
                after = -self._mean_loss(places())
                yield
                change = yield from self._guard_change()
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
            self._put(saved.weights)
            self._recall(saved.sentences)
            after, change = before, _Change(known)
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
        return Knowledge(self._state(), self._sentences, self._lessons, self._next_replay)

    def restore(self, snapshot: Knowledge) -> None:
        """Back to exactly this state."""
        self._lessons, self._next_replay = snapshot.lessons, snapshot.replayed
        self._put(snapshot.weights)
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
            if weights.data_ptr() != self._base[name].data_ptr()
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
            if name not in self._base or tensor.shape != self._base[name].shape:
                raise SessionError(
                    f"learned weights {name!r} do not fit the model {self._translator.name!r}."
                )
            if tensor.dtype != self._base[name].dtype or not bool(torch.isfinite(tensor).all()):
                raise SessionError(
                    f"learned weights {name!r} are of another kind, or not finite; learn anew."
                )
        # Most are recalled now, too: those are not read again.
        known = {(s.source, s.target, s.draft): s for s in self._sentences}
        network, recalled = self._translator.network, sentences if self.settings.recall else []
        kept = tuple(known.get(sentence) or keep(network, self._plain, *sentence) for sentence in recalled)
        return Knowledge({**self._base, **changed}, kept, tuple(lessons), replayed)

    # Inside

    def _note(self, lesson: Lesson) -> Lesson:
        self._lessons = (*self._lessons, lesson)
        return lesson

    def _state(self) -> Weights:
        return {name: p.data for name, p in self._parameters.items()}

    def _put(self, weights: Weights) -> None:
        for name, p in self._parameters.items():
            p.data = weights[name]

    def _recall(self, sentences: tuple[Kept, ...]) -> None:
        if sentences != self._sentences:
            self._translator.set_recalls(recalls(sentences, self._translator.source_vocabulary))
            self._sentences = sentences
            self._along_guard = {}

    def _keep(self, pair: Pair, draft: int) -> Generator[None, None, tuple[_Change, bool]]:
        """Recall a sentence from now on, if the guard has room for it; if need be, the older half of those
        that were recalled so far goes. Nothing is recalled where no guard set can tell what that does."""
        settings, before = self.settings, self._sentences
        if not settings.recall or (settings.guarded and not self._baseline.guard):
            return (yield from self._guard_change()), False
        ids, pieces = pair
        fed = tuple(self._translator.target_vocabulary.feed(pieces))
        new = keep(self._translator.network, self._plain, ids, fed, draft)
        for earlier in (before, before[len(before) // 2 + 1 :]):
            self._recall(with_sentence(earlier, new))
            yield
            change = yield from self._guard_change()
            if not settings.guarded or change.recall <= RECALLED * settings.margin:
                return change, True
        self._recall(before)
        return (yield from self._guard_change()), False

    def _kept(self, change: _Change) -> float:
        """The part of what the weights learned that the guard has room for beside what is recalled: its loss
        grows with the square of the distance from the base model."""
        margin = self.settings.margin - max(0.0, change.recall)
        if not self.settings.guarded or not math.isfinite(change.both) or change.weights <= margin:
            return 1.0
        return math.sqrt(max(0.0, ROOM * margin / change.weights))

    def _fade(self, kept: float) -> None:
        """Go back towards the base model, to this part of the distance."""
        with torch.inference_mode(False), torch.no_grad():
            for name, p in self._parameters.items():
                p.data = torch.lerp(self._base[name], p.data, kept)

    def _step(
        self, places: Callable[[], Sequence[Places]], mistaken: Callable[[], Sequence[Places]] | None
    ) -> Generator[None, None, None]:
        settings = self.settings
        parameters = list(self._parameters.values())
        pulls = [lambda: self._loss(places(), ends=settings.ends) / (2 * settings.pieces)]
        if mistaken is not None:
            pulls.append(lambda: settings.mistakes * self._unlikelihood(mistaken()) / (2 * settings.pieces))
        if self._baseline.replay and settings.replay:
            batch = self._baseline.replay[self._next_replay % len(self._baseline.replay)]
            self._next_replay += 1
            pulls.append(
                lambda: settings.weight * self._drift(batch, self._predict(self._read(batch))) / batch.places
            )
        total = [torch.zeros_like(p.data) for p in parameters]
        for pull in pulls:
            total = [a + b for a, b in zip(total, self._gradients(pull), strict=True)]
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
        worn = self._state()
        squares = [torch.zeros_like(weights) for weights in self._base.values()]
        for batch in self._baseline.replay or self._baseline.guard:
            for row in range(len(batch.ids)):
                self._put(self._base)
                gradients = self._gradients(functools.partial(self._loss_along, batch, row))
                self._put(worn)
                squares = [total + g.square() for total, g in zip(squares, gradients, strict=True)]
                yield
        sizes = [square.sqrt() for square in squares]
        mean = sum(float(size.sum()) for size in sizes) / sum(size.numel() for size in sizes)
        self._baseline.usual = [size / mean + DAMPING for size in sizes] if mean else []

    def _loss_along(self, batch: Batch, row: int) -> Tensor:
        """Mean loss per piece of a sentence of the replay or the guard set."""
        start, length = sum(len(pieces) + 1 for pieces in batch.targets[:row]), len(batch.targets[row])
        places = [p.cut(start, start + length + 1) for p in self._read(batch)]
        return self._loss(places, ends=False) / (2 * max(1, length))

    def _gradients(self, loss: Callable[[], Tensor]) -> list[Tensor]:
        # inference_mode(False): a worker may run under it, and its tensors cannot learn.
        with torch.inference_mode(False), torch.enable_grad():
            parameters = list(self._parameters.values())
            found = torch.autograd.grad(loss(), parameters, allow_unused=True, materialize_grads=True)
        return [gradient.detach() for gradient in found]

    def _along(self, ids: Sequence[Sequence[int]], targets: Sequence[Phrase]) -> list[Places]:
        """The places of known sentences for each direction, with gradients if what comes before them
        learns."""
        # inference_mode(False): see `_gradients`.
        with torch.inference_mode(False), nullcontext() if self.moves_all else torch.no_grad():
            sources = read_sources(self._translator.network, self._plain, ids)
            return [places_along(d, sources.start(d), targets) for d in self._directions]

    def _reader(
        self, ids: Sequence[Sequence[int]], targets: Sequence[Phrase]
    ) -> Callable[[], Sequence[Places]]:
        """`_along` for sentences that are asked about again and again: read once, if nothing in it learns."""
        if self.moves_all:
            return lambda: self._along(ids, targets)
        known = self._along(ids, targets)
        return lambda: known

    def _logits(self, places: Sequence[Places]) -> list[Tensor]:
        """Scores [places, vocabulary] by the weights of now, for each direction."""
        with threads_for(len(places[0].wanted)):
            decoders = [direction.decoder for direction in self._directions]
            return [d.logits(d.finish(p.place)) for d, p in zip(decoders, places, strict=True)]

    def _predict(self, places: Sequence[Places]) -> list[Tensor]:
        return [torch.log_softmax(logits, dim=1) for logits in self._logits(places)]

    def _loss(self, places: Sequence[Places], *, ends: bool) -> Tensor:
        """Summed over the pieces of both directions, with or without the ends of sentences."""
        losses = [loss[p.end <= ends].sum() for loss, p in zip(self._losses(places), places, strict=True)]
        return losses[0] + losses[1]

    def _losses(self, places: Sequence[Places]) -> list[Tensor]:
        """Of each piece [places], for each direction."""
        return [
            F.cross_entropy(logits, p.wanted, reduction="none")
            for logits, p in zip(self._logits(places), places, strict=True)
        ]

    def _mistaken(self, pair: Pair, drafted: Phrase) -> Callable[[], Sequence[Places]] | None:
        """The places where each decoder goes wrong in the machine's draft, led there by earlier lessons."""
        if not self.settings.mistakes:
            return None
        ids, pieces = pair
        wrong = mistakes(self._translator.target_vocabulary, drafted, pieces)
        mirrored = [(len(drafted) - stop, len(drafted) - start) for start, stop in reversed(wrong)]
        at = [
            departures(direction.order(drafted), direction.order(pieces), spans)
            for direction, spans in zip(self._directions, (wrong, mirrored), strict=True)
        ]
        if not any(at):
            return None
        read = self._reader([ids], [drafted])

        def chosen(at: Sequence[Sequence[int]]) -> list[Places]:
            return [p.select(places) for p, places in zip(read(), at, strict=True)]

        def chances() -> list[list[float]]:
            with torch.inference_mode():
                return [torch.exp(-loss).tolist() for loss in self._losses(chosen(at))]

        now, worn = chances(), self._state()
        self._put(self._base)
        base = chances()
        self._put(worn)
        led = [
            [place for place, p, once in zip(*each, strict=True) if p > once + LED]
            for each in zip(at, now, base, strict=True)
        ]
        return (lambda: chosen(led)) if any(led) else None

    def _unlikelihood(self, places: Sequence[Places]) -> Tensor:
        """Summed over the pieces of both directions: the more, the more probable they are."""
        losses = []
        for logits, p in zip(self._logits(places), places, strict=True):
            others = torch.log_softmax(logits, dim=1).scatter(1, p.wanted.unsqueeze(1), -math.inf)
            losses.append(-torch.logsumexp(others, dim=1).sum())
        return losses[0] + losses[1]

    def _mean_loss(self, places: Sequence[Places]) -> float:
        """Per piece, over both directions."""
        with torch.inference_mode():
            return float(self._loss(places, ends=True)) / sum(len(p.wanted) for p in places)

    # Guard and replay

    def _expect(self) -> Generator[None, None, None]:
        """Ask the base model, once, what it expects along the sentences of both sets."""
        if self._baseline.loss is not None:
            return
        worn, total = self._state(), 0.0
        for batch in (*self._baseline.guard, *self._baseline.replay):
            self._put(self._base)
            with torch.inference_mode(False), torch.no_grad():  # these tensors are used in learning
                read = self._along(batch.ids, batch.targets)
                now = self._predict(read)
                batch.expected = [expected(logp) for logp in now]
                batch.read = () if self.moves_all else read
                total += float(self._drift(batch, now)) if batch in self._baseline.guard else 0.0
            self._put(worn)
            yield
        self._baseline.loss = total / max(1, sum(batch.places for batch in self._baseline.guard))

    def _read(self, batch: Batch) -> Sequence[Places]:
        return batch.read or self._along(batch.ids, batch.targets)

    def _drift(self, batch: Batch, now: Sequence[Tensor]) -> Tensor:
        """Cross-entropy of log-probabilities with what the base model expects, summed over places and
        directions."""
        losses = [e.loss(logp) for e, logp in zip(batch.expected, now, strict=True)]
        return losses[0] + losses[1]

    def _guard_change(self) -> Generator[None, None, _Change]:
        """Relative change of the guard set's loss against the base model, a few sentences at a time."""
        plain = recalling = 0.0
        for number, batch in enumerate(self._baseline.guard):
            with torch.inference_mode():
                read = self._read(batch)
                now = self._predict(read)
                plain += float(self._drift(batch, now))
                if self._sentences:
                    recalled = self._recalled(number, batch, read)
                    mixed = [r.mix(logp) for r, logp in zip(recalled, now, strict=True)]
                    recalling += float(self._drift(batch, mixed))
            yield
        if not self._baseline.loss:
            return _Change(0.0)
        base = self._baseline.loss * sum(batch.places for batch in self._baseline.guard)
        return _Change(plain / base - 1.0, (recalling - plain) / base if self._sentences else 0.0)

    def _recalled(self, number: int, batch: Batch, read: Sequence[Places]) -> list[Recalled]:
        """What is recalled along a batch of the guard set, for each direction. Places stay where they are
        while weights learn, so this is found out once for all that is recalled at a time."""
        if number not in self._along_guard:
            lengths = [len(pieces) + 1 for pieces in batch.targets]
            along = []
            for direction, recall, places, commons in zip(
                self._directions,
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
            self._along_guard[number] = along
        return self._along_guard[number]


def _frozen(pairs: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, pairs))


class _Change(NamedTuple):
    """By how much the guard set's loss is above the base model's, relatively."""

    weights: float
    recall: float = 0.0  # what the recalled sentences add to it

    @property
    def both(self) -> float:
        return self.weights + self.recall
