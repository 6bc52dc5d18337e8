"""Simulated users: which revisions a person with the reference in mind would make (section "Ideal and Real Interactive
Environments" of the paper).

Candidates come from the word alignment of the screen with each reference, and a user only ever tells the system
reference words. A user *proposes* edits; each proposal is really decoded, and the one whose result has the best sentence
BLEU is made. So the ideal user, who proposes all candidates, fixes the critical mistake, and the others, who propose
one, are what their names say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from sacrebleu.metrics.bleu import BLEU

from camit.errors import InputError
from camit.search.grid import Phrase
from camit.simulate.edits import Edit, Screen
from camit.text import Vocabulary, Word, detokenise

UserName = Literal["ideal", "ideal-fast", "left-to-right", "random"]
FAST_PROPOSALS = 3  # how many candidates of the cheap ranking `ideal-fast` has decoded


@dataclass(frozen=True)
class Reference:
    """A sentence the user would accept: its words as they would stand on the screen."""

    text: str
    pieces: Phrase
    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str, vocabulary: Vocabulary) -> Reference:
        pieces = tuple(vocabulary.encode(text))
        return cls(text, pieces, tuple(vocabulary.words(pieces)))


@dataclass(frozen=True)
class Judge:
    """How words and sentences are compared: exactly, or without regard to case."""

    lowercase: bool = False

    def key(self, word: str) -> str:
        return word.lower() if self.lowercase else word

    def keys(self, words: Sequence[Word]) -> tuple[str, ...]:
        return tuple(self.key(word.text) for word in words)

    def done(self, screen: Screen, references: Sequence[Reference]) -> bool:
        """Does the screen say, word for word, what one of the references says?"""
        mine = self.keys(screen.words)
        return any(mine == self.keys(reference.words) for reference in references)

    def score(self, text: str, references: Sequence[Reference]) -> float:
        """Sentence BLEU."""
        return float(_sentence_bleu(self.lowercase).sentence_score(text, [r.text for r in references]).score)


@lru_cache
def _sentence_bleu(lowercase: bool) -> BLEU:
    return BLEU(lowercase=lowercase, effective_order=True)


@dataclass(frozen=True)
class Block:
    """A stretch where screen and reference differ: words `start:stop` of the one, `first:last` of the other."""

    start: int
    stop: int
    first: int
    last: int


def blocks(mine: Sequence[str], theirs: Sequence[str]) -> list[Block]:
    """Where two sentences differ, by an alignment with the fewest word edits; equal words split blocks.

    >>> blocks(["a", "b", "c"], ["a", "x", "c", "d"])
    [Block(start=1, stop=2, first=1, last=2), Block(start=3, stop=3, first=3, last=4)]
    """
    result: list[Block] = []
    at = start = 0
    for i, j in [*_matches(mine, theirs), (len(mine), len(theirs))]:
        if i > at or j > start:
            result.append(Block(at, i, start, j))
        at, start = i + 1, j + 1
    return result


def distance(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """Word edits (replace, insert, delete) between two sentences."""
    return sum(max(b.stop - b.start, b.last - b.first) for b in blocks(mine, theirs))


def _matches(mine: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal words of a Levenshtein alignment; among the shortest, one with the most pairs."""
    n, m = len(mine), len(theirs)
    # cost[i][j]: (edits, -matches) for mine[i:] and theirs[j:]
    cost = [[(m - j, 0) for j in range(m + 1)] for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        cost[i][m] = (n - i, 0)
        for j in range(m - 1, -1, -1):
            down, across, both = cost[i + 1][j], cost[i][j + 1], cost[i + 1][j + 1]
            equal = mine[i] == theirs[j]
            diagonal = (both[0], both[1] - 1) if equal else (both[0] + 1, both[1])
            cost[i][j] = min(diagonal, (down[0] + 1, down[1]), (across[0] + 1, across[1]))
    pairs = []
    i = j = 0
    while i < n and j < m:
        here = cost[i][j]
        both = cost[i + 1][j + 1]
        if mine[i] == theirs[j] and here == (both[0], both[1] - 1):
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif mine[i] != theirs[j] and here == (both[0] + 1, both[1]):
            i, j = i + 1, j + 1
        elif here == (cost[i + 1][j][0] + 1, cost[i + 1][j][1]):
            i += 1
        else:
            j += 1
    return pairs


def candidates(screen: Screen, references: Sequence[Reference], judge: Judge) -> list[Edit]:
    """Every single edit that tells the system a reference word, from left to right, reference by reference.

    In a block with words on both sides each reference word may take the place of the screen word that faces it; where words
    are missing each of them may be inserted; words too many are deleted together. Words the user fixed earlier stay.
    """
    found: dict[tuple[int, int, Phrase], Edit] = {}
    for reference in references:
        for block in blocks(judge.keys(screen.words), judge.keys(reference.words)):
            for edit in _in_block(screen, reference, block):
                if not any(map(screen.is_fixed, range(edit.start, edit.stop))):
                    found.setdefault((edit.start, edit.stop, edit.pieces), edit)
    return list(found.values())


def _in_block(screen: Screen, reference: Reference, block: Block) -> list[Edit]:
    width, missing = block.stop - block.start, block.last - block.first
    if not missing:
        return [Edit(block.start, block.stop)]
    edits = []
    for j in range(block.first, block.last):
        word = reference.words[j]
        start = block.start + ((j - block.first) * width) // missing if width else block.start
        pieces = reference.pieces[word.start : word.stop]
        edits.append(Edit(start, start + 1 if width else start, pieces, word.text, word.space_before))
    return edits


def leftmost(edits: Sequence[Edit]) -> list[Edit]:
    """Only what fixes the first mistake, and with its first word: what a left-to-right user may do."""
    at = min((edit.start for edit in edits), default=0)
    result: list[Edit] = []
    for edit in edits:
        if edit.start == at and not any(edit.stop == other.stop for other in result):
            result.append(edit)
    return result


def applied(screen: Screen, edit: Edit) -> str:
    """The screen's text with an edit made by hand and nothing regenerated."""
    words = [(word.text, word.space_before) for word in screen.words]
    typed = [(edit.text, edit.space_before)] if edit.text else []
    return detokenise([*words[: edit.start], *typed, *words[edit.stop :]])


Proposer = Callable[[Screen, Sequence[Reference], Judge, Sequence[Edit], random.Random], list[Edit]]


def _ideal(
    screen: Screen, references: Sequence[Reference], judge: Judge, edits: Sequence[Edit], chance: random.Random
) -> list[Edit]:
    return list(edits)


def _ideal_fast(
    screen: Screen, references: Sequence[Reference], judge: Judge, edits: Sequence[Edit], chance: random.Random
) -> list[Edit]:
    """By the BLEU of the edit made by hand; of equals the longer word first, which tells the network more."""
    ranked = sorted(
        edits, key=lambda edit: (-judge.score(applied(screen, edit), references), -len(edit.text))
    )
    return ranked[:FAST_PROPOSALS]


def _left_to_right(
    screen: Screen, references: Sequence[Reference], judge: Judge, edits: Sequence[Edit], chance: random.Random
) -> list[Edit]:
    """The first wrong word, by the reference that is nearest."""
    mine = judge.keys(screen.words)
    nearest = min(references, key=lambda reference: distance(mine, judge.keys(reference.words)))
    return leftmost(candidates(screen, [nearest], judge))[:1] or list(edits[:1])


def _random(
    screen: Screen, references: Sequence[Reference], judge: Judge, edits: Sequence[Edit], chance: random.Random
) -> list[Edit]:
    return [chance.choice(list(edits))]


USERS: dict[UserName, Proposer] = {
    "ideal": _ideal,
    "ideal-fast": _ideal_fast,
    "left-to-right": _left_to_right,
    "random": _random,
}


def user(name: str) -> Proposer:
    """A simulated user by name."""
    for known in get_args(UserName):
        if name == known:
            return USERS[known]
    raise InputError(f"unknown user {name!r}; choose one of {', '.join(get_args(UserName))}.")
