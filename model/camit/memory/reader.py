"""The memory as a decoder reads it: what is worth copying at a step, and what the copy competes with."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from camit.memory.gate import Gate, Keys, PaperGate, Trust
from camit.memory.matching import Match
from camit.memory.spelling import Spellings
from camit.networks import Features
from camit.search.direction import Direction, together
from camit.search.problem import LEAST, Copy, Mixed, Phrase, Readers, Span
from camit.search.rules import fitting_spellings, negated

# A word outside a word list is offered from this part of the cut on: beside UNK, little evidence is enough.
# Measured on 500 lines of dialogue with a small word-level model, UNK in drafts and their BLEU: 1: 380, 9.6;
# 0.2: 369, 9.8; 0.02: 344, 10.0; 0.002: 288, 10.2; 0: 203, 10.5, but then any word will do.
OUTSIDE = 0.002


class MemoryReader(ABC):
    """The memory as one decoder reads it while it writes one source sentence.

    `spellings` and `ids` name the entries: the ways to write the word of each, see `Copy`. `times` says how
    often each may be copied. What is less probable than `cut` is not offered.
    """

    looks = False  # whether attention is part of the evidence

    def __init__(
        self,
        direction: Direction,
        spellings: Sequence[Spellings],
        ids: Sequence[int],
        times: Sequence[int],
        cut: float,
        negating: Collection[int] = (),
    ) -> None:
        self._negating = frozenset(negating)  # ids of entries that say a negation, too
        self.ids = tuple(ids)
        self.words = [spelled.spaced[0] for spelled in spellings]
        self.vocabulary = direction.vocabulary
        self._direction = direction
        self._ways = [
            Spellings(*(tuple(map(direction.order, way)) for way in spelled)) for spelled in spellings
        ]
        self._words = [self._word(ways) for ways in self._ways]
        self._spellings: dict[str, Spellings] = {}  # of all entries that hold a word
        self._times: dict[str, int] = {}
        for word, ways, count in zip(self._words, self._ways, times, strict=True):
            self._spellings[word] = self._spellings.get(word, Spellings((), ())).joined(ways)
            self._times[word] = max(self._times.get(word, 0), count)
        self._holders: dict[str, list[int]] = {word: [] for word in self._spellings}  # the entries of a word
        for n, word in enumerate(self._words):
            self._holders[word].append(n)
        self._names = list(self._holders)
        self._joined: dict[int, Spellings] = {}  # all ways to write a word, those of an entry first
        number = {word: n for n, word in enumerate(self._names)}
        self._number = torch.tensor([number[word] for word in self._words])  # [entries]
        # Outside a word list: the network can only say UNK, and its chance of that is added in the search.
        listed = len(direction.vocabulary)
        outside = (
            all(len(pieces) == 1 and pieces[0] >= listed for pieces in ways.spaced)
            for ways in self._spellings.values()
        )
        self._least = torch.tensor([cut * OUTSIDE if unlisted else cut for unlisted in outside])  # [words]

    @abstractmethod
    def shares(self, features: Features) -> Tensor:
        """theta * r: what each entry takes of the probability of its rivals. [rows, n, entries]"""

    @abstractmethod
    def rivals(self, last: Tensor, offered: Sequence[Iterable[Copy]]) -> Tensor:
        """See `Reader`."""

    @abstractmethod
    def _competes(self, pieces: Phrase, at: int, offered: Iterable[Copy]) -> bool:
        """Does what is on offer compete with what stands here?"""

    def read(self, features: Features) -> list[list[Copy]]:
        """For each row the words worth copying with theta * r."""
        return self._listed(self.shares(features)[:, 0])

    def _listed(self, shares: Tensor) -> list[list[Copy]]:
        return [list(offered.values()) for offered in self._worthwhile(shares)]

    def _totals(self, shares: Tensor) -> Tensor:
        """The probability of a word is the sum over the entries that hold it. [..., words]"""
        if len(self._least) == len(self._words):
            return shares
        return shares.new_zeros(*shares.shape[:-1], len(self._least)).index_add(-1, self._number, shares)

    def _worthwhile(self, shares: Tensor) -> list[dict[str, Copy]]:
        """The words worth copying at each of some places [places, entries]."""
        found: list[dict[str, Copy]] = [{} for _ in range(len(shares))]
        totals = self._totals(shares)
        worth = totals >= self._least
        if worth.any():  # at most steps nothing is
            row, word = torch.nonzero(worth).unbind(1)
            probable, places = totals[row, word].tolist(), row.tolist()
            listed = dict(zip(places, shares[row].tolist(), strict=True))
            for at, n, total in zip(places, word.tolist(), probable, strict=True):
                name = self._names[n]
                found[at][name] = self._copy(name, total, listed[at])
        return found

    def mix(
        self,
        direction: Direction,
        shares: Tensor,
        features: Features,
        logp: Tensor,
        sentences: Sequence[Phrase],
    ) -> Mixed:
        """See `Reader`. A remembered word has its probability in whichever of its spellings stands there."""
        worthwhile = self._worthwhile(shares.flatten(0, 1))
        contested = self._contested(direction, features, worthwhile)
        width = shares.shape[1]
        mixed: list[list[float]] = logp.tolist()  # single numbers are looked at, for which tensors are slow
        theta = [[0.0] * len(row) for row in mixed]
        copied: list[list[tuple[int, int, int]]] = []
        for row, pieces in enumerate(sentences):
            along = mixed[row]
            copied.append([])
            busy = 0  # the end of the last copied word
            for at, worth in enumerate(worthwhile[row * width :][: len(pieces) + 1]):
                if at < busy or not worth:
                    continue
                offered = self._fitting(worth, pieces[:at])
                total = min(1.0, sum(copy.probability for copy in offered.values()))
                if not total:
                    continue
                rival = self._competes(pieces, at, worth.values())
                copy, length = self._standing(offered.values(), pieces, at)
                if copy is None and not rival:
                    continue  # the memory has no say in it
                theta[row][at] = total
                rest = math.log1p(-min(total, 1 - 1e-6)) if rival else 0.0
                if copy is None:
                    along[at] += rest
                    continue
                busy = at + length
                alone = math.exp(sum(along[at:busy]) + rest)
                mine = copy.probability * contested[row * width + at]
                along[at:busy] = [math.log(max(alone + mine, LEAST)), *[0.0] * (length - 1)]
                if mine > alone:
                    copied[row].append((at, busy, copy.entry))
        return Mixed(logp.new_tensor(mixed), logp.new_tensor(theta), copied)

    def _contested(
        self, direction: Direction, features: Features, worthwhile: Sequence[Mapping[str, Copy]]
    ) -> dict[int, float]:
        """For the places where something is worth copying, by their number among all: what its rivals have
        together."""
        places = [n for n, worth in enumerate(worthwhile) if worth]
        if not places:
            return {}
        there = Features(*(x.flatten(0, 1)[places].unsqueeze(1) for x in features))
        rivals = self.rivals(there.last[:, 0], [worthwhile[n].values() for n in places])
        return dict(zip(places, together(direction.predict(there)[:, 0], rivals).tolist(), strict=True))

    def offers(self, features: Features, pieces: Phrase) -> list[tuple[Span, Copy]]:
        """Along a known sentence, in the order of the text: words that are not from the memory, and what
        would be copied in their place."""
        spans = [(word.start, word.stop) for word in self._direction.vocabulary.words(pieces)]
        places = [len(pieces) - stop if self._direction.backward else start for start, stop in spans]
        worth = [list(offered.values()) for offered in self._worthwhile(self.shares(features)[0, places])]
        taken: set[int] = set()
        for at, offered in zip(places, worth, strict=True):
            _, length = self._standing(offered, self._direction.order(pieces), at)
            taken.update(range(at, at + length))
        return [
            (span, copy._replace(spellings=self._text(copy.spellings), attached=self._text(copy.attached)))
            for span, at, offered in zip(spans, places, worth, strict=True)
            if at not in taken
            for copy in offered
        ]

    def _text(self, spellings: Sequence[Phrase]) -> tuple[Phrase, ...]:
        return tuple(map(self._direction.order, spellings))

    def r(self, shares: Tensor, written: Phrase) -> list[float]:
        """Of what may be copied behind `written` by these shares [entries]: the part of each; or all 0."""
        offered = self._fitting(self._worthwhile(shares.unsqueeze(0))[0], written)
        parts = [
            share if word in offered else 0.0
            for share, word in zip(shares.tolist(), self._words, strict=True)
        ]
        theta = sum(parts) or 1.0
        return [part / theta for part in parts]

    def _word(self, ways: Spellings) -> str:
        """What entries have in common that hold the same word, with a capital or without, if both will do."""
        text = self._direction.vocabulary.decode(self._direction.order(ways.spaced[0]))
        return text if len(ways.spaced) == 1 else text.lower()

    def _copy(self, word: str, probability: float, shares: Sequence[float]) -> Copy:
        """A word on offer; the likeliest of the entries that hold it says how it is usually spelled."""
        n = max(self._holders[word], key=shares.__getitem__)
        if n not in self._joined:
            self._joined[n] = self._ways[n].joined(self._spellings[word])
        ways = self._joined[n]
        entry = self.ids[n]
        negates = entry in self._negating
        return Copy(ways.spaced, probability, entry, self._times[word], ways.attached, negates)

    def _fitting(self, worth: Mapping[str, Copy], written: Phrase) -> dict[str, Copy]:
        """What of it may be copied behind `written`."""
        return {w: copy for w, copy in worth.items() if fitting_spellings(self._direction, copy, written)}

    def _standing(self, offered: Iterable[Copy], pieces: Phrase, at: int) -> tuple[Copy | None, int]:
        """Which of the words on offer stands here, whole, and how many pieces it takes. With a capital that
        it usually lacks it stands only where a sentence begins."""
        direction = self._direction
        # The longer one first: "Peking University" before "Peking".
        ways = sorted(
            ((copy, spelling) for copy in offered for spelling in (*copy.spellings, *copy.attached)),
            key=lambda way: -len(way[1]),
        )
        for copy, spelling in ways:
            stop = at + len(spelling)
            if pieces[at:stop] != spelling or (at and not direction.boundary(pieces[at - 1], pieces[at])):
                continue
            if stop < len(pieces) and not direction.boundary(pieces[stop - 1], pieces[stop]):
                continue
            before = direction.order(pieces[stop:]) if direction.backward else pieces[:at]
            glued = bool(copy.attached and before) and direction.vocabulary.opens(before[-1])
            if (spelling in copy.attached) != glued:
                continue
            usual = copy.attached[0] if glued else copy.spellings[0]
            # A single piece is compared with the usual spelling wherever it stands, see `spell`.
            compared = len(spelling) == 1
            added = direction.capital(spelling) and not direction.capital(usual)
            if direction.backward and copy.negates and negated(direction, before):
                continue
            if compared or not added or direction.vocabulary.begins(before):
                return copy, len(spelling)
        return None, 0


class EvidenceReader(MemoryReader):
    """By the default gate: the evidence for each entry opens it."""

    def __init__(
        self,
        direction: Direction,
        gate: Gate,
        keys: Keys,
        spellings: Sequence[Spellings],
        ids: Sequence[int],
        *,
        match: Match | None,
        cut: float,
        trust: Trust | None = None,
        negating: Collection[int] = (),
    ) -> None:
        times = match.times if match else (1,) * len(ids)
        super().__init__(direction, spellings, ids, times, cut, negating)
        self.looks = match is not None
        self._lowest = float(self._least.min())
        # One matrix product for the evidence and the gate of all entries: W_s and W_c stand beside every key.
        # A last entry with evidence 0 stands for "copy nothing".
        k = gate.evidence
        keys_s = F.normalize(keys.s, dim=1) * k[0] + gate.state
        weights = [keys_s, F.normalize(keys.c, dim=1) * k[1] + gate.context]
        offset = gate.bias.expand(len(ids))
        if match is not None:
            favour, against = trust or (torch.zeros(len(ids)), torch.zeros(len(ids)))
            weights.append(match.pieces.t() * (k[2] + favour).unsqueeze(1))
            offset = offset + gate.prior(match) - against
        self._weights = F.pad(torch.cat(weights, dim=1), (0, 0, 0, 1))  # [entries + 1, d + d_c + source]
        self._offset = F.pad(offset, (0, 1))

    def shares(self, features: Features) -> Tensor:
        return self._beside_nothing(*features[:3])[..., :-1]

    def read(self, features: Features) -> list[list[Copy]]:
        beside = self._beside_nothing(*(x[:, 0] for x in features[:3]))
        # At most steps nothing is worth copying, which the part left to the network tells at once.
        if 1.0 - min(beside[:, -1].tolist()) < self._lowest:
            return [[] for _ in range(len(beside))]
        return self._listed(beside[:, :-1])

    def _beside_nothing(self, s: Tensor, c: Tensor, attention: Tensor) -> Tensor:
        """The shares, and last what is left to the network. [..., entries + 1]"""
        parts = [x / torch.linalg.vector_norm(x, 2, -1, True) for x in (s, c)]
        if self.looks:
            parts.append(attention)
        # sigmoid(g + logsumexp e) * softmax(e), with g in every e: a softmax beside "copy nothing"
        return F.linear(torch.cat(parts, -1), self._weights, self._offset).softmax(-1)

    def rivals(self, last: Tensor, offered: Sequence[Iterable[Copy]]) -> Tensor:
        rivals = self._direction.rivals(last)
        for row, copies in enumerate(offered):
            small = self._small_rivals(copies)
            if small:
                rivals[row, list(small)] = self._direction.begins(last[row])[list(small)]
        return rivals

    def _competes(self, pieces: Phrase, at: int, offered: Iterable[Copy]) -> bool:
        return self._direction.rival_stands(pieces, at) or pieces[at] in self._small_rivals(offered)

    def _small_rivals(self, copies: Iterable[Copy]) -> frozenset[int]:
        """Small words that these compete with all the same. Who pins one, or adds it by hand, means it
        instead of others: "on" and not "about". And before "The Beatles" there is no other "the"."""
        found: frozenset[int] = frozenset()
        for copy in copies:
            first, *rest = copy.spellings[0]
            if self._direction.small(first):
                found |= self._direction.small_words(like=first if rest else None)
        return found


class PaperReader(MemoryReader):
    """As the paper has it: theta looks at no entry, and a copy competes with everything."""

    def __init__(
        self,
        direction: Direction,
        gate: PaperGate,
        keys: Keys,
        spellings: Sequence[Spellings],
        ids: Sequence[int],
        *,
        cut: float,
    ) -> None:
        super().__init__(direction, spellings, ids, (1,) * len(ids), cut)
        self._gate = gate
        self._s = (keys.s / math.sqrt(keys.s.shape[1])).t().contiguous()
        self._c = (keys.c / math.sqrt(keys.c.shape[1])).t().contiguous()

    def shares(self, features: Features) -> Tensor:
        gate, (s, c, *_) = self._gate, features
        theta = torch.sigmoid(s @ gate.state + c @ gate.context + gate.bias)
        similarity = gate.similarity[0] * (s @ self._s).abs() + gate.similarity[1] * (c @ self._c).abs()
        return theta.unsqueeze(2) * torch.softmax(similarity, dim=2)

    def rivals(self, last: Tensor, offered: Sequence[Iterable[Copy]]) -> Tensor:
        return torch.ones(len(last), 1, dtype=torch.bool, device=last.device)

    def _competes(self, pieces: Phrase, at: int, offered: Iterable[Copy]) -> bool:
        return True


class AgreedReaders(Readers):
    """Two readers with one opinion of known sentences: there a word is copied with the mean of what they
    give it.

    Where one of the decoders alone knows that a remembered word belongs here, the other one's "surely not"
    would count as much as its own words do, and the word is lost.
    """

    forward: MemoryReader
    backward: MemoryReader

    def shares(self, ahead: Features, behind: Features, sentences: Sequence[Phrase]) -> tuple[Tensor, Tensor]:
        forward, backward = super().shares(ahead, behind, sentences)
        for row, pieces in enumerate(sentences):
            words = self.forward.vocabulary.words(pieces)
            for length, entries in self._lengths.items():
                # A phrase is begun at its first word by the one, at its last by the other. At either end of a
                # sentence one of them has read nothing yet: there both keep what they think.
                spans = zip(words[1:], words[length:-1], strict=False)
                ends = [(first.start, len(pieces) - last.stop) for first, last in spans]
                begin, end = torch.tensor(ends, dtype=torch.long).view(-1, 2, 1).unbind(1)
                here, there = (row, begin, entries), (row, end, entries)
                forward[here] = backward[there] = (forward[here] + backward[there]) / 2
        # Words and phrases that begin in one place may end in several, each with a mean of its own.
        return _at_most_one(forward), _at_most_one(backward)

    @cached_property
    def _lengths(self) -> dict[int, Tensor]:
        """Which entries have how many words."""
        found: dict[int, list[int]] = {}
        for entry, word in enumerate(self.forward.words):
            found.setdefault(len(self.forward.vocabulary.words(word)), []).append(entry)
        return {length: torch.tensor(entries) for length, entries in found.items()}


def _at_most_one(shares: Tensor) -> Tensor:
    """Shares [rows, n, entries] that are no more than 1 together at any place."""
    return shares / shares.sum(2, keepdim=True).clamp(min=1.0)
