"""When to copy from the revision memory, and what: theta and r of the paper's section "Revision Memory".

The paper's form: theta_j = sigmoid(W_s s_j + W_c c_j + b) and r_j = softmax(W_1 |s_j.s'_t| + W_2
|c_j.c'_t|). There theta does not look at the memory, so it opens also where no entry fits. The default form
adds the evidence e_jt for the entries to the gate, theta_j = sigmoid(W_s s_j + W_c c_j + b + log sum_t exp
e_jt) with r_j = softmax(e_j) and s_j, c_j of length 1, so that what no entry fits stays shut. Part of the
evidence is the source: an entry knows the source words it stands for, is read only where they stand, and
counts more while attention rests on them. And P_j = (1 - theta_j) P_j + theta_j r_j is about words that say
something: what small words, and the rest of a word that was begun, have of P_j stays theirs
(`Direction.rivals`). Along a sentence that both decoders have read, they copy a word
with one probability, the mean (`AgreedReaders`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.checkpoint import load_weights, read_tensors, write_atomically
from camit.memory.matching import Match
from camit.networks import Features
from camit.search.direction import Direction

FILE = "memory.safetensors"
# What speaks for an entry at a step. Measured on held-out documents (gain of log-probability per 1,000
# words): the two similarities alone 164, attention alone 109, all five 171; the network's own score of the
# word added nothing to speak of.
EVIDENCE = (
    "cos(s, s')",
    "cos(c, c')",
    "attention on the entry's source words",
    "share of them found",
    "rarity",
)


class Gate(nn.Module):
    """The trained part of the memory for one direction: which steps copy, and how evidence is weighed.

    A model without `memory.safetensors` uses this start, rounded from the gate of the first embedded model.
    """

    def __init__(self, d: int, d_c: int) -> None:
        super().__init__()
        self.state = nn.Parameter(torch.zeros(d))  # W_s
        self.context = nn.Parameter(torch.zeros(d_c))  # W_c
        self.bias = nn.Parameter(torch.tensor(-14.0))  # b
        self.evidence = nn.Parameter(torch.tensor([8.0, 0.5, 1.5, 2.0, 3.5]))

    def prior(self, match: Match) -> Tensor:
        """The evidence for entries that does not depend on the step. [entries]"""
        return self.evidence[3] * match.found + self.evidence[4] * match.rarity


class PaperGate(nn.Module):
    """The same as the paper writes it, with scalar products over sqrt(d)."""

    def __init__(self, d: int, d_c: int) -> None:
        super().__init__()
        self.state = nn.Parameter(torch.zeros(d))  # W_s
        self.context = nn.Parameter(torch.zeros(d_c))  # W_c
        self.bias = nn.Parameter(torch.tensor(-4.0))  # b
        self.similarity = nn.Parameter(torch.tensor([0.5, 0.02]))  # W_1, W_2


class Gates(nn.Module):
    """Both forms for both directions, as the checkpoint stores them in `memory.safetensors`."""

    def __init__(self, d: int, d_c: int) -> None:
        super().__init__()
        self.forward_gate, self.backward_gate = Gate(d, d_c), Gate(d, d_c)
        self.forward_paper, self.backward_paper = PaperGate(d, d_c), PaperGate(d, d_c)

    def of(self, direction: Direction) -> Gate:
        return self.backward_gate if direction.backward else self.forward_gate

    def paper(self, direction: Direction) -> PaperGate:
        return self.backward_paper if direction.backward else self.forward_paper

    def save(self, directory: Path) -> None:
        """Write the gates beside the weights of a checkpoint."""
        tensors = {name: tensor.detach().contiguous() for name, tensor in self.state_dict().items()}
        write_atomically(directory / FILE, safetensors.torch.save(tensors))

    @classmethod
    def load(cls, directory: Path | None, d: int, d_c: int) -> Gates:
        """The gates of a checkpoint; one that has none gets the start."""
        gates = cls(d, d_c)
        if directory is not None and (directory / FILE).is_file():
            load_weights(gates, read_tensors(directory / FILE), directory / FILE)
        return gates.requires_grad_(False).eval()


@dataclass(frozen=True)
class Keys:
    """Revision contexts of one direction: s' [entries, d] and c' [entries, d_c]; of one entry, [d], [d_c]."""

    s: Tensor
    c: Tensor

    def select(self, entries: Sequence[int]) -> Keys:
        chosen = torch.tensor(list(entries), dtype=torch.long)
        return Keys(self.s[chosen], self.c[chosen])


def evidence(features: Features, keys: Keys, match: Match) -> Tensor:
    """The numbers of `EVIDENCE` for every position and entry. [rows, n, entries, 5]"""
    s = F.normalize(features.s, dim=2) @ F.normalize(keys.s, dim=1).t()
    c = F.normalize(features.c, dim=2) @ F.normalize(keys.c, dim=1).t()
    found, rarity = match.found.expand_as(s), match.rarity.expand_as(s)
    return torch.stack((s, c, features.attention @ match.pieces, found, rarity), dim=3)


class Trust(NamedTuple):
    """What is known of entries besides. It says which word is right; attention says when it is due: or else
    a word that is surely right would come early, and others be left out."""

    favour: Tensor  # [entries] added to the evidence by the attention on an entry's source words
    against: Tensor  # [entries] taken off wherever they are
