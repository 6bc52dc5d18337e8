"""A draft: one sentence on its way from machine output to confirmed translation.

A draft is a list of versions and a place in it, so undo and redo are moves along the list. What an operation
means is worked out in `plan.py`, searched by `engine.py` and recorded by the session; people hold this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from camit.errors import InputError, SessionError
from camit.search.problem import Phrase, Span
from camit.session import plan as planning
from camit.session.ledger import History, Page
from camit.session.plan import Place, Plan, Stage, Version
from camit.text import Vocabulary, Word, detokenise, fold, printable, says_something
from camit.tokens import SourceToken, Token

if TYPE_CHECKING:
    from camit.session import Session


@dataclass(frozen=True)
class Alternative:
    """A word that could stand at a place; `from_memory` is the entry that offers it, if one does."""

    text: str
    probability: float
    from_memory: int | None


@dataclass(frozen=True)
class Effort:
    """What an operation took: keystrokes and mouse actions."""

    typed: str = ""
    keystrokes: int = 0
    mouse: int = 1


class Draft:
    """A sentence being revised. Made by `Session.open`; every operation is safe from any thread.

    Places are token indices, or pairs (start, stop). `keystrokes` and `mouse` say what an operation took, for
    the session's statistics; by default the typing, a key to finish it, and one click.

    >>> draft = session.open("...")  # doctest: +SKIP
    >>> draft.replace(3, "filmmakers").text  # doctest: +SKIP
    """

    def __init__(self, session: Session, identifier: int, source: str) -> None:
        self._session = session
        self.id = identifier
        self.source = source
        self.source_tokens: tuple[SourceToken, ...] = session.translator.source_tokens(source)

    def __repr__(self) -> str:
        return f"Draft({self.source!r} -> {self.text!r})"

    @property
    def languages(self) -> tuple[str, str]:
        """Of the source and of the translation; exchange files name them."""
        translator = self._session.translator
        return translator.source_language, translator.target_language

    # What stands there

    @property
    def version(self) -> Version:
        """The state that is shown: a value, which no operation changes."""
        return self._history.shown

    @property
    def pieces(self) -> Phrase:
        """The sentence as the network writes it."""
        return self.version.pieces

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.version.tokens

    @property
    def text(self) -> str:
        return detokenise((token.text, token.space_before) for token in self.tokens)

    @property
    def revisions(self) -> int:
        """How many revisions led to what stands here now."""
        return self.version.revisions

    @property
    def trace(self) -> tuple[Stage, ...]:
        """The last revision: the draft, the passes of the protocol (forward, backward), the result."""
        return self.version.trace

    @property
    def confirmed(self) -> bool:
        return self._page.confirmed

    @property
    def can_undo(self) -> bool:
        page = self._page
        return page.history.at > 0 and not page.confirmed

    @property
    def can_redo(self) -> bool:
        page = self._page
        return page.history.at + 1 < len(page.history.versions) and not page.confirmed

    @property
    def untouched(self) -> bool:
        """Nobody has changed, locked or confirmed anything here yet."""
        page = self._page
        return len(page.history.versions) == 1 and page.history.shown.revisions == 0 and not page.confirmed

    # What can be done

    def replace(
        self, place: Place, text: str, *, keystrokes: int | None = None, mouse: int | None = None
    ) -> Draft:
        """Put `text` in the place of a token, or of several; the sentence follows."""
        words = planning.typed(text, "replacement")
        effort = _effort(words, keystrokes, mouse)
        return self._search(
            "replace", effort, lambda v: planning.replacing(v, self._vocabulary, place, words)
        )

    def insert(
        self, index: int, text: str, *, keystrokes: int | None = None, mouse: int | None = None
    ) -> Draft:
        """Put `text` before token `index`; `len(tokens)` appends."""
        words = planning.typed(text, "insertion")
        effort = _effort(words, keystrokes, mouse)
        return self._search("insert", effort, lambda v: planning.inserting(v, self._vocabulary, index, words))

    def delete(self, place: Place, *, keystrokes: int | None = None, mouse: int | None = None) -> Draft:
        """Take tokens out; their neighbours then stand side by side, and stay so."""
        effort = _effort("", keystrokes, mouse)
        return self._search("delete", effort, lambda v: planning.deleting(v, self._vocabulary, place))

    def blank(self, place: Place, *, keystrokes: int | None = None, mouse: int | None = None) -> Draft:
        """Have tokens written anew; both ends stay as they are."""

        def refill(version: Version) -> Version:
            gap = planning.blanking(version, self._vocabulary, place)
            return self._session.engine.refill(self.source, version, gap, self._session.settings)

        return self._change("blank", _effort("", keystrokes, mouse), refill)

    def keep(self, place: Place) -> Draft:
        """Lock tokens: no later revision changes them. Several at once stay next to each other."""
        return self._change("keep", Effort(), lambda version: planning.keeping(version, place))

    def release(self, place: Place) -> Draft:
        """Unlock tokens that were fixed or kept."""
        return self._change("release", Effort(), lambda version: planning.releasing(version, place))

    def undo(self) -> Draft:
        """Go back to how the sentence stood before the last operation."""
        return self._move("undo", -1)

    def redo(self) -> Draft:
        """Do again what was undone last."""
        return self._move("redo", 1)

    # What could stand there

    def alternatives(self, place: Place, k: int = 5) -> list[Alternative]:
        """The model's next best words at a place, given both sides of it."""
        return self._words(lambda version: planning.span(version, place), "", k)

    def complete(self, place: Place, typed: str, k: int = 5) -> list[Alternative]:
        """Words for a place that begin with what has been typed so far.

        A pair (3, 3) is the gap before token 3; `len(tokens)` is the one behind the last.
        """
        if not isinstance(typed, str) or len(typed) > planning.MAX_TYPED:
            raise InputError(
                f"give what was typed as a string of at most {planning.MAX_TYPED} characters, "
                f"not {typed!r:.60}."
            )

        text = printable(typed)
        return self._words(
            lambda version: planning.span_or_gap(version, place), text if text.strip() else "", k
        )

    # Inside

    @property
    def _page(self) -> Page:
        return self._session.ledger.pages[self.id]

    @property
    def _history(self) -> History:
        return self._page.history

    @property
    def _vocabulary(self) -> Vocabulary:
        return self._session.translator.target_vocabulary

    def _search(self, kind: str, effort: Effort, plan: Callable[[Version], Plan]) -> Draft:
        session = self._session
        return self._change(
            kind,
            effort,
            lambda version: session.engine.revise(self.source, version, plan(version), session.settings),
        )

    def _change(self, kind: str, effort: Effort, change: Callable[[Version], Version]) -> Draft:
        def run() -> Draft:
            before = self._open_version()
            after = change(before)
            if after is not before:
                self._session.record_version(self, after, kind, effort)
            return self

        return self._session.worker.call(run)

    def _move(self, kind: str, by: Literal[-1, 1]) -> Draft:
        def run() -> Draft:
            self._open_version()
            if not (self.can_undo if by < 0 else self.can_redo):
                raise SessionError(f"nothing to {kind}: this is the {'first' if by < 0 else 'last'} version.")
            self._session.record_move(self, by, kind, Effort())
            return self

        return self._session.worker.call(run)

    def _open_version(self) -> Version:
        if self.confirmed:
            raise SessionError("this sentence is confirmed; call session.undo_confirm() to work on it again.")
        return self.version

    def _words(self, span: Callable[[Version], Span], typed: str, k: int) -> list[Alternative]:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"k must be a whole number of at least 1, not {k!r}.")

        def run() -> list[Alternative]:
            version = self.version
            start, stop = span(version)
            words = self._vocabulary.words(version.pieces)
            cuts = [*(word.start for word in words), len(version.pieces)]
            left, right = version.pieces[: cuts[start]], version.pieces[cuts[stop] :]
            # Of several words typed, the last is to be completed; the others stand before it already.
            known = fold(typed)
            pieces = self._vocabulary.encode(known)
            *others, last = self._vocabulary.words(pieces) or [Word("", False, 0, 0)]
            if typed[-1:].isspace():
                known, last = known + " ", Word("", False, len(pieces), len(pieces))
            attached = bool(others) and not last.space_before
            found = self._session.engine.words(
                self.source, (*left, *pieces[: last.start]), right, last.text, attached=attached
            )
            head = known[: len(known) - len(last.text)]
            news = _news(words, start, stop)
            wanted = (c for c in found if typed or news(c.text))
            return [Alternative(head + c.text, c.probability, c.entry) for c in wanted][:k]

        return self._session.worker.call(run)


def _effort(typed: str, keystrokes: int | None, mouse: int | None) -> Effort:
    for name, value in (("keystrokes", keystrokes), ("mouse", mouse)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InputError(f"{name} must be a whole number from 0 on, not {value!r}.")
    keys = len(typed) + 1 if keystrokes is None else keystrokes
    return Effort(typed, keys, 1 if mouse is None else mouse)


def _news(words: Sequence[Word], start: int, stop: int) -> Callable[[str], bool]:
    """News at a place: not what stands there; in a gap, neither what is beside it nor a second mark."""
    if start < stop:
        shown = detokenise((word.text, word.space_before) for word in words[start:stop])
        return lambda text: text != shown
    beside = {word.text for word in words[max(start - 1, 0) : start + 1]}
    marked = not all(map(says_something, beside))
    return lambda text: text not in beside and (says_something(text) or not marked)
