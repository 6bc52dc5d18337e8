"""Grid beam search with ordered constraints (Hokamp & Liu 2017; the paper's section on several revisions).

A hypothesis either writes freely, starts the next phrase, or continues the phrase it opened. Hypotheses
compete only inside their *bank*, the number of phrase pieces they cover; only the last bank may end the
sentence. So each phrase stands in the result, whole, in order and on word boundaries, whatever the network
thinks of it. Without phrases there is one bank, and this is plain beam search.

The network runs batched over all rows of all problems; the bookkeeping is plain Python over the few best
candidates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from camit.networks import Features, State
from camit.search.direction import Direction
from camit.search.threads import threads_kept, use_threads_for
from camit.text import PAD

Phrase = tuple[int, ...]
WORD_LIMIT = 12  # pieces a word begun at the length limit may still take
PATIENCE = 2  # of a search for a whole sentence


@dataclass(frozen=True)
class Problem:
    """One sentence to write on, in the order of its direction.

    `anchored`: nothing may follow the last phrase. `once`: phrases that must not be written freely a second
    time. `limit`: how many pieces may be written freely behind the prefix. `open_end`: the last token of the
    prefix may grow. `expected`: log-probability each phrase piece is likely to have where it belongs; it lets
    banks be compared (see `_fewer`).
    """

    sentence: int  # row of the start state
    limit: int
    prefix: Phrase = ()
    phrases: tuple[Phrase, ...] = ()
    anchored: bool = False
    once: tuple[Phrase, ...] = ()
    open_end: bool = False
    expected: tuple[float, ...] | None = None

    @property
    def due(self) -> list[float] | None:
        """What may be expected of all phrase pieces from each bank on."""
        if self.expected is None:
            return None
        return list(accumulate(reversed(self.expected), initial=0.0))[::-1]


class Written(NamedTuple):
    """A finished hypothesis: its pieces behind the prefix, and where each phrase begins among them."""

    pieces: Phrase
    starts: tuple[int, ...]
    score: float  # log-probability of the pieces and the end, per piece
    logp: float  # of the whole sentence: prefix, pieces and end


class Copy(NamedTuple):
    """A word from memory, offered at one step: its pieces, its probability, and the entry it comes from.

    `times`: how often the word may stand in the sentence before it is offered no more.
    """

    pieces: Phrase
    probability: float
    entry: int
    times: int = 1


class Mixed(NamedTuple):
    """Known sentences as network and memory together see them."""

    logp: Tensor  # [rows, pieces + 1]
    theta: Tensor  # [rows, pieces + 1]
    copied: list[
        list[tuple[int, int, int]]
    ]  # for each row: start, stop, entry id of words that came from memory


class Reader(Protocol):
    """What a revision memory does during a search: P_j = (1 - theta_j) P_j + theta_j r_j of the paper."""

    def read(self, features: Features) -> tuple[Tensor, list[list[Copy]]]:
        """theta [rows], and for each row the words worth copying with theta * r."""

    def mix(self, features: Features, logp: Tensor, sentences: Sequence[Phrase]) -> Mixed:
        """The same for known sentences (in the order of the direction), for rescoring and for showing."""


@dataclass(slots=True)
class Hypothesis:
    pieces: Phrase = ()
    score: float = 0.0
    phrase: int = 0  # the next phrase to place, or the one that is open
    covered: int = 0  # phrase pieces placed so far: the bank
    forced: Phrase = ()  # what must come next: the rest of an open phrase or of a copied word
    closed: bool = False  # the next piece must begin a new token
    starts: tuple[int, ...] = ()
    scored: int = 0  # how many pieces count in the score: those behind the prefix
    copying: bool = False  # what is forced is the rest of a copied word


class _Candidate(NamedTuple):
    score: float
    parent: int
    piece: int
    kind: int
    forced: Phrase


_FREE, _START, _COPY, _FORCED, _END = range(5)


@dataclass
class _Beam:
    """The live and finished hypotheses of one problem."""

    problem: Problem
    total: int  # phrase pieces in all
    given: float  # log-probability of the prefix
    live: list[Hypothesis]
    due: list[float] | None = None  # log-probability still to be expected of the phrases, for each bank
    finished: list[Written] = field(default_factory=list)

    def finish(self, hypothesis: Hypothesis, value: float) -> None:
        prefix = len(hypothesis.pieces) - hypothesis.scored
        pieces, starts = hypothesis.pieces[prefix:], tuple(s - prefix for s in hypothesis.starts)
        if all(pieces != w.pieces for w in self.finished):
            self.finished.append(Written(pieces, starts, value / (hypothesis.scored + 1), self.given + value))


class Prefixes(NamedTuple):
    """What a decoder knows behind the prefix of each problem."""

    state: State
    features: Features  # at one position
    logp: list[float]


def search(
    direction: Direction,
    start: State,
    problems: Sequence[Problem],
    *,
    beam: int,
    best: int = 1,
    reader: Reader | None = None,
    check: Callable[[], None] = lambda: None,
    known: Prefixes | None = None,
    patience: int = PATIENCE,
) -> list[list[Written]]:
    """The `best` hypotheses of each problem, best first. `check` is called at every step and may raise.

    `known`: the prefixes, where they have been read already. `patience`: how many pieces of probability 1 a
    hypothesis is given before a search ends without it.
    """
    if not problems:
        return []
    device = next(direction.decoder.parameters()).device
    check()
    looks = reader is not None  # only a memory asks where the decoder looks
    with threads_kept() as threads:
        use_threads_for(sum(len(p.prefix) + 1 for p in problems), threads)
        state, features, given = known or _read_prefixes(direction, start, problems, looks)
        beams = [
            _Beam(
                p,
                sum(map(len, p.phrases)),
                logp,
                [Hypothesis(p.prefix, closed=bool(p.prefix) and not p.open_end)],
                p.due,
            )
            for p, logp in zip(problems, given, strict=True)
        ]
        while rows := sum(len(b.live) for b in beams):
            use_threads_for(rows, threads)
            chosen, pieces = _step(direction, beams, features, beam, best, patience, reader)
            if chosen:
                check()
                if chosen != list(range(rows)):
                    state = state.select(torch.tensor(chosen, device=device))
                tokens = torch.tensor(pieces, device=device)
                state, features = direction.decoder.advance(state, tokens, attention=looks)
    return [sorted(b.finished, key=lambda w: -w.score)[:best] for b in beams]


def _step(
    direction: Direction,
    beams: Sequence[_Beam],
    features: Features,
    beam: int,
    best: int,
    patience: int,
    reader: Reader | None,
) -> tuple[list[int], list[list[int]]]:
    """Every live hypothesis grows or ends: the rows that go on, and the piece each of them reads next."""
    expansions = _expand(direction, [(b, h) for b in beams for h in b.live], features, beam, reader)
    rows: list[int] = []
    pieces: list[list[int]] = []
    offset = 0
    for b in beams:
        mine = expansions[offset : offset + len(b.live)]
        survivors = _choose(b, offset, mine, beam, best, patience) if mine else []
        rows += [parent for parent, _ in survivors]
        pieces += [[direction.known(hypothesis.pieces[-1])] for _, hypothesis in survivors]
        offset += len(b.live)
        b.live = [hypothesis for _, hypothesis in survivors]
    return rows, pieces


def _read_prefixes(direction: Direction, start: State, problems: Sequence[Problem], looks: bool) -> Prefixes:
    """All prefixes in one pass, the same one only once."""
    decoder = direction.decoder
    device = next(decoder.parameters()).device
    rows = {key: row for row, key in enumerate(dict.fromkeys((p.sentence, p.prefix) for p in problems))}
    known = [[decoder.first_piece, *direction.feed(prefix)] for _, prefix in rows]
    longest = max(map(len, known))
    padded = torch.tensor([[*pieces, *[PAD] * (longest - len(pieces))] for pieces in known], device=device)
    lengths = torch.tensor([len(pieces) for pieces in known], device=device)
    sentences = torch.tensor([sentence for sentence, _ in rows], device=device)
    state, features = decoder.advance(start.select(sentences), padded, attention=looks)
    given = [0.0] * len(rows)
    if longest > 1:
        inner = torch.arange(longest - 1, device=device) < (lengths - 1).unsqueeze(1)
        logits = decoder.logits(features.s[:, :-1][inner])  # [pieces of all prefixes, vocabulary]
        logp = -F.cross_entropy(logits, padded[:, 1:][inner], reduction="none")
        given = [float(part.sum()) for part in torch.split(logp, (lengths - 1).tolist())]
    of = [rows[p.sentence, p.prefix] for p in problems]
    last = Features(*(x[of, lengths[of] - 1].unsqueeze(1) for x in features))
    state = state.behind(list(map(len, known))).select(torch.tensor(of, device=device))
    return Prefixes(state, last, [given[row] for row in of])


def _expand(
    direction: Direction,
    owners: Sequence[tuple[_Beam, Hypothesis]],
    features: Features,
    beam: int,
    reader: Reader | None,
) -> list[list[_Candidate]]:
    """For each row the candidates it may become."""
    end = direction.decoder.last_piece
    logp = torch.log_softmax(direction.decoder.logits(features.s).squeeze(1), dim=1)  # [rows, vocabulary]
    copies: list[list[Copy]] = [[] for _ in owners]
    if reader is not None:
        _, offered = reader.read(features)
        # What stands in the sentence already is not copied again, or a strong memory would repeat itself.
        copies = [
            [copy for copy in row if _may_copy(direction, b.problem, h, copy)]
            for (b, h), row in zip(owners, offered, strict=True)
        ]
        logp = _mixed(logp, copies)
    result: list[list[_Candidate]] = [[] for _ in owners]
    free: list[int] = []
    due: list[tuple[int, Phrase, int]] = []  # rows that must, or may, write a piece that is given
    for i, (b, h) in enumerate(owners):
        if h.forced:
            due.append((i, h.forced, _FORCED))
            continue
        free.append(i)
        if h.phrase < len(b.problem.phrases):
            phrase = b.problem.phrases[h.phrase]
            if _may_begin(direction, b.problem, h, phrase):
                due.append((i, phrase, _START))
    if free:
        masks = [_mask(direction, *owners[i]) for i in free]
        mask = masks[0] if all(m is masks[0] for m in masks) else torch.stack(masks)
        scores = (logp if len(free) == len(owners) else logp[free]) + mask
        values, pieces = (x.tolist() for x in scores.topk(min(beam + 1, scores.shape[1]), dim=1))
        for n, i in enumerate(free):
            result[i] = [
                _Candidate(value, i, piece, _END if piece == end else _FREE, ())
                for value, piece in zip(values[n], pieces[n], strict=True)
                if value > float("-inf")
            ]
    if due:
        given = [direction.known(phrase[0]) for _, phrase, _ in due]
        for (i, phrase, kind), value in zip(due, logp[[i for i, _, _ in due], given].tolist(), strict=True):
            # theta * r is the probability of a whole word: once it is begun, the rest of it is certain.
            certain = kind == _FORCED and owners[i][1].copying
            result[i].append(_Candidate(0.0 if certain else value, i, phrase[0], kind, phrase[1:]))
    for i, offers in enumerate(copies):
        for copy in offers:
            if len(copy.pieces) == 1 and copy.pieces[0] < logp.shape[1]:
                continue  # already mixed into the distribution
            b, h = owners[i]
            if _room(direction, b.problem, h):
                value = math.log(copy.probability)
                result[i].append(_Candidate(value, i, copy.pieces[0], _COPY, copy.pieces[1:]))
    return result


def _may_begin(direction: Direction, problem: Problem, hypothesis: Hypothesis, phrase: Phrase) -> bool:
    """May these pieces, a token of their own or several, come next?"""
    pieces = hypothesis.pieces
    if pieces and not direction.boundary(pieces[-1], phrase[0]):
        return False
    return not _doubled(direction, problem, hypothesis)


def _may_copy(direction: Direction, problem: Problem, hypothesis: Hypothesis, copy: Copy) -> bool:
    if hypothesis.forced or copy.pieces in problem.once:
        return False
    if begun(hypothesis.pieces, copy.pieces) or not _may_begin(direction, problem, hypothesis, copy.pieces):
        return False
    # What a phrase will bring is as good as written.
    parts = (hypothesis.pieces, *problem.phrases[hypothesis.phrase :])
    return sum(occurrences(part, copy.pieces) for part in parts) < copy.times


def _mixed(logp: Tensor, copies: Sequence[Sequence[Copy]]) -> Tensor:
    """P = (1 - theta) P + theta r, for copied words of one known piece; longer ones are candidates."""
    theta = [sum(copy.probability for copy in row) for row in copies]
    if not any(theta):
        return logp
    logp = logp + torch.log1p(-torch.tensor(theta, device=logp.device).clamp(max=1 - 1e-6)).unsqueeze(1)
    for row, offered in enumerate(copies):
        for copy in offered:
            if len(copy.pieces) == 1 and copy.pieces[0] < logp.shape[1]:
                piece = copy.pieces[0]
                logp[row, piece] = math.log(math.exp(float(logp[row, piece])) + copy.probability)
    return logp


def occurrences(pieces: Phrase, phrase: Phrase) -> int:
    """How often a phrase stands in a sequence of pieces."""
    n = len(phrase)
    return sum(pieces[at : at + n] == phrase for at in range(len(pieces) - n + 1))


def begun(pieces: Phrase, phrase: Phrase) -> bool:
    """Does the beginning of a phrase stand at the end already? Then all of it would double that."""
    return any(pieces[-n:] == phrase[:n] for n in range(1, len(phrase)))


def _room(direction: Direction, problem: Problem, hypothesis: Hypothesis) -> bool:
    """May anything still be written freely?"""
    complete = hypothesis.phrase == len(problem.phrases)
    if complete and problem.anchored:
        return False
    free = hypothesis.scored - hypothesis.covered
    if complete or not hypothesis.pieces or free < problem.limit:
        return free < problem.limit
    # A word begun at the limit may be finished, or the next phrase could never start.
    return free < problem.limit + WORD_LIMIT and not direction.boundary(
        hypothesis.pieces[-1], problem.phrases[hypothesis.phrase][0]
    )


def _mask(direction: Direction, beam: _Beam, hypothesis: Hypothesis) -> Tensor:
    """What a hypothesis may write freely: 0 or minus infinity for each piece."""
    problem, pieces = beam.problem, hypothesis.pieces
    # An empty sentence is no translation: the end needs something before it, and not only space marks.
    doubled = _doubled(direction, problem, hypothesis)
    may_end = any(map(direction.says, pieces)) and hypothesis.phrase == len(problem.phrases) and not doubled
    if not _room(direction, problem, hypothesis):  # only the phrases that are still due, and then the end
        return direction.allowed("nothing", None, may_end)
    if hypothesis.closed and pieces:
        return direction.allowed("new token", pieces[-1], may_end)
    lone_space = bool(pieces) and not direction.backward and not direction.says(pieces[-1])
    if lone_space or doubled:
        return direction.allowed("same token", pieces[-1], may_end=False)
    return direction.allowed("anything", None, may_end)


def _doubled(direction: Direction, problem: Problem, hypothesis: Hypothesis) -> bool:
    """Has the hypothesis just written, freely, a phrase that must stand only once?

    It may have begun in the prefix, if that has an open end.
    """
    if hypothesis.closed or not hypothesis.scored:
        return False
    pieces = hypothesis.pieces
    for phrase in problem.once:
        n = len(phrase)
        if pieces[-n:] == phrase and (len(pieces) == n or direction.boundary(pieces[-n - 1], pieces[-n])):
            return True
    return False


def _choose(
    beam: _Beam, offset: int, expansions: Sequence[Sequence[_Candidate]], width: int, best: int, patience: int
) -> list[tuple[int, Hypothesis]]:
    """The survivors of one problem: the best of each bank, with the row they come from."""
    banks: dict[int, list[tuple[float, int, _Candidate]]] = defaultdict(list)
    order = 0
    for parent, candidates in zip(beam.live, expansions, strict=True):
        for candidate in candidates:
            inside = candidate.kind == _FORCED and parent.phrase < len(parent.starts)
            bank = parent.covered + (candidate.kind == _START or inside)
            banks[bank].append((-(parent.score + candidate.score), order, candidate))
            order += 1
    survivors: list[tuple[int, Hypothesis]] = []
    for bank, entries in banks.items():
        entries.sort()
        # Each finished hypothesis takes a place of the last bank, so the search ends by itself.
        places = width - (len(beam.finished) if bank == beam.total else 0)
        seen: set[tuple[Phrase, Phrase, bool]] = set()
        for negative, _, candidate in entries:
            if places <= 0:
                break
            parent = beam.live[candidate.parent - offset]
            if candidate.kind == _END:
                beam.finish(parent, -negative)
                places = width - len(beam.finished) - len(seen)
                continue
            hypothesis = _grow(parent, candidate, -negative, bank)
            # The same pieces again are of use only if one of them ends in a phrase and the other may grow.
            key = hypothesis.pieces, hypothesis.forced, hypothesis.closed
            if key not in seen:
                seen.add(key)
                places -= 1
                survivors.append((candidate.parent, hypothesis))
    if len(beam.finished) >= width or _settled(beam, survivors, best, patience):
        return []
    return _fewer(beam, survivors, width)


def _fewer(beam: _Beam, survivors: list[tuple[int, Hypothesis]], width: int) -> list[tuple[int, Hypothesis]]:
    """The best of each bank, and of the others as many as one bank holds, by what they may still reach.

    Full banks would make every earlier fix cost as much as a sentence of its own. What a hypothesis still has
    to write is worth about what it was worth in the sentence it comes from, so that banks can be compared.
    """
    due = beam.due
    if due is None or len(survivors) <= width:
        return survivors
    first: dict[int, int] = {}
    for n, (_, hypothesis) in enumerate(survivors):
        first.setdefault(hypothesis.covered, n)
    others = sorted(
        set(range(len(survivors))) - set(first.values()),
        key=lambda n: -(survivors[n][1].score + due[survivors[n][1].covered]),
    )
    return [survivors[n] for n in sorted([*first.values(), *others[: width - 1]])]


def _settled(beam: _Beam, survivors: Sequence[tuple[int, Hypothesis]], best: int, patience: int) -> bool:
    """Would even some pieces of probability 1, and the phrases still due, lift no survivor to the best?"""
    if len(beam.finished) < best:
        return False
    reached = sorted((w.score for w in beam.finished), reverse=True)[best - 1]

    def promise(h: Hypothesis) -> float:
        if beam.due is None:
            return h.score / (h.scored + 1 + patience)
        return (h.score + beam.due[h.covered]) / (h.scored + beam.total - h.covered + 1 + patience)

    return all(promise(h) <= reached for _, h in survivors)


def _grow(parent: Hypothesis, candidate: _Candidate, score: float, bank: int) -> Hypothesis:
    starts = (*parent.starts, len(parent.pieces)) if candidate.kind == _START else parent.starts
    in_phrase = len(starts) > parent.phrase
    phrase = parent.phrase
    if in_phrase and not candidate.forced:
        phrase += 1
    was_forced = candidate.kind in (_START, _COPY, _FORCED)
    return Hypothesis(
        pieces=(*parent.pieces, candidate.piece),
        score=score,
        phrase=phrase,
        covered=bank,
        forced=candidate.forced,
        closed=was_forced and not candidate.forced,
        starts=starts,
        scored=parent.scored + 1,
        copying=bool(candidate.forced) and (candidate.kind == _COPY or parent.copying),
    )
