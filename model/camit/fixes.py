"""What of a person's fixes is remembered, and for which source words it stands.

A single word stands for the source words that `alignment.py` finds. A phrase goes from the first of its rarer
words to the last. Once begun, it is written to its end, so it stands for all the source text that its words
look at, and is offered nowhere else: or else "said he was dead" would come for 说他没死.

Of its rarer words, those that are new and take several pieces, as names do, are remembered on their own, too,
if they do not stand for the same as the phrase; those side by side that stand for one source word, together.
A phrase that looks at more than a few source words, as when a sentence is typed anew, is remembered by its
new rarer words alone, and one in which none is new not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, groupby

from camit.alignment import ANCHORS, Anchor, find_anchors, stretch
from camit.networks import Features
from camit.search.problem import Phrase, Span
from camit.text import says_something
from camit.translator import Translator


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
    words = [(w.start, w.stop) for w in vocabulary.words(pieces) if says_something(w.text)]
    inside = [[word for word in words if start <= word[0] < stop] for start, stop in spans]
    asked = list(dict.fromkeys(chain(*inside)))
    found = find_anchors(translator, source, source_ids, pieces, asked, read)
    anchors = dict(zip(asked, found, strict=True))
    anchored: dict[Span, tuple[Anchor, ...]] = {}

    def special(word: Phrase) -> bool:  # it takes several pieces, however frequent they are
        return vocabulary.rarity(word) == 1.0

    def rare(word: Phrase) -> bool:
        return special(word) or not vocabulary.is_common(word)

    def stands_for(part: Sequence[Span]) -> list[str]:
        return list(dict.fromkeys(anchor[0] for word in part for anchor in anchors[word][:1]))

    def remember(part: Sequence[Span], looked_at: Sequence[str]) -> None:
        if len(part) == 1:
            anchored[part[0]] = anchors[part[0]]
        elif 0 < len(looked_at) <= ANCHORS:
            anchored[part[0][0], part[-1][1]] = ((stretch(source, language, looked_at), 1.0),)

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
