"""Where the source words of an entry stand in a source: between words, and not inside longer terms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import torch
from torch import Tensor

from camit.memory.alignment import Anchor
from camit.text import UNSPACED_LANGUAGES, screen_words
from camit.translator import Translator

Places = dict[str, list[int]]  # of words in a source, by their first characters


@dataclass(frozen=True)
class Match:
    """What a source sentence says about entries."""

    pieces: Tensor  # [source, entries] 1 where a source piece is one of the entry's source words
    found: Tensor  # [entries] share of the entry's source words that stand here
    rarity: Tensor  # [entries] of the rarest of them
    times: tuple[int, ...]  # how often each entry may be copied: as often as the source says it

    def select(self, entries: Sequence[int]) -> Match:
        if len(entries) == len(self.times):
            return self
        chosen = torch.tensor(list(entries), dtype=torch.long)
        times = tuple(self.times[n] for n in entries)
        return Match(self.pieces[:, chosen], self.found[chosen], self.rarity[chosen], times)


def stretch(source: str, language: str, texts: Iterable[str]) -> str:
    """The shortest text of a source, without spaces, that has all of these: words of it, or several."""
    shown = [word for word, _ in screen_words(source, language)]
    edges = list(accumulate(map(len, shown), initial=0))
    whole = "".join(shown)
    places = [
        [(at, at + len(text)) for at in edges if whole.startswith(text, at) and at + len(text) in edges]
        for text in texts
    ]
    spans = []
    for start, _ in sorted(chain(*places)):
        nearest = [bisect_left(each, (start, start)) for each in places]  # of each, from here on
        if all(at < len(each) for at, each in zip(nearest, places, strict=True)):
            spans.append((start, max(each[at][1] for at, each in zip(nearest, places, strict=True))))
    start, stop = min(spans, key=lambda span: span[1] - span[0])
    return whole[start:stop]


class Characters:
    """A source without its spaces, and where the words of an anchor stand in it.

    Where a language has spaces, a word stands between words: there is no "he" in "the cat". Where it has
    none, another sentence may be cut into other words, and every place counts, but for one inside a foreign
    word or a number: there is no "US" in 坐BUS去, and no 三点 in 十三点 or 三点半.
    """

    def __init__(self, source: str, language: str) -> None:
        words = [word for word, _ in screen_words(source, language)]
        self.text = "".join(source.split())
        self._edges = {0, *accumulate(map(len, words))}
        if language in UNSPACED_LANGUAGES:
            inside = {at for at in range(1, len(self.text)) if _one_run(self.text[at - 1], self.text[at])}
            self._edges |= set(range(len(self.text) + 1)) - inside
            starts = accumulate(map(len, words), initial=0)
            self._edges -= {
                at
                for at, word, before in zip(starts, words, ["", *words], strict=False)
                if word == "半" and before[:1].isnumeric()
            }

    def find(self, word: str) -> list[int]:
        if word not in self.text:  # nearly always: a memory has many words, a sentence few
            return []
        return [
            at
            for at in range(len(self.text))
            if self.text.startswith(word, at) and {at, at + len(word)} <= self._edges
        ]

    def find_all(self, words: Iterable[str]) -> Places:
        """Those that stand here, and where."""
        return {word: places for word in set(words) if (places := self.find(word))}


def meant(found: Places, anchors: Iterable[tuple[Anchor, ...]]) -> Places:
    """Without places inside longer words for which one of these entries has something to offer: 北京 in
    北京大学 is not meant."""
    longer = {word for anchor in anchors for word, _ in anchor if word in found}
    spans = [(at, at + len(word)) for word in longer for at in found[word]]

    def alone(at: int, stop: int) -> bool:
        return not any(a <= at and stop <= b and b - a > stop - at for a, b in spans)

    left = {word: [at for at in places if alone(at, at + len(word))] for word, places in found.items()}
    return {word: places for word, places in left.items() if places}


def _one_run(left: str, right: str) -> bool:
    """Are they letters of an alphabet side by side, or signs of a number?"""

    def letter(character: str) -> bool:
        return character.lower() != character.upper()

    return (letter(left) and letter(right)) or (left.isnumeric() and right.isnumeric())


def match_anchors(
    translator: Translator, source: str, anchors: Sequence[tuple[Anchor, ...]]
) -> tuple[list[int], Match]:
    """Which of the entries with these anchors have one of their source words in this source, and where."""
    characters = Characters(source, translator.source_language)
    vocabulary = translator.source_vocabulary
    owners: list[int] = []  # the piece each character belongs to
    ids = vocabulary.encode(source)
    for row, index in enumerate(ids):
        owners.extend([row] * vocabulary.characters(index))
    places = meant(characters.find_all(word for anchor in anchors for word, _ in anchor), anchors)
    cover = {w: [o for at in found for o in owners[at : at + len(w)]] for w, found in places.items()}
    rareness = {word: vocabulary.rarity(vocabulary.encode(word)) for word in places}
    chosen: list[int] = []
    columns, found, rarity, times = [], [], [], []
    for n, anchor in enumerate(anchors):
        here = [(word, weight) for word, weight in anchor if word in places]
        if not here:
            continue
        column = torch.zeros(len(ids))
        column[[row for word, _ in here for row in cover[word]]] = 1.0
        chosen.append(n)
        columns.append(column)
        found.append(sum(weight for _, weight in here) / sum(weight for _, weight in anchor))
        rarity.append(max(rareness[word] for word, _ in here))
        times.append(max(len(places[word]) for word, _ in here))
    pieces = torch.stack(columns, dim=1) if columns else torch.zeros(len(ids), 0)
    return chosen, Match(pieces, torch.tensor(found), torch.tensor(rarity), tuple(times))
