"""One direction of writing: a decoder together with the word-boundary rules as it meets them.

The forward decoder writes the piece to the right of the last one, the backward decoder the piece to its
left; everything else about searching is the same, so a search only ever sees a `Direction`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from camit.networks import Decoder, Features
from camit.search.recall import Here, Recalled
from camit.text import SPACE, UNK, Vocabulary

Rule = Literal["anything", "new token", "same token", "no space", "nothing"]


@dataclass(frozen=True)
class Direction:
    """A decoder, the vocabulary it writes in, which way it goes, and what it recalls of earlier sentences."""

    decoder: Decoder
    vocabulary: Vocabulary
    backward: bool
    recall: Here | None = None
    _masks: dict[Hashable, Tensor] = field(default_factory=dict, repr=False)

    def predict(self, features: Features) -> Tensor:
        """Log-probabilities of what comes next. [..., vocabulary]"""
        logp = torch.log_softmax(self.decoder.logits(features.s), dim=-1)
        return logp if self.recall is None else self.recalled(features).mix(logp)

    def judge(self, features: Features, pieces: Tensor) -> Tensor:
        """Log-probabilities of known pieces [n] at places with these features [n, ...]."""
        logits = self.decoder.logits(features.s)
        if self.recall is None:
            return -F.cross_entropy(logits, pieces, reduction="none")
        return self.recalled(features).along(torch.log_softmax(logits, dim=-1), pieces)

    def recalled(self, features: Features) -> Recalled:
        """What is recalled at places with these features."""
        assert self.recall is not None
        place = self.decoder.compared(features.place)
        return self.recall.at(place, self.begins(features.last), features.attention)

    @property
    def looks(self) -> bool:
        """Does it ask for attention, where the decoder looks?"""
        return self.recall is not None

    def begins(self, last: Tensor) -> Tensor:
        """For pieces [...] that were read last: which would begin a new token next to them? The end of the
        sentence is one. [..., vocabulary] bool"""
        kind, begins, _ = self._neighbours
        return begins[kind[last]]

    def rivals(self, last: Tensor) -> Tensor:
        """For pieces [...] that were read last: what may come next instead of a remembered word? Another one,
        or the end; but not the rest of a word, nor a small one, which may stand before it.
        [..., vocabulary] bool"""
        kind, _, rivals = self._neighbours
        return rivals[kind[last]]

    def rival_stands(self, pieces: tuple[int, ...], at: int) -> bool:
        """The same of what is known to stand at a place, in the order of the direction; the end is one. Here
        it can be seen whether "the" is a word or the beginning of one."""
        if at == len(pieces):
            return True
        if at and not self.boundary(pieces[at - 1], pieces[at]):
            return False
        goes_on = at + 1 < len(pieces) and not self.boundary(pieces[at], pieces[at + 1])
        return goes_on or not self.small(pieces[at])

    def small(self, piece: int) -> bool:
        """Is it a small word as it stands?"""
        return bool(self.vocabulary.small[self.known(piece)])

    def small_words(self, like: int | None = None) -> frozenset[int]:
        """All small words; or one in all its spellings, "the" and "The"."""
        found = np.flatnonzero(self.vocabulary.small).tolist()
        bodies = self.vocabulary.bodies
        return frozenset(i for i in found if like is None or bodies[i].lower() == bodies[like].lower())

    @property
    def _neighbours(self) -> tuple[Tensor, Tensor, Tensor]:
        """The kind of each piece that may have been read last; by kind, what begins a token next to it and
        what is a rival there."""
        if "kind" not in self._masks:
            size, device = len(self.vocabulary), next(self.decoder.parameters()).device
            kinds = [self.vocabulary.boundary_class(i, self.backward) for i in range(size)]
            names = sorted(set(kinds))
            kind = torch.tensor([names.index(kind) for kind in kinds])
            kind[self.decoder.first_piece] = len(names)  # next to nothing everything begins
            rows = [self._boundaries(kinds.index(name)) for name in names]
            begins = torch.stack([*rows, torch.ones(size, dtype=torch.bool)])
            self._masks["rivals"] = (begins & ~torch.from_numpy(self.vocabulary.small)).to(device)
            self._masks["begins"] = begins.to(device)
            self._masks["kind"] = kind.to(device)
        return self._masks["kind"], self._masks["begins"], self._masks["rivals"]

    def order(self, pieces: Sequence[int]) -> tuple[int, ...]:
        """Pieces in the order this direction writes them; applied twice it gives them back."""
        return tuple(reversed(pieces)) if self.backward else tuple(pieces)

    def boundary(self, last: int, following: int) -> bool:
        """Does `following`, written after `last`, stand in another token?"""
        return (
            self.vocabulary.boundary(following, last)
            if self.backward
            else self.vocabulary.boundary(last, following)
        )

    def spells_on(self, last: int, following: int) -> bool:
        """Does `following` go on with the letters of `last`? Digits are none: another number may begin the
        same; nor are hyphens: "forty-" says nothing about what follows."""
        letters = (self.vocabulary.piece(i).removeprefix(SPACE) for i in (last, following))
        return not self.boundary(last, following) and all(map(str.isalpha, letters))

    def says(self, piece: int) -> bool:
        """Is there any text in this piece?"""
        return self.vocabulary.characters(piece) > 0

    def opens(self, last: int) -> bool:
        """Is a word written next attached to this piece, as behind "(" or an opening quotation mark? Backward
        nobody knows yet."""
        return not self.backward and self.vocabulary.opens(last)

    def capital(self, word: Sequence[int]) -> bool:
        """Does this word, in the order of the direction, begin with a capital?"""
        return _capital(self.vocabulary, self.order(word))

    def capitals(self, logp: Tensor) -> bool:
        """Would the network [vocabulary] rather begin a word with a capital here than with a small letter?"""

        def starts(upper: bool) -> Callable[[], Tensor]:
            letters = (self.vocabulary.piece(i).removeprefix(SPACE)[:1] for i in range(len(self.vocabulary)))
            return lambda: torch.tensor([c.isupper() if upper else c.islower() for c in letters])

        large, small = self._mask("capital", None, starts(True)), self._mask("small", None, starts(False))
        return bool(torch.logsumexp(logp + large, 0) > torch.logsumexp(logp + small, 0))

    # Masks are added to scores [vocabulary]: 0 for what may be written, minus infinity for the rest.

    @property
    def banned(self) -> Tensor:
        """Forbids what is never written freely; the end of the sentence is allowed."""
        return self.allowed("anything", None, may_end=True)

    def starts_token(self, last: int) -> Tensor:
        """Allows pieces that begin a new token next to `last`, the end of the sentence among them."""
        return self._mask(
            "new token, even what is never written freely", last, lambda: self._boundaries(last)
        )

    def goes_on(self, last: int) -> Tensor:
        """The opposite of `starts_token`: only pieces that stay in the token of `last`."""
        return self._mask(
            "same token, even what is never written freely", last, lambda: ~self._boundaries(last)
        )

    def allowed(self, rule: Rule, last: int | None, may_end: bool) -> Tensor:
        """What may be written freely next to `last`."""

        def allow() -> Tensor:
            free = ~torch.from_numpy(self.vocabulary.never_generated)
            if rule == "nothing":
                free[:] = False
            elif rule == "no space":
                free &= torch.tensor([self.vocabulary.piece(i) != SPACE for i in range(len(free))])
            elif last is not None:
                free &= self._boundaries(last) if rule == "new token" else ~self._boundaries(last)
            free[self.decoder.last_piece] = may_end
            return free

        return self._mask((rule, may_end), last, allow)

    def feed(self, pieces: Sequence[int]) -> list[int]:
        """Pieces as the network reads them: a word it does not know is UNK."""
        return self.vocabulary.feed(pieces)

    def known(self, piece: int) -> int:
        return piece if piece < len(self.vocabulary) else UNK

    def _boundaries(self, last: int) -> Tensor:
        """For each piece: does it stand in another token than `last`?"""
        vocabulary = self.vocabulary
        return torch.from_numpy(
            vocabulary.boundaries_before(last) if self.backward else vocabulary.boundaries_after(last)
        )

    def _mask(self, rule: Hashable, last: int | None, allowed: Callable[[], Tensor]) -> Tensor:
        """A mask made once for all pieces that are alike: search compares and adds masks at every step."""
        key = rule, None if last is None else self.vocabulary.boundary_class(last, self.backward)
        if key not in self._masks:
            mask = torch.zeros(len(self.vocabulary)).masked_fill(~allowed(), float("-inf"))
            self._masks[key] = mask.to(next(self.decoder.parameters()).device)
        return self._masks[key]


def together(logp: Tensor, rivals: Tensor) -> Tensor:
    """The probability that all rivals [..., vocabulary] have together. [...]"""
    return (logp.exp() * rivals).sum(-1).clamp(max=1.0)


@lru_cache(maxsize=4096)  # asked at each step for each word on offer
def _capital(vocabulary: Vocabulary, word: tuple[int, ...]) -> bool:
    return vocabulary.decode(word)[:1].isupper()
