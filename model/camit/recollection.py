"""The confirmed sentences that are recalled while later ones are written; `search/recall.py` says how.

What is kept is source and target pieces. The keys follow from them and from the checkpoint, not from what was
learned, so they are never out of date and need not be stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor

from camit.errors import SessionError
from camit.networks import Network
from camit.search.problem import Phrase
from camit.search.recall import Recall
from camit.search.scoring import Directions, follow, read_sources
from camit.text import PAD, UNK

Sentence = tuple[tuple[int, ...], Phrase]  # source and target pieces, as the network reads them
# At most; the oldest sentences go first. About as many as a vocabulary has pieces, so that a step that
# recalls costs one output layer more.
PLACES = 8192
READ_STEP = 16  # sentences read at once
_SOURCES, _TARGETS, _LENGTHS = "recalled.sources", "recalled.targets", "recalled.lengths"


def places(sentence: Sentence) -> int:
    """How many places a sentence has: one for each piece, and its end."""
    return len(sentence[1]) + 1


def with_sentence(sentences: Sequence[Sentence], new: Sentence) -> tuple[Sentence, ...]:
    """These and a new one, as many of the latest as there is room for; the same one is kept once."""
    kept: list[Sentence] = []
    room = PLACES
    for sentence in (new, *(s for s in reversed(sentences) if s != new)):
        room -= places(sentence)
        if room < 0 and kept:
            break
        kept.append(sentence)
    return tuple(reversed(kept))


class Recollection:
    """Makes what both decoders recall of some sentences; each sentence is read once."""

    def __init__(self, network: Network, directions: Directions) -> None:
        self._network = network
        self._directions = directions
        self._keys: dict[Sentence, tuple[Tensor, Tensor]] = {}  # [places, d_p] each, as fp16

    def of(self, sentences: Sequence[Sentence]) -> tuple[Recall, Recall] | None:
        """For the forward and the backward decoder; None of no sentences."""
        if not sentences:
            return None
        # Similar lengths together, so that little is padded.
        unread = sorted({s for s in sentences if s not in self._keys}, key=lambda s: (len(s[1]), s))
        for first in range(0, len(unread), READ_STEP):
            self._read(unread[first : first + READ_STEP])
        self._keys = {sentence: self._keys[sentence] for sentence in sentences}
        return self._recall(sentences, 0), self._recall(sentences, 1)

    def _read(self, sentences: Sequence[Sentence]) -> None:
        with torch.inference_mode():
            sources = read_sources(self._network, self._directions, [list(ids) for ids, _ in sentences])
            read = [
                follow(d, sources.start(d), [target for _, target in sentences]).place
                for d in (self._directions.forward, self._directions.backward)
            ]
            for row, sentence in enumerate(sentences):
                forward, backward = (_unit(place[row, : places(sentence)]) for place in read)
                self._keys[sentence] = forward, backward

    def _recall(self, sentences: Sequence[Sentence], side: int) -> Recall:
        direction = (self._directions.forward, self._directions.backward)[side]
        keys = torch.cat([self._keys[sentence][side] for sentence in sentences]).float()
        said = [piece for _, target in sentences for piece in (*direction.order(target), PAD)]
        pieces = torch.tensor(said, device=keys.device)
        return Recall(keys, pieces.masked_fill(pieces == UNK, PAD))  # what is unknown may be any word


def _unit(place: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(place, 2, -1, True)
    return (place / length).half()


def stored(sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    """Recalled sentences as tensors: all their pieces, and how many each has."""
    if not sentences:
        return {}
    lengths = [(len(source), len(target)) for source, target in sentences]
    return {
        _SOURCES: torch.tensor([i for source, _ in sentences for i in source], dtype=torch.int32),
        _TARGETS: torch.tensor([i for _, target in sentences for i in target], dtype=torch.int32),
        _LENGTHS: torch.tensor(lengths, dtype=torch.int32),
    }


def restored(tensors: dict[str, Tensor], sources: int, targets: int) -> tuple[Sentence, ...]:
    """What `stored` made, taken out of `tensors` and checked; the numbers are sizes of vocabularies."""
    parts = [tensors.pop(name, None) for name in (_SOURCES, _TARGETS, _LENGTHS)]
    if all(part is None for part in parts):
        return ()
    try:
        said, wrote, lengths = (
            part.tolist() for part in parts if part is not None and part.dtype == torch.int32
        )
        source, target = iter(said), iter(wrote)
        sentences = tuple(
            (tuple(islice(source, n)), tuple(islice(target, m))) for n, m in lengths if n > 0 and m >= 0
        )
        complete = (
            [(len(a), len(b)) for a, b in sentences] == list(map(tuple, lengths))
            and next(source, next(target, None)) is None
            and all(0 <= i < sources for i in said)
            and all(0 <= i < targets for i in wrote)
            and (len(sentences) == 1 or sum(map(places, sentences)) <= PLACES)
        )
    except (TypeError, ValueError):
        complete = False
    if not complete:
        raise SessionError("the sentences that were learned from cannot be read; learn anew.")
    return sentences
