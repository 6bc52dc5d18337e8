"""A pre-norm Transformer with one encoder and two decoders (Vaswani et al. 2017, as the paper uses it).

The decoders keep key/value caches, so a step costs one position and a forced prefix one pass. Rows of one
sentence share its cross-attention keys: nothing of the source is copied per hypothesis while a beam is
reordered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.networks.base import Decoder, Encoded, Features, Network, NetworkConfig, State
from camit.networks.linear import Linear, TiedEmbedding
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


def dropout(p: float) -> nn.Module:
    return nn.Dropout(p) if p else nn.Identity()


class SelfAttention(nn.Module):
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

    def extend(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """What new positions read behind a cache [rows, length, 2 d] of keys and values; the longer cache."""
        rows, n, d = x.shape
        size = d // self.heads
        q, known = self.qkv(x).split((d, 2 * d), dim=2)
        if past is not None:
            known = torch.cat((past, known), dim=1)
        q = q.view(rows, n, self.heads, size).transpose(1, 2)
        k, v = known.view(rows, -1, 2, self.heads, size).permute(2, 0, 3, 1, 4)
        mask = None
        if n > 1 and past is not None:  # position i sees the cache and new positions up to i
            mask = torch.ones(n, k.shape[2], dtype=torch.bool, device=x.device).tril(k.shape[2] - n)
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=n > 1 and past is None)
        return self.merge(read), known


class CrossAttention(nn.Module):
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

    def forward(self, x: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """Read-out [rows, n, d] and attention [sentences, heads, rows of each * n, source].

        `k` and `v` have one entry per sentence; rows come in equal runs per sentence, or one entry per row.
        """
        rows, n, d = x.shape
        sentences, heads, source, size = k.shape
        # The hypotheses of one sentence are one matrix product with its keys.
        q = self.q(x).view(sentences, -1, heads, size).transpose(1, 2).reshape(sentences * heads, -1, size)
        scores = torch.bmm(q, k.reshape(-1, source, size).transpose(1, 2)) / math.sqrt(size)
        scores = scores.view(sentences, heads, -1, source)
        if bias is not None:
            scores = scores + bias  # [sentences, 1, 1, source]
        weights = torch.softmax(scores, dim=-1)
        read = torch.bmm(weights.view(sentences * heads, -1, source), v.reshape(-1, source, size))
        read = read.view(sentences, heads, -1, size).transpose(1, 2).reshape(rows, n, d)
        return self.out(read), weights

    def read(self, x: Tensor, annotations: Tensor, real: Tensor | None) -> Tensor:
        """The read-out alone, one row per sentence: the fused kernel, which keeps no attention weights."""
        sentences, n, d = x.shape
        q = self.q(x).view(sentences, n, self.heads, d // self.heads).transpose(1, 2)
        k, v = self.keys_values(annotations)
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=real)
        return self.out(read.transpose(1, 2).reshape(sentences, n, d))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d = config.d
        self.norm1, self.attention = nn.LayerNorm(d), SelfAttention(d, config.heads)
        self.norm2, self.ff1, self.ff2 = nn.LayerNorm(d), Linear(d, config.ff), Linear(config.ff, d)
        self.dropout = dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = self.attention.split(self.norm1(x))
        x = x + self.dropout(self.attention.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))
        return x + self.dropout(self.ff2(F.relu(self.ff1(self.norm2(x)))))  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d = config.d
        self.norm1, self.attention = nn.LayerNorm(d), SelfAttention(d, config.heads)
        self.norm2, self.cross = nn.LayerNorm(d), CrossAttention(d, config.heads)
        self.norm3, self.ff1, self.ff2 = nn.LayerNorm(d), Linear(d, config.ff), Linear(config.ff, d)
        self.dropout = dropout(config.dropout)

    def forward(
        self, x: Tensor, past: Tensor | None, source: tuple[Tensor, Tensor, Tensor | None]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """New x, self-attention cache, c and attention of this layer."""
        read, known = self.attention.extend(self.norm1(x), past)
        x = x + self.dropout(read)
        c, attention = self.cross(self.norm2(x), *source)
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
    source: tuple[tuple[Tensor, Tensor], ...]  # per layer: keys, values [sentences, heads, source, d / heads]
    bias: Tensor | None  # [sentences, 1, 1, source]; None when no source position is padding
    sentence: Tensor  # [rows] which entry of `source` a row reads
    length: int

    def select(self, rows: Tensor) -> TransformerState:
        past = self.past and tuple(known.index_select(0, rows) for known in self.past)
        return TransformerState(past, self.source, self.bias, self.sentence[rows], self.length)

    def cross(self) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        """Per layer what cross-attention reads, in a layout that fits the rows."""
        sentences = self.source[0][0].shape[0]
        rows = self.sentence.shape[0]
        if sentences == 1 or (
            rows % sentences == 0
            and torch.equal(
                self.sentence,
                torch.arange(sentences, device=self.sentence.device).repeat_interleave(rows // sentences),
            )
        ):
            return [(k, v, self.bias) for k, v in self.source]
        bias = None if self.bias is None else self.bias[self.sentence]
        return [(k[self.sentence], v[self.sentence], bias) for k, v in self.source]


class TransformerDecoder(Decoder):
    def __init__(
        self, config: NetworkConfig, embedding: TiedEmbedding, first_piece: int, last_piece: int
    ) -> None:
        super().__init__()
        self.first_piece, self.last_piece = first_piece, last_piece
        self.d = config.d
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(config.d)
        self.dropout = dropout(config.dropout)
        # Shared with the other decoder and with the output layer; owned by the network.
        self._embedding = [embedding]

    def start(self, encoded: Encoded) -> TransformerState:
        keys_values = tuple(layer.cross.keys_values(encoded.annotations) for layer in self.layers)  # type: ignore[union-attr,operator]
        bias = None
        if not bool(encoded.real.all()):
            bias = torch.zeros_like(encoded.real, dtype=encoded.annotations.dtype)
            bias = bias.masked_fill(~encoded.real, float("-inf"))[:, None, None, :]
        sentences = torch.arange(encoded.real.shape[0], device=encoded.real.device)
        return TransformerState(None, keys_values, bias, sentences, 0)

    def advance(self, state: State, tokens: Tensor) -> tuple[TransformerState, Features]:
        assert isinstance(state, TransformerState)
        stop = state.length + tokens.shape[1]
        x = self._embed(tokens, state.length)
        past = []
        for index, (layer, source) in enumerate(zip(self.layers, state.cross(), strict=True)):
            x, cache, c, attention = layer(x, state.past[index] if state.past else None, source)
            past.append(cache)
        new = TransformerState(tuple(past), state.source, state.bias, state.sentence, stop)
        heads = attention.mean(dim=1).view(*tokens.shape, -1)
        return new, Features(self.norm(x), c, heads)

    def read(self, encoded: Encoded, tokens: Tensor) -> Tensor:
        x = self._embed(tokens, 0)
        real = None if bool(encoded.real.all()) else encoded.real[:, None, None, :]
        for layer in self.layers:
            x = layer.read(x, encoded.annotations, real)  # type: ignore[operator]
        result: Tensor = self.norm(x)
        return result

    def _embed(self, tokens: Tensor, start: int) -> Tensor:
        weight = self._embedding[0].weight
        x = F.embedding(tokens, weight) * math.sqrt(self.d)
        result: Tensor = self.dropout(x + positions(start, start + tokens.shape[1], x))
        return result

    @property
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        return self._embedding[0].weight, None

    def logits(self, s: Tensor) -> Tensor:
        return self._embedding[0].scores(s)


class Transformer(Network):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = nn.Embedding(config.source_size, config.d)
        self.target_embedding = TiedEmbedding(config.target_size, config.d)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.d)
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
