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
from typing import NamedTuple

import torch
from torch import Tensor

from camit.networks import Features, State
from camit.search.direction import Direction, together
from camit.search.problem import LEAST, Hypothesis, Phrase, Problem, Reader, Spelled, Written
from camit.search.rules import free_pieces, looping, may_begin, may_copy, room, said_anew
from camit.search.threads import threads_kept, use_threads_for
from camit.text import PAD

PATIENCE = 2  # of a search for a whole sentence
FIRST = 0.1  # how often a word is the first of its sentence, about


class _Move(NamedTuple):
    score: float
    parent: int
    piece: int
    kind: int
    forced: Phrase


_FREE, _START, _COPY, _FORCED, _END = range(5)  # kinds of moves


@dataclass
class _Beam:
    """The live and finished hypotheses of one problem."""

    problem: Problem
    total: int  # phrase pieces in all
    given: float  # log-probability of the prefix
    live: list[Hypothesis]
    outlook: list[float] | None = None  # see `Problem.outlook`
    finished: list[Written] = field(default_factory=list)

    def finish(self, hypothesis: Hypothesis, value: float) -> None:
        prefix = len(hypothesis.pieces) - hypothesis.scored
        pieces, starts = hypothesis.pieces[prefix:], tuple(s - prefix for s in hypothesis.starts)
        if all(pieces != w.pieces for w in self.finished):
            score, logp = value / (hypothesis.scored + 1), self.given + value
            self.finished.append(Written(pieces, starts, score, logp, hypothesis.exact))


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
    sure: int | None = None,
    patience: int = PATIENCE,
) -> list[list[Written]]:
    """The `best` hypotheses of each problem, best first. `check` is called at every step and may raise.

    `known`: the prefixes, where they have been read already. A search ends, with what is finished then, when
    the first `sure` of the best (None: all of them) cannot be beaten any more; `patience`: how many pieces of
    probability 1 a hypothesis is given before that is said of it.
    """
    if not problems:
        return []
    device = next(direction.decoder.parameters()).device
    check()
    looks = direction.looks or (reader is not None and reader.looks)
    with threads_kept() as threads:
        use_threads_for(sum(len(p.prefix) + 1 for p in problems), threads)
        state, features, given = known or _read_prefixes(direction, start, problems, looks)
        beams = [
            _Beam(
                p,
                sum(map(len, p.phrases)),
                logp,
                [Hypothesis(p.prefix, closed=bool(p.prefix) and not p.open_end)],
                p.outlook,
            )
            for p, logp in zip(problems, given, strict=True)
        ]
        while rows := sum(len(b.live) for b in beams):
            use_threads_for(rows, threads)
            chosen, pieces = _step(direction, beams, features, beam, sure or best, patience, reader)
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
    sure: int,
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
        survivors = _choose(b, offset, mine, beam, sure, patience) if mine else []
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
        along = Features(*(x[:, :-1][inner] for x in features))  # [pieces of all prefixes, ...]
        logp = direction.judge(along, padded[:, 1:][inner])
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
) -> list[list[_Move]]:
    """For each row the candidates it may become."""
    end = direction.decoder.last_piece
    logp = direction.predict(features).squeeze(1)  # [rows, vocabulary]
    copies: list[list[Spelled]] = [[] for _ in owners]
    offered = [] if reader is None else reader.read(features)
    if reader is not None and any(offered):
        copies = [
            [
                Spelled(way, share * copy.probability)
                for copy in offers
                if (fitting := may_copy(direction, b.problem, h, copy))
                for way, share in spell(direction, fitting, logp[row], h.pieces)
            ]
            for row, ((b, h), offers) in enumerate(zip(owners, offered, strict=True))
        ]
        if any(copies):
            logp, copies = _mixed(logp, copies, reader.rivals(features.last[:, 0], offered))
    result: list[list[_Move]] = [[] for _ in owners]
    free: list[int] = []
    given: list[tuple[int, Phrase, int]] = []  # rows that must, or may, write the first of these pieces
    for i, (b, h) in enumerate(owners):
        if h.forced:
            given.append((i, h.forced, _FORCED))
            continue
        free.append(i)
        if h.phrase < len(b.problem.phrases):
            phrase = b.problem.phrases[h.phrase]
            if may_begin(direction, b.problem, h, phrase):
                given.append((i, phrase, _START))
    if free:
        masks = [free_pieces(direction, owners[i][0].problem, owners[i][1]) for i in free]
        mask = masks[0] if all(m is masks[0] for m in masks) else torch.stack(masks)
        scores = (logp if len(free) == len(owners) else logp[free]) + mask
        for n, i in enumerate(free):
            written = owners[i][1].pieces
            again = looping(direction, written)
            if offered and offered[i]:
                again |= said_anew(direction, written, offered[i])
            if again:
                rest = scores[n].index_fill(0, torch.tensor(list(again), device=scores.device), -math.inf)
                if float(rest.max()) > -math.inf:
                    scores[n] = rest
        values, pieces = (x.tolist() for x in scores.topk(min(beam + 1, scores.shape[1]), dim=1))
        for n, i in enumerate(free):
            result[i] = [
                _Move(value, i, piece, _END if piece == end else _FREE, ())
                for value, piece in zip(values[n], pieces[n], strict=True)
                if value > float("-inf")
            ]
    if given:
        pieces = [direction.known(phrase[0]) for _, phrase, _ in given]
        found = logp[[i for i, _, _ in given], pieces].tolist()
        for (i, phrase, kind), value in zip(given, found, strict=True):
            # theta * r is the probability of a whole word: once it is begun, the rest of it is certain.
            certain = kind == _FORCED and owners[i][1].copying
            result[i].append(_Move(0.0 if certain else value, i, phrase[0], kind, phrase[1:]))
    for i, offers in enumerate(copies):
        b, h = owners[i]
        h.exact = h.exact and not offers
        for copy in offers:
            if len(copy.pieces) == 1 and copy.pieces[0] < logp.shape[1]:
                continue  # already mixed into the distribution
            if room(direction, b.problem, h):
                probability = copy.probability
                if len(copy.pieces) == 1:  # a word the network can only call UNK: that is what it means here
                    probability += math.exp(float(logp[i, direction.known(copy.pieces[0])]))
                value = math.log(min(probability, 1.0))
                result[i].append(_Move(value, i, copy.pieces[0], _COPY, copy.pieces[1:]))
    return result


