"""What must be true of a draft, worked out from its tokens alone: the promise made to the person who revises.

Every word that was fixed stands in every later version: in order, none lost, none moved, phrases unbroken, on
word boundaries. Nothing here knows how drafts are planned or searched, so it can find them wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from camit.session.draft import Draft
from camit.session.plan import Version
from camit.text import Vocabulary, detokenise, normalise
from camit.tokens import Token


class Violation(AssertionError):  # noqa: N818 - it is a finding, not an error of ours
    """A promise was broken."""


@dataclass(frozen=True)
class Action:
    """An operation on a draft; `stop` and `text` where the operation has them."""

    kind: str
    start: int = 0
    stop: int = 0
    text: str = ""

    def do(self, draft: Draft) -> None:
        """Carry it out through the public names."""
        place = self.start if self.stop == self.start + 1 else (self.start, self.stop)
        match self.kind:
            case "replace":
                draft.replace(place, self.text)
            case "insert":
                draft.insert(self.start, self.text)
            case "delete":
                draft.delete(place)
            case "blank":
                draft.blank(place)
            case "keep":
                draft.keep(place)
            case "release":
                draft.release(place)
            case "undo":
                draft.undo()
            case "redo":
                draft.redo()


@dataclass(frozen=True)
class Phrase:
    """Words that were fixed together, and where they stand."""

    start: int
    words: tuple[str, ...]
    mine: tuple[bool, ...]

    @property
    def stop(self) -> int:
        return self.start + len(self.words)

    def part(self, start: int, stop: int) -> Phrase:
        """Its words within [start, stop)."""
        a = min(max(start, self.start), self.stop)
        b = max(min(stop, self.stop), a)
        keep = slice(a - self.start, b - self.start)
        return Phrase(a, self.words[keep], self.mine[keep])

    def __add__(self, other: Phrase) -> Phrase:
        return Phrase(self.start, self.words + other.words, self.mine + other.mine)


@dataclass(frozen=True)
class Promise:
    """What a person may rely on in the next version."""

    phrases: tuple[Phrase, ...] = ()
    starts: bool = False
    ends: bool = False


class Oracle:
    """Follows one draft from its first version on.

    >>> oracle = Oracle(draft, vocabulary)  # doctest: +SKIP
    >>> oracle.play(Action("replace", 1, 2, "met"))  # doctest: +SKIP
    """

    def __init__(self, draft: Draft, vocabulary: Vocabulary) -> None:
        self._draft = draft
        self._vocabulary = vocabulary
        self._history: list[tuple[Version, Promise]] = [(draft.version, Promise())]
        self._at = 0
        self._check(Promise())

    def play(self, action: Action) -> None:
        """Carry an action out and check what came of it."""
        before, promise = self._draft.tokens, self._history[self._at][1]
        action.do(self._draft)
        if action.kind in ("undo", "redo"):
            self._at += 1 if action.kind == "redo" else -1
            version, promise = self._history[self._at]
            _require(self._draft.version == version, f"{action.kind} shows another version than there was")
            self._check(promise)
            return
        promise = self._after(action, before, promise)
        if self._draft.version is self._history[self._at][0]:
            return  # nothing to do, such as keeping what is kept
        self._history = [*self._history[: self._at + 1], (self._draft.version, promise)]
        self._at += 1
        self._check(promise)

    # What is promised after an action

    def _after(self, action: Action, before: Sequence[Token], promise: Promise) -> Promise:
        now = self._draft.tokens
        a, b, n = action.start, action.stop, len(before)
        match action.kind:
            case "replace":
                touched = [p for p in promise.phrases if p.start < b and a < p.stop]
                left = touched[0].part(0, a) if touched else Phrase(a, (), ())
                right = touched[-1].part(b, n) if touched else Phrase(b, (), ())
                new = left + self._typed(action.text) + right
                rest = [p for p in promise.phrases if p not in touched]
                phrases = [p for p in rest if p.stop <= a] + [new] + [p for p in rest if p.start >= b]
                if 1 < b - a == n:  # who writes over all of it has written the sentence
                    return self._found(Promise((new,), starts=True, ends=True), now)
                return self._found(replace(promise, phrases=tuple(phrases)), now)
            case "insert":
                new = self._typed(action.text)
                around = [p for p in promise.phrases if p.start < a < p.stop]
                if around:
                    new = around[0].part(0, a) + new + around[0].part(a, n)
                rest = [p for p in promise.phrases if p not in around]
                phrases = [p for p in rest if p.stop <= a] + [new] + [p for p in rest if p.start >= a]
                found = self._found(replace(promise, phrases=tuple(phrases)), now)
                at = found.phrases[len([p for p in rest if p.stop <= a])]
                neighbours = [t.text for t in before[max(a - 1, 0) : a]], [t.text for t in before[a : a + 1]]
                if not around:
                    stands = (
                        [t.text for t in now[max(at.start - 1, 0) : at.start]],
                        [t.text for t in now[at.stop : at.stop + 1]],
                    )
                    _require(stands == neighbours, f"{action} stands between {stands}, not {neighbours}")
                return found
            case "delete":
                left = self._neighbour(before, promise, a - 1, (0, a)) if a else Phrase(0, (), ())
                right = self._neighbour(before, promise, b, (b, n)) if b < n else Phrase(n, (), ())
                new = left + right
                phrases = [p for p in promise.phrases if p.stop <= (left.start if a else 0)]
                later = [p for p in promise.phrases if p.start >= (right.stop if b < n else n)]
                changed = Promise((*phrases, new, *later), promise.starts or a == 0, promise.ends or b == n)
                return self._found(changed, now)
            case "blank":
                more = len(now) - n
                _require(_texts(now[:a]) == _texts(before[:a]), f"{action} changed the left part")
                _require(_texts(now[b + more :]) == _texts(before[b:]), f"{action} changed the right part")
                moved = (p if p.stop <= a else replace(p, start=p.start + more) for p in promise.phrases)
                return replace(promise, phrases=tuple(moved))
            case "keep":
                touched = [p for p in promise.phrases if p.start < b and a < p.stop]
                first, last = min([a, *(p.start for p in touched)]), max([b, *(p.stop for p in touched)])
                mine = {p.start + i for p in touched for i, m in enumerate(p.mine) if m}
                new = Phrase(
                    first, tuple(_texts(before[first:last])), tuple(i in mine for i in range(first, last))
                )
                rest = [p for p in promise.phrases if p not in touched]
                return replace(promise, phrases=tuple(sorted([*rest, new], key=lambda p: p.start)))
            case "release":
                cuts = [part for p in promise.phrases for part in (p.part(0, a), p.part(b, n)) if part.words]
                return Promise(
                    tuple(cuts),
                    promise.starts and bool(cuts) and cuts[0].start == 0,
                    promise.ends and bool(cuts) and cuts[-1].stop == n,
                )
        raise ValueError(action)

    def _neighbour(
        self, before: Sequence[Token], promise: Promise, index: int, side: tuple[int, int]
    ) -> Phrase:
        """The word beside a deletion with the rest of the phrase it belongs to, on its side."""
        for p in promise.phrases:
            if p.start <= index < p.stop:
                return p.part(*side)
        return Phrase(index, (before[index].text,), (False,))

    def _typed(self, text: str) -> Phrase:
        words = tuple(w.text for w in self._vocabulary.words(self._vocabulary.encode(text)))
        _require("".join(words) == "".join(normalise(text).split()), f"{text!r} is spelt {words}")
        return Phrase(0, words, (True,) * len(words))

    def _found(self, promise: Promise, now: Sequence[Token]) -> Promise:
        """The phrases where they stand now: the locked tokens, in order."""
        locked = [i for i, token in enumerate(now) if token.locked]
        phrases = []
        for p in promise.phrases:
            mine, locked = locked[: len(p.words)], locked[len(p.words) :]
            phrases.append(replace(p, start=mine[0] if mine else len(now)))
        return replace(promise, phrases=tuple(phrases))

    # Whether it is kept

    def _check(self, promise: Promise) -> None:
        draft = self._draft
        tokens = draft.tokens
        told = f"{draft.source!r} -> {_texts(tokens)}, promised {promise}"
        _require(len(tokens) > 0, f"no words: {told}")
        words = self._vocabulary.words(draft.pieces)
        _require([w.text for w in words] == _texts(tokens), f"pieces and tokens differ: {told}")
        _require(draft.text == self._vocabulary.decode(draft.pieces), f"text and pieces differ: {told}")
        _require(
            draft.text == detokenise((t.text, t.space_before) for t in tokens), f"text and tokens: {told}"
        )
        held: dict[int, bool] = {}
        for p in promise.phrases:
            _require(tuple(_texts(tokens[p.start : p.stop])) == p.words, f"{p} does not stand: {told}")
            held |= dict(zip(range(p.start, p.stop), p.mine, strict=True))
        _require(len(held) == sum(len(p.words) for p in promise.phrases), f"phrases overlap: {told}")
        _require(not promise.starts or promise.phrases[0].start == 0, f"does not start so: {told}")
        _require(not promise.ends or promise.phrases[-1].stop == len(tokens), f"does not end so: {told}")
        for i, token in enumerate(tokens):
            _require(token.locked == (i in held), f"lock of token {i}: {told}")
            _require((token.origin == "yours") == held.get(i, False), f"origin of token {i}: {told}")
            _require(token.origin == "kept" or not (token.locked and not held[i]), f"kept {i}: {told}")
            _require((token.origin != "draft") or draft.revisions == 0, f"draft {i}: {told}")
            _require(0.0 <= token.probability <= 1.0 and 0.0 <= token.theta <= 1.0, f"chance {i}: {told}")


def _texts(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens]


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Violation(otherwise)
