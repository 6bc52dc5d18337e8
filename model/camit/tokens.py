"""What stands on the screen: target tokens with everything worth showing about them, and source tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Origin = Literal["draft", "kept", "changed", "yours"]


@dataclass(frozen=True)
class Token:
    """A word or punctuation mark of a translation.

    `copied_from` is the memory entry it was copied from, `theta` the copy weight of the revision memory (the
    mean of both decoders) where the token begins, or the copied phrase that it belongs to. `recalled` is the
    part of its probability that comes from confirmed sentences (the revision memory apart), the mean of both
    decoders; where that is the larger part, `recalled_from` is the draft of the one that says most of it.
    """

    text: str
    space_before: bool
    probability: float
    attention: tuple[float, ...]  # over the source tokens
    theta: float = 0.0
    copied_from: int | None = None
    recalled: float = 0.0
    recalled_from: int | None = None
    origin: Origin = "draft"
    locked: bool = False  # the next revision may not change it


@dataclass(frozen=True)
class SourceToken:
    """A word or punctuation mark of the source."""

    text: str
    space_before: bool
