"""What of a person's fixes is remembered, and for which source words it stands.

A single word stands for the source words that `alignment.py` finds; where that is not sure, for those that no
other word surely stands for. Where its neighbour, which was right, stands for the same one and more
surely, the two are remembered together: who puts "older" before "brother" does not mean that 哥哥 is
"older". A phrase goes from the first of its rarer words to the last, and to small ones behind that stand for
the same: "turn on". Once begun, it is written to its end, so it stands for all the source text that its words
look at, and is offered nowhere else: or else "said he was dead" would come for 说他没死. Where nobody knows
what a name in it stands for, it is not remembered: or else "surname is Guo" would come for every 姓.

Of its rarer words, those that are new and take several pieces, as names do, are remembered on their own, too,
if they do not stand for the same as the phrase; those side by side that stand for one source word, together.
Capitals side by side are one name, unless each surely stands for a word of its own; its 's is no part of it.
A phrase that looks at more than a few source words, as when a sentence is typed anew, is remembered by its
new rarer words alone, and one in which none is new not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise

from camit.memory.alignment import ANCHORS, Anchor, find_anchors
from camit.memory.matching import stretch
from camit.networks import Features
from camit.search.problem import Phrase, Span
from camit.text import UNK, Vocabulary, says_something
from camit.translator import Translator

Find = Callable[[Sequence[Span]], list[tuple[Anchor, ...]]]  # the source words of slices

# How surely a word stands for a source word, at least: a name, to be remembered in a phrase; the neighbour of
# a fix, to be remembered with it. Words that the model knows well have more than 1, see `find_anchors`.
PLACED, SURE = 0.1, 1.0
POSSESSIVE = ("'s", "\u2019s")
# Of an English verb; other languages have none that is known here.
_PARTICLES = "up down on off out in over away back about around through for at to with of"
PARTICLES = frozenset(_PARTICLES.split())


def anchored_fixes(
    translator: Translator,
    source: str,
    source_ids: Sequence[int],
    pieces: Phrase,
    spans: Sequence[Span],
    known: Collection[Span],
    read: Mapping[bool, Features],
) -> dict[Span, tuple[Anchor, ...]]:
    """What to remember of these slices of a translation, with the source words it stands for; `known` are
    words that the machine's own draft had."""

    def find(asked: Sequence[Span]) -> list[tuple[Anchor, ...]]:
        return find_anchors(translator, source, source_ids, pieces, asked, read)

    return _Fixes(translator, source, pieces, spans, known, find).anchored


