"""The contract every network keeps, and all that search, memory, learning and training know of it.

The paper's model is one encoder with two decoders, forward and backward (section "Sequential Bi-
Directional Decoding"). A decoder starts from an encoded source and is advanced by any number of known
pieces at a time, so a forced prefix is one pass; it hands out s (decoding state), c (context vector) and
its attention for each position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec
import torch
from torch import Tensor, nn


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape of a network, as `config.json` stores it."""

    arch: str  # "transformer" or "rnnsearch"
    source_size: int
    target_size: int
    d: int
    heads: int = 4  # Transformer only
    ff: int = 1024  # Transformer: inner size of the feed-forward layers; RNNSearch: size of the GRUs
    encoder_layers: int = 4
    decoder_layers: int = 2
    dropout: float = 0.0


class Features(NamedTuple):
    """What a decoder knows at each of the n positions it was advanced by."""

    s: Tensor  # [rows, n, d]  decoding state, what the output layer reads
    c: Tensor  # [rows, n, d_c]  context vector, what attention read from the source
    attention: Tensor  # [rows, n, source]; without columns where nobody asked for it
    place: Tensor  # [rows, n, d_p]  what is known before the parts that online learning moves
    last: Tensor  # [rows, n]  the piece that was read


@dataclass(frozen=True)
class Encoded:
    """An encoded batch of sources: annotations H and which of them are real."""

    annotations: Tensor  # [sentences, source, d]
    real: Tensor  # [sentences, source] bool

    def select(self, sentences: Tensor) -> Encoded:
        return Encoded(self.annotations[sentences], self.real[sentences])


class State(ABC):
    """Where a decoder stands, one row per hypothesis. Never changed in place: advancing gives a new state."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """The state of these rows, in this order; a row may come several times or not at all."""

    @abstractmethod
    def behind(self, lengths: Sequence[int]) -> Self:
        """Each row as it stood behind this many of its pieces, when it was advanced once from the start."""


class Decoder(nn.Module, ABC):
    """One direction of decoding. Reads `first_piece` y1 .. yn and predicts y1 .. yn `last_piece`."""

    first_piece: int
    last_piece: int

    @abstractmethod
    def start(self, encoded: Encoded) -> State:
        """The state before the first piece, one row per sentence."""

    @abstractmethod
    def advance(self, state: State, tokens: Tensor, *, attention: bool = True) -> tuple[State, Features]:
        """Read tokens [rows, n], n >= 1; Features at position i predict what follows token i.

        Rows of different length are padded at the end; `State.behind` then leaves the padding out.
        """

    def read(self, encoded: Encoded, tokens: Tensor) -> Tensor:
        """The decoding states s [sentences, n, d] of whole known sentences: what a training loss needs."""
        return self.advance(self.start(encoded), tokens)[1].s

    @property
    @abstractmethod
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        """Weight [target vocabulary, d] and bias of `logits`, for losses that never hold all scores."""

    @property
    @abstractmethod
    def adaptable(self) -> list[nn.Parameter]:
        """What online learning moves: a small part near the output, so that all else, `Features.place` among
        it, stays as it was."""

    @abstractmethod
    def finish(self, place: Tensor) -> Tensor:
        """The decoding states s [..., d] at places [..., d_p], by the parts that online learning moves."""

    def compared(self, place: Tensor) -> Tensor:
        """Places [..., d_p] in the form in which those that are alike have a high cosine."""
        return place

    @abstractmethod
    def logits(self, s: Tensor) -> Tensor:
        """Scores over the target vocabulary for decoding states s [..., d]."""


class Network(nn.Module, ABC):
    """One encoder, two decoders."""

    config: NetworkConfig
    forward_decoder: Decoder
    backward_decoder: Decoder

    @abstractmethod
    def encode(self, source: Tensor) -> Encoded:
        """Annotations of source pieces [sentences, length], padded at the end with 0."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device
