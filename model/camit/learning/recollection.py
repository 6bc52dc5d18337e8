"""The confirmed sentences that are recalled while later ones are written; `search/recall.py` says how.

What is stored is source and target pieces. The keys follow from them and from the checkpoint, not from what
was learned, so they are never out of date, and come out the same when they are made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from camit.errors import SessionError
from camit.networks import Network
from camit.search.direction import Direction
from camit.search.problem import Phrase
from camit.search.recall import NOBODY, Common, Looks, Recall, SourceSigns, unit
from camit.search.scoring import Directions, Sources, follow, read_sources
from camit.text import PAD, SPECIALS, UNK, Vocabulary

# At most; the oldest sentences go first. About as many as a vocabulary has pieces, so that a step of the
# Transformer that recalls them all would cost one output layer more.
PLACES = 8192
_SOURCES, _TARGETS, _SENTENCES = "recalled.sources", "recalled.targets", "recalled.sentences"


class Reading(NamedTuple):
    """A sentence as one decoder came along it; in fp16, for there are many."""

    keys: Tensor  # [places, d_p]
    pieces: Tensor  # [places]; PAD where nothing is to be recalled
    attention: Tensor  # [places * source], row by row
    begun: Tensor  # [places] bool, see `Recall`
    inner: Tensor  # [places] bool


@dataclass(frozen=True)
class Kept:
    """A confirmed sentence, in pieces as the network reads them."""

    source: tuple[int, ...]
    target: Phrase
    draft: int  # which it was confirmed as, or NOBODY
    forward: Reading = field(compare=False, repr=False)
    backward: Reading = field(compare=False, repr=False)

    @property
    def places(self) -> int:
        """One for each piece, and the end."""
        return len(self.target) + 1


def keep(
    network: Network, directions: Directions, source: Sequence[int], target: Phrase, draft: int = NOBODY
) -> Kept:
    """Read a sentence to recall it later; alone, or its keys would depend on the company to the last bit."""

    def reading(direction: Direction, sources: Sources) -> Reading:
        read = follow(direction, sources.start(direction), [target])
        ordered, device = direction.order(target), read.place.device
        # The end says nothing, what is unknown may be any word, and some pieces no search may write.
        never = direction.vocabulary.never_generated
        pieces = [PAD if piece == UNK or never[piece] else piece for piece in (*ordered, PAD)]
        begun = [direction.boundary(last, piece) for last, piece in pairwise(ordered)]
        inner = [direction.spells_on(last, piece) for last, piece in pairwise(ordered)]
        return Reading(
            unit(direction.decoder.compared(read.place[0])).half(),
            torch.tensor(pieces, device=device),
            read.attention[0].half().flatten(),
            torch.tensor([True, *begun, True][: len(pieces)], device=device),
            torch.tensor([False, *inner, False][: len(pieces)], device=device),
        )

    with torch.inference_mode():
        sources = read_sources(network, directions, [source])
        both = (reading(d, sources) for d in directions.both)
        return Kept(tuple(source), tuple(target), draft, *both)


def with_sentence(sentences: Sequence[Kept], new: Kept) -> tuple[Kept, ...]:
    """These and a new one, as many of the latest as there is room for; of a source, the last translation."""
    kept: list[Kept] = []
    room = PLACES
    for sentence in (new, *(s for s in reversed(sentences) if s.source != new.source)):
        room -= sentence.places
        if room < 0 and kept:
            break
        kept.append(sentence)
    return tuple(reversed(kept))


def recalls(sentences: Sequence[Kept], source: Vocabulary) -> tuple[Recall, Recall] | None:
    """What the forward and the backward decoder recall of these sentences; None of none."""
    if not sentences:
        return None
    device = sentences[0].forward.keys.device
    signs = [source.signs(s.source) for s in sentences]
    sign = torch.tensor(list(chain(*signs)), dtype=torch.int32, device=device)
    widths = torch.tensor([len(s.source) for s in sentences], device=device)
    places = torch.tensor([s.places for s in sentences], device=device)
    numbers = torch.arange(len(sentences), device=device)
    sources = SourceSigns(sign, numbers.repeat_interleave(widths))
    sentence = numbers.repeat_interleave(places)
    drafts = torch.tensor([s.draft for s in sentences], device=device).index_select(0, sentence)
    # A row for each place and each piece of its source.
    wide = widths.index_select(0, sentence)
    place = torch.arange(len(wide), device=device).repeat_interleave(wide)
    ahead = (widths.cumsum(0) - widths).index_select(0, sentence) - (wide.cumsum(0) - wide)
    row = torch.arange(len(place), device=device)
    looked_at = sign.index_select(0, row + ahead.index_select(0, place))

    def recall(readings: Sequence[Reading]) -> Recall:
        attention = torch.cat([reading.attention for reading in readings]).float()
        return Recall(
            torch.cat([reading.keys for reading in readings]),
            torch.cat([reading.pieces for reading in readings]),
            torch.cat([reading.begun for reading in readings]),
            torch.cat([reading.inner for reading in readings]),
            drafts,
            Looks(place, looked_at, attention),
            sentence,
            sources,
            source,
        )

    return recall([s.forward for s in sentences]), recall([s.backward for s in sentences])


class Asked:
    """Sources that are asked about again and again while sentences come and go, and what each of these has in
    common with them: found out once."""

    def __init__(self, sources: Sequence[Sequence[int]], vocabulary: Vocabulary) -> None:
        self._sources = sources
        self._vocabulary = vocabulary
        # [sources, places] for each direction, and [pieces of all sources, 1]; see `Common`
        self._known: dict[Kept, tuple[Tensor, Tensor, Tensor]] = {}

    def common(self, sentences: Sequence[Kept]) -> tuple[list[Common], list[Common]]:
        """For each direction what each source has in common with these sentences."""
        new = [s for s in sentences if s not in self._known]
        known = self._known | dict(zip(new, self._find(new), strict=True))
        self._known = {s: known[s] for s in sentences}
        forward, backward, shared = (torch.cat(parts, 1) for parts in zip(*self._known.values(), strict=True))
        by_source = torch.split(shared, list(map(len, self._sources)))
        return [*map(Common, forward, by_source)], [*map(Common, backward, by_source)]

    def _find(self, sentences: Sequence[Kept]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        made = recalls(sentences, self._vocabulary)
        if made is None:
            return iter(())
        both = [[recall.common(ids) for ids in self._sources] for recall in made]
        supported = (torch.stack([common.supported for common in each]) for each in both)
        shared = torch.cat([common.shared for common in both[0]])  # the same for both directions
        places = [s.places for s in sentences]
        return zip(*(torch.split(x, places, 1) for x in supported), torch.split(shared, 1, 1), strict=True)


def stored(sentences: Sequence[Kept]) -> dict[str, Tensor]:
    """Recalled sentences as tensors: all their pieces, and for each how many it has and its draft."""
    if not sentences:
        return {}
    described = [(len(s.source), len(s.target), s.draft) for s in sentences]
    return {
        _SOURCES: torch.tensor([i for s in sentences for i in s.source], dtype=torch.int32),
        _TARGETS: torch.tensor([i for s in sentences for i in s.target], dtype=torch.int32),
        _SENTENCES: torch.tensor(described, dtype=torch.int32),
    }


def restored(
    tensors: dict[str, Tensor], sources: int, targets: int
) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """The sentences of which `stored` made these, taken out of `tensors` and checked; the numbers are the
    sizes of the vocabularies."""
    parts = [tensors.pop(name, None) for name in (_SOURCES, _TARGETS, _SENTENCES)]
    if all(part is None for part in parts):
        return []
    try:
        said, wrote, described = (
            part.tolist() for part in parts if part is not None and part.dtype == torch.int32
        )
        source, target = iter(said), iter(wrote)
        sentences = [
            (tuple(islice(source, n)), tuple(islice(target, m)), draft)
            for n, m, draft in described
            if n > 0 and m >= 0 and draft >= NOBODY
        ]
        complete = (
            [(len(a), len(b), draft) for a, b, draft in sentences] == list(map(tuple, described))
            and next(source, next(target, None)) is None
            and all(PAD < i < sources for i in said)
            and all(i == UNK or SPECIALS <= i < targets for i in wrote)
            and (len(sentences) == 1 or sum(len(b) + 1 for _, b, _ in sentences) <= PLACES)
        )
    except (TypeError, ValueError):
        complete = False
    if not complete:
        raise SessionError("the sentences that were learned from cannot be read; learn anew.")
    return sentences
