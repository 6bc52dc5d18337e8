"""What of a person's fixes is remembered, and for which source words it stands.

A single word stands for the source words that `alignment.py` finds. Where its neighbour, which was right,
stands for the same one and more surely, the two are remembered together: who puts "older" before "brother"
does not mean that 哥哥 is "older". A phrase goes from the first of its rarer words to the last. Once begun,
it is written to its end, so it stands for all the source text that its words look at, and is offered nowhere
else: or else "said he was dead" would come for 说他没死. Where nobody knows what a name in it stands for, it
is not remembered: or else "surname is Guo" would come for every 姓.

Of its rarer words, those that are new and take several pieces, as names do, are remembered on their own, too,
if they do not stand for the same as the phrase; those side by side that stand for one source word, together.
A phrase that looks at more than a few source words, as when a sentence is typed anew, is remembered by its
new rarer words alone, and one in which none is new not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, groupby

from camit.memory.alignment import ANCHORS, Anchor, find_anchors
from camit.memory.matching import stretch
from camit.networks import Features
from camit.search.problem import Phrase, Span
from camit.text import UNK, says_something
from camit.translator import Translator

# How surely a word stands for a source word, at least: a name, to be remembered in a phrase; the neighbour of
# a fix, to be remembered with it. Words that the model knows well have more than 1, see `find_anchors`.
PLACED, SURE = 0.1, 1.0


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
    vocabulary, language = translator.target_vocabulary, translator.source_language
    source_vocabulary = translator.source_vocabulary
    words = [(w.start, w.stop) for w in vocabulary.words(pieces) if says_something(w.text)]
    inside = [[word for word in words if start <= word[0] < stop] for start, stop in spans]
    fixed = set(chain(*inside))
    right = [
        (start, stop)
        for start, stop in words
        if (start, stop) not in fixed
        and UNK not in vocabulary.feed(pieces[start:stop])
        and not vocabulary.is_common(pieces[start:stop])
    ]
    beside = {
        (start, stop): [word for word in right if word[1] == start or word[0] == stop]
        for start, stop in dict.fromkeys(chain(*inside))
    }
    asked = list(dict.fromkeys([*beside, *chain(*beside.values())]))
    found = find_anchors(translator, source, source_ids, pieces, asked, read)
    anchors = dict(zip(asked, found, strict=True))
    anchored: dict[Span, tuple[Anchor, ...]] = {}

    def special(word: Phrase) -> bool:  # it takes several pieces, however frequent they are
        return vocabulary.rarity(word) == 1.0

    def rare(word: Phrase) -> bool:
        return special(word) or not vocabulary.is_common(word)

    def stands_for(part: Sequence[Span]) -> list[str]:
        return list(dict.fromkeys(anchor[0] for word in part for anchor in anchors[word][:1]))

    def named(word: Span) -> bool:
        text = vocabulary.decode(pieces[slice(*word)])
        return text != text.lower()

    def placed(word: Span) -> bool:
        return any(sure >= PLACED for _, sure in anchors[word][:1])

    def says_more_of(word: Span) -> Span | None:
        """The neighbour of a fix that stands for the same source word, and more surely. Names speak for
        themselves, and small words for nothing."""
        if named(word) or vocabulary.is_common(pieces[slice(*word)]):
            return None
        for source_word, sureness in anchors[word][:1]:
            if source_vocabulary.is_common(source_vocabulary.encode(source_word)):
                continue
            for other in beside[word]:
                if any(
                    theirs == source_word and more > max(sureness, SURE)
                    for theirs, more in anchors[other][:1]
                ):
                    return other
        return None

    def remember(part: Sequence[Span], looked_at: Sequence[str]) -> None:
        if len(part) > 1:
            if 0 < len(looked_at) <= ANCHORS and (
                all(map(named, part)) or all(placed(w) for w in part if special(pieces[slice(*w)]))
            ):
                anchored[part[0][0], part[-1][1]] = ((stretch(source, language, looked_at), 1.0),)
            return
        [word] = part
        other = says_more_of(word)
        if other is None:
            anchored[word] = anchors[word]
        elif placed(word):  # or else the source does not say it: "new teacher" for 老师
            (start, _), (_, stop) = sorted((word, other))
            anchored[start, stop] = anchors[word][:1]

    for mine in filter(None, inside):
        rarer = [word for word in mine if rare(pieces[slice(*word)])]
        first, last = (rarer[0], rarer[-1]) if rarer else (mine[0], mine[-1])
        phrase = [word for word in mine if first <= word <= last]
        new = [word for word in rarer if len(mine) == 1 or word not in known]
        many = len(stands_for(phrase)) > ANCHORS
        if new or not rarer:
            remember(phrase, stands_for(phrase))
        for looked_at, run in groupby(rarer, lambda word: stands_for([word])):
            fixes = [word for word in run if word in new and (many or special(pieces[slice(*word)]))]
            if fixes and looked_at != stands_for(phrase):
                remember([word for word in phrase if fixes[0] <= word <= fixes[-1]], looked_at)
    return anchored
