"""What an operation on a draft means: pure functions from one version of a sentence to a search, or the next.

Every operation becomes ordered phrase constraints: replace gives the phrase, insert neighbour + new +
neighbour, delete the two neighbours joined, blank both ends. What a person fixed is a run of words (`Fixed`)
that stands in every later version: whole, in order, on word boundaries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal, TypeGuard

from camit.errors import InputError
from camit.search.problem import Phrase, Span
from camit.search.revise import Protocol, Request, Revision, Whole
from camit.search.sides import Part
from camit.text import Vocabulary, normalise
from camit.tokens import Origin, Token

Place = int | Span

StageName = Literal["draft", "forward", "backward", "result"]
# The passes of each protocol and what is said of them.
_PASSES: dict[Protocol, dict[StageName, str]] = {
    "replace-only": {},
    "unidirectional": {
        "forward": "Forward: what stands left of your fix stays, what stands right of it is written anew."
    },
    "unidirectional-grid": {
        "forward": "Forward: the whole sentence is written anew from its beginning, with your fixes in it."
    },
    "bidirectional": {
        "forward": "Forward: a new right part is written behind your fix. It competes with the old one.",
        "backward": (
            "Backward: a new left part is written before the right part that won. It competes with the old."
        ),
    },
}
_RESCORED = "Result: both decoders read every pair of old and new parts as a whole sentence; this fits best."

MAX_TYPED = 1000  # characters of a replacement or insertion: it may be the whole sentence
MAX_PIECES = 1000  # of a sentence; a person who writes more than that is not revising
_CLOSING = frozenset(".,;:!?%)]}\u201d\u2019\u2026")  # written without a space before them
_OPENING = frozenset("([{\u201c\u2018\"'")  # written without a space behind them


@dataclass(frozen=True)
class Stage:
    """One step of a revision, for playback."""

    name: StageName
    tokens: tuple[Token, ...]
    caption: str


@dataclass(frozen=True)
class Fixed:
    """Words [start, stop) that stay as they are, next to each other.

    `mine` says for each of them whether the person wrote it; otherwise it was only kept.
    """

    start: int
    stop: int
    mine: tuple[bool, ...]

    def shifted(self, by: int) -> Fixed:
        return Fixed(self.start + by, self.stop + by, self.mine)

    def cut(self, start: int, stop: int) -> Fixed | None:
        """What of it lies in [start, stop)."""
        a, b = max(self.start, start), min(self.stop, stop)
        return Fixed(a, b, self.mine[a - self.start : b - self.start]) if a < b else None


@dataclass(frozen=True)
class Version:
    """One state of a draft. Every operation makes a new one."""

    pieces: Phrase
    tokens: tuple[Token, ...]
    fixed: tuple[Fixed, ...] = ()
    starts: bool = False  # the first fixed words begin the sentence
    ends: bool = False  # the last fixed words end it
    revisions: int = 0
    stages: tuple[Stage, ...] = ()  # of the last revision
    before: tuple[Token, ...] = ()  # what it revised

    @property
    def trace(self) -> tuple[Stage, ...]:
        """The last revision, stage by stage."""
        if not self.before:
            return ()
        rescored = any(stage.name == "backward" for stage in self.stages)
        return (
            Stage("draft", self.before, "The sentence as it stood."),
            *self.stages,
            Stage("result", self.tokens, _RESCORED if rescored else "The sentence as it stands now."),
        )


@dataclass(frozen=True)
class Plan:
    """A search, and which words will be fixed once it has found something."""

    request: Request
    left: tuple[Fixed, ...]
    focus: tuple[Fixed, ...]  # counted from the first word of the focus
    right: tuple[Fixed, ...]
    starts: bool
    ends: bool

    def fixed_in(self, whole: Whole, vocabulary: Vocabulary) -> tuple[Fixed, ...]:
        """The fixed words where they stand in a sentence the search wrote."""
        words = [word.start for word in vocabulary.words(whole.pieces)]
        # A word may begin before its phrase, by a space mark that stands alone.
        places = [bisect_right(words, start) - 1 for start, _ in whole.fixed]
        n = len(self.left)
        return (
            *(f.shifted(place - f.start) for f, place in zip(self.left, places[:n], strict=True)),
            *(f.shifted(places[n]) for f in self.focus),
            *(f.shifted(place - f.start) for f, place in zip(self.right, places[n + 1 :], strict=True)),
        )


# The operations


def replacing(version: Version, vocabulary: Vocabulary, place: Place, text: str) -> Plan:
    """`text` in the place of words; inside a longer fix the rest of the fix stays around it.

    Who writes over several words that are the whole sentence has written the sentence.
    """
    start, stop = span(version, place)
    around = [f for f in version.fixed if f.start < stop and start < f.stop]
    reach = min([start, *(f.start for f in around)]), max([stop, *(f.stop for f in around)])
    gone = (start, stop) if 1 < stop - start == len(version.tokens) else None
    return _plan(version, vocabulary, (start, stop), text, reach, joined=True, gone=gone)


def inserting(version: Version, vocabulary: Vocabulary, index: object, text: str) -> Plan:
    """`text` before a word. Its neighbours say where it goes; they are as fixed afterwards as before."""
    count = len(version.tokens)
    if not _is_index(index) or not 0 <= index <= count:
        raise InputError(f"cannot insert at {index!r}: give a token index from 0 to {count}, which appends.")
    inside = any(f.start < index < f.stop for f in version.fixed)
    return _plan(version, vocabulary, (index, index), text, _neighbours(version, index, index), joined=inside)


def deleting(version: Version, vocabulary: Vocabulary, place: Place) -> Plan:
    """Words out; their neighbours stand side by side from now on, or at the edge of the sentence."""
    start, stop = gone = span(version, place)
    if stop - start == len(version.tokens):
        raise InputError("deleting every word would leave no sentence; replace words instead.")
    return _plan(version, vocabulary, gone, "", _neighbours(version, start, stop), joined=True, gone=gone)


@dataclass(frozen=True)
class Gap:
    """Words to be written anew between two parts that stay; all in pieces."""

    left: Phrase
    old: Phrase
    right: Phrase
    words: Span
    once: tuple[Phrase, ...]  # fixes that must not appear a second time


def blanking(version: Version, vocabulary: Vocabulary, place: Place) -> Gap:
    """The gap that blanking words leaves."""
    start, stop = span(version, place)
    if stop - start == len(version.tokens):
        raise InputError(
            "that is the whole sentence: leave out at least one word, so that there is something to go by."
        )
    for token in version.tokens[start:stop]:
        if token.locked:
            raise InputError(
                f"{token.text!r} is fixed and would be lost; release it first, or choose words around it."
            )
    words = vocabulary.words(version.pieces)
    a, b = words[start].start, words[stop - 1].stop
    once = _once(version, vocabulary, (), (), (start, stop))
    return Gap(version.pieces[:a], version.pieces[a:b], version.pieces[b:], (start, stop), once)


def filled(version: Version, gap: Gap, middle: Phrase, tokens: Sequence[Token]) -> Version:
    """The version after a gap was filled; `tokens` are those of the whole sentence."""
    start, stop = gap.words
    more = len(tokens) - len(version.tokens)
    fixed = tuple(f if f.stop <= start else f.shifted(more) for f in version.fixed)
    old, new = version.tokens[start:stop], tokens[start : stop + more]
    free: list[Origin] = ["kept"] * len(tokens)
    free[start : stop + more] = _origins(old, new)
    return replace(
        version,
        pieces=(*gap.left, *middle, *gap.right),
        tokens=_marked(tokens, fixed, free),
        fixed=fixed,
        revisions=version.revisions + 1,
        stages=(),
        before=version.tokens,
    )


def keeping(version: Version, place: Place) -> Version:
    """Words locked as they stand; several at once stay next to each other."""
    start, stop = span(version, place)
    if all(token.locked for token in version.tokens[start:stop]) and _together(version, start, stop):
        return version
    around = [f for f in version.fixed if f.start < stop and start < f.stop]
    first, last = min([start, *(f.start for f in around)]), max([stop, *(f.stop for f in around)])
    new = Fixed(first, last, tuple(_mine(version, i) for i in range(first, last)))
    fixed = tuple(sorted([*(f for f in version.fixed if f not in around), new], key=lambda f: f.start))
    return _with_fixed(version, fixed)


def releasing(version: Version, place: Place) -> Version:
    """Words that were fixed or kept may change again."""
    start, stop = span(version, place)
    if not any(token.locked for token in version.tokens[start:stop]):
        raise InputError(f"nothing to release at {place!r}: no word there is fixed or kept.")
    parts = (part for f in version.fixed for part in (f.cut(0, start), f.cut(stop, len(version.tokens))))
    return _with_fixed(version, tuple(part for part in parts if part))


def typed(text: object, what: str) -> str:
    """What a person typed, in normal form; an error if it is nothing, or a whole page."""
    if isinstance(text, str) and not text.strip():
        raise InputError(f"the {what} is empty; use delete to take words out.")
    return normalise(text, limit=MAX_TYPED, what=f"the {what}")


def span(version: Version, place: object) -> Span:
    """A place as a range of words; an error if it is none."""
    count = len(version.tokens)
    pair = (place, place + 1) if _is_index(place) else place
    if not isinstance(pair, Sequence) or len(pair) != 2 or not all(map(_is_index, pair)):
        raise InputError(f"a place is a token index or a pair (start, stop), not {place!r}.")
    start, stop = pair
    if not 0 <= start < stop <= count:
        raise InputError(
            f"{place!r} is no place in this sentence: its {count} tokens are 0 to {count - 1}, "
            "and a pair (start, stop) needs start < stop."
        )
    return start, stop


def span_or_gap(version: Version, place: object) -> Span:
    """A place as a range of words, or the gap before a word: (3, 3), or the number of words for the last."""
    count = len(version.tokens)
    pair = (place, place) if place == count else place
    if isinstance(pair, Sequence) and len(pair) == 2 and all(map(_is_index, pair)):
        start, stop = pair
        if 0 <= start == stop <= count:
            return start, stop
    return span(version, place)


def _is_index(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


# What comes of them


def revised(
    version: Version,
    plan: Plan,
    vocabulary: Vocabulary,
    revision: Revision,
    tokens: Sequence[Token],
    protocol: Protocol | None = None,
) -> Version:
    """The version after a search: every token says whether it is the person's, stayed, or changed.

    `tokens` are those of the revision. `protocol` says which passes to keep for playback; without it, none.
    """
    fixed = plan.fixed_in(revision.result, vocabulary)
    before = version.tokens
    return replace(
        version,
        pieces=revision.pieces,
        tokens=_marked(tokens, fixed, _origins(before, tokens)),
        fixed=fixed,
        starts=plan.starts,
        ends=plan.ends,
        revisions=version.revisions + 1,
        stages=_passes(plan, revision, before, vocabulary, protocol) if protocol else (),
        before=before,
    )


def _passes(
    plan: Plan, revision: Revision, before: Sequence[Token], vocabulary: Vocabulary, protocol: Protocol
) -> tuple[Stage, ...]:
    """The passes of a revision."""
    written = {"forward": revision.forward, "backward": revision.backward}

    def shown(whole: Whole) -> tuple[Token, ...]:
        return _words(whole.pieces, plan.fixed_in(whole, vocabulary), before, vocabulary)

    return tuple(Stage(name, shown(written[name]), caption) for name, caption in _PASSES[protocol].items())


def _words(
    pieces: Phrase, fixed: Sequence[Fixed], before: Sequence[Token], vocabulary: Vocabulary
) -> tuple[Token, ...]:
    """What a pass had written, as words alone: they are played back, and more would have to be read."""
    tokens = [Token(word.text, word.space_before, 0.0, ()) for word in vocabulary.words(pieces)]
    return _marked(tokens, fixed, _origins(before, tokens))


def written(version: Version, vocabulary: Vocabulary) -> list[Span]:
    """Slices of the pieces that the person wrote: what is worth remembering."""
    words = vocabulary.words(version.pieces)
    spans: list[Span] = []
    for f in version.fixed:
        going_on = False  # the word before was written by the person too
        for i, mine in zip(range(f.start, f.stop), f.mine, strict=True):
            if mine and going_on:
                spans[-1] = spans[-1][0], words[i].stop
            elif mine:
                spans.append((words[i].start, words[i].stop))
            going_on = mine
    return spans


def in_both(version: Version, draft: Version, vocabulary: Vocabulary) -> set[Span]:
    """The words, as slices of the pieces of a version, that stand in the machine's own draft, too."""
    words, drafted = (vocabulary.words(v.pieces) for v in (version, draft))
    matcher = SequenceMatcher(None, [w.text for w in drafted], [w.text for w in words], autojunk=False)
    same = (n for block in matcher.get_matching_blocks() for n in range(block.b, block.b + block.size))
    return {(words[n].start, words[n].stop) for n in same}


