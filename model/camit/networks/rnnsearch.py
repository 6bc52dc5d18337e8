"""RNNSearch (Bahdanau et al. 2015), the paper's main baseline.

A bi-directional GRU encoder, additive attention, and GRU decoders in the usual two-cell form: the first
GRU reads the last word and asks attention, the second reads the context vector c; s joins state, context
and word in the readout that the output layer sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.networks.base import Decoder, Encoded, Features, Network, NetworkConfig, State
from camit.networks.layers import Linear, dropout
from camit.text import BOS, EOS, PAD


@dataclass(frozen=True)
class RNNState(State):
    hidden: Tensor  # [rows, ff]
    annotations: Tensor  # [sentences, source, 2 ff]
    keys: Tensor  # [sentences, source, ff]
    bias: Tensor  # [sentences, source]
    sentence: Tensor  # [rows]
    trail: Tensor | None = None  # [rows, n, ff] hidden states of the n pieces read last

    def behind(self, lengths: Sequence[int]) -> RNNState:
        assert self.trail is not None
        rows = torch.arange(len(lengths), device=self.hidden.device)
        last = torch.tensor(lengths, device=self.hidden.device) - 1
        return replace(self, hidden=self.trail[rows, last], trail=None)

    def select(self, rows: Tensor) -> RNNState:
        trail = None if self.trail is None else self.trail[rows]
        return replace(self, hidden=self.hidden[rows], sentence=self.sentence[rows], trail=trail)


class RNNDecoder(Decoder):
    def __init__(
        self, config: NetworkConfig, embedding: nn.Embedding, first_piece: int, last_piece: int
    ) -> None:
        super().__init__()
        self.first_piece, self.last_piece = first_piece, last_piece
        d, h = config.d, config.ff
        self._embedding = [embedding]  # shared with the other decoder; owned by the network
        self.initial = Linear(2 * h, h)
        self.read_word = nn.GRUCell(d, h)
        self.read_source = nn.GRUCell(2 * h, h)
        self.key, self.query, self.energy = (
            Linear(2 * h, h),
            Linear(h, h, bias=False),
            Linear(h, 1, bias=False),
        )
        self.readout = Linear(d + 3 * h, d)
        self.output = Linear(d, config.target_size)
        self.dropout = dropout(config.dropout)

    def start(self, encoded: Encoded) -> RNNState:
        weights = encoded.real.to(encoded.annotations.dtype).unsqueeze(2)
        mean = (encoded.annotations * weights).sum(1) / weights.sum(1)
        bias = torch.zeros_like(weights[:, :, 0]).masked_fill(~encoded.real, float("-inf"))
        sentences = torch.arange(mean.shape[0], device=mean.device)
        return RNNState(
            torch.tanh(self.initial(mean)),
            encoded.annotations,
            self.key(encoded.annotations),
            bias,
            sentences,
        )

    def advance(self, state: State, tokens: Tensor, *, attention: bool = True) -> tuple[RNNState, Features]:
        assert isinstance(state, RNNState)
        words = F.embedding(tokens, self._embedding[0].weight)  # [rows, n, d]
        annotations, keys, bias = (x[state.sentence] for x in (state.annotations, state.keys, state.bias))
        hidden, states, contexts, attentions = state.hidden, [], [], []
        for word in words.unbind(1):
            asked = self.read_word(word, hidden)
            energy = self.energy(torch.tanh(keys + self.query(asked).unsqueeze(1))).squeeze(2) + bias
            weights = torch.softmax(energy, dim=1)  # [rows, source]
            context = torch.bmm(weights.unsqueeze(1), annotations).squeeze(1)  # [rows, 2 ff]
            hidden = self.read_source(context, asked)
            states.append(hidden)
            contexts.append(context)
            attentions.append(weights)
        context, trail = torch.stack(contexts, 1), torch.stack(states, 1)
        place = torch.cat((words, trail, context), dim=2)
        s = self.finish(place)
        new = replace(state, hidden=hidden, trail=trail)
        return new, Features(self.dropout(s), context, torch.stack(attentions, 1), place, tokens)

    @property
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        return self.output.weight, self.output.bias

    @property
    def adaptable(self) -> list[nn.Parameter]:
        return list(self.readout.parameters())

    def finish(self, place: Tensor) -> Tensor:
        return torch.tanh(self.readout(place))

    def logits(self, s: Tensor) -> Tensor:
        result: Tensor = self.output(s)
        return result


class RNNSearch(Network):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = nn.Embedding(config.source_size, config.d, padding_idx=PAD)
        self.target_embedding = nn.Embedding(config.target_size, config.d)
        self.encoder = nn.GRU(config.d, config.ff, batch_first=True, bidirectional=True)
        self.dropout = dropout(config.dropout)
        self.forward_decoder = RNNDecoder(config, self.target_embedding, BOS, EOS)
        self.backward_decoder = RNNDecoder(config, self.target_embedding, EOS, BOS)
        for name, parameter in self.named_parameters():
            if "weight_hh" in name:  # recurrent weights per gate
                for gate in parameter.data.chunk(3):
                    nn.init.orthogonal_(gate)
            elif "embedding" in name:
                nn.init.normal_(parameter, std=0.1)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def encode(self, source: Tensor) -> Encoded:
        real = source != PAD
        words = self.dropout(self.source_embedding(source))
        # Packing keeps padding out of the backward GRU, so a sentence reads the same in any batch.
        packed = nn.utils.rnn.pack_padded_sequence(
            words, real.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        annotations, _ = nn.utils.rnn.pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=source.shape[1]
        )
        return Encoded(annotations, real)
