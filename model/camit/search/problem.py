"""What a search is asked, what it hands back, and the hypotheses in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torch import Tensor

from camit.networks import Features

if TYPE_CHECKING:  # it imports this module
    from camit.search.direction import Direction

Phrase = tuple[int, ...]
Span = tuple[int, int]  # start and stop of a slice, of pieces or of words
LEAST = 1e-30  # of probability, so that it has a logarithm


@dataclass(frozen=True)
class Problem:
    """One sentence to write on, in the order of its direction.

    `anchored`: nothing may follow the last phrase. `once`: phrases that must not be written freely a second
    time. `limit`: how many pieces may be written freely behind the prefix. `open_end`: the last token of the
    prefix may grow. `expected`: log-probability each phrase piece is likely to have where it belongs; it lets
    banks be compared (see `_fewer`).
    """

    sentence: int  # row of the start state
    limit: int
    prefix: Phrase = ()
    phrases: tuple[Phrase, ...] = ()
    anchored: bool = False
    once: tuple[Phrase, ...] = ()
    open_end: bool = False
    expected: tuple[float, ...] | None = None

    @property
    def outlook(self) -> list[float] | None:
        """For each bank the log-probability to be expected of the phrase pieces it still lacks."""
        if self.expected is None:
            return None
        return list(accumulate(reversed(self.expected), initial=0.0))[::-1]


class Written(NamedTuple):
    """A finished hypothesis: its pieces behind the prefix, and where each phrase begins among them."""

    pieces: Phrase
    starts: tuple[int, ...]
    score: float  # log-probability of the pieces and the end, per piece
    logp: float  # of the whole sentence: prefix, pieces and end
    # False where the memory offered a word. A long one may be written with and without its help, and a short
    # one may turn out the beginning of another word: only reading the sentence tells what it is worth.
    exact: bool


class Copy(NamedTuple):
    """A word from memory, offered at one step: theta * r, and the entry it comes from.

    `spellings`: the ways to write it, with a capital or without, the usual one first; `attached`: the same
    without a space, for behind an opening mark. `times`: how often the word may stand in the sentence, in any
    of them, before it is offered no more. `negates`: it says a negation, too, as "disagree" does for 不同意.
    """

    spellings: tuple[Phrase, ...]
    probability: float
    entry: int
    times: int = 1
    attached: tuple[Phrase, ...] = ()
    negates: bool = False


class Spelled(NamedTuple):
    """A word from memory as it would be written at one place."""

    pieces: Phrase
    probability: float


class Mixed(NamedTuple):
    """Known sentences as network and memory together see them."""

    logp: Tensor  # [rows, pieces + 1]
    theta: Tensor  # [rows, pieces + 1]
    copied: list[list[tuple[int, int, int]]]  # for each row the words from memory: start, stop, entry id


class Reader(Protocol):
    """What a revision memory does during a search: P_j = (1 - theta_j) P_j + theta_j r_j of the paper, among
    the `rivals` of a remembered word; their share of the probability is what it may take."""

    @property
    def looks(self) -> bool:
        """Does it ask for attention, where the decoder looks?"""

    def read(self, features: Features) -> list[list[Copy]]:
        """For each row the words worth copying with theta * r."""

    def rivals(self, last: Tensor, offered: Sequence[Iterable[Copy]]) -> Tensor:
        """What the words on offer compete with, behind the piece that was read last in each row.
        [rows, vocabulary] bool; or [rows, 1] for everything"""

    def offers(self, features: Features, pieces: Phrase) -> list[tuple[Span, Copy]]:
        """The words of a known sentence, in the order of the text, and what would be copied in their place;
        `features`: one row."""

    def shares(self, features: Features) -> Tensor:
        """theta * r: what each entry takes of the probability of its rivals. [rows, n, entries]"""

    def mix(
        self,
        direction: Direction,
        shares: Tensor,
        features: Features,
        logp: Tensor,
        sentences: Sequence[Phrase],
    ) -> Mixed:
        """P_j along known sentences (in the order of the direction), for rescoring and for showing. The
        direction is that of the source: with what is recalled."""


@dataclass(frozen=True)
class Readers:
    """The revision memory as the two decoders read it."""

    forward: Reader
    backward: Reader

    def shares(self, ahead: Features, behind: Features, sentences: Sequence[Phrase]) -> tuple[Tensor, Tensor]:
        """The shares of both readers along known sentences, which both decoders have read."""
        return self.forward.shares(ahead), self.backward.shares(behind)


@dataclass(slots=True)
class Hypothesis:
    pieces: Phrase = ()
    score: float = 0.0
    phrase: int = 0  # the next phrase to place, or the one that is open
    covered: int = 0  # phrase pieces placed so far: the bank
    forced: Phrase = ()  # what must come next: the rest of an open phrase or of a copied word
    closed: bool = False  # the next piece must begin a new token
    starts: tuple[int, ...] = ()
    scored: int = 0  # how many pieces count in the score: those behind the prefix
    copying: bool = False  # what is forced is the rest of a copied word
    exact: bool = True  # no word was offered by the memory so far