# Inside


def _plan(
    version: Version,
    vocabulary: Vocabulary,
    out: Span,
    text: str,
    reach: Span,
    *,
    joined: bool,
    gone: Span | None = None,
) -> Plan:
    """Words `out` become `text`, and words `reach` with it are the focus of the search.

    `joined`: the focus is one fixed phrase from now on; otherwise words around `text` are as fixed as before.
    `gone`: these are gone for good: what stands at the edge of the sentence in their place stays there.
    """
    (start, stop), (first, last) = out, reach
    words = vocabulary.words(version.pieces)
    cuts = [*(word.start for word in words), len(version.pieces)]
    pieces = version.pieces
    left, before = pieces[: cuts[first]], pieces[cuts[first] : cuts[start]]
    after, right = pieces[cuts[stop] : cuts[last]], pieces[cuts[last] :]
    new = _encode(vocabulary, version, start, text)
    after = _spaced(vocabulary, (*before, *new), after)
    focus = (*before, *new, *after)
    right = _spaced(vocabulary, focus, right)
    if len(left) + len(focus) + len(right) > MAX_PIECES:
        raise InputError(
            f"the sentence would grow beyond {MAX_PIECES} pieces; split it into sentences first."
        )
    count = len(vocabulary.words(new))
    grown = count - (stop - start)
    if joined:
        mine = [
            *(_mine(version, i) for i in range(first, start)),
            *[True] * count,
            *(_mine(version, i) for i in range(stop, last)),
        ]
        fixed_focus = [Fixed(0, len(mine), tuple(mine))]
    else:
        fixed_focus = [f.shifted(-first) for f in version.fixed if first <= f.start and f.stop <= start]
        fixed_focus += [Fixed(start - first, start - first + count, (True,) * count)]
        fixed_focus += [f.shifted(grown - first) for f in version.fixed if stop <= f.start and f.stop <= last]
    fixed_left = tuple(f for f in version.fixed if f.stop <= first)
    fixed_right = tuple(f.shifted(-last) for f in version.fixed if f.start >= last)
    starts = version.starts or (gone is not None and gone[0] == 0)
    ends = version.ends or (gone is not None and gone[1] == len(words))
    request = Request(
        0,
        # An insertion at the edge stands at the edge, if only until something else is revised.
        Part(left, _pieces_of(vocabulary, left, fixed_left), starts or (start == stop == 0)),
        focus,
        Part(right, _pieces_of(vocabulary, right, fixed_right), ends or (start == stop == len(words))),
        once=(*_once(version, vocabulary, focus, fixed_focus, reach), *_deleted(version, vocabulary, gone)),
    )
    return Plan(request, fixed_left, tuple(fixed_focus), fixed_right, starts, ends)


