"""Which source words a target word stands for, as both decoders' attention tells it.

The paper's memory knows where a fix was made only by decoding states. Here an entry also has *anchors*, its
source words: it is read only where one of them stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from camit.gate import Match
from camit.networks import Features
from camit.search.problem import Phrase
from camit.search.scoring import follow
from camit.text import UNSPACED_LANGUAGES, says_something, screen_words
from camit.translator import Translator

Anchor = tuple[str, float]
ANCHORS = 3  # source words an entry stands for, at most


@dataclass(frozen=True)
class Alignment:
    """How strongly each target position looks at each source word; forward and backward in the text's
    order."""

    words: tuple[str, ...]
    forward: Tensor  # [pieces, words]
    backward: Tensor  # [pieces, words]

    @classmethod
    def of(
        cls,
        translator: Translator,
        source: str,
        ids: Sequence[int],
        forward: Tensor,
        backward: Tensor,
        length: int,
    ) -> Alignment:
        """From the attention [positions, source] of both decoders along a sentence of `length` pieces."""
        words = tuple(word for word, _ in screen_words(source, translator.source_language))
        spread = translator.alignment(source)
        return cls(
            words,
            forward[:length, : len(ids)] @ spread,
            backward[:length, : len(ids)].flip(0) @ spread,
        )

    def anchors(self, start: int, stop: int) -> tuple[Anchor, ...]:
        """The source words of a phrase: where both decoders look while they write it, and nothing far
        behind."""
        both = torch.sqrt(self.forward[start:stop].mean(0) * self.backward[start:stop].mean(0)).tolist()
        ranked = sorted(
            ((weight, word) for weight, word in zip(both, self.words, strict=True) if says_something(word)),
            reverse=True,
        )
        best: dict[str, float] = {}
        for weight, word in ranked[:ANCHORS]:
            if weight > 0.0 and weight >= 0.5 * ranked[0][0]:
                best.setdefault(word, float(f"{weight:.4g}"))  # never rounded to 0
        return tuple(best.items())


def read_along(
    translator: Translator, sentences: Sequence[tuple[Sequence[int], Phrase]]
) -> dict[bool, Features]:
    """What both decoders know along whole sentences, by `direction.backward`, from one pass each; nothing is
    scored."""
    with torch.inference_mode():
        sources = translator.read([ids for ids, _ in sentences])
        return {
            direction.backward: follow(direction, sources.start(direction), [t for _, t in sentences])
            for direction in (translator.directions.forward, translator.directions.backward)
        }


def stands_for(translator: Translator, source: str, target: str) -> list[tuple[str, ...]]:
    """For each word of a translation the source words it stands for."""
    vocabulary = translator.target_vocabulary
    ids, pieces = translator.encode_source(source), tuple(vocabulary.encode(target))
    read = read_along(translator, [(ids, pieces)])
    looks = (read[False].attention[0], read[True].attention[0])
    alignment = Alignment.of(translator, source, ids, *looks, len(pieces))
    anchors = (alignment.anchors(word.start, word.stop) for word in vocabulary.words(pieces))
    return [tuple(word for word, _ in anchor) for anchor in anchors]


class Characters:
    """A source without its spaces, and where the words of an anchor stand in it.

    Where a language has spaces, a word stands between words: there is no "he" in "the cat". Where it has
    none, another sentence may be cut into other words, and every place counts.
    """

    def __init__(self, source: str, language: str) -> None:
        self._text = "".join(source.split())
        self._edges: set[int] | None = None
        if language not in UNSPACED_LANGUAGES:
            self._edges = {0, *accumulate(len(word) for word, _ in screen_words(source, language))}

    def find(self, word: str) -> list[int]:
        found = [at for at in range(len(self._text)) if self._text.startswith(word, at)]
        edges = self._edges
        return found if edges is None else [at for at in found if {at, at + len(word)} <= edges]


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
    chosen: list[int] = []
    columns, found, rarity, times = [], [], [], []
    places: dict[str, tuple[list[int], int, float]] = {}
    for n, anchor in enumerate(anchors):
        rows: list[int] = []
        share, count, rare = 0.0, 0, 0.0
        for word, weight in anchor:
            if word not in places:
                starts = characters.find(word)
                cover = [owner for at in starts for owner in owners[at : at + len(word)]]
                places[word] = cover, len(starts), vocabulary.rarity(vocabulary.encode(word))
            cover, often, rareness = places[word]
            if often:
                rows += cover
                share, count, rare = share + weight, max(count, often), max(rare, rareness)
        if rows:
            column = torch.zeros(len(ids))
            column[rows] = 1.0
            chosen.append(n)
            columns.append(column)
            found.append(share / sum(weight for _, weight in anchor))
            rarity.append(rare)
            times.append(count)
    pieces = torch.stack(columns, dim=1) if columns else torch.zeros(len(ids), 0)
    return chosen, Match(pieces, torch.tensor(found), torch.tensor(rarity), tuple(times))
