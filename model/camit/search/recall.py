"""What a decoder recalls of confirmed sentences while it writes (kNN-MT, Khandelwal et al. 2021).

Each place of a confirmed sentence is kept with the piece that stood there. Where the decoder comes to a place
much like some of these, what stood there is expected here too: P = (1 - lambda) P + lambda P_recalled, but
for what must not be said here (see below), which is left to the network. The mixture is of probabilities, so
that a word the network would never have written can come back; the same evidence added to its scores gains a
third as much. Places are compared by what the decoder knew before the parts that online learning moves
(`Features.place`): what is kept once stays true.

As in lessons, words count and ends do not: where most of what is recalled was the end of a sentence, it is
left to the network whether to end or to go on with another word.

And the source counts, as for the memory: a place speaks only for sources that have most of what the decoder
looked at there, and only while the decoder looks at what the place's own source has, too. Or else a sentence
that differs from a confirmed one in a number would mostly get the other number. (A small word that the
decoder hardly looks at, such as a negation, may be passed over.) Inside a word the source does not count: how
a word goes on that was begun is a matter of spelling. And behind a word that may be recalled, a place that
must not say what comes next still says that a new word does: or else the network, which would never have
begun that word, might go on with it as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from camit.search.problem import LEAST
from camit.text import PAD, UNK, Vocabulary

# Chosen by the log-probability of each next sentence before it was learned from, and by how often its next
# piece was the likeliest one, on 680 lines of talks and 767 of dialogue. The latter is 44.0 % and 56.9 %
# without, 45.6 % and 57.9 % if the source does not count; with SUPPORT 0.5 45.3 % and 57.6 %, but "twice a
# day" comes back for another number; with 0.7 45.0 % and 57.5 %. On all 887 and 1,086 lines (41.4 % and
# 55.1 % without) it is 42.3 % and 55.7 % with 0.7, and 42.7 % and 55.9 % since that does not count inside
# words; on dialogue 56.0 % where a place that must not say which word comes says that one does, and what
# began a word is recalled only where it would begin one. NOW changes nothing there (two talks 40.3 %, one
# document of dialogue 53.4 %, whether 0, 0.5 or 0.7), but "at three" comes back no more for 十三点. With 0.7
# it does not for half past three, either; but on 887 lines of talks 198 mistakes were made again, with 0.5
# 189, with 0 186 (the versions differed in how numbers are found in a source, too).
NEIGHBOURS = 32  # the places most like this one, which are asked
SHARPNESS = 20.0  # how much more a nearer one counts
# lambda = MOST * sigmoid(STEEPNESS * (the cosine with the nearest - NEAR))
MOST, STEEPNESS, NEAR = 0.7, 15.0, 0.85
# Places for one source, at most: the latest. Each step of a search looks at all. No source of two episodes
# and eight talks (1,973 lines) had more than 1,020 that spoke for it; but letters inside words and ends stand
# there whatever the source, and of these no more is gained by more (on 1,086 lines of dialogue 0.0574 per
# piece and 56.0 %, as without limits: 0.0566).
HERE, SPELLED, ENDS = 1024, 512, 128
FAINT = 1e-3  # lambda below which it is not worth while to ask what would begin a word
SUPPORT = 0.7  # of the attention at a place must have been on pieces that this source has too
NOW = 0.5  # of the attention here must be on pieces that the place's own source has too
FAR = -1.0  # the cosine of places that have nothing in common


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

    def support(self, signs: Sequence[int], places: int) -> Tensor:
        """The part of the attention at each place that was on what this source has, too. [places]"""
        # By a table and index_select: ten times as fast as isin and indexing, and every click waits for it.
        known = int(self.sign.max()) + 1
        here = self.attention.new_zeros(known)
        here[[i for i in signs if i < known and i != UNK]] = 1.0  # two unknown words are not the same word
        seen = self.attention * here.index_select(0, self.sign)
        return self.attention.new_zeros(places).index_add(0, self.place, seen)


class SourceSigns(NamedTuple):
    """The pieces of the sources of all sentences, one behind the other."""

    sign: Tensor  # [rows] see `Looks`
    sentence: Tensor  # [rows] the number of the sentence each belongs to

    def shared(self, signs: Sequence[int]) -> Tensor:
        """Which of these pieces of another source each sentence has, too. [pieces, sentences] bool"""
        known = torch.tensor([-1 if sign == UNK else sign for sign in signs], device=self.sign.device)
        same = (self.sign == known.unsqueeze(1)).float()  # [pieces, rows]
        found = same.new_zeros(len(signs), int(self.sentence[-1]) + 1).index_add(1, self.sentence, same)
        return found > 0.0


class Common(NamedTuple):
    """What a source has in common with the kept sentences. Of a sentence that does not depend on the others,
    so who asks again and again needs to ask about new ones only."""

    supported: Tensor  # [places] bool: most of what the decoder looked at there stands in this source, too
    shared: Tensor  # [source, sentences] bool: this piece of the source stands in the sentence's own, too


@dataclass(frozen=True, eq=False)
class Recall:
    """Places of confirmed sentences as one decoder saw them, and the piece that stood at each."""

    keys: Tensor  # [places, d_p], of length 1, in fp16
    pieces: Tensor  # [places]; PAD at the end of a sentence, and for what cannot be recalled
    begun: Tensor  # [places] bool: the piece began a new token; so does an end
    inner: Tensor  # [places] bool: it went on with the letters of a word
    drafts: Tensor  # [places] which sentence each belongs to
    looks: Looks
    sentence: Tensor  # [places] the number of the sentence each belongs to
    sources: SourceSigns
    source: Vocabulary
    _last: list[tuple[Sequence[int], Here | None]] = field(default_factory=list, repr=False)  # at most one

    def for_source(self, ids: Sequence[int]) -> Here | None:
        """What is left of it for one source; of the last one it is at hand."""
        for known, here in self._last:
            if known == ids:
                return here
        here = self.here(self.common(ids))
        self._last[:] = [(ids, here)]
        return here

    def common(self, ids: Sequence[int]) -> Common:
        signs = self.source.signs(ids)
        return Common(self.looks.support(signs, len(self.keys)) > SUPPORT, self.sources.shared(signs))

    def here(self, common: Common) -> Here | None:
        """What is left of it for the source that has this in common with it."""
        supported = common.supported & self._says
        if not bool(supported.any()):  # then no word of it can begin here
            return None
        spells, anyway = self._whatever_the_source
        speaks = supported | spells
        ends = self.begun & speaks.roll(1)  # behind a word that may be recalled
        chosen = (_latest(supported | ends, HERE) | anyway).nonzero().squeeze(1)
        shared = common.shared.index_select(1, self.sentence.index_select(0, chosen)).float()
        kept = (self.keys, self.pieces, self.begun, speaks, self.drafts, supported & ~spells)
        keys, *others = (x.index_select(0, chosen) for x in kept)
        return Here(*[keys.float(), *others, shared])

    @cached_property
    def _says(self) -> Tensor:
        """Which places say anything. [places] bool"""
        return self.pieces != PAD

    @cached_property
    def _whatever_the_source(self) -> tuple[Tensor, Tensor]:
        """Which places speak for every source, for they spell on; and the latest of these and of the ends,
        which are asked. [places] bool"""
        spells = self.inner & self._says
        return spells, _latest(spells, SPELLED) | _latest(~self._says, ENDS)


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
    bound: Tensor  # [places] bool: whether it speaks depends on the source
    shared: Tensor  # [source, places] 1 for pieces of this source that the place's own source has, too

    def at(self, place: Tensor, begins: Tensor, attention: Tensor) -> Recalled:
        """What is recalled at places [..., d_p] where these pieces would begin a new token, while the decoder
        looks at the source with this attention [..., source]."""
        near = unit(place) @ self.keys.t()
        near = near.masked_fill((attention @ self.shared < NOW) & self.bound, FAR)
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