def _neighbours(version: Version, start: int, stop: int) -> Span:
    """Words [start, stop) with one word on either side, and with all of the fixes these belong to."""
    first, last = max(start - 1, 0), min(stop + 1, len(version.tokens))
    around = [f for f in version.fixed if f.start < last and first < f.stop]
    return min([first, *(f.start for f in around)]), max([last, *(f.stop for f in around)])


def _encode(vocabulary: Vocabulary, version: Version, at: int, text: str) -> Phrase:
    """The pieces of new words, with a space before the first unless it belongs to what stands there."""
    if not text:
        return ()
    if at and vocabulary.spaced:
        before = version.tokens[at - 1].text
        follows = at < len(version.tokens) and not version.tokens[at].space_before
        if text[0] in _CLOSING or (before[-1] in _OPENING and follows):
            attached = tuple(vocabulary.encode(text, attach=True))
            if vocabulary.boundary(_last_piece(vocabulary, version, at), attached[0]):
                return attached
    return tuple(vocabulary.encode(text))


def _last_piece(vocabulary: Vocabulary, version: Version, at: int) -> int:
    return version.pieces[vocabulary.words(version.pieces)[at - 1].stop - 1]


def _spaced(vocabulary: Vocabulary, before: Phrase, pieces: Phrase) -> Phrase:
    """`pieces`, with a space before the first where it would otherwise stick to what stands before it."""
    if not before or not pieces or vocabulary.boundary(before[-1], pieces[0]):
        return pieces
    return (*vocabulary.separated(pieces[0]), *pieces[1:])


