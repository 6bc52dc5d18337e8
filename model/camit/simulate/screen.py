"""What stands on a simulated user's screen, and what one edit of it does: the same operations a person has.

An edit goes through `camit.session.plan`, as in a session, so that what is measured is what people get.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from camit.search.problem import Phrase
from camit.search.revise import Revision
from camit.session.plan import Plan, Version, deleting, inserting, replacing, revised
from camit.text import Vocabulary, detokenise, says_something
from camit.tokens import Token

Kind = Literal["replace", "insert", "delete"]


@dataclass(frozen=True)
class Edit:
    """Words `start:stop` give way to `text`; an empty range is an insertion, an empty text a deletion."""

    start: int
    stop: int
    text: str = ""

    @property
    def kind(self) -> Kind:
        if self.start == self.stop:
            return "insert"
        return "replace" if self.text else "delete"


def opened(pieces: Phrase, vocabulary: Vocabulary) -> Version:
    """A fresh translation on the screen."""
    return Version(pieces, _tokens(pieces, vocabulary))


def words(screen: Version) -> tuple[str, ...]:
    return tuple(token.text for token in screen.tokens)


def text(screen: Version) -> str:
    return detokenise((token.text, token.space_before) for token in screen.tokens)


def planned(screen: Version, edit: Edit, vocabulary: Vocabulary, sentence: int) -> Plan:
    """The search an edit asks for, on row `sentence` of the sources."""
    if edit.kind == "insert":
        plan = inserting(screen, vocabulary, edit.start, edit.text)
    elif edit.kind == "replace":
        plan = replacing(screen, vocabulary, (edit.start, edit.stop), edit.text)
    else:
        plan = deleting(screen, vocabulary, (edit.start, edit.stop))
    return replace(plan, request=replace(plan.request, sentence=sentence))


def after(screen: Version, plan: Plan, revision: Revision, vocabulary: Vocabulary) -> Version:
    """The screen a revision leaves behind."""
    return revised(screen, plan, vocabulary, revision, _tokens(revision.pieces, vocabulary))


def by_hand(screen: Version, edit: Edit) -> str:
    """The text with an edit made and nothing regenerated."""
    pairs = [(token.text, token.space_before) for token in screen.tokens]
    before, behind = pairs[: edit.start], pairs[edit.stop :]
    if edit.text:
        before.append((edit.text, says_something(edit.text)))
        if behind and edit.start == 0:  # what was the first word has no space of its own
            behind[0] = (behind[0][0], says_something(behind[0][0]))
    return detokenise([*before, *behind])


def _tokens(pieces: Sequence[int], vocabulary: Vocabulary) -> tuple[Token, ...]:
    # A simulated user looks at nothing but the words.
    return tuple(Token(word.text, word.space_before, 0.0, ()) for word in vocabulary.words(pieces))
