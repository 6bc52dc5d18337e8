"""One direction of writing: a decoder together with the word-boundary rules as it meets them.

The forward decoder writes the piece to the right of the last one, the backward decoder the piece to its left; everything
else about searching is the same, so a search only ever sees a `Direction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from camit.networks import Decoder
from camit.text import UNK, Vocabulary


@dataclass(frozen=True)
class Direction:
    """A decoder, the vocabulary it writes in, and which way it goes."""

    decoder: Decoder
    vocabulary: Vocabulary
    backward: bool
    _masks: dict[tuple[bool, int], Tensor] = field(default_factory=dict, repr=False)

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

    @property
    def banned(self) -> Tensor:
        """Added to scores: minus infinity for what is never written freely, except the end of the sentence. [vocabulary]"""
        return self._cached((False, -1), lambda: ~self._banned_array())

    def starts_token(self, last: int) -> Tensor:
        """Added to scores: 0 for pieces that begin a new token next to `last`, minus infinity for the rest. [vocabulary]"""
        key = self.vocabulary.boundary_class(last, self.backward)
        return self._cached((False, key), lambda: torch.from_numpy(self._allowed(last)))

    def goes_on(self, last: int) -> Tensor:
        """The opposite of `starts_token`: only pieces that stay in the token of `last`."""
        key = self.vocabulary.boundary_class(last, self.backward)
        return self._cached((True, key), lambda: ~torch.from_numpy(self._allowed(last)))

    def feed(self, pieces: Sequence[int]) -> list[int]:
        """Pieces as the network reads them: a word it does not know is UNK."""
        return self.vocabulary.feed(pieces)

    def known(self, piece: int) -> int:
        return piece if piece < len(self.vocabulary) else UNK

    def _allowed(self, last: int) -> object:
        return (
            self.vocabulary.boundaries_before(last)
            if self.backward
            else self.vocabulary.boundaries_after(last)
        )

    def _banned_array(self) -> Tensor:
        mask = torch.from_numpy(self.vocabulary.never_generated.copy())
        mask[self.decoder.last_piece] = False
        return mask

    def _cached(self, key: tuple[bool, int], allowed: object) -> Tensor:
        if key not in self._masks:
            mask = allowed()  # type: ignore[operator]
            self._masks[key] = torch.zeros(len(mask)).masked_fill(~mask, float("-inf"))
        return self._masks[key]