def spell(
    direction: Direction, spellings: Sequence[Phrase], logp: Tensor, written: Phrase
) -> list[tuple[Phrase, float]]:
    """The ways to write a remembered word behind `written`, and what part of its probability each has.

    Forward it is one, as the network would rather have it, since it knows where a sentence begins: of single
    pieces the likelier one, a longer word as it begins sentences. Backward nobody knows yet which word is the
    first: one that usually has a small letter is tried with both.
    """
    known = [way for way in spellings if direction.known(way[0]) == way[0]] or spellings
    compared = [known[0], *(way for way in known[1:] if len(way) == 1)]
    usual = known[0]
    if len(compared) > 1:
        usual = compared[int(logp[[direction.known(way[0]) for way in compared]].argmax())]
    other = next((way for way in known if direction.capital(way) != direction.capital(usual)), None)
    if other is None or (direction.backward and direction.capital(usual)):
        return [(usual, 1.0)]
    if direction.backward:
        return [(usual, 1.0 - FIRST), (other, FIRST)]
    if len(usual) == len(other) == 1 or not direction.vocabulary.begins(written):
        return [(usual, 1.0)]
    return [(usual if direction.capitals(logp) == direction.capital(usual) else other, 1.0)]


def _mixed(
    logp: Tensor, copies: Sequence[Sequence[Spelled]], rivals: Tensor
) -> tuple[Tensor, list[list[Spelled]]]:
    """P = (1 - theta) P + theta r among the rivals [rows, vocabulary] of copied words, and the copies with
    the probability they get by it. Those of one known piece are in P then; longer ones are candidates."""
    theta = [sum(copy.probability for copy in row) for row in copies]
    contested = together(logp, rivals).clamp(min=LEAST).tolist()
    part_of_all = [
        [copy._replace(probability=copy.probability * part) for copy in row]
        for row, part in zip(copies, contested, strict=True)
    ]
    left = torch.log1p(-torch.tensor(theta, device=logp.device).clamp(max=1 - 1e-6)).unsqueeze(1)
    logp = logp + left * rivals
    for row, offered in enumerate(part_of_all):
        for copy in offered:
            if len(copy.pieces) == 1 and copy.pieces[0] < logp.shape[1]:
                piece = copy.pieces[0]
                logp[row, piece] = math.log(math.exp(float(logp[row, piece])) + copy.probability)
    return logp, part_of_all


def _choose(
    beam: _Beam, offset: int, expansions: Sequence[Sequence[_Move]], width: int, sure: int, patience: int
) -> list[tuple[int, Hypothesis]]:
    """The survivors of one problem: the best of each bank, with the row they come from."""
    banks: dict[int, list[tuple[float, int, _Move]]] = defaultdict(list)
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
    if len(beam.finished) >= width or _settled(beam, survivors, sure, patience):
        return []
    return _fewer(beam, survivors, width)


def _fewer(beam: _Beam, survivors: list[tuple[int, Hypothesis]], width: int) -> list[tuple[int, Hypothesis]]:
    """The best of each bank, and of the others as many as one bank holds, by what they may still reach.

    Full banks would make every earlier fix cost as much as a sentence of its own. What a hypothesis still has
    to write is worth about what it was worth in the sentence it comes from, so that banks can be compared.
    """
    outlook = beam.outlook
    if outlook is None or len(survivors) <= width:
        return survivors
    first: dict[int, int] = {}
    for n, (_, hypothesis) in enumerate(survivors):
        first.setdefault(hypothesis.covered, n)
    others = sorted(
        set(range(len(survivors))) - set(first.values()),
        key=lambda n: -(survivors[n][1].score + outlook[survivors[n][1].covered]),
    )
    return [survivors[n] for n in sorted([*first.values(), *others[: width - 1]])]


def _settled(beam: _Beam, survivors: Sequence[tuple[int, Hypothesis]], sure: int, patience: int) -> bool:
    """Would even some pieces of probability 1, and the phrases still due, lift no survivor to the best?"""
    if len(beam.finished) < sure:
        return False
    reached = sorted((w.score for w in beam.finished), reverse=True)[sure - 1]

    def promise(h: Hypothesis) -> float:
        if beam.outlook is None:
            return h.score / (h.scored + 1 + patience)
        return (h.score + beam.outlook[h.covered]) / (h.scored + beam.total - h.covered + 1 + patience)

    return all(promise(h) <= reached for _, h in survivors)


def _grow(parent: Hypothesis, candidate: _Move, score: float, bank: int) -> Hypothesis:
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
        exact=parent.exact,
    )
