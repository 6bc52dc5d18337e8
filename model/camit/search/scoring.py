"""Sources read once, and whole sentences scored by a decoder in one teacher-forced pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from camit.networks import Encoded, Features, Network, State
from camit.search.direction import Direction
from camit.search.grid import Prefixes
from camit.search.problem import Phrase
from camit.search.recall import NOBODY, Recall
from camit.search.threads import threads_for
from camit.text import PAD, Vocabulary


@dataclass(frozen=True)
class Directions:
    """The two ways to write a sentence with one network."""

    forward: Direction
    backward: Direction
    recalls: tuple[Recall, Recall] | None = None  # of all earlier sentences, whatever the source

    @property
    def both(self) -> tuple[Direction, Direction]:
        return self.forward, self.backward

    @property
    def recalling(self) -> bool:
        """Does either of them recall anything here?"""
        return any(direction.recall is not None for direction in self.both)

    def for_source(self, ids: Sequence[int]) -> Directions:
        """The same, each with what it recalls for one source."""
        if self.recalls is None:
            return self
        forward, backward = (recall.for_source(ids) for recall in self.recalls)
        return replace(
            self,
            forward=replace(self.forward, recall=forward),
            backward=replace(self.backward, recall=backward),
        )

    @classmethod
    def of(cls, network: Network, vocabulary: Vocabulary) -> Directions:
        return cls(
            Direction(network.forward_decoder, vocabulary, backward=False),
            Direction(network.backward_decoder, vocabulary, backward=True),
        )


@dataclass(frozen=True)
class Sources:
    """A batch of encoded sources and both decoders' start on each of them."""

    encoded: Encoded
    forward: State
    backward: State
    ids: tuple[tuple[int, ...], ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(map(len, self.ids))

    def bind(self, directions: Directions) -> Directions:
        """Directions that recall what they may for the source; for several at once, nothing."""
        return directions.for_source(self.ids[0]) if len(self.ids) == 1 else directions

    def start(self, direction: Direction) -> State:
        return self.backward if direction.backward else self.forward

    def limit(self, row: int) -> int:
        """How many target pieces a source may become."""
        return limit_for(len(self.ids[row]))


def limit_for(source_pieces: int) -> int:
    return 2 * source_pieces + 20


def read_sources(network: Network, directions: Directions, sentences: Sequence[Sequence[int]]) -> Sources:
    """Encode source pieces, padded into one batch."""
    longest = max(map(len, sentences))
    padded = [[*ids, *[PAD] * (longest - len(ids))] for ids in sentences]
    with threads_for(longest * len(sentences)):
        encoded = network.encode(torch.tensor(padded, device=network.device))
        forward, backward = (d.decoder.start(encoded) for d in directions.both)
    return Sources(encoded, forward, backward, tuple(map(tuple, sentences)))


def follow(direction: Direction, start: State, sentences: Sequence[Phrase]) -> Features:
    """What a decoder knows along whole sentences, one a row of `start`; position i predicts piece i."""
    decoder = direction.decoder
    ordered = [direction.feed(direction.order(pieces)) for pieces in sentences]
    longest = max(map(len, ordered))
    tokens = [[decoder.first_piece, *pieces, *[PAD] * (longest - len(pieces))] for pieces in ordered]
    device = next(decoder.parameters()).device
    with threads_for(sum(map(len, ordered))):
        return decoder.advance(start, torch.tensor(tokens, device=device))[1]


@dataclass(frozen=True)
class Scored:
    """Log-probabilities of known sentences under one decoder, in its own order, the end last."""

    logp: Tensor  # [rows, longest + 1], 0 behind the end
    features: Features  # position i predicts piece i
    lengths: tuple[int, ...]  # pieces without the end
    state: State | None  # behind all of it; of sentences from several passes there is none

    @classmethod
    def joined(cls, sentences: Sequence[Scored]) -> Scored:
        """Single sentences as the rows of one."""

        def padded(rows: list[Tensor]) -> Tensor:
            return pad_sequence([row.squeeze(0) for row in rows], batch_first=True)

        features = Features(*(padded(list(x)) for x in zip(*(s.features for s in sentences), strict=True)))
        lengths = tuple(s.lengths[0] for s in sentences)
        return cls(padded([s.logp for s in sentences]), features, lengths, None)

    def row(self, n: int) -> Scored:
        """One of the sentences alone."""
        at = slice(n, n + 1), slice(self.lengths[n] + 1)
        return Scored(self.logp[at], Features(*(x[at] for x in self.features)), (self.lengths[n],), None)

    def behind(self, rows: Sequence[int], lengths: Sequence[int]) -> Prefixes:
        """What the decoder knew behind the first pieces of some of the sentences."""
        assert self.state is not None
        state = self.state.select(torch.tensor(rows, device=self.logp.device))
        features = Features(*(x[rows, lengths].unsqueeze(1) for x in self.features))
        logp = [float(self.logp[row, :length].sum()) for row, length in zip(rows, lengths, strict=True)]
        return Prefixes(state.behind([length + 1 for length in lengths]), features, logp)


def score(
    direction: Direction,
    start: State,
    rows: Sequence[int],
    sentences: Sequence[Phrase],
) -> Scored:
    """Teacher-forced log-probabilities of whole sentences; `rows` says which source each belongs to."""
    decoder = direction.decoder
    device = next(decoder.parameters()).device
    ordered = [direction.feed(direction.order(pieces)) for pieces in sentences]
    longest = max(map(len, ordered))
    # Padding stands behind the end, where a causal decoder never looks back from.
    read = [[decoder.first_piece, *pieces, *[PAD] * (longest - len(pieces))] for pieces in ordered]
    want = [[*pieces, decoder.last_piece, *[PAD] * (longest - len(pieces))] for pieces in ordered]
    lengths = tuple(map(len, ordered))
    real = torch.arange(longest + 1, device=device) <= torch.tensor(lengths, device=device).unsqueeze(1)
    with threads_for(sum(lengths)):
        state = start.select(torch.tensor(list(rows), device=device))
        state, features = decoder.advance(state, torch.tensor(read, device=device))
        wanted = torch.tensor(want, device=device)[real]  # [pieces of all sentences]
        chosen = direction.judge(Features(*(x[real] for x in features)), wanted)
    logp = torch.zeros(real.shape, device=device).masked_scatter(real, chosen)
    return Scored(logp, features, lengths, state)


class Readings:
    """Whole sentences as the two decoders read them, for as long as one question takes: a sentence that the
    passes of a revision read is compared with others and shown without being read again."""

    def __init__(self, directions: Directions, sources: Sources) -> None:
        self.directions = sources.bind(directions)
        self.sources = sources
        self._known: dict[tuple[bool, int, Phrase], Scored] = {}

    def clear(self) -> None:
        """Another question: nothing is known."""
        self._known.clear()

    def read(self, direction: Direction, rows: Sequence[int], sentences: Sequence[Phrase]) -> Scored:
        """See `score`: in one pass, whether known or not, for the state behind it."""
        scored = score(direction, self.sources.start(direction), rows, sentences)
        for n, (row, pieces) in enumerate(zip(rows, sentences, strict=True)):
            self._known[direction.backward, row, pieces] = scored.row(n)
        return scored

    def along(self, direction: Direction, rows: Sequence[int], sentences: Sequence[Phrase]) -> Scored:
        """The same, but read is only what has not been read yet."""
        asked = [(direction.backward, *both) for both in zip(rows, sentences, strict=True)]
        new = [key for key in dict.fromkeys(asked) if key not in self._known]
        if new:
            read = self.read(direction, [row for _, row, _ in new], [pieces for _, _, pieces in new])
            if len(new) == len(asked):
                return read
        return Scored.joined([self._known[key] for key in asked])


def recollections(
    direction: Direction, scored: Scored, sentences: Sequence[Phrase]
) -> list[list[tuple[float, int]]]:
    """Along sentences that were scored, in the order of the text: the part of the probability of each piece
    that is recalled, and of which draft the nearest is that says it."""
    if direction.recall is None:
        return [[(0.0, NOBODY)] * len(pieces) for pieces in sentences]
    found = []
    for row, pieces in enumerate(sentences):
        n = len(pieces)
        recalled = direction.recalled(Features(*(x[row, :n] for x in scored.features)))
        known = torch.tensor(direction.feed(direction.order(pieces)), device=scored.logp.device)
        parts = (recalled.found(known) / scored.logp[row, :n].exp().unsqueeze(1)).nan_to_num(0.0)
        best = recalled.drafts.gather(1, parts.argmax(1, keepdim=True)).squeeze(1)
        along = list(zip(parts.sum(1).tolist(), best.tolist(), strict=True))
        found.append(along[::-1] if direction.backward else along)
    return found
