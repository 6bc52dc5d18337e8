"""Words that fit between a left and a right part: alternatives for a token, and completions of what is typed.

Both decoders propose and judge: the forward decoder knows what stands to the left, the backward decoder what
stands to the right. A word is judged whole, with its end, so "film" and "filmmakers" share no probability.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from camit.networks import Features, State
from camit.search.direction import Direction, together
from camit.search.grid import spell
from camit.search.problem import Copy, Phrase, Reader, Readers
from camit.search.scoring import Directions, Sources
from camit.search.threads import threads_for
from camit.text import SPACE, SPECIALS, Vocabulary

PROPOSALS = 12  # first pieces each decoder proposes
MAX_PIECES = 6  # of a word, behind the letters that were typed
LEAST = 1e-3  # a word below this probability is not worth showing
UNLIKELY = -9.0  # log-probability below which the first piece of a word is not tried
GOES_ON = 0.08  # a decoder goes on with a word where that is at least this likely
# Both decoders must think that a word of several pieces is one: "boss" and "s" are words, "bosss" is none.
HOLDS_TOGETHER = 0.01


@dataclass(frozen=True)
class Candidate:
    """A whole word for a place, with its probability among all words proposed there."""

    pieces: Phrase
    text: str
    probability: float
    entry: int | None  # the memory entry that offers it


@dataclass
class _Context:
    """One decoder, having read what stands on its side of the place."""

    direction: Direction
    state: State
    features: Features
    logp: Tensor  # [vocabulary]
    last: int | None  # the piece next to the place; None at the edge of the sentence


@torch.inference_mode()
def words_between(
    directions: Directions,
    sources: Sources,
    sentence: int,
    left: Phrase,
    right: Phrase,
    *,
    typed: str = "",
    attached: bool = False,
    readers: Readers | None = None,
) -> list[Candidate]:
    """Words that may stand between `left` and `right`, best first.

    With `typed`, only words that begin with it, written as it is written; `attached` says that no space
    stands before it.
    """
    directions = sources.bind(directions)
    with threads_for(PROPOSALS):
        return _words_between(directions, sources, sentence, left, right, typed, attached, readers)


def _words_between(
    directions: Directions,
    sources: Sources,
    sentence: int,
    left: Phrase,
    right: Phrase,
    typed: str,
    attached: bool,
    readers: Readers | None,
) -> list[Candidate]:
    contexts = [
        _read(directions.forward, sources, sentence, left),
        _read(directions.backward, sources, sentence, right),
    ]
    vocabulary = directions.forward.vocabulary
    judged = [_propose(contexts[0], typed, attached), _propose(contexts[1], "", False) if not typed else {}]

    def spelled(copy: Copy, ordered: Callable[[Phrase], Phrase]) -> Phrase:
        glued = copy.attached and left and directions.forward.opens(left[-1])
        ways = list(map(ordered, copy.attached if glued else copy.spellings))
        return spell(directions.forward, ways, contexts[0].logp, left)[0][0]

    offers = [
        _offers(contexts[0], spelled, readers.forward if readers else None),
        _offers(contexts[1], spelled, readers.backward if readers else None),
    ]
    offered = {pieces: offer.entry for by in reversed(offers) for pieces, offer in by.items()}
    words = {
        pieces: vocabulary.decode(pieces)
        for pieces in (*judged[0], *judged[1], *offered)
        if _fits(vocabulary, left, pieces, right)
        and (pieces in offered or len(vocabulary.words(pieces)) == 1)
        and vocabulary.decode(pieces).lower().startswith(typed.lower())
    }
    if not words:
        return []
    phrases = list(words)
    for context, verdicts in zip(contexts, judged, strict=True):
        verdicts |= _judge(context, [pieces for pieces in phrases if pieces not in verdicts])
    ahead, behind = (torch.tensor([verdicts[p].logp for p in phrases]) for verdicts in judged)
    for n, pieces in enumerate(phrases):
        for logp, by in zip((ahead, behind), offers, strict=True):
            if pieces in by:
                logp[n] = torch.log((1 - by[pieces].theta) * logp[n].exp() + by[pieces].share)
        together = all(verdicts[pieces].holds_together for verdicts in judged)
        if not typed and pieces not in offered and not together:
            ahead[n] = -torch.inf
    chances = torch.softmax((ahead + behind) / 2, dim=0).nan_to_num(0.0).tolist()
    best: dict[str, Candidate] = {}  # one text may come in several spellings
    for pieces, chance in zip(phrases, chances, strict=True):
        text = _written(typed, words[pieces])
        known = best.get(text)
        if chance >= LEAST and (known is None or known.probability < chance):
            best[text] = Candidate(pieces, text, chance, offered.get(pieces))
    return sorted(best.values(), key=lambda candidate: -candidate.probability)


def _fits(vocabulary: Vocabulary, left: Phrase, pieces: Phrase, right: Phrase) -> bool:
    """Would this stand apart from what is left and right of it?"""
    return (not left or vocabulary.boundary(left[-1], pieces[0])) and (
        not right or vocabulary.boundary(pieces[-1], right[0])
    )


def _written(typed: str, word: str) -> str:
    """A word that begins with what was typed, as it was typed; SHOUTING goes on."""
    rest = word[len(typed) :]
    return typed + (rest.upper() if len(typed) > 1 and typed.isupper() else rest)


def _read(direction: Direction, sources: Sources, sentence: int, part: Phrase) -> _Context:
    decoder = direction.decoder
    device = next(decoder.parameters()).device
    ordered = direction.order(part)
    state = sources.start(direction).select(torch.tensor([sentence], device=device))
    tokens = torch.tensor([[decoder.first_piece, *direction.feed(ordered)]], device=device)
    state, features = decoder.advance(state, tokens)
    last = Features(*(x[:, -1:] for x in features))
    logp = direction.predict(last)[0, 0]
    return _Context(direction, state, last, logp, ordered[-1] if ordered else None)


class _Offer(NamedTuple):
    """What the memory says about a word at this place, as one decoder reads it."""

    theta: float  # what the memory takes of it; nothing if it is no rival
    share: float  # theta * r, of what its rivals have
    entry: int


def _offers(
    context: _Context, spelled: Callable[[Copy, Callable[[Phrase], Phrase]], Phrase], reader: Reader | None
) -> dict[Phrase, _Offer]:
    """Words the memory offers at this place, by their pieces."""
    if reader is None:
        return {}
    [copies] = reader.read(context.features)
    theta = sum(copy.probability for copy in copies)
    rivals = reader.rivals(context.features.last[0], [copies])
    contested = float(together(context.logp, rivals[0]))
    offers = {}
    for copy in copies:
        pieces = spelled(copy, context.direction.order)
        first = context.direction.known(context.direction.order(pieces)[0])
        rival = bool(rivals.expand(1, len(context.logp))[0, first])
        offers[pieces] = _Offer(theta if rival else 0.0, copy.probability * contested, copy.entry)
    return offers


class _Verdict(NamedTuple):
    """What one decoder thinks of a word at a place."""

    logp: float  # of the whole word, with its end
    holds_together: bool


def _propose(context: _Context, typed: str, attached: bool) -> dict[Phrase, _Verdict]:
    """Whole words a decoder would write next, judged by itself."""
    direction, decoder = context.direction, context.direction.decoder
    device = context.logp.device
    scores = context.logp + direction.allowed("new token", context.last, may_end=False)
    if typed:
        scores = scores + _beginning(direction.vocabulary, typed, attached).to(device)
    values, first = scores.topk(min(PROPOSALS, len(scores)))
    floor = -torch.inf if typed else UNLIKELY
    live: list[tuple[Phrase, _Verdict]] = [
        ((piece,), _Verdict(value, True))
        for value, piece in zip(values.tolist(), first.tolist(), strict=True)
        if value > floor
    ]
    words: dict[Phrase, _Verdict] = {}
    state, rows = context.state, [0] * len(live)
    for _ in range(MAX_PIECES + len(typed)):
        if not live:
            break
        state = state.select(torch.tensor(rows, device=device))
        known = [[direction.known(word[-1])] for word, _ in live]
        state, features = decoder.advance(
            state, torch.tensor(known, device=device), attention=direction.looks
        )
        logp = direction.predict(features)[:, 0]
        masks = []
        rests = [typed[len(direction.vocabulary.decode(word)) :] for word, _ in live]
        for (word, _), rest in zip(live, rests, strict=True):
            mask = direction.allowed("same token", word[-1], may_end=False)
            masks.append(mask + _beginning(direction.vocabulary, rest, True).to(device) if rest else mask)
        best, following = (x.tolist() for x in (logp + torch.stack(masks)).max(dim=1))
        ends = _ends(direction, logp, [word for word, _ in live])
        for (word, verdict), rest, end in zip(live, rests, ends, strict=True):
            if not rest:
                words[direction.order(word)] = verdict._replace(logp=verdict.logp + end)
        # A word goes on only where that is likely; typed letters must be followed anyway.
        chances = [math.exp(value) for value in best]
        rows = [n for n, chance in enumerate(chances) if chance > (0.0 if rests[n] else GOES_ON)]
        live = [_longer(*live[n], following[n], best[n]) for n in rows]
    return words


def _longer(word: Phrase, verdict: _Verdict, piece: int, logp: float) -> tuple[Phrase, _Verdict]:
    holds = verdict.holds_together and math.exp(logp) >= HOLDS_TOGETHER
    return (*word, piece), _Verdict(verdict.logp + logp, holds)


def _ends(direction: Direction, logp: Tensor, words: Sequence[Phrase]) -> list[float]:
    """How likely it is that each word ends there, from what may follow it [words, vocabulary]."""
    masks = torch.stack([direction.starts_token(word[-1]) for word in words])
    result: list[float] = torch.logsumexp(logp + masks, dim=1).tolist()
    return result


def _beginning(vocabulary: Vocabulary, letters: str, attached: bool) -> Tensor:
    """A mask that allows only pieces going along with these letters, with a space before or `attached`."""
    spelling = _spelling(vocabulary)
    lower = letters.lower()
    stop = bisect_right(spelling.bodies, lower + "\U0010ffff")
    found = list(spelling.ids[bisect_left(spelling.bodies, lower) : stop])
    for n in range(1, len(lower)):
        found += spelling.by_body.get(lower[:n], ())
    if not attached:
        found += [i for i in (spelling.space,) if i is not None]
    mask = torch.full((len(vocabulary),), -torch.inf)
    mask[[i for i in found if vocabulary.piece(i).startswith(SPACE) != attached]] = 0.0
    return mask


@dataclass(frozen=True)
class _Spelling:
    """The letters of all pieces, in small letters and in alphabetical order."""

    bodies: list[str]
    ids: list[int]
    by_body: dict[str, list[int]]
    space: int | None  # the space mark that stands alone


@lru_cache(maxsize=4)
def _spelling(vocabulary: Vocabulary) -> _Spelling:
    pairs = sorted((body.lower(), i) for i, body in enumerate(vocabulary.bodies) if body and i >= SPECIALS)
    by_body: dict[str, list[int]] = {}
    for body, i in pairs:
        by_body.setdefault(body, []).append(i)
    alone = [i for i in range(SPECIALS, len(vocabulary)) if vocabulary.piece(i) == SPACE]
    return _Spelling([b for b, _ in pairs], [i for _, i in pairs], by_body, alone[0] if alone else None)


def _judge(context: _Context, words: Sequence[Phrase]) -> dict[Phrase, _Verdict]:
    """What a decoder thinks of words it did not propose, all of one length in one pass."""
    direction, decoder = context.direction, context.direction.decoder
    device = context.logp.device
    verdicts: dict[Phrase, _Verdict] = {}
    for length in sorted({len(word) for word in words}):
        group = [direction.order(word) for word in words if len(word) == length]
        fed = torch.tensor([direction.feed(word) for word in group], device=device)
        state = context.state.select(torch.zeros(len(group), dtype=torch.long, device=device))
        _, features = decoder.advance(state, fed, attention=direction.looks)
        logp = direction.predict(features)  # [words, pieces, vocabulary]
        inner = logp[:, :-1].gather(2, fed[:, 1:].unsqueeze(2)).squeeze(2)  # [words, pieces - 1]
        whole = (context.logp[fed[:, 0]] + inner.sum(1)).tolist()
        holds = (inner.exp() >= HOLDS_TOGETHER).all(1).tolist()
        for n, (word, end) in enumerate(zip(group, _ends(direction, logp[:, -1], group), strict=True)):
            verdicts[direction.order(word)] = _Verdict(whole[n] + end, holds[n])
    return verdicts
