"""Whole sentences by both decoders: the first translation, and revisions.

A first translation is the best of what the two decoders write, with remembered words that got lost put in.
A revision is the restricted bi-directional grid search of the paper, with the step the paper lacks.

(1) The forward decoder keeps what stands left of the fix and writes a new right part through the earlier
fixes there. (2) The new and the old right part go, reversed, into the backward decoder, which writes new left
parts through the earlier fixes there. (3) Every combination, the old parts among them, is rescored as a whole
sentence by both decoders; the best wins.

Always taking the new left part, as the paper writes it, loses to unidirectional decoding at a free
position; (3) is what makes both directions pay. The paper's other protocols live here too, so that they
can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal, NamedTuple, get_args

import torch

from camit.errors import InputError
from camit.search.direction import Direction
from camit.search.exchange import exchanged
from camit.search.grid import PATIENCE, Prefixes, search
from camit.search.problem import Phrase, Problem, Reader, Readers, Span, Written
from camit.search.scoring import Directions, Readings, Scored, Sources
from camit.search.sides import Part, Side

Protocol = Literal["replace-only", "unidirectional", "unidirectional-grid", "bidirectional"]
# Between the sum (0), which prefers short sentences, and the mean per piece (1), which prefers long ones.
DRAFT_LENGTH = (
    0.7  # BLEU of 1,086 lines of dialogue and 887 of talks, 0.5: 21.3, 10.3; 0.7: 21.4, 10.2; 1: 21.2, 9.8
)
LENGTH = 0.5  # of a revision, on dialogue with stability 0.7: 0.4 to 0.8 differ by 0.2 BLEU, 1 loses 0.5
MENDS = 3  # remembered words that are put into a draft afterwards, at most
TRIED = 8  # sentences that are read for each of them
READ_AT_ONCE = 2_000  # pieces of whole sentences; with a vocabulary of 8,000 their scores take 64 MB


MAX_BEAM = 64


def check_beam(beam: object) -> None:
    if isinstance(beam, bool) or not isinstance(beam, int) or not 1 <= beam <= MAX_BEAM:
        raise InputError(f"beam must be a whole number from 1 to {MAX_BEAM}, not {beam!r}.")


@dataclass(frozen=True)
class Settings:
    """How a revision is searched.

    `stability` in [0, 1] prefers candidates that change fewer words on the screen.
    """

    protocol: Protocol = "bidirectional"
    beam: int = 4
    stability: float = 0.7

    def __post_init__(self) -> None:
        if self.protocol not in get_args(Protocol):
            raise InputError(
                f"unknown protocol {self.protocol!r}; choose one of {', '.join(get_args(Protocol))}."
            )
        check_beam(self.beam)
        if type(self.stability) not in (int, float) or not 0.0 <= self.stability <= 1.0:
            raise InputError(f"stability must be a number between 0 and 1, not {self.stability!r}.")


@dataclass(frozen=True)
class Request:
    """One fix: `focus` takes its place between a left and a right part."""

    sentence: int  # row of the sources
    left: Part
    focus: Phrase
    right: Part
    once: tuple[Phrase, ...] = ()  # fixes that must not appear a second time


class Whole(NamedTuple):
    """A whole sentence, and where all fixes stand in it."""

    pieces: Phrase
    fixed: tuple[Span, ...]  # earlier fixes on the left, the new one, earlier fixes on the right

    @classmethod
    def of(cls, left: Part, focus: Phrase, right: Part) -> Whole:
        end = len(left.pieces) + len(focus)
        later = ((start + end, stop + end) for start, stop in right.fixed)
        return cls((*left.pieces, *focus, *right.pieces), (*left.fixed, (len(left.pieces), end), *later))


@dataclass(frozen=True)
class Revision:
    """The sentence after a fix, and the stages that led there."""

    result: Whole
    forward: Whole  # after the first pass: old left part, fix, new right part
    backward: Whole  # after the second pass: new left part, fix, the right part that won
    score: float

    @property
    def pieces(self) -> Phrase:
        return self.result.pieces


class _Reading(NamedTuple):
    scored: Scored
    logps: list[list[float]]  # of the pieces in the order of the direction, the end last


@dataclass(frozen=True)
class _Candidate:
    left: Part
    right: Part
    new_left: Part | None = None  # what the second pass would write before this right part


@dataclass
class Searcher:
    """A network's two directions over a batch of sources, with everything a search needs to know.

    `readings` has what was read for the last question.
    """

    directions: Directions
    sources: Sources
    settings: Settings
    readers: Readers | None = None
    check: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.readings = Readings(self.directions, self.sources)
        self.directions = self.readings.directions

    @torch.inference_mode()
    def first(self) -> list[tuple[Phrase, float]]:
        """A first translation of every source, and its log-probability per piece, mean of both decoders.

        Each decoder writes its best few, and what both together find likeliest is taken: they seldom err
        alike. Measured on 1,086 lines of dialogue and 400 of talks with an earlier model: the best one of
        each 20.6 and 9.3 BLEU, four of each 21.0 and 9.4. A search ends when its best is sure, with those it
        has by then: on 300 and 120 lines that made no difference. At last `_mended` puts in what the memory
        would rather have.
        """
        self.readings.clear()
        problems = [Problem(row, self.sources.limit(row)) for row in range(len(self.sources.lengths))]
        known: dict[tuple[int, Phrase], list[float | None]] = {}
        for side, direction in enumerate(self.directions.both):
            few = self._search(direction, problems, self.settings.beam, sure=1, patience=PATIENCE)
            for row, written in ((row, written) for row, found in enumerate(few) for written in found):
                logps = known.setdefault((row, direction.order(written.pieces)), [None, None])
                logps[side] = written.logp if written.exact else None
        rows, sentences = zip(*known, strict=True)
        ahead, behind = zip(*known.values(), strict=True)
        values = self._score(rows, sentences, ahead, behind, length=DRAFT_LENGTH)
        best: dict[int, tuple[float, Phrase]] = {}
        for row, pieces, value in zip(rows, sentences, values, strict=True):
            if row not in best or value > best[row][0]:
                best[row] = value, pieces
        chosen = (best[row] for row in range(len(problems)))
        drafts = [
            self._mended(row, pieces, value * (len(pieces) + 1) ** DRAFT_LENGTH)
            for row, (value, pieces) in enumerate(chosen)
        ]
        return [(pieces, logp / (len(pieces) + 1)) for pieces, logp in drafts]

    def _mended(self, row: int, pieces: Phrase, logp: float) -> tuple[Phrase, float]:
        """A draft with remembered words in place of its own, as long as that makes the sentence likelier;
        `logp`: mean of both decoders.

        A beam easily loses a remembered word on its way through a long sentence: of 56 that were missing in
        drafts of talks, 14 stood in sentences that score better than the draft.
        """
        readers = self.readers
        # The paper's memory does not look at the source, and knows no better place for a word.
        for _ in range(MENDS if readers and readers.forward.looks else 0):
            self.check()
            found = self._exchanged(row, pieces)
            tried = sorted(found, key=lambda sentence: -found[sentence])[:TRIED]
            if not tried:
                break
            # Whole log-probabilities: by length, a word of many pieces would win for having many.
            best, sentence = max(zip(self._score([row] * len(tried), tried, length=0.0), tried, strict=True))
            if best <= logp:
                break
            logp, pieces = best, sentence
        return pieces, logp

    def _exchanged(self, row: int, pieces: Phrase) -> dict[Phrase, float]:
        """See `exchanged`: what both readers offer in place of single words."""
        assert self.readers is not None
        forward, readers = self.directions.forward, self.readers
        ahead, behind = (
            self.readings.along(direction, [row], [pieces]).features
            for direction in (forward, self.directions.backward)
        )
        offers = readers.forward.offers(ahead, pieces) + readers.backward.offers(behind, pieces)
        if not offers:
            return {}
        return exchanged(forward, pieces, offers, forward.predict(ahead)[0])

    @torch.inference_mode()
    def revise(self, requests: Sequence[Request]) -> list[Revision]:
        """Answer every request by the protocol of the settings."""
        self.readings.clear()
        protocol = self.settings.protocol
        if protocol == "unidirectional-grid":
            return self._grid(requests)
        if protocol == "replace-only":
            return [
                self._revision(request, _Candidate(request.left, request.right), 0.0) for request in requests
            ]
        if protocol == "unidirectional":
            rights = self._parts(self.directions.forward, self._rights(requests))
            return [
                self._revision(request, _Candidate(request.left, found[0]), 0.0)
                for request, found in zip(requests, rights, strict=True)
            ]
        return self._both(requests)

    @torch.inference_mode()
    def refill(
        self, sentence: int, left: Phrase, right: Phrase, old: Phrase, once: tuple[Phrase, ...] = ()
    ) -> Phrase:
        """What may stand between two parts that stay as they are; not `old`, if there is anything else.

        `once`: fixes that must not appear a second time.
        """
        self.readings.clear()
        limit = max(10, self.sources.limit(sentence) - len(left) - len(right))
        found: list[Phrase] = []
        for direction, near, far in (
            (self.directions.forward, left, right),
            (self.directions.backward, right, left),
        ):
            ordered = direction.order(far)
            problem = Problem(
                sentence,
                limit,
                prefix=direction.order(near),
                phrases=(ordered,) if ordered else (),
                anchored=bool(far),
                once=tuple(map(direction.order, once)),
            )
            for written in self._search(direction, [problem], best=self.settings.beam)[0]:
                middle = written.pieces[: len(written.pieces) - len(far)] if far else written.pieces
                found.append(direction.order(middle))
        vocabulary = self.directions.forward.vocabulary
        fits = [
            middle
            for middle in dict.fromkeys(found)
            if vocabulary.decode(middle) != vocabulary.decode(old) and (left or middle or right)
        ]
        if not fits:
            return old
        scores = self._score([sentence] * len(fits), [(*left, *middle, *right) for middle in fits])
        return max(zip(scores, fits, strict=True), key=lambda pair: pair[0])[1]

    def _search(
        self,
        direction: Direction,
        problems: Sequence[Problem],
        best: int,
        known: Prefixes | None = None,
        sure: int | None = None,
        patience: int = 0,
    ) -> list[list[Written]]:
        return search(
            direction,
            self.sources.start(direction),
            problems,
            beam=self.settings.beam,
            best=best,
            reader=self._reader(direction),
            check=self.check,
            known=known,
            sure=sure,
            patience=patience,
        )

    def _reader(self, direction: Direction) -> Reader | None:
        if self.readers is None:
            return None
        return self.readers.backward if direction.backward else self.readers.forward

    def _parts(
        self, direction: Direction, sides: Sequence[Side], scored: Scored | None = None
    ) -> list[list[Part]]:
        """For each side the best new part, if there is one (a second one gains nothing), and the old one; in
        the order of the direction.

        `scored`: the sentences with the old parts, where they have been read.
        """
        limit = self.sources.limit
        problems = {n: side.problem(limit(side.sentence)) for n, side in enumerate(sides) if side.open}
        known = None
        if scored is not None and problems:
            known = scored.behind(list(problems), [len(p.prefix) for p in problems.values()])
        found = self._search(direction, list(problems.values()), 1, known)
        new = dict(zip(problems, found, strict=True))
        return [
            [*(side.part(w.pieces, w.starts, w.logp if w.exact else None) for w in new.get(n, ())), side.old]
            for n, side in enumerate(sides)
        ]

    def _parts_read(self, direction: Direction, sides: Sequence[Side]) -> list[list[Part]]:
        """The same, but the old parts are read first, and searched is only where the decoder disagrees."""
        self.check()
        sentences = [direction.order((*side.prefix, *side.old.pieces)) for side in sides]
        read = self._read(direction, [side.sentence for side in sides], sentences)
        sides = [side.read(logps) for side, logps in zip(sides, read.logps, strict=True)]
        return self._parts(direction, sides, read.scored)

    def _rights(self, requests: Sequence[Request]) -> list[Side]:
        """Pass 1: what stands right of each fix, to be written behind the old left part."""
        return [Side(r.sentence, (*r.left.pieces, *r.focus), r.right, r.once) for r in requests]

    def _lefts(self, requests: Sequence[Request], rights: Sequence[Part]) -> list[Side]:
        """Pass 2: what stands left of each fix, to be written before one of its right parts."""
        order = self.directions.backward.order
        return [
            Side(
                request.sentence,
                order((*request.focus, *right.pieces)),
                request.left.mirrored,
                tuple(map(order, request.once)),
            )
            for request, right in zip(requests, rights, strict=True)
        ]

    def _both(self, requests: Sequence[Request]) -> list[Revision]:
        """All passes."""
        forward, backward = self.directions.both
        rights = self._parts_read(forward, self._rights(requests))
        flat = [(n, right) for n, found in enumerate(rights) for right in _unique(found)]
        sides = self._lefts([requests[n] for n, _ in flat], [right for _, right in flat])
        lefts = self._parts_read(backward, sides)
        candidates = [
            (n, _Candidate(left.mirrored, right, found[0].mirrored))
            for (n, right), found in zip(flat, lefts, strict=True)
            for left in _unique(found)
        ]
        rows = [requests[n].sentence for n, _ in candidates]
        sentences = [(*c.left.pieces, *requests[n].focus, *c.right.pieces) for n, c in candidates]
        # A right part was read behind the old left part, a left part before the right it was written for.
        ahead = [c.right.logp if c.left.pieces == requests[n].left.pieces else None for n, c in candidates]
        values = self._score(rows, sentences, ahead, [c.left.logp for _, c in candidates])
        best: dict[int, tuple[float, _Candidate]] = {}
        for (n, candidate), value in zip(candidates, values, strict=True):
            value -= self.settings.stability * self._change(requests[n], candidate)
            if n not in best or value > best[n][0]:
                best[n] = value, candidate
        return [
            self._revision(request, best[n][1], best[n][0], first=rights[n][0])
            for n, request in enumerate(requests)
        ]

    def _grid(self, requests: Sequence[Request]) -> list[Revision]:
        """Hokamp & Liu: the whole sentence again from the left, with every fix as a constraint."""
        problems = []
        for request in requests:
            phrases = (*request.left.phrases, request.focus, *request.right.phrases)
            prefix = phrases[0] if request.left.anchored else ()
            problems.append(
                Problem(
                    request.sentence,
                    self.sources.limit(request.sentence),
                    prefix=prefix,
                    phrases=phrases[1:] if prefix else phrases,
                    anchored=request.right.anchored,
                    once=request.once,
                )
            )
        revisions = []
        for request, problem, found in zip(
            requests, problems, self._search(self.directions.forward, problems, 1), strict=True
        ):
            if not found:
                revisions.append(self._revision(request, _Candidate(request.left, request.right), 0.0))
                continue
            written = found[0]
            spans = tuple(
                (a + len(problem.prefix), b + len(problem.prefix))
                for a, b in _spans(written.starts, problem.phrases)
            )
            if problem.prefix:
                spans = ((0, len(problem.prefix)), *spans)
            whole = Whole((*problem.prefix, *written.pieces), spans)
            revisions.append(Revision(whole, whole, whole, written.score))
        return revisions

    def _score(
        self,
        rows: Sequence[int],
        sentences: Sequence[Phrase],
        ahead: Sequence[float | None] | None = None,
        behind: Sequence[float | None] | None = None,
        length: float = LENGTH,
    ) -> list[float]:
        """How well whole sentences fit: log-probability, mean of both decoders, by length to the `length`.

        `ahead` and `behind`: what the passes have found out of it already. With a memory that is not enough.
        """
        if self.readers is None:
            totals = self._apart(rows, sentences, ahead, behind)
        else:
            totals = self._together(self.readers, rows, sentences)
        return [
            total / (2 * (len(pieces) + 1) ** length) for total, pieces in zip(totals, sentences, strict=True)
        ]

    def _apart(
        self,
        rows: Sequence[int],
        sentences: Sequence[Phrase],
        ahead: Sequence[float | None] | None,
        behind: Sequence[float | None] | None,
    ) -> list[float]:
        """Sum of both decoders, neither of which has to know of the other."""
        totals = [0.0] * len(sentences)
        for direction, known in ((self.directions.forward, ahead), (self.directions.backward, behind)):
            known = known or [None] * len(sentences)
            missing = [n for n, logp in enumerate(known) if logp is None]
            found: dict[int, float] = {}
            for chosen in _slices(missing, sentences):
                self.check()
                read = [sentences[n] for n in chosen]
                logp = self.readings.along(direction, [rows[n] for n in chosen], read).logp
                found |= zip(chosen, logp.sum(1).tolist(), strict=True)
            totals = [
                total + (found[n] if logp is None else logp)
                for n, (total, logp) in enumerate(zip(totals, known, strict=True))
            ]
        return totals

    def _together(self, readers: Readers, rows: Sequence[int], sentences: Sequence[Phrase]) -> list[float]:
        """The same with a memory, where what a word is worth depends on what both decoders read."""
        forward, backward = self.directions.both
        totals: list[float] = []
        for chosen in _slices(range(len(sentences)), sentences):
            self.check()
            read = [sentences[n] for n in chosen]
            ahead, behind = (
                self.readings.along(direction, [rows[n] for n in chosen], read)
                for direction in (forward, backward)
            )
            shares = readers.shares(ahead.features, behind.features, read)
            back = list(map(backward.order, read))
            mixed = (
                readers.forward.mix(forward, shares[0], ahead.features, ahead.logp, read),
                readers.backward.mix(backward, shares[1], behind.features, behind.logp, back),
            )
            totals.extend((mixed[0].logp + mixed[1].logp).sum(1).tolist())
        return totals

    def _read(self, direction: Direction, rows: Sequence[int], sentences: Sequence[Phrase]) -> _Reading:
        """Whole sentences as one decoder reads them, with the memory if there is one."""
        reader = self._reader(direction)
        scored = self.readings.read(direction, rows, sentences)
        if reader is not None:
            ordered = [direction.order(pieces) for pieces in sentences]
            shares = reader.shares(scored.features)
            mixed = reader.mix(direction, shares, scored.features, scored.logp, ordered)
            scored = replace(scored, logp=mixed.logp)
        lists = [row[: n + 1] for row, n in zip(scored.logp.tolist(), scored.lengths, strict=True)]
        return _Reading(scored, lists)

    def _change(self, request: Request, candidate: _Candidate) -> float:
        """Share of the words outside the fix that a candidate changes, in [0, 1]."""
        if not self.settings.stability:
            return 0.0
        vocabulary = self.directions.forward.vocabulary
        kept = words = 0
        for old, new in (
            (request.left.pieces, candidate.left.pieces),
            (request.right.pieces, candidate.right.pieces),
        ):
            before = [word.text for word in vocabulary.words(old)]
            after = [word.text for word in vocabulary.words(new)]
            words += max(len(before), len(after))
            kept += sum(
                b.size for b in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
            )
        return 1.0 - kept / words if words else 0.0

    def _revision(
        self, request: Request, chosen: _Candidate, value: float, first: Part | None = None
    ) -> Revision:
        focus = request.focus
        return Revision(
            Whole.of(chosen.left, focus, chosen.right),
            Whole.of(request.left, focus, first or chosen.right),
            Whole.of(chosen.new_left or chosen.left, focus, chosen.right),
            value,
        )


def _spans(starts: Sequence[int], phrases: Sequence[Phrase]) -> tuple[Span, ...]:
    return tuple((start, start + len(phrase)) for start, phrase in zip(starts, phrases, strict=True))


def _slices(chosen: Sequence[int], sentences: Sequence[Phrase]) -> list[list[int]]:
    """Sentences read at once: not too many pieces, since each has a score for the whole vocabulary."""
    slices: list[list[int]] = []
    room = 0
    for n in chosen:
        if len(sentences[n]) >= room:
            slices.append([])
            room = READ_AT_ONCE
        slices[-1].append(n)
        room -= len(sentences[n]) + 1
    return slices


def _unique(parts: Sequence[Part]) -> list[Part]:
    """Parts with different pieces, the first of each."""
    return list({part.pieces: part for part in reversed(parts)}.values())[::-1]
