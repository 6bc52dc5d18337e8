"""A draft: one sentence on its way from machine output to confirmed translation.

The state of a draft is a value (`Version`); every operation makes a new one, so undo and redo are moves along a list.
Operations become phrase constraints: replace gives the phrase, insert neighbour + new + neighbour, delete the two
neighbours joined, blank keeps both ends. What a person fixed is a `Fixed` span that every later search must contain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

from camit.errors import InputError, SessionError
from camit.search.grid import Phrase
from camit.search.revise import Part, Request, Revision, Span
from camit.search.words import words_between
from camit.text import Vocabulary, Word, detokenise, normalise
from camit.tokens import SourceToken, Token

if TYPE_CHECKING:
    from camit.session import Session

MAX_REPLACEMENT = 300  # characters
_ATTACHED = frozenset(
    ".,;:!?%)]}\u201d\u2019\u3002\uff0c\u3001\uff01\uff1f\uff1b\uff1a\u2026\u300d\u300f\u300b"
)


@dataclass(frozen=True)
class Fixed:
    """Pieces that must stay, contiguous; `mine` says for each whether the person wrote it (else it was only kept)."""

    start: int
    stop: int
    mine: tuple[bool, ...]

    def shifted(self, by: int) -> Fixed:
        return Fixed(self.start + by, self.stop + by, self.mine)

    def cut(self, start: int, stop: int) -> Fixed | None:
        """What of it lies inside [start, stop)."""
        a, b = max(self.start, start), min(self.stop, stop)
        return Fixed(a, b, self.mine[a - self.start : b - self.start]) if a < b else None


@dataclass(frozen=True)
class Stage:
    """One step of a revision, for playback."""

    name: Literal["draft", "forward", "backward", "result"]
    tokens: tuple[Token, ...]
    caption: str


@dataclass(frozen=True)
class Version:
    """One state of a draft."""

    pieces: Phrase
    tokens: tuple[Token, ...]
    fixed: tuple[Fixed, ...] = ()
    starts: bool = False  # the first fixed span begins the sentence
    ends: bool = False  # the last fixed span ends it
    trace: tuple[Stage, ...] = ()
    revisions: int = 0


@dataclass(frozen=True)
class Alternative:
    """A word that could stand at a place; `from_memory` is the entry that offers it, if one does."""

    text: str
    probability: float
    from_memory: int | None


@dataclass(frozen=True)
class Plan:
    """An operation worked out: what to search, and what stays fixed of the new phrase."""

    request: Request
    fixed_left: tuple[Fixed, ...]
    fixed_focus: tuple[Fixed, ...]  # relative to the focus
    fixed_right: tuple[Fixed, ...]

    def fixed_after(self, revision: Revision) -> tuple[Fixed, ...]:
        """The fixed spans where they stand in the revised sentence."""
        at = revision.focus
        left = [Fixed(a, b, f.mine) for (a, b), f in zip(revision.fixed[:at], self.fixed_left, strict=True)]
        focus = [f.shifted(revision.fixed[at][0]) for f in self.fixed_focus]
        right = [
            Fixed(a, b, f.mine) for (a, b), f in zip(revision.fixed[at + 1 :], self.fixed_right, strict=True)
        ]
        return (*left, *focus, *right)


Place = int | tuple[int, int]


class Draft:
    """A sentence being revised. Made by `Session.open`; every operation is safe from any thread.

    >>> draft = session.open("...")  # doctest: +SKIP
    >>> draft.replace(3, "filmmakers")  # doctest: +SKIP
    """

    def __init__(
        self, session: Session, identifier: int, source: str, source_ids: tuple[int, ...], first: Version
    ) -> None:
        self._session = session
        self.id = identifier
        self.source = source
        self.source_ids = source_ids
        self.source_tokens: tuple[SourceToken, ...] = session.translator.source_tokens(source)
        self._versions: tuple[Version, ...] = (first,)
        self._at = 0
        self.confirmed = False

    def __repr__(self) -> str:
        return f"Draft({self.source!r} -> {self.text!r})"

    @property
    def languages(self) -> tuple[str, str]:
        """Of the source and of the translation."""
        translator = self._session.translator
        return translator.source_language, translator.target_language

    @property
    def version(self) -> Version:
        return self._versions[self._at]

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
        """The stages of the last revision: draft, forward, backward, result."""
        return self.version.trace

    @property
    def can_undo(self) -> bool:
        return self._at > 0 and not self.confirmed

    @property
    def can_redo(self) -> bool:
        return self._at + 1 < len(self._versions) and not self.confirmed

    @property
    def untouched(self) -> bool:
        """Nobody has changed, locked or confirmed anything here yet."""
        return len(self._versions) == 1 and not self.confirmed

    def begin(self, first: Version) -> None:
        """Start over from another first version; `Session.refresh` does this."""
        self._versions, self._at = (first,), 0

    def replace(
        self, place: Place, text: str, *, keystrokes: int | None = None, mouse: int | None = None
    ) -> Draft:
        """Put `text` in the place of a token, or of tokens (start, stop); the sentence follows.

        `keystrokes` and `mouse` are what it took, for the session's statistics; by default typing and one click.
        """
        words = self._typed(text, "replacement")

        def plan(version: Version) -> Plan:
            start, stop = self._range(place)
            if stop - start > 1 and stop - start == len(version.tokens):
                raise InputError(
                    "that is the whole sentence: nothing is left to translate around it. Replace a part, or use blank."
                )
            spans = self._words(version)
            attach = words[0] in _ATTACHED and start > 0
            return self._plan(
                version, spans[start].start, spans[stop - 1].stop, self._encode(words, attach), len(words) > 0
            )

        return self._revise("replace", plan, typed=words, keystrokes=keystrokes, mouse=mouse)

    def insert(
        self, index: int, text: str, *, keystrokes: int | None = None, mouse: int | None = None
    ) -> Draft:
        """Put `text` before token `index`; `len(tokens)` appends."""
        words = self._typed(text, "insertion")

        def plan(version: Version) -> Plan:
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= len(version.tokens):
                raise InputError(
                    f"cannot insert at {index!r}: give a token index from 0 to {len(version.tokens)} (appends)."
                )
            spans = self._words(version)
            at = spans[index].start if index < len(spans) else len(version.pieces)
            new = self._encode(words, words[0] in _ATTACHED and index > 0)
            before = self._region(version, spans[index - 1], left=True) if index > 0 else (at, at)
            after = self._region(version, spans[index], left=False) if index < len(spans) else (at, at)
            return self._join(version, before, new, after)

        return self._revise("insert", plan, typed=words, keystrokes=keystrokes, mouse=mouse)

    def delete(self, place: Place, *, keystrokes: int | None = None, mouse: int | None = None) -> Draft:
        """Take a token, or tokens (start, stop), out; its neighbours then stand side by side."""

        def plan(version: Version) -> Plan:
            start, stop = self._range(place)
            if stop - start == len(version.tokens):
                raise InputError("deleting every word would leave no sentence; replace them instead.")
            spans = self._words(version)
            a, b = spans[start].start, spans[stop - 1].stop
            before = self._region(version, spans[start - 1], left=True) if start > 0 else (a, a)
            after = self._region(version, spans[stop], left=False) if stop < len(spans) else (b, b)
            return self._join(version, before, (), after)

        return self._revise("delete", plan, typed="", keystrokes=keystrokes, mouse=mouse)

    def blank(self, place: Place, *, keystrokes: int | None = None, mouse: int | None = None) -> Draft:
        """Have tokens (start, stop) written anew; both ends stay as they are."""

        def run() -> Draft:
            version = self._open_version()
            start, stop = self._range(place)
            if stop - start == len(version.tokens):
                raise InputError("that is the whole sentence: keep at least one word at either end.")
            for token in version.tokens[start:stop]:
                if token.locked:
                    raise InputError(
                        f"{token.text!r} is fixed and would be lost; release it first, or blank around it."
                    )
            spans = self._words(version)
            a, b = spans[start].start, spans[stop - 1].stop
            left, right = version.pieces[:a], version.pieces[b:]
            middle = self._session._refill(self, left, right, version.pieces[a:b])
            shift = len(middle) - (b - a)
            fixed = tuple(f if f.stop <= a else f.shifted(shift) for f in version.fixed)
            pieces = (*left, *middle, *right)
            after = replace(version, fixed=fixed, revisions=version.revisions + 1)
            self._push(
                self._session._version(self, version, after, pieces, (), ()), "blank", "", keystrokes, mouse
            )
            return self

        return self._session.worker.call(run)

    def keep(self, place: Place) -> Draft:
        """Lock tokens: no later revision changes them."""

        def run() -> Draft:
            version = self._open_version()
            start, stop = self._range(place)
            spans = self._words(version)
            new = [
                Fixed(w.start, w.stop, (False,) * (w.stop - w.start))
                for w, token in zip(spans[start:stop], version.tokens[start:stop], strict=True)
                if not token.locked
            ]
            if new:
                fixed = tuple(sorted((*version.fixed, *new), key=lambda f: f.start))
                self._push(
                    replace(version, fixed=fixed, tokens=self._marked(version, fixed)), "keep", "", 1, 1
                )
            return self

        return self._session.worker.call(run)

    def release(self, place: Place) -> Draft:
        """Unlock tokens that were fixed or kept."""

        def run() -> Draft:
            version = self._open_version()
            start, stop = self._range(place)
            spans = self._words(version)
            if not any(token.locked for token in version.tokens[start:stop]):
                raise InputError(f"nothing to release at {place!r}: these tokens are not locked.")
            a, b = spans[start].start, spans[stop - 1].stop
            ends = (0, len(version.pieces))
            cuts = [part for f in version.fixed for part in (f.cut(ends[0], a), f.cut(b, ends[1])) if part]
            fixed = tuple(sorted(cuts, key=lambda f: f.start))
            after = replace(
                version,
                fixed=fixed,
                starts=version.starts and bool(fixed) and fixed[0].start == 0,
                ends=version.ends and bool(fixed) and fixed[-1].stop == len(version.pieces),
                tokens=self._marked(version, fixed),
            )
            self._push(after, "release", "", 1, 1)
            return self

        return self._session.worker.call(run)

    def alternatives(self, place: Place, k: int = 5) -> list[Alternative]:
        """The model's next best words at a place, given both sides of it."""
        return self._candidates(place, "", k)

    def complete(self, place: Place, typed: str, k: int = 5) -> list[Alternative]:
        """Words for a place that start with what has been typed so far."""
        if not isinstance(typed, str) or len(typed) > MAX_REPLACEMENT:
            raise InputError(f"give what was typed as a string of at most {MAX_REPLACEMENT} characters.")
        return self._candidates(place, typed.strip(), k)

    def undo(self) -> Draft:
        """Go back to how the sentence stood before the last operation."""

        def run() -> Draft:
            self._open_version()
            if not self.can_undo:
                raise SessionError("nothing to undo: this is the first draft of the sentence.")
            self._at -= 1
            self._session._log("undo", self)
            return self

        return self._session.worker.call(run)

    def redo(self) -> Draft:
        """Do again what was undone last."""

        def run() -> Draft:
            self._open_version()
            if not self.can_redo:
                raise SessionError("nothing to redo.")
            self._at += 1
            self._session._log("redo", self)
            return self

        return self._session.worker.call(run)

    def _revise(
        self,
        kind: str,
        plan: Callable[[Version], Plan],
        typed: str,
        keystrokes: int | None,
        mouse: int | None,
    ) -> Draft:
        def run() -> Draft:
            version = self._open_version()
            worked = plan(version)
            revision = self._session._search(self, worked.request)
            after = replace(
                version,
                fixed=worked.fixed_after(revision),
                starts=worked.request.left.anchored,
                ends=worked.request.right.anchored,
                revisions=version.revisions + 1,
            )
            new = self._session._version(
                self, version, after, revision.pieces, revision.forward, revision.backward
            )
            self._push(new, kind, typed, keystrokes, mouse)
            return self

        return self._session.worker.call(run)

    def _push(
        self, version: Version, kind: str, typed: str, keystrokes: int | None, mouse: int | None
    ) -> None:
        self._versions = (*self._versions[: self._at + 1], version)
        self._at += 1
        keys = len(typed) + 1 if keystrokes is None else keystrokes
        self._session._log(kind, self, typed=typed, keystrokes=keys, mouse=1 if mouse is None else mouse)

    def _open_version(self) -> Version:
        if self.confirmed:
            raise SessionError("this sentence is confirmed; call session.undo_confirm() to work on it again.")
        return self.version

    def _candidates(self, place: Place, typed: str, k: int) -> list[Alternative]:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"k must be a whole number of at least 1, not {k!r}.")

        def run() -> list[Alternative]:
            version = self.version
            spans = self._words(version)
            if typed and place == len(version.tokens):
                left, right, current = version.pieces, (), ""
            else:
                start, stop = self._range(place)
                left, right = version.pieces[: spans[start].start], version.pieces[spans[stop - 1].stop :]
                current = detokenise((w.text, w.space_before) for w in spans[start:stop]) if not typed else ""
            found = words_between(
                self._session.translator.directions,
                self._session._sources(self),
                0,
                left,
                right,
                typed=typed,
                readers=self._session._readers(self),
            )
            shown = [Alternative(c.text, c.probability, c.entry) for c in found if c.text != current]
            return shown[:k]

        return self._session.worker.call(run)

    def _typed(self, text: str, what: str) -> str:
        if isinstance(text, str) and not text.strip():
            raise InputError(f"the {what} is empty; use delete to take a word out.")
        return normalise(text, limit=MAX_REPLACEMENT, what=f"the {what}")

    def _range(self, place: Place) -> Span:
        count = len(self.version.tokens)
        if isinstance(place, int) and not isinstance(place, bool):
            start, stop = place, place + 1
        elif isinstance(place, Sequence) and len(place) == 2 and all(isinstance(x, int) for x in place):
            start, stop = place
        else:
            raise InputError(f"a place is a token index or a pair (start, stop), not {place!r}.")
        if not 0 <= start < stop <= count:
            raise InputError(
                f"place {place!r} is outside the sentence: it has {count} tokens, 0 to {count - 1}."
            )
        return start, stop

    @property
    def _vocabulary(self) -> Vocabulary:
        return self._session.translator.target_vocabulary

    def _words(self, version: Version) -> list[Word]:
        return self._vocabulary.words(version.pieces)

    def _encode(self, text: str, attach: bool) -> Phrase:
        return tuple(self._vocabulary.encode(text, attach=attach))

    def _region(self, version: Version, word: Word, *, left: bool) -> Span:
        """A neighbouring token, with all of the fixed span it belongs to on its side."""
        for fixed in version.fixed:
            if fixed.start < word.stop and word.start < fixed.stop:
                return (fixed.start, word.stop) if left else (word.start, fixed.stop)
        return word.start, word.stop

    def _plan(self, version: Version, start: int, stop: int, focus: Phrase, mine: bool) -> Plan:
        fixed = (Fixed(0, len(focus), (mine,) * len(focus)),)
        return self._request(version, start, stop, focus, fixed, version.starts, version.ends)

    def _join(self, version: Version, before: Span, new: Phrase, after: Span) -> Plan:
        """Neighbour + new + neighbour as one phrase; without `new`, the neighbours joined for good."""
        left = version.pieces[slice(*before)]
        right = version.pieces[slice(*after)]
        right = self._spaced(new[-1] if new else (left[-1] if left else None), right)
        focus = (*left, *new, *right)
        mine = [False] * len(focus)
        for fixed in version.fixed:
            for region, offset in (
                (before, 0),
                (after, len(left) + len(new) + len(right) - (after[1] - after[0])),
            ):
                part = fixed.cut(*region)
                if part:
                    for n, value in enumerate(part.mine):
                        mine[part.start - region[0] + offset + n] = value
        for n in range(len(left), len(left) + len(new)):
            mine[n] = True
        whole = Fixed(0, len(focus), tuple(mine))
        inside = any(
            f.start <= before[0] and after[1] <= f.stop and before[1] > f.start for f in version.fixed
        )
        if new and not (inside and left and right):
            # The neighbours only say where the new word goes; they are not fixed unless they were before.
            parts = []
            if left and self._is_fixed(version, before):
                parts.append(whole.cut(0, len(left)))
            parts.append(whole.cut(len(left), len(left) + len(new)))
            if right and self._is_fixed(version, after):
                parts.append(whole.cut(len(left) + len(new), len(focus)))
            fixed_focus = tuple(part for part in parts if part)
        else:
            fixed_focus = (whole,)
        starts = version.starts or (not new and not left)
        ends = version.ends or (not new and not right)
        if new and version.ends and not right:
            ends = True
        return self._request(version, before[0], after[1], focus, fixed_focus, starts, ends)

    def _is_fixed(self, version: Version, region: Span) -> bool:
        return any(f.start < region[1] and region[0] < f.stop for f in version.fixed)

    def _request(
        self,
        version: Version,
        start: int,
        stop: int,
        focus: Phrase,
        fixed_focus: tuple[Fixed, ...],
        starts: bool,
        ends: bool,
    ) -> Plan:
        left, right = version.pieces[:start], self._spaced(focus[-1], version.pieces[stop:])
        grown = len(right) - (len(version.pieces) - stop)
        fixed_left = tuple(part for f in version.fixed if (part := f.cut(0, start)))
        fixed_right = tuple(
            self._respaced(part.shifted(grown - stop), grown)
            for f in version.fixed
            if (part := f.cut(stop, len(version.pieces)))
        )
        request = Request(
            0,
            Part(left, tuple((f.start, f.stop) for f in fixed_left), starts),
            focus,
            Part(right, tuple((f.start, f.stop) for f in fixed_right), ends),
            once=self._once(version, start, stop, focus, fixed_focus),
        )
        return Plan(request, fixed_left, fixed_focus, fixed_right)

    def _respaced(self, fixed: Fixed, grown: int) -> Fixed:
        """A fixed span whose first piece was given a space takes the space along."""
        if grown and fixed.start == grown:
            return Fixed(0, fixed.stop, (fixed.mine[0],) * grown + fixed.mine)
        return fixed

    def _spaced(self, before: int | None, pieces: Phrase) -> Phrase:
        """`pieces`, with a space before the first where it would otherwise stick to what stands before it."""
        if before is None or not pieces or self._vocabulary.boundary(before, pieces[0]):
            return pieces
        return (*self._vocabulary.separated(pieces[0]), *pieces[1:])

    def _once(
        self, version: Version, start: int, stop: int, focus: Phrase, fixed_focus: tuple[Fixed, ...]
    ) -> tuple[Phrase, ...]:
        """Fixed phrases of rare words that do not stand in the sentence a second time already."""
        phrases = [focus[f.start : f.stop] for f in fixed_focus]
        phrases += [
            version.pieces[f.start : f.stop] for f in version.fixed if f.stop <= start or f.start >= stop
        ]
        free = [
            w.text for w, token in zip(self._words(version), version.tokens, strict=True) if not token.locked
        ]
        vocabulary = self._vocabulary
        return tuple(p for p in phrases if not vocabulary.is_common(p) and vocabulary.decode(p) not in free)

    def _marked(self, version: Version, fixed: tuple[Fixed, ...]) -> tuple[Token, ...]:
        """Tokens with locks and origins as the fixed spans say."""
        marked = []
        for word, token in zip(self._words(version), version.tokens, strict=True):
            lock, mine = status(word, fixed)
            origin = "yours" if mine else "kept" if lock or token.locked else token.origin
            marked.append(replace(token, locked=lock, origin=origin))
        return tuple(marked)


def status(word: Word, fixed: Sequence[Fixed]) -> tuple[bool, bool]:
    """Is a token locked, and did the person write it?"""
    for span in fixed:
        if span.start < word.stop and word.start < span.stop:
            part = span.cut(word.start, word.stop)
            return True, part is not None and any(part.mine)
    return False, False


def with_origins(
    words: Sequence[Word], tokens: Sequence[Token], fixed: Sequence[Fixed], before: Sequence[Token]
) -> tuple[Token, ...]:
    """Tokens of a revised sentence, marked by what happened to them: yours, kept or changed."""
    matcher = SequenceMatcher(None, [t.text for t in before], [t.text for t in tokens], autojunk=False)
    same = {block.b + n for block in matcher.get_matching_blocks() for n in range(block.size)}
    marked = []
    for index, (word, token) in enumerate(zip(words, tokens, strict=True)):
        lock, mine = status(word, fixed)
        origin: Literal["yours", "kept", "changed"] = (
            "yours" if mine else "kept" if lock or index in same else "changed"
        )
        marked.append(replace(token, origin=origin, locked=lock))
    return tuple(marked)
