"""The ways to write a remembered word: with a capital or without, behind a space or an opening mark."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from camit.search.problem import Phrase
from camit.text import SPACE, Vocabulary


class Spellings(NamedTuple):
    """The ways to write a word: behind a space, and behind an opening mark."""

    spaced: tuple[Phrase, ...]
    attached: tuple[Phrase, ...] = ()

    def joined(self, other: Spellings) -> Spellings:
        """These first, then the other ones."""
        return Spellings(
            tuple(dict.fromkeys(self.spaced + other.spaced)),
            tuple(dict.fromkeys(self.attached + other.attached)),
        )


@lru_cache(maxsize=4096)  # asked for every entry that matches a source
def spellings_of(
    vocabulary: Vocabulary, text: str, target: Phrase, start: int, stop: int, by_hand: bool
) -> Spellings:
    """The ways to write a word that stands at a slice of the pieces of a sentence.

    A capital in the middle of a sentence belongs to the word; elsewhere it may be written with a small
    letter too. What is part of "2,000" or "p.m." stays that."""
    pieces = target[start:stop]
    inside = start > 0 and not vocabulary.opens(target[start - 1])
    if vocabulary.spaced and inside and not vocabulary.piece(pieces[0]).startswith(SPACE):
        return Spellings((pieces,))
    before = vocabulary.decode(target[:start])
    opens = not by_hand and (not before or not (before[-1].isalnum() or before[-1] in ",;"))
    if text.split()[0].islower():  # not "iPhone"
        other = text[:1].upper() + text[1:]
    else:
        other = text[:1].lower() + text[1:] if opens and text[1:] == text[1:].lower() else text

    def ways(*, attach: bool) -> tuple[Phrase, ...]:
        as_typed, with_other = (tuple(vocabulary.encode(t, attach=attach)) for t in (text, other))
        # Outside a word list only what was typed is known to be a word.
        known = all(piece < len(vocabulary) for piece in with_other)
        return tuple(dict.fromkeys((as_typed, with_other) if known else (as_typed,)))

    return Spellings(ways(attach=False), ways(attach=True) if vocabulary.spaced else ())
