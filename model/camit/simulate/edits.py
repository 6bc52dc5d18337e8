"""What stands on a simulated user's screen, and what one edit of it asks the search for.

An edit names words on the screen; a request names pieces. Every word the user typed stays fixed from then on, as the
paper demands of several revisions in one round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from camit.search.grid import Phrase
from camit.search.revise import Part, Request, Revision, Span
from camit.text import Vocabulary, Word

Kind = Literal["replace", "insert", "delete"]


@dataclass(frozen=True)
class Screen:
    """A translation in work: its pieces, the words on screen, and which pieces the user has fixed."""

    pieces: Phrase
    words: tuple[Word, ...]
    fixed: tuple[Span, ...] = ()
    opens: bool = False  # the first fix stands at the very beginning
    closes: bool = False  # the last fix stands at the very end

    @classmethod
    def of(cls, pieces: Phrase, vocabulary: Vocabulary) -> Screen:
        return cls(pieces, tuple(vocabulary.words(pieces)))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)

    def is_fixed(self, word: int) -> bool:
        at = self.words[word].start
        return any(start <= at < stop for start, stop in self.fixed)


@dataclass(frozen=True)
class Edit:
    """The words from `start` to `stop` give way to `text`; an empty range is an insertion, an empty text a deletion."""

    start: int
    stop: int
    pieces: Phrase = ()
    text: str = ""
    space_before: bool = False

    @property
    def kind(self) -> Kind:
        if self.start == self.stop:
            return "insert"
        return "replace" if self.text else "delete"


def request(sentence: int, screen: Screen, edit: Edit) -> Request:
    """The edit as a phrase between two parts. A deletion is the two neighbours joined."""
    words, size = screen.words, len(screen.pieces)
    first = words[edit.start].start if edit.start < len(words) else size
    last = words[edit.stop - 1].stop if edit.stop > edit.start else first
    begin, end = first, last
    opens, closes = screen.opens, screen.closes
    if edit.kind == "delete":
        begin = words[edit.start - 1].start if edit.start else first
        end = words[edit.stop].stop if edit.stop < len(words) else last
        opens, closes = opens or begin == first, closes or end == last
    for start, stop in screen.fixed:  # a phrase told earlier is never cut
        if start < end and begin < stop:
            begin, end = min(begin, start), max(end, stop)
    return Request(
        sentence,
        left=Part(screen.pieces[:begin], tuple(s for s in screen.fixed if s[1] <= begin), opens),
        focus=(*screen.pieces[begin:first], *edit.pieces, *screen.pieces[last:end]),
        right=Part(
            screen.pieces[end:],
            tuple((a - end, b - end) for a, b in screen.fixed if a >= end),
            closes,
        ),
    )


def after(revision: Revision, request: Request, vocabulary: Vocabulary) -> Screen:
    """The screen a revision leaves behind."""
    return Screen(
        revision.pieces,
        tuple(vocabulary.words(revision.pieces)),
        revision.fixed,
        request.left.anchored,
        request.right.anchored,
    )