class _Fixes:
    """The words of a confirmed sentence, and what becomes of those that a person wrote."""

    def __init__(
        self,
        translator: Translator,
        source: str,
        pieces: Phrase,
        spans: Sequence[Span],
        known: Collection[Span],
        find: Find,
    ) -> None:
        self.anchored: dict[Span, tuple[Anchor, ...]] = {}
        self._source, self._language = source, translator.source_language
        self._source_vocabulary = translator.source_vocabulary
        self._vocabulary, self._pieces = translator.target_vocabulary, pieces
        saying = [w for w in self._vocabulary.words(pieces) if says_something(w.text)]
        words = [without_possessive(self._vocabulary, pieces, (w.start, w.stop)) for w in saying]
        inside = [[word for word in words if start <= word[0] < stop] for start, stop in spans]
        fixed = set(chain(*inside))
        right = [
            word
            for word in words
            if word not in fixed
            and UNK not in self._vocabulary.feed(pieces[slice(*word)])
            and not self._vocabulary.is_common(pieces[slice(*word)])
        ]
        self._beside = {
            (start, stop): [word for word in right if word[1] == start or word[0] == stop]
            for start, stop in dict.fromkeys(chain(*inside))
        }
        asked = list(dict.fromkeys([*self._beside, *chain(*self._beside.values())]))
        pairs = [pair for mine in inside for pair in self._pairs(mine)]
        found = find([*asked, *pairs])
        self._anchors = dict(zip(asked, found, strict=False))
        together = dict(zip(pairs, found[len(asked) :], strict=True))
        inside = [self._with_names_whole(self._with_compounds(mine, together)) for mine in inside]
        whole = [word for word in dict.fromkeys(chain(*inside)) if word not in words]
        self._ask(find, whole)
        if any(self._unsure(word) for word in chain(*inside)):  # then it counts what all others stand for
            self._ask(find, filter(self._rare, words))
        parts = {w for one in whole for w in words if one[0] <= w[0] and w[1] <= one[1]} - set(whole)
        self._claimed = {anchor[0] for w in self._anchors.keys() - parts for anchor in self._surely(w)}
        starts = {start for start, _ in known}  # of words; a name is known if all of it is
        unknown = [word for word in fixed if word[0] not in starts]
        for mine in filter(None, inside):
            new = [m for m in mine if len(mine) == 1 or any(m[0] <= w[0] < m[1] for w in unknown)]
            self._remember_of(mine, new)

    def _ask(self, find: Find, words: Iterable[Span]) -> None:
        """What these stand for, if that was not asked before."""
        new = [word for word in words if word not in self._anchors]
        self._anchors |= zip(new, find(new), strict=True)

    def _pairs(self, words: Sequence[Span]) -> Iterator[Span]:
        """Words side by side that may be one: neither small, nor names."""
        for one, other in pairwise(words):
            apart = one[1] != other[0] or self._text(one).endswith(POSSESSIVE)
            if not apart and not any(self._named(w) or not self._rare(w) for w in (one, other)):
                yield one[0], other[1]

    def _unsure(self, word: Span) -> bool:
        """Does it stand for one of several, who knows which?"""
        return len(self._anchors[word]) > 1 and not self._surely(word)

    def _surely(self, word: Span) -> tuple[Anchor, ...]:
        """What it stands for, if that is one thing, and sure."""
        anchors = self._anchors[word]
        return anchors[:1] if anchors and anchors[0][1] >= SURE else ()

    def _with_compounds(
        self, words: Sequence[Span], together: Mapping[Span, tuple[Anchor, ...]]
    ) -> list[Span]:
        """A word that nobody can place alone, as one with its neighbour: "pressure gauge"."""
        whole: list[Span] = []
        for word in words:
            pair = (whole[-1][0], word[1]) if whole else word
            anchors = together.get(pair, ())
            if len(anchors) == 1 and anchors[0][1] >= SURE:
                parts = self._surely(whole[-1]), self._surely(word)
                if [part[0][0] for part in parts if part] == [anchors[0][0]]:
                    whole[-1] = pair
                    self._anchors[pair] = anchors
                    continue
            whole.append(word)
        return whole

    def _with_names_whole(self, words: Sequence[Span]) -> list[Span]:
        """Capitals side by side as one word."""
        whole: list[Span] = []
        tops: list[Anchor | None] = []  # what the last word of each stands for
        for word in words:
            top = next(iter(self._anchors[word]), None)
            if whole and whole[-1][1] == word[0] and self._named(whole[-1]) and self._named(word):
                last = tops[-1]
                apart = last and top and last[0] != top[0]
                if not any(
                    map(self._ordinary, (whole[-1], word))
                ):  # "Professor Wang" is no name, "Wang Jianguo" is
                    apart = apart and last and top and min(last[1], top[1]) >= SURE
                if not apart:
                    whole[-1] = (whole[-1][0], word[1])
                    tops[-1] = max(filter(None, (last, top)), key=lambda a: a[1], default=None)
                    continue
            whole.append(word)
            tops.append(top)
        return whole

    def _remember_of(self, mine: Sequence[Span], new: Collection[Span]) -> None:
        """What is worth it of the words of one fix."""
        rarer = [word for word in mine if self._rare(word)]
        first, last = (rarer[0], rarer[-1]) if rarer else (mine[0], mine[-1])
        phrase = self._with_particles([word for word in mine if first <= word <= last], mine)
        many = len(self._stand_for(phrase)) > ANCHORS
        if not rarer or any(word in new for word in rarer):
            self._remember(phrase, self._stand_for(phrase))
        for looked_at, run in groupby(rarer, lambda word: self._stand_for([word])):
            fixes = [word for word in run if word in new and (many or self._special(word))]
            if fixes and looked_at != self._stand_for(phrase):
                part = [word for word in phrase if fixes[0] <= word <= fixes[-1]]
                self._remember(self._with_particles(part, mine) if many else part, looked_at)

    def _with_particles(self, part: list[Span], mine: Sequence[Span]) -> list[Span]:
        """Small words right behind it that surely stand for the same."""
        for word in mine:
            if word[0] == part[-1][1] and self._text(word) in PARTICLES:
                theirs, sure = next(iter(self._anchors[word]), ("", 0.0))
                if sure >= SURE and self._stand_for(part[-1:]) == [theirs]:
                    part = [*part, word]
        return part

    def _remember(self, part: Sequence[Span], looked_at: Sequence[str]) -> None:
        if len(part) > 1:
            if 0 < len(looked_at) <= ANCHORS and (
                all(map(self._named, part)) or all(self._placed(w) for w in part if self._special(w))
            ):
                self.anchored[part[0][0], part[-1][1]] = self._all_of(looked_at)
            return
        [word] = part
        other = self._says_more_of(word)
        if other is None:
            anchors = self._anchors[word]
            if self._unsure(word):  # what others surely stand for, it does not
                left = tuple(anchor for anchor in anchors if anchor[0] not in self._claimed)
                anchors = left or self._all_of([text for text, _ in anchors])
            self.anchored[word] = anchors
        elif self._placed(word):  # or else the source does not say it: "new teacher" for 老师
            (start, _), (_, stop) = sorted((word, other))
            self.anchored[start, stop] = self._anchors[word][:1]

    def _all_of(self, looked_at: Sequence[str]) -> tuple[Anchor, ...]:
        return ((stretch(self._source, self._language, looked_at), 1.0),)

    def _says_more_of(self, word: Span) -> Span | None:
        """The neighbour of a fix that stands for the same source word, and more surely. Names speak for
        themselves, and small words for nothing."""
        if self._named(word) or self._vocabulary.is_common(self._pieces[slice(*word)]):
            return None
        for source_word, sureness in self._anchors[word][:1]:
            if self._source_vocabulary.is_common(self._source_vocabulary.encode(source_word)):
                continue
            for other in self._beside.get(word, ()):
                if any(
                    theirs == source_word and more > max(sureness, SURE)
                    for theirs, more in self._anchors[other][:1]
                ):
                    return other
        return None

    def _special(self, word: Span) -> bool:  # it takes several pieces, however frequent they are
        return self._vocabulary.rarity(self._pieces[slice(*word)]) == 1.0

    def _rare(self, word: Span) -> bool:
        return self._special(word) or not self._vocabulary.is_common(self._pieces[slice(*word)])

    def _stand_for(self, part: Sequence[Span]) -> list[str]:
        return list(dict.fromkeys(anchor[0] for word in part for anchor in self._anchors[word][:1]))

    def _ordinary(self, word: Span) -> bool:
        """Is it a word that is also written with a small letter?"""
        return len(self._vocabulary.encode(self._text(word).lower())) == 1

    def _text(self, word: Span) -> str:
        return self._vocabulary.decode(self._pieces[slice(*word)])

    def _named(self, word: Span) -> bool:
        return self._text(word) != self._text(word).lower()

    def _placed(self, word: Span) -> bool:
        return any(sure >= PLACED for _, sure in self._anchors[word][:1])


def without_possessive(vocabulary: Vocabulary, pieces: Phrase, word: Span) -> Span:
    """A name without its 's, if that has pieces of its own: in "Wei's mother" somebody's name is Wei. What's
    and that's are no names."""
    start, stop = word
    text = vocabulary.decode(pieces[start:stop])
    if text != text.lower() and text.endswith(POSSESSIVE):
        for end in range(start + 1, stop):
            if text[:-2] == vocabulary.decode(pieces[start:end]):
                contraction = end == start + 1 and vocabulary.is_common(pieces[start:end])
                return word if contraction else (start, end)
    return word