def _pieces_of(vocabulary: Vocabulary, part: Phrase, fixed: Sequence[Fixed]) -> tuple[Span, ...]:
    """Fixed words of a part as slices of its pieces."""
    words = vocabulary.words(part)
    return tuple((words[f.start].start, words[f.stop - 1].stop) for f in fixed)


def _once(
    version: Version, vocabulary: Vocabulary, focus: Phrase, fixed: Sequence[Fixed], reach: Span
) -> tuple[Phrase, ...]:
    """Fixed phrases and words that are rare and do not stand outside `reach` a second time already."""
    words = vocabulary.words(version.pieces)
    phrases = [focus[a:b] for a, b in _pieces_of(vocabulary, focus, fixed)]
    phrases += [
        version.pieces[words[f.start].start : words[f.stop - 1].stop]
        for f in version.fixed
        if f.stop <= reach[0] or f.start >= reach[1]
    ]
    phrases += [phrase[word.start : word.stop] for phrase in phrases for word in vocabulary.words(phrase)]
    outside = (*version.tokens[: reach[0]], *version.tokens[reach[1] :])
    free = {token.text for token in outside if not token.locked}
    rare = (p for p in dict.fromkeys(phrases) if not vocabulary.is_common(p))
    return tuple(p for p in rare if vocabulary.decode(p) not in free)


