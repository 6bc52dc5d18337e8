"""When to copy from the revision memory, and what: theta and r of the paper's section "Revision Memory".

The paper's form: theta_j = sigmoid(W_s s_j + W_c c_j + b) and r_j = softmax(W_1 |s_j.s'_t| + W_2 |c_j.c'_t|). There theta
does not look at the memory, so it opens for words no entry has anything to say about. The default form adds the evidence
for the entries to the gate, theta_j = sigmoid(W_s s_j + W_c c_j + b + log sum_t exp e_jt) with r_j = softmax(e_j): what
no entry fits stays shut. Part of the evidence is the source: whether attention rests on the words the entry stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.checkpoint import load_weights, read_tensors, write_atomically
from camit.networks import Features
from camit.search.direction import Direction
from camit.search.grid import Copy, Mixed, Phrase

FILE = "memory.safetensors"


class Gate(nn.Module):
    """The trained part of the memory for one direction: which steps copy, and how evidence is weighed.

    The start is what a memory without training uses: similarity and attention decide, and the bias is clearly negative.
    """

    def __init__(self, d: int, d_c: int) -> None:
        super().__init__()
        self.state = nn.Parameter(torch.zeros(d))  # W_s
        self.context = nn.Parameter(torch.zeros(d_c))  # W_c
        self.bias = nn.Parameter(torch.tensor(-5.0))  # b
        # For cos(s, s'), cos(c, c') and the attention on the source words of an entry.
        self.evidence = nn.Parameter(torch.tensor([6.0, 4.0, 4.0]))
        # The paper's W_1 and W_2, for dot products over sqrt(d); and a gate that looks at s and c alone.
        self.paper_similarity = nn.Parameter(torch.tensor([1.0, 0.1]))
        self.paper_state = nn.Parameter(torch.zeros(d))
        self.paper_context = nn.Parameter(torch.zeros(d_c))
        self.paper_bias = nn.Parameter(torch.tensor(-3.0))


class Gates(nn.Module):
    """Both directions, as the checkpoint stores them in `memory.safetensors`."""

    def __init__(self, d: int, d_c: int) -> None:
        super().__init__()
        self.forward_gate = Gate(d, d_c)
        self.backward_gate = Gate(d, d_c)

    def of(self, direction: Direction) -> Gate:
        return self.backward_gate if direction.backward else self.forward_gate

    def save(self, directory: Path) -> None:
        """Write the gates beside the weights of a checkpoint."""
        tensors = {name: tensor.detach().contiguous() for name, tensor in self.state_dict().items()}
        write_atomically(directory / FILE, safetensors.torch.save(tensors))

    @classmethod
    def load(cls, directory: Path | None, d: int, d_c: int) -> Gates:
        """The gates of a checkpoint; one that has none gets the untrained start."""
        gates = cls(d, d_c)
        if directory is not None and (directory / FILE).is_file():
            load_weights(gates, read_tensors(directory / FILE), directory / FILE)
        return gates.requires_grad_(False).eval()


@dataclass(frozen=True)
class Keys:
    """Revision contexts of one direction: s' [entries, d] and c' [entries, d_c]."""

    s: Tensor
    c: Tensor

    def select(self, entries: Sequence[int]) -> Keys:
        chosen = torch.tensor(list(entries), dtype=torch.long)
        return Keys(self.s[chosen], self.c[chosen])


class MemoryReader:
    """The memory as one decoder reads it while it writes one source sentence.

    `phrases` and `ids` name the entries behind `keys`; `match` [source, entries] says which source pieces stand for the
    words of an entry (None: the source is not known, and only similarity counts).
    """

    def __init__(
        self,
        direction: Direction,
        gate: Gate,
        keys: Keys,
        phrases: Sequence[Phrase],
        ids: Sequence[int],
        *,
        match: Tensor | None,
        cut: float,
        paper: bool,
        times: Sequence[int] | None = None,
    ) -> None:
        self.ids = tuple(ids)
        self._direction = direction
        self._gate = gate
        self._match = match
        self._cut = cut
        self._paper = paper
        # Duplicates of a word share a column: their probability is summed.
        self._words = list(dict.fromkeys(direction.order(phrase) for phrase in phrases))
        column = {word: n for n, word in enumerate(self._words)}
        owner = [column[direction.order(phrase)] for phrase in phrases]
        self._one_each = len(self._words) == len(owner)
        # How often a word may stand in the sentence: as often as the source words it stands for.
        self._times = [0] * len(self._words)
        for at, count in zip(owner, times or [1] * len(owner), strict=True):
            self._times[at] = max(self._times[at], count)
        self._owner = torch.tensor(owner)
        if paper:
            self._s = (keys.s / math.sqrt(keys.s.shape[1])).t().contiguous()
            self._c = (keys.c / math.sqrt(keys.c.shape[1])).t().contiguous()
        else:
            self._s = (F.normalize(keys.s, dim=1) * gate.evidence[0]).t().contiguous()
            self._c = (F.normalize(keys.c, dim=1) * gate.evidence[1]).t().contiguous()
            self._m = None if match is None else match * gate.evidence[2]

    def weigh(self, features: Features) -> tuple[Tensor, Tensor]:
        """theta [rows, n] and r [rows, n, entries]."""
        gate, (s, c, attention) = self._gate, features
        if self._paper:
            theta = torch.sigmoid(s @ gate.paper_state + c @ gate.paper_context + gate.paper_bias)
            similarity = gate.paper_similarity[0] * (s @ self._s).abs()
            return theta, torch.softmax(similarity + gate.paper_similarity[1] * (c @ self._c).abs(), dim=2)
        evidence = F.normalize(s, dim=2) @ self._s + F.normalize(c, dim=2) @ self._c  # [rows, n, entries]
        if self._m is not None:
            evidence = evidence + attention @ self._m
        total = torch.logsumexp(evidence, dim=2)
        theta = torch.sigmoid(s @ gate.state + c @ gate.context + gate.bias + total)
        return theta, torch.exp(evidence - total.unsqueeze(2))

    def read(self, features: Features) -> tuple[Tensor, list[list[Copy]]]:
        """theta [rows], and for each row the words worth copying with theta * r."""
        theta, r = self.weigh(features)
        theta, r = theta[:, 0], r[:, 0]
        share = self._by_word(theta.unsqueeze(1) * r)
        copies: list[list[Copy]] = [[] for _ in range(len(theta))]
        for row, values in enumerate(share.tolist()):
            for column, value in enumerate(values):
                if value >= self._cut:
                    entry = self._entry(r[row], column)
                    copies[row].append(Copy(self._words[column], value, entry, self._times[column]))
        # Where nothing is worth copying the network alone decides.
        silent = torch.tensor([not offered for offered in copies])
        return theta.masked_fill(silent, 0.0), copies

    def mix(self, features: Features, logp: Tensor, sentences: Sequence[Phrase]) -> Mixed:
        """P_j = (1 - theta_j) P_j + theta_j r_j along known sentences (in the order of the direction)."""
        theta, r = self.weigh(features)
        share = self._by_word(theta.unsqueeze(2) * r)
        share = share.masked_fill(share < self._cut, 0.0)
        for row, pieces in enumerate(sentences):
            for column, word in enumerate(self._words):
                stands = [at for at in range(len(pieces)) if pieces[at : at + len(word)] == word]
                if (
                    len(stands) >= self._times[column]
                ):  # offered no more once it stands often enough, as in a search
                    share[row, stands[self._times[column] - 1] + 1 :, column] = 0.0
        theta = share.sum(dim=2).clamp(max=1 - 1e-6)
        mixed = logp + torch.log1p(-theta)
        copied: list[list[tuple[int, int, int]]] = []
        for row, pieces in enumerate(sentences):
            mixed[row, len(pieces) + 1 :] = 0.0  # behind the end
            copied.append([])
            at = 0
            while at < len(pieces):
                word = self._word_at(pieces, at, share[row, at])
                if word is None:
                    at += 1
                    continue
                stop = at + len(self._words[word])
                alone = logp[row, at:stop].sum() + torch.log1p(-theta[row, at])
                copy = torch.log(share[row, at, word])
                mixed[row, at] = torch.logaddexp(alone, copy)
                mixed[row, at + 1 : stop] = 0.0
                if copy > alone:
                    copied[row].append((at, stop, self._entry(r[row, at], word)))
                at = stop
        return Mixed(mixed, theta, copied)

    def _word_at(self, pieces: Phrase, at: int, share: Tensor) -> int | None:
        """The word of the memory that stands at this place, whole, if it is offered there."""
        boundary = self._direction.boundary
        if at and not boundary(pieces[at - 1], pieces[at]):
            return None
        for column in torch.nonzero(share).flatten().tolist():
            word = self._words[column]
            stop = at + len(word)
            if pieces[at:stop] == word and (stop == len(pieces) or boundary(pieces[stop - 1], pieces[stop])):
                return int(column)
        return None

    def _by_word(self, r: Tensor) -> Tensor:
        """Probabilities of entries as probabilities of words. [..., words]"""
        if self._one_each:
            return r
        return r.new_zeros(*r.shape[:-1], len(self._words)).index_add_(-1, self._owner, r)

    def _entry(self, r: Tensor, column: int) -> int:
        """The entry that speaks loudest for a word."""
        return self.ids[int(torch.where(self._owner == column, r, -1.0).argmax())]
