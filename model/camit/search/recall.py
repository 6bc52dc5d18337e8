"""What a decoder recalls of confirmed sentences while it writes (kNN-MT, Khandelwal et al. 2021).

Each place of a confirmed sentence is kept with the piece that stood there. Where the decoder comes to a place
much like some of these, what stood there is expected here too: P = (1 - lambda) P + lambda P_recalled, but
for what must not be said here (see below), which is left to the network. The mixture is of probabilities, so
that a word the network would never have written can come back; the same evidence added to its scores gains a
third as much. Places are compared by what the decoder knew before the parts that online learning moves
(`Features.place`): what is kept once stays true.

As in lessons, words count and ends do not: where most of what is recalled was the end of a sentence, it is
left to the network whether to end or to go on with another word. On 1,086 lines of dialogue drafts had 22.7
BLEU so, 22.1 when ends were recalled like words; but the runs differed in SHARPNESS (20, 30) and in the guard
(off, on), too.

And the source counts, as for the memory: a place speaks only for sources that have most of what the decoder
looked at there. Or else a sentence that differs from a confirmed one in a number would mostly get the other
number. (It still may where both are written with the same signs, in another order.) Inside a word the source
does not count: how a word goes on that was begun is a matter of spelling. And behind a word that may be
recalled, a place that must not say what comes next still says that a new word does: or else the network,
which would never have begun that word, might go on with it as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from camit.text import PAD, UNK, Vocabulary

# Chosen by the log-probability of each next sentence before it was learned from, and by how often its next
# piece was the likeliest one, on 680 lines of talks and 767 of dialogue. The latter is 44.0 % and 56.9 %
# without, 45.6 % and 57.9 % if the source does not count; with SUPPORT 0.5 45.3 % and 57.6 %, but "twice a
# day" comes back for another number; with 0.7 45.0 % and 57.5 %. On all 887 and 1,086 lines (41.4 % and
# 55.1 % without) it is 42.3 % and 55.7 % with 0.7, and 42.7 % and 55.9 % since that does not count inside
# words; on dialogue 56.0 % where a place that must not say which word comes says that one does, and what
# began a word is recalled only where it would begin one.
NEIGHBOURS = 32  # the places most like this one, which are asked
SHARPNESS = 20.0  # how much more a nearer one counts
# lambda = MOST * sigmoid(STEEPNESS * (the cosine with the nearest - NEAR))
MOST, STEEPNESS, NEAR = 0.7, 15.0, 0.85
# Places for one source, at most: the latest. Each step of a search looks at all. Few sources of a document of
# a thousand lines have as many that speak for them; but letters inside words and ends stand there whatever
# the source, and of these no more is gained by more (on 1,086 lines of dialogue 0.0574 per piece and 56.0 %,
# as without limits: 0.0566; with 256 and 64 of them the same again).
HERE, SPELLED, ENDS = 2048, 512, 128
FAINT = 1e-3  # lambda below which it is not worth while to ask what would begin a word
LEAST = 1e-30  # of probability, so that it has a logarithm
SUPPORT = 0.7  # of the attention at a place must have been on pieces that this source has too


import os
MUTUAL = float(os.environ.get("MUTUAL", 0))
NOBODY = -1  # stands for the draft of a sentence that came from none


class Recalled(NamedTuple):
    """What is recalled at some places."""

    pieces: Tensor  # [..., neighbours]
    shares: Tensor  # lambda times the part of each [..., neighbours]
    drafts: Tensor  # which sentence each is from [..., neighbours]
    # lambda times the part of those that say nothing but that a new token begins, or the sentence ends [...]
    begin: Tensor
    begins: Tensor  # which pieces would begin one [..., vocabulary] bool

    @classmethod
    def nothing(cls, begins: Tensor) -> Recalled:
        """For places that recall nothing."""
        shares = torch.zeros(*begins.shape[:-1], 0, device=begins.device)
        return cls(shares.long(), shares, shares.long(), shares.sum(-1), begins)

    @classmethod
    def joined(cls, parts: Sequence[Recalled]) -> Recalled:
        """Places of several sources [n, neighbours] one behind the other, with as many neighbours each."""
        most = max(part.pieces.shape[1] for part in parts)
        neighbours = ([F.pad(x, (0, most - x.shape[1])) for x in part[:3]] for part in parts)
        padded = [(*three, part.begin, part.begins) for three, part in zip(neighbours, parts, strict=True)]
        return cls(*map(torch.cat, zip(*padded, strict=True)))

    def mix(self, logp: Tensor) -> Tensor:
        """Log-probabilities [..., vocabulary] of all pieces, the network's given."""
        pieces, shares, *_ = self
        left, lift = self._network(logp)
        logp = logp + left.unsqueeze(-1)
        voted = self.begin > 0.0
        if lift is not None:
            logp[voted] += self.begins[voted] * lift.unsqueeze(-1)
        same = pieces.unsqueeze(-1) == pieces.unsqueeze(-2)
        together = (same * shares.unsqueeze(-2)).sum(-1)  # neighbours with the same piece count as one
        return logp.scatter(-1, pieces, torch.logaddexp(logp.gather(-1, pieces), together.log()))

    def along(self, logp: Tensor, pieces: Tensor) -> Tensor:
        """Log-probabilities [...] of the pieces [...] that are known to stand there, the network's of all
        [..., vocabulary] given."""
        left, lift = self._network(logp)
        wanted = pieces.unsqueeze(-1)
        network = logp.gather(-1, wanted).squeeze(-1) + left
        if lift is not None:
            voted = self.begin > 0.0
            network[voted] += self.begins.gather(-1, wanted).squeeze(-1)[voted] * lift
        return torch.logaddexp(network, self.found(pieces).sum(-1).log())

    def found(self, pieces: Tensor) -> Tensor:
        """What each neighbour says for the pieces [...] that are known to stand there. [..., neighbours]"""
        return self.shares * (self.pieces == pieces.unsqueeze(-1))

    def _network(self, logp: Tensor) -> tuple[Tensor, Tensor | None]:
        """The network's part of the mixture: what is added to everything [...], and to what begins a token
        where that is all that is recalled [voted], if it is anywhere."""
        left = torch.log(1.0 - self.shares.sum(-1) - self.begin)
        voted = self.begin > 0.0
        if not bool(voted.any()):  # at most places nothing is
            return left, None
        beginning = (logp[voted].exp() * self.begins[voted]).sum(-1).clamp(min=LEAST).log()
        return left, torch.logaddexp(left[voted], self.begin[voted].log() - beginning) - left[voted]


