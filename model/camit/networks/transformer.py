"""A pre-norm Transformer with one encoder and two decoders (Vaswani et al. 2017, as the paper uses it).

The decoders keep key/value caches, so a step costs one position and a forced prefix one pass. Rows of one
sentence share its cross-attention keys: nothing of the source is copied per hypothesis while a beam is
reordered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.networks.base import Decoder, Encoded, Features, Network, NetworkConfig, State
from camit.networks.layers import LayerNorm, Linear, Module, TiedEmbedding, dropout
from camit.text import BOS, EOS, PAD


def positions(start: int, stop: int, like: Tensor) -> Tensor:
    """Sinusoidal positions for vectors like these, sin on even, cos on odd dimensions. [stop - start, d]"""
    room = max(512, 1 << (stop - 1).bit_length())
    return _positions(room, like.shape[-1], like.dtype, like.device)[start:stop]


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # training may be the next to use them
def _positions(count: int, d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    rate = torch.exp(torch.arange(0, d, 2, device=device) * (-math.log(10_000.0) / d))
    angle = torch.arange(count, device=device).unsqueeze(1) * rate
    return torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1).to(dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """What queries [rows, heads, n, size] read of keys and values, for training.

    On a CPU always as float32: the kernel's backward pass is thirty times slower with bfloat16 (torch 2.13).
    """
    if q.dtype == torch.bfloat16 and q.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(
                q.float(), k.float(), v.float(), attn_mask=mask, is_causal=causal
            )
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)


class Source(NamedTuple):
    """An encoded source as one layer's cross-attention reads it."""

    keys: Tensor  # [sentences * heads, source, d / heads], scaled
    values: Tensor  # [sentences * heads, source, d / heads]
    bias: Tensor | None  # [sentences, 1, 1, source]; None when no source position is padding

    def select(self, sentences: Tensor, heads: int) -> Source:
        rows = (sentences.unsqueeze(1) * heads + torch.arange(heads, device=sentences.device)).flatten()
        keys, values = self.keys[rows], self.values[rows]
        return Source(keys, values, None if self.bias is None else self.bias[sentences])