def _deleted(version: Version, vocabulary: Vocabulary, gone: Span | None) -> tuple[Phrase, ...]:
    """Words that were taken out, in both spellings, unless the sentence says them elsewhere too: who deletes
    a word does not expect it to come back in another place."""
    if gone is None:
        return ()
    left = {token.text.lower() for token in (*version.tokens[: gone[0]], *version.tokens[gone[1] :])}
    texts = {token.text for token in version.tokens[gone[0] : gone[1]] if token.text.lower() not in left}
    spellings = {text[:1].lower() + text[1:] for text in texts} | {
        text[:1].upper() + text[1:] for text in texts
    }
    return tuple(tuple(vocabulary.encode(text)) for text in sorted(spellings))


def _mine(version: Version, index: int) -> bool:
    """Did the person write this word?"""
    return any(f.start <= index < f.stop and f.mine[index - f.start] for f in version.fixed)


def _together(version: Version, start: int, stop: int) -> bool:
    return any(f.start <= start and stop <= f.stop for f in version.fixed)


def _with_fixed(version: Version, fixed: tuple[Fixed, ...]) -> Version:
    """The same sentence with other locks. A released word is one that stayed, or one nobody has touched."""
    free: list[Origin] = [
        t.origin if not t.locked else "kept" if version.revisions else "draft" for t in version.tokens
    ]
    return replace(
        version,
        tokens=_marked(version.tokens, fixed, free),
        fixed=fixed,
        starts=version.starts and bool(fixed) and fixed[0].start == 0,
        ends=version.ends and bool(fixed) and fixed[-1].stop == len(version.tokens),
    )


def _origins(before: Sequence[Token], after: Sequence[Token]) -> list[Origin]:
    """For each token of a new sentence: did it stand in the old one, in the same order?"""
    old, new = [token.text for token in before], [token.text for token in after]
    origins: list[Origin] = ["changed"] * len(new)
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        origins[block.b : block.b + block.size] = ["kept"] * block.size
    return origins


def _marked(tokens: Sequence[Token], fixed: Sequence[Fixed], free: Sequence[Origin]) -> tuple[Token, ...]:
    """Tokens with their locks and origins: the fixed ones as `fixed` says, the others as `free` says."""
    result = [replace(t, origin=origin, locked=False) for t, origin in zip(tokens, free, strict=True)]
    for f in fixed:
        for i, mine in zip(range(f.start, f.stop), f.mine, strict=True):
            result[i] = replace(result[i], origin="yours" if mine else "kept", locked=True)
    return tuple(result)