class Looks(NamedTuple):
    """Where a decoder looked: a row for each place and source piece."""

    place: Tensor  # [rows]
    sign: Tensor  # [rows] what the piece is part of, see `Vocabulary.signs`
    attention: Tensor  # [rows]

    def had(self, signs: Sequence[int], places: int) -> Tensor:
        """Which of these pieces of another source the sentence of each place has, too. [pieces, places]"""
        return torch.stack([
            self.attention.new_zeros(places).index_fill(0, self.place[self.sign == sign], float(sign != UNK))
            for sign in signs
        ])

    def support(self, signs: Sequence[int], places: int) -> Tensor:
        """The part of the attention at each place that was on what this source has, too. [places]"""
        # By a table and index_select: ten times as fast as isin and indexing, and every click waits for it.
        known = int(self.sign.max()) + 1
        here = self.attention.new_zeros(known)
        here[[i for i in signs if i < known and i != UNK]] = 1.0  # two unknown words are not the same word
        seen = self.attention * here.index_select(0, self.sign)
        return self.attention.new_zeros(places).index_add(0, self.place, seen)


@dataclass(frozen=True, eq=False)
class Recall:
    """Places of confirmed sentences as one decoder saw them, and the piece that stood at each."""

    keys: Tensor  # [places, d_p], of length 1
    pieces: Tensor  # [places]; PAD at the end of a sentence, and for what cannot be recalled
    begun: Tensor  # [places] bool: the piece began a new token; so does an end
    inner: Tensor  # [places] bool: it went on with the letters of a word
    drafts: Tensor  # [places] which sentence each belongs to
    looks: Looks
    source: Vocabulary
    _last: list[tuple[Sequence[int], Here | None]] = field(default_factory=list, repr=False)  # at most one

    def for_source(self, ids: Sequence[int]) -> Here | None:
        """What is left of it for one source; of the last one it is at hand."""
        for known, here in self._last:
            if known == ids:
                return here
        here = self._for(ids)
        self._last[:] = [(ids, here)]
        return here

    def _for(self, ids: Sequence[int]) -> Here | None:
        support = self.looks.support(self.source.signs(ids), len(self.keys))
        supported = (support > SUPPORT) & (self.pieces != PAD)
        if not bool(supported.any()):  # then no word of it can begin here
            return None
        spells = self.inner & (self.pieces != PAD)
        speaks = supported | spells
        ends = self.begun & speaks.roll(1)  # behind a word that may be recalled
        here = _latest(supported | ends, HERE) | _latest(spells, SPELLED) | _latest(self.pieces == PAD, ENDS)
        chosen = here.nonzero().squeeze(1)
        kept = (self.keys, self.pieces, self.begun, speaks, self.drafts, speaks & ~spells)
        had = self.looks.had(self.source.signs(ids), len(self.keys))
        return Here(*(x.index_select(0, chosen) for x in kept), had.index_select(1, chosen))


def _latest(places: Tensor, most: int) -> Tensor:
    """The last of these places [places] bool, at most so many."""
    chosen = places.nonzero().squeeze(1)[-most:]
    return torch.zeros_like(places).index_fill(0, chosen, True)


class Here(NamedTuple):
    """What a decoder may recall for one source."""

    keys: Tensor  # [places, d_p], of length 1
    pieces: Tensor  # [places]
    begun: Tensor  # [places] bool, see `Recall`
    speaks: Tensor  # [places] bool: the piece may be recalled; else only that a new token began
    drafts: Tensor  # [places]
    bound: Tensor  # [places] bool
    had: Tensor  # [source, places]

    def at(self, place: Tensor, begins: Tensor, attention: Tensor) -> Recalled:
        """What is recalled at places [..., d_p] where these pieces would begin a new token."""
        near = unit(place) @ self.keys.t()
        if MUTUAL:
            near = near.masked_fill(((attention @ self.had) < MUTUAL) & self.bound, -1.0)
        cosines, at = near.topk(min(NEIGHBOURS, len(self.pieces)), dim=-1)
        trust = MOST * torch.sigmoid(STEEPNESS * (cosines[..., :1] - NEAR))
        shares = torch.softmax(SHARPNESS * cosines, dim=-1) * trust
        pieces, speaks = self.pieces[at], self.speaks[at]
        fits = speaks & (self.begun[at] == begins.gather(-1, pieces))
        begin = (shares * (~speaks & self.begun[at])).sum(-1)
        begin = begin.masked_fill(begin < FAINT, 0.0)
        return Recalled(pieces, shares * fits, self.drafts[at], begin, begins)


def unit(place: Tensor) -> Tensor:
    """Places are compared by their cosine."""
    length: Tensor = torch.linalg.vector_norm(place, 2, -1, True)
    return place / length