class SelfAttention(Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = Linear(d, 3 * d)
        self.out = Linear(d, d)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each [rows, heads, n, d / heads]."""
        rows, n, d = x.shape
        q, k, v = self.qkv(x).view(rows, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return q, k, v

    def merge(self, x: Tensor) -> Tensor:
        rows, heads, n, size = x.shape
        return self.out(x.transpose(1, 2).reshape(rows, n, heads * size))  # type: ignore[no-any-return]

    def extend(self, x: Tensor, past: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """What new positions read behind a cache [rows, length, 2 d] of keys and values; the longer cache."""
        rows, n, d = x.shape
        size = d // self.heads
        q, known = self.qkv(x).split((d, 2 * d), dim=2)
        if past is not None:
            known = torch.cat((past, known), dim=1)
        q = q.view(rows, n, self.heads, size).transpose(1, 2)
        k, v = known.view(rows, -1, 2, self.heads, size).permute(2, 0, 3, 1, 4)
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=n > 1 and past is None)
        return self.merge(read), known


class CrossAttention(Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = Linear(d, d)
        self.kv = Linear(d, 2 * d)
        self.out = Linear(d, d)

    def keys_values(self, annotations: Tensor) -> tuple[Tensor, Tensor]:
        """Of the source, [sentences, heads, source, d / heads] each."""
        sentences, length, d = annotations.shape
        k, v = (
            self.kv(annotations)
            .view(sentences, length, 2, self.heads, d // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        return k, v

    def forward(self, x: Tensor, source: Source, attention: bool) -> tuple[Tensor, Tensor | None]:
        """Read-out [rows, n, d]; if asked for, attention [sentences, heads, rows of a sentence * n, source].

        Rows come in equal runs per sentence: the hypotheses of one sentence are one product with its keys.
        """
        rows, n, d = x.shape
        batch, length, size = source.keys.shape
        sentences = batch // self.heads
        q = self.q(x).view(sentences, -1, self.heads, size).transpose(1, 2)
        weights = None
        if attention:
            q = q.reshape(batch, -1, size)
            scores = torch.bmm(q, source.keys.transpose(1, 2)).view(sentences, self.heads, -1, length)
            if source.bias is not None:
                scores = scores + source.bias
            weights = torch.softmax(scores, dim=-1)
            read = torch.bmm(weights.view(batch, -1, length), source.values)
            read = read.view(sentences, self.heads, -1, size)
        else:
            k, v = (x.view(sentences, self.heads, length, size) for x in (source.keys, source.values))
            read = F.scaled_dot_product_attention(q, k, v, attn_mask=source.bias, scale=1.0)
        return self.out(read.transpose(1, 2).reshape(rows, n, d)), weights

    def prepare(self, annotations: Tensor, bias: Tensor | None) -> Source:
        """What `forward` reads of a source, in its layout."""
        k, v = self.keys_values(annotations)
        size = k.shape[3]
        keys = (k / math.sqrt(size)).flatten(0, 1)
        return Source(keys.contiguous(), v.flatten(0, 1).contiguous(), bias)

    def read(self, x: Tensor, annotations: Tensor, real: Tensor | None) -> Tensor:
        """The read-out alone, one row per sentence: the fused kernel, which keeps no attention weights."""
        sentences, n, d = x.shape
        q = self.q(x).view(sentences, n, self.heads, d // self.heads).transpose(1, 2)
        k, v = self.keys_values(annotations)
        read = attend(q, k, v, real)
        return self.out(read.transpose(1, 2).reshape(sentences, n, d))  # type: ignore[no-any-return]


class EncoderLayer(Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d = config.d
        self.norm1, self.attention = LayerNorm(d), SelfAttention(d, config.heads)
        self.norm2, self.ff1, self.ff2 = LayerNorm(d), Linear(d, config.ff), Linear(config.ff, d)
        self.dropout = dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = self.attention.split(self.norm1(x))
        x = x + self.dropout(self.attention.merge(attend(q, k, v, mask)))
        return x + self.dropout(self.ff2(F.relu(self.ff1(self.norm2(x)))))


class DecoderLayer(Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d = config.d
        self.norm1, self.attention = LayerNorm(d), SelfAttention(d, config.heads)
        self.norm2, self.cross = LayerNorm(d), CrossAttention(d, config.heads)
        self.norm3, self.ff1, self.ff2 = LayerNorm(d), Linear(d, config.ff), Linear(config.ff, d)
        self.dropout = dropout(config.dropout)

    def forward(
        self, x: Tensor, past: Tensor | None, mask: Tensor | None, source: Source, attention: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """New x, self-attention cache, x before the feed-forward part, c and, if asked for, attention of this
        layer."""
        read, known = self.attention.extend(self.norm1(x), past, mask)
        x = x + self.dropout(read)
        c, weights = self.cross(self.norm2(x), source, attention)
        place = x + self.dropout(c)
        return self.feed(place), known, place, c, weights

    def feed(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.ff2(F.relu(self.ff1(self.norm3(x)))))

    def read(self, x: Tensor, annotations: Tensor, real: Tensor | None) -> Tensor:
        """`forward` over whole sentences without caches and attention weights."""
        q, k, v = self.attention.split(self.norm1(x))
        x = x + self.dropout(self.attention.merge(attend(q, k, v, causal=True)))
        return self.feed(x + self.dropout(self.cross.read(self.norm2(x), annotations, real)))


@dataclass(frozen=True)
class TransformerState(State):
    past: tuple[Tensor, ...] | None  # per layer: keys and values of what was read [rows, length, 2 d]
    source: tuple[Source, ...]  # per layer
    sentences: int
    sentence: Tensor  # [rows] which sentence of `source` a row reads
    length: int
    # Where rows are of different length, the shorter ones have a gap at the end of the cache:
    lengths: Tensor | None = None  # [rows] pieces read
    bias: Tensor | None = None  # [rows, 1, 1, length] minus infinity in the gap

    def select(self, rows: Tensor) -> TransformerState:
        return replace(
            self,
            past=self.past and tuple(known.index_select(0, rows) for known in self.past),
            sentence=self.sentence[rows],
            lengths=None if self.lengths is None else self.lengths[rows],
            bias=None if self.bias is None else self.bias.index_select(0, rows),
        )

    def behind(self, lengths: Sequence[int]) -> TransformerState:
        assert self.past is not None and self.lengths is None
        longest = max(lengths)
        past = tuple(known[:, :longest] for known in self.past)
        if min(lengths) == longest:
            return replace(self, past=past, length=longest)
        read = torch.tensor(lengths, device=self.sentence.device)
        gap = torch.arange(longest, device=read.device) >= read.unsqueeze(1)
        bias = torch.zeros(gap.shape, dtype=past[0].dtype, device=read.device)
        bias = bias.masked_fill(gap, float("-inf"))[:, None, None, :]
        return replace(self, past=past, length=longest, lengths=read, bias=bias)

    def longer(self, past: tuple[Tensor, ...], n: int) -> TransformerState:
        """The state n pieces on."""
        return replace(
            self,
            past=past,
            length=self.length + n,
            lengths=None if self.lengths is None else self.lengths + n,
            bias=None if self.bias is None else F.pad(self.bias, (0, n)),
        )

    def mask(self, n: int) -> Tensor | None:
        """What n new positions may look at: the cache without its gaps, and new ones up to themselves."""
        bias = None if self.bias is None else F.pad(self.bias, (0, n))
        if n == 1 or self.length == 0:
            return bias  # without gaps everything, or plainly causal
        device = self.sentence.device
        later = torch.ones(n, self.length + n, dtype=torch.bool, device=device).triu(self.length + 1)
        if bias is None:
            return ~later
        return bias.repeat(1, 1, n, 1).masked_fill(later, float("-inf"))

    def sources(self, heads: int) -> tuple[Source, ...]:
        """Per layer what cross-attention reads: an entry for each sentence, or else for each row."""
        rows = len(self.sentence)
        if self.sentences == 1:
            return self.source
        runs = torch.arange(self.sentences, device=self.sentence.device)
        if rows % self.sentences == 0 and torch.equal(
            self.sentence, runs.repeat_interleave(rows // self.sentences)
        ):
            return self.source
        return tuple(source.select(self.sentence, heads) for source in self.source)


class TransformerDecoder(Decoder):
    def __init__(
        self, config: NetworkConfig, embedding: TiedEmbedding, first_piece: int, last_piece: int
    ) -> None:
        super().__init__()
        self.first_piece, self.last_piece = first_piece, last_piece
        self.d, self.heads = config.d, config.heads
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = LayerNorm(config.d)
        self.dropout = dropout(config.dropout)
        # Shared with the other decoder and with the output layer; owned by the network.
        self._embedding = [embedding]

    def start(self, encoded: Encoded) -> TransformerState:
        bias = None
        if not bool(encoded.real.all()):
            bias = torch.zeros_like(encoded.real, dtype=encoded.annotations.dtype)
            bias = bias.masked_fill(~encoded.real, float("-inf"))[:, None, None, :]
        source = tuple(layer.cross.prepare(encoded.annotations, bias) for layer in self.layers)  # type: ignore[union-attr,operator]
        sentences = len(encoded.real)
        return TransformerState(
            None, source, sentences, torch.arange(sentences, device=encoded.real.device), 0
        )

    def advance(
        self, state: State, tokens: Tensor, *, attention: bool = True
    ) -> tuple[TransformerState, Features]:
        assert isinstance(state, TransformerState)
        n = tokens.shape[1]
        x = self._embed(tokens, state)
        mask = state.mask(n)
        past = []
        last = len(self.layers) - 1  # whose attention is shown
        for index, (layer, source) in enumerate(zip(self.layers, state.sources(self.heads), strict=True)):
            known = state.past[index] if state.past else None
            x, known, place, c, weights = layer(x, known, mask, source, attention and index == last)
            past.append(known)
        looks = (
            x.new_empty((*tokens.shape, 0)) if weights is None else weights.mean(1).view(*tokens.shape, -1)
        )
        return state.longer(tuple(past), n), Features(self.norm(x), c, looks, place, tokens)

    def read(self, encoded: Encoded, tokens: Tensor) -> Tensor:
        x = self._embed(tokens, None)
        real = None if bool(encoded.real.all()) else encoded.real[:, None, None, :]
        for layer in self.layers:
            x = layer.read(x, encoded.annotations, real)  # type: ignore[operator]
        result: Tensor = self.norm(x)
        return result

    def _embed(self, tokens: Tensor, state: TransformerState | None) -> Tensor:
        x = F.embedding(tokens, self._embedding[0].weight) * math.sqrt(self.d)
        start, n = state.length if state else 0, tokens.shape[1]
        if state is None or state.lengths is None:
            places = positions(start, start + n, x)
        else:  # rows stand at places of their own
            at = state.lengths.unsqueeze(1) + torch.arange(n, device=tokens.device)
            places = F.embedding(at, positions(0, start + n, x))
        result: Tensor = self.dropout(x + places)
        return result

    @property
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        return self._embedding[0].weight, None

    @property
    def adaptable(self) -> list[nn.Parameter]:
        # What comes behind `Features.place`. Measured with the norms before it: nine tenths of what the whole
        # last layer wins, with less forgotten; without these norms it is the same.
        last = self.layers[-1]
        parts = (last.ff1, last.ff2, self.norm)
        return [p for part in parts for p in part.parameters()]  # type: ignore[union-attr]

    def finish(self, place: Tensor) -> Tensor:
        result: Tensor = self.norm(self.layers[-1].feed(place))  # type: ignore[operator]
        return result

    def compared(self, place: Tensor) -> Tensor:
        # What the last feed-forward part reads, as in kNN-MT. Measured beside s, beside this without the norm
        # and beside the layer before: it finds the most.
        result: Tensor = self.layers[-1].norm3(place)  # type: ignore[operator]
        return result

    def logits(self, s: Tensor) -> Tensor:
        return self._embedding[0].scores(s)


class Transformer(Network):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = nn.Embedding(config.source_size, config.d)
        self.target_embedding = TiedEmbedding(config.target_size, config.d)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = LayerNorm(config.d)
        self.dropout = dropout(config.dropout)
        self.forward_decoder = TransformerDecoder(config, self.target_embedding, BOS, EOS)
        self.backward_decoder = TransformerDecoder(config, self.target_embedding, EOS, BOS)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=config.d**-0.5)

    def encode(self, source: Tensor) -> Encoded:
        real = source != PAD
        x = F.embedding(source, self.source_embedding.weight) * math.sqrt(self.config.d)
        x = self.dropout(x + positions(0, source.shape[1], x))
        mask = None if bool(real.all()) else real[:, None, None, :]
        for layer in self.encoder:
            x = layer(x, mask)
        return Encoded(self.norm(x), real)
