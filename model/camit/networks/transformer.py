"""A pre-norm Transformer with one encoder and two decoders (Vaswani et al. 2017, as the paper uses it).

The decoders keep key/value caches, so a step costs one position and a forced prefix one pass. Rows of one
sentence share its cross-attention keys: nothing of the source is copied per hypothesis while a beam is
reordered.
"""

from __future__ import annotations

import math
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


class Source(NamedTuple):
    """An encoded source as one layer's cross-attention reads it."""

    keys: Tensor  # [sentences * heads, d / heads, source], scaled
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

    def forward(self, x: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Read-out [rows, n, d] and attention [sentences, heads, rows of a sentence * n, source].

        Rows come in equal runs per sentence: the hypotheses of one sentence are one product with its keys.
        """
        rows, n, d = x.shape
        batch, size, length = source.keys.shape
        sentences = batch // self.heads
        q = self.q(x).view(sentences, -1, self.heads, size).transpose(1, 2).reshape(batch, -1, size)
        scores = torch.bmm(q, source.keys).view(sentences, self.heads, -1, length)
        if source.bias is not None:
            scores = scores + source.bias
        weights = torch.softmax(scores, dim=-1)
        read = torch.bmm(weights.view(batch, -1, length), source.values)
        read = read.view(sentences, self.heads, -1, size).transpose(1, 2).reshape(rows, n, d)
        return self.out(read), weights

    def prepare(self, annotations: Tensor, bias: Tensor | None) -> Source:
        """What `forward` reads of a source, in its layout."""
        k, v = self.keys_values(annotations)
        size = k.shape[3]
        keys = (k / math.sqrt(size)).transpose(2, 3).flatten(0, 1)
        return Source(keys.contiguous(), v.flatten(0, 1).contiguous(), bias)

    def read(self, x: Tensor, annotations: Tensor, real: Tensor | None) -> Tensor:
        """The read-out alone, one row per sentence: the fused kernel, which keeps no attention weights."""
        sentences, n, d = x.shape
        q = self.q(x).view(sentences, n, self.heads, d // self.heads).transpose(1, 2)
        k, v = self.keys_values(annotations)
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=real)
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
        x = x + self.dropout(self.attention.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))
        return x + self.dropout(self.ff2(F.relu(self.ff1(self.norm2(x)))))  # type: ignore[no-any-return]


class DecoderLayer(Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d = config.d
        self.norm1, self.attention = LayerNorm(d), SelfAttention(d, config.heads)
        self.norm2, self.cross = LayerNorm(d), CrossAttention(d, config.heads)
        self.norm3, self.ff1, self.ff2 = LayerNorm(d), Linear(d, config.ff), Linear(config.ff, d)
        self.dropout = dropout(config.dropout)

    def forward(
        self, x: Tensor, past: Tensor | None, mask: Tensor | None, source: Source
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """New x, self-attention cache, c and attention of this layer."""
        read, known = self.attention.extend(self.norm1(x), past, mask)
        x = x + self.dropout(read)
        c, attention = self.cross(self.norm2(x), source)
        x = x + self.dropout(c)
        x = x + self.dropout(self.ff2(F.relu(self.ff1(self.norm3(x)))))
        return x, known, c, attention

    def read(self, x: Tensor, annotations: Tensor, real: Tensor | None) -> Tensor:
        """`forward` over whole sentences without caches and attention weights."""
        q, k, v = self.attention.split(self.norm1(x))
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.attention.merge(read))
        x = x + self.dropout(self.cross.read(self.norm2(x), annotations, real))
        return x + self.dropout(self.ff2(F.relu(self.ff1(self.norm3(x)))))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TransformerState(State):
    past: tuple[Tensor, ...] | None  # per layer: keys and values of what was read [rows, length, 2 d]
    source: tuple[Source, ...]  # per layer
    sentences: int
    sentence: Tensor  # [rows] which sentence of `source` a row reads
    length: int
    real: Tensor | None = None  # [rows, length] False where a shorter row was padded; None: nowhere

    def select(self, rows: Tensor) -> TransformerState:
        past = self.past and tuple(known.index_select(0, rows) for known in self.past)
        real = None if self.real is None else self.real[rows]
        return TransformerState(past, self.source, self.sentences, self.sentence[rows], self.length, real)

    def longer(self, past: tuple[Tensor, ...], n: int, lengths: Tensor | None) -> TransformerState:
        """The state n positions on, of which each row may use only some."""
        real = self.real
        if real is not None or lengths is not None:
            rows, device = len(self.sentence), self.sentence.device
            old = torch.ones(rows, self.length, dtype=torch.bool, device=device) if real is None else real
            new = torch.arange(n, device=device) < (n if lengths is None else lengths.unsqueeze(1))
            real = torch.cat((old, new.expand(rows, n)), dim=1)
        return replace(self, past=past, length=self.length + n, real=real)

    def mask(self, n: int) -> Tensor | None:
        """What n new positions may look at: the real ones of the cache, and new ones up to themselves."""
        if self.real is None and (n == 1 or self.length == 0):
            return None  # everything, or plainly causal
        device = self.sentence.device
        mask = torch.ones(n, self.length + n, dtype=torch.bool, device=device).tril(self.length)
        if self.real is not None:
            mask = mask.repeat(len(self.sentence), 1, 1)
            mask[:, :, : self.length] &= self.real.unsqueeze(1)
            mask = mask.unsqueeze(1)  # [rows, 1, n, length + n]
        return mask

    def sources(self, heads: int) -> tuple[Source, ...]:
        """Per layer what cross-attention reads: an entry for each sentence, or else for each row."""
        rows = len(self.sentence)
        runs = torch.arange(self.sentences, device=self.sentence.device)
        if self.sentences == 1 or (
            rows % self.sentences == 0
            and torch.equal(self.sentence, runs.repeat_interleave(rows // self.sentences))
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
        self, state: State, tokens: Tensor, lengths: Tensor | None = None
    ) -> tuple[TransformerState, Features]:
        assert isinstance(state, TransformerState)
        n = tokens.shape[1]
        x = self._embed(tokens, state)
        mask = state.mask(n)
        past = []
        for index, (layer, source) in enumerate(zip(self.layers, state.sources(self.heads), strict=True)):
            x, known, c, attention = layer(x, state.past[index] if state.past else None, mask, source)
            past.append(known)
        new = state.longer(tuple(past), n, lengths)
        return new, Features(self.norm(x), c, attention.mean(dim=1).view(*tokens.shape, -1))

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
        if state is None or state.real is None:
            places = positions(start, start + n, x)
        else:  # rows stand at places of their own
            at = state.real.sum(1, keepdim=True) + torch.arange(n, device=tokens.device)
            places = F.embedding(at, positions(0, start + n, x))
        result: Tensor = self.dropout(x + places)
        return result

    @property
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        return self._embedding[0].weight, None

    @property
    def adaptable(self) -> list[nn.Parameter]:
        # Measured: these win nine tenths of what the whole last layer wins, and forget less.
        last = self.layers[-1]
        parts = (last.norm1, last.norm2, last.norm3, last.ff1, last.ff2, self.norm)
        return [p for part in parts for p in part.parameters()]  # type: ignore[union-attr]

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
