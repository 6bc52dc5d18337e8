"""Remembered words in place of words that stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from camit.search.direction import Direction
from camit.search.grid import spell
from camit.search.problem import Copy, Phrase, Span
from camit.search.rules import fitting_spellings, occurrences
from camit.text import says_something


def exchanged(
    forward: Direction, pieces: Phrase, offers: Sequence[tuple[Span, Copy]], logits: Tensor
) -> dict[Phrase, float]:
    """The sentences with one word exchanged for what is offered in its place, and how probable the memory
    finds that; `logits` [pieces + 1, vocabulary] along the sentence say how a word is spelled there."""
    found: dict[Phrase, float] = {}
    for (start, stop), copy in offers:
        left, word, right = pieces[:start], pieces[start:stop], pieces[stop:]
        ways = fitting_spellings(forward, copy, left, (right,))
        fitting = [way for way in ways if not right or forward.boundary(way[-1], right[0])]
        if not fitting or not _missing(forward, copy, pieces, word) or _before_itself(copy, right):
            continue
        [(way, _)] = spell(forward, fitting, logits[start], left)
        sentence = (*left, *way, *right)
        found[sentence] = max(copy.probability, found.get(sentence, 0.0))
    return found


def _before_itself(copy: Copy, right: Phrase) -> bool:
    """Or before its own end: "blue whale whale"."""
    known = (*copy.spellings, *copy.attached)
    return any(right[:n] == way[-n:] for way in known for n in range(1, len(way) + 1))


def _missing(forward: Direction, copy: Copy, pieces: Phrase, word: Phrase) -> bool:
    """Does the sentence lack the remembered word, and may this one go? A mark may not, nor what begins with
    the remembered word: most often it is its plural."""
    known = (*copy.spellings, *copy.attached)
    decode = forward.vocabulary.decode
    there, wanted = decode(word).lower(), decode(copy.spellings[0]).lower()
    return (
        says_something(there)
        and not there.startswith(wanted)
        and occurrences(forward, pieces, known) < copy.times
    )
