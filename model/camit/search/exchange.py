"""Remembered words in place of words that stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from camit.search.direction import Direction
from camit.search.grid import spell
from camit.search.problem import Copy, Phrase, Span
from camit.search.rules import fitting_spellings
from camit.text import says_something


def exchanged(
    forward: Direction, pieces: Phrase, offers: Sequence[tuple[Span, Copy]], logp: Tensor
) -> dict[Phrase, float]:
    """The sentences with one word exchanged for what is offered in its place, and how probable the memory
    finds that; `logp` [pieces + 1, vocabulary] along the sentence say how a word is spelled there."""
    vocabulary = forward.vocabulary
    words = vocabulary.words(pieces)
    texts, places = [w.text.lower() for w in words], {w.start: n for n, w in enumerate(words)}
    found: dict[Phrase, float] = {}
    for (start, stop), copy in offers:
        wanted = [word.text.lower() for word in vocabulary.words(copy.spellings[0])]
        if not _may_go(texts, places[start], wanted, copy.times):
            continue
        left, right = pieces[:start], pieces[stop:]
        ways = fitting_spellings(forward, copy, left, (right,))
        fitting = [way for way in ways if not right or forward.boundary(way[-1], right[0])]
        if fitting:
            [(way, _)] = spell(forward, fitting, logp[start], left)
            sentence = (*left, *way, *right)
            found[sentence] = max(copy.probability, found.get(sentence, 0.0))
    return found


def _may_go(texts: list[str], at: int, wanted: list[str], times: int) -> bool:
    """May the word at this place go for the wanted one? A mark may not, nor what begins with it: most often
    it is its plural. And no word may where the wanted one stands as often as it should, or would be doubled:
    "blue whale whale"."""
    left, gone, right = " ".join(texts[:at]), texts[at], " ".join(texts[at + 1 :])
    if not says_something(gone) or gone.startswith(" ".join(wanted)):
        return False
    if sum(texts[n : n + len(wanted)] == wanted for n in range(len(texts))) >= times:
        return False
    begins = tuple(" ".join(wanted[: n + 1]) for n in range(len(wanted)))
    ends = tuple(" ".join(wanted[n:]) for n in range(len(wanted)))
    return not left.endswith(begins) and not right.startswith(ends)
