"""Words that fit between a left and a right part: alternatives for a token, and completions of what is being typed.

Both decoders propose and judge: the forward decoder knows what stands to the left, the backward decoder what stands to
the right. A word is judged whole, its end included, so "film" and "filmmakers" do not share probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from camit.networks import Features, State
from camit.search.direction import Direction
from camit.search.grid import Phrase, Reader
from camit.search.revise import Readers
from camit.search.scoring import Directions, Sources
from camit.text import PAD

PROPOSALS = 12  # first pieces each decoder proposes
MAX_PIECES = 6  # of a proposed word
LEAST = 1e-3  # a word below this probability is not worth showing


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
    attach: bool = False,
    readers: Readers | None = None,
) -> list[Candidate]:
    """Words that may stand between `left` and `right`, best first; with `typed`, only words that start with it."""
    forward = _read(directions.forward, sources, sentence, left)
    backward = _read(directions.backward, sources, sentence, right)
    vocabulary = directions.forward.vocabulary
    found = _propose(forward, typed)
    if not typed:
        found += [backward.direction.order(pieces) for pieces in _propose(backward, "")]
    offered = _offers(forward, backward, readers)
    found += [pieces for pieces in offered if vocabulary.decode(pieces).startswith(typed)]
    words: dict[str, Phrase] = {}
    for pieces in found:
        text = vocabulary.decode(pieces)
        if (
            text
            and text not in words
            and len(vocabulary.words(pieces)) == 1
            and (pieces in offered or _whole(text))
        ):
            words[text] = pieces
    if not words:
        return []
    phrases = list(words.values())
    ahead, behind = _judge(forward, phrases), _judge(backward, [backward.direction.order(p) for p in phrases])
    for n, pieces in enumerate(phrases):
        if pieces in offered:
            theta, share, _ = offered[pieces]
            ahead[n] = torch.log((1 - theta) * ahead[n].exp() + share)
    probability = torch.softmax((ahead + behind) / 2, dim=0).tolist()
    candidates = [
        Candidate(pieces, text, p, offered[pieces][2] if pieces in offered else None)
        for (text, pieces), p in zip(words.items(), probability, strict=True)
        if p >= LEAST
    ]
    return sorted(candidates, key=lambda candidate: -candidate.probability)


def _whole(text: str) -> bool:
    return "\ufffd" not in text


def _read(direction: Direction, sources: Sources, sentence: int, part: Phrase) -> _Context:
    decoder = direction.decoder
    device = next(decoder.parameters()).device
    ordered = direction.order(part)
    state = sources.start(direction).select(torch.tensor([sentence], device=device))
    tokens = torch.tensor([[decoder.first_piece, *direction.feed(ordered)]], device=device)
    state, features = decoder.advance(state, tokens)
    last = Features(*(x[:, -1:] for x in features))
    logp = torch.log_softmax(decoder.logits(last.s)[0, 0], dim=0)
    return _Context(direction, state, last, logp, ordered[-1] if ordered else None)


def _offers(
    forward: _Context, backward: _Context, readers: Readers | None
) -> dict[Phrase, tuple[float, float, int]]:
    """Words memory offers at this place: theta, theta * r and entry, by their pieces."""
    offered: dict[Phrase, tuple[float, float, int]] = {}
    if readers is None:
        return offered
    pairs: tuple[tuple[_Context, Reader], ...] = ((forward, readers.forward), (backward, readers.backward))
    for context, reader in pairs:
        theta, copies = reader.read(context.features)
        for copy in copies[0]:
            pieces = context.direction.order(copy.pieces)
            if pieces not in offered or offered[pieces][1] < copy.probability:
                offered[pieces] = float(theta[0]), copy.probability, copy.entry
    return offered


def _propose(context: _Context, typed: str) -> list[Phrase]:
    """Whole words a decoder would write next, as pieces in its own order."""
    direction = context.direction
    decoder = direction.decoder
    scores = context.logp + direction.banned
    scores[decoder.last_piece] = float("-inf")
    if context.last is not None:
        scores = scores + direction.starts_token(context.last)
    if typed:
        scores = scores + _matching(direction, (), typed)
    values, pieces = (x.tolist() for x in scores.topk(min(PROPOSALS, scores.shape[0])))
    live = [((piece,), value) for value, piece in zip(values, pieces, strict=True) if value > float("-inf")]
    words: list[Phrase] = []
    state = context.state
    rows = [0] * len(live)
    for _ in range(MAX_PIECES + len(typed)):
        if not live:
            break
        state = state.select(torch.tensor(rows))
        state, features = decoder.advance(state, torch.tensor([[direction.known(p[-1])] for p, _ in live]))
        logp = torch.log_softmax(decoder.logits(features.s)[:, 0], dim=1)
        grown: list[tuple[Phrase, float]] = []
        rows = []
        for row, (word, value) in enumerate(live):
            inside = direction.goes_on(word[-1]) + direction.banned
            inside[decoder.last_piece] = float("-inf")
            rest = typed[len(direction.vocabulary.decode(word)) :] if typed else ""
            if rest:
                inside = inside + _matching(direction, word, typed)
            else:
                words.append(word)
            best, piece = (logp[row] + inside).max(0)
            # A word goes on only where that is likely at all; typed letters must be followed anyway.
            if float(best) > (float("-inf") if rest else -2.5) and len(word) < MAX_PIECES + len(typed):
                grown.append(((*word, int(piece)), value + float(best)))
                rows.append(row)
        live = grown
    return words


def _matching(direction: Direction, word: Phrase, typed: str) -> Tensor:
    """Added to scores: only pieces that go along with the letters typed so far."""
    vocabulary = direction.vocabulary
    done = len(vocabulary.decode(word)) if word else 0
    rest = typed[done:]
    mask = torch.full((len(vocabulary),), float("-inf"))
    for index, body in enumerate(vocabulary.bodies):
        if body and (body.startswith(rest) or rest.startswith(body)):
            mask[index] = 0.0
    return mask


def _judge(context: _Context, words: Sequence[Phrase]) -> Tensor:
    """Log-probability of whole words in the order of the context, with their end. [words]"""
    direction, decoder = context.direction, context.direction.decoder
    longest = max(map(len, words))
    padded = torch.tensor([[*direction.feed(word), *[PAD] * (longest - len(word))] for word in words])
    state = context.state.select(torch.zeros(len(words), dtype=torch.long))
    _, features = decoder.advance(state, padded)
    logp = torch.log_softmax(decoder.logits(features.s), dim=2)  # [words, pieces, vocabulary]
    total = context.logp[padded[:, 0]].clone()
    for row, word in enumerate(words):
        for at in range(1, len(word)):
            total[row] += logp[row, at - 1, direction.known(word[at])]
        total[row] += torch.logsumexp(logp[row, len(word) - 1] + direction.starts_token(word[-1]), dim=0)
    return total
