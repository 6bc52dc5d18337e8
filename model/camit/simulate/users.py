"""Simulated users: which revisions a person with the reference in mind would make (section "Ideal and Real
Interactive Environments" of the paper).

Candidates come from the word alignment of the screen with each reference, and a user only ever tells the
system reference words. A user *proposes* edits; each proposal is really decoded, and the one whose result
has the best sentence BLEU is made. So the ideal user, who proposes all candidates, fixes the critical
mistake, and the others, who propose one, are what their names say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal, get_args

from sacrebleu.metrics.bleu import BLEU

from camit.errors import InputError
from camit.session.plan import Version
from camit.simulate.screen import Edit, by_hand, words
from camit.text import Vocabulary, bleu_tokenizer, detokenise

UserName = Literal["ideal", "ideal-fast", "left-to-right", "random"]
FAST_PROPOSALS = 3  # how many candidates of the cheap ranking `ideal-fast` has decoded


@dataclass(frozen=True)
class Reference:
    """A sentence the user would accept: its words as they would stand on the screen."""

    text: str
    words: tuple[str, ...]
    spaces: tuple[bool, ...]  # before each of them

    @classmethod
    def of(cls, text: str, vocabulary: Vocabulary) -> Reference:
        found = vocabulary.words(vocabulary.encode(text))
        return cls(text, tuple(w.text for w in found), tuple(w.space_before for w in found))

    def between(self, first: int, last: int) -> str:
        """Words `first:last` as they are written."""
        return detokenise(zip(self.words[first:last], self.spaces[first:last], strict=True))


@dataclass(frozen=True)
class Judge:
    """How words and sentences are compared: exactly, or without regard to case; as the target language is
    written."""

    lowercase: bool = False
    language: str = "en"

    def keys(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(word.lower() for word in texts) if self.lowercase else tuple(texts)

    def accepts(self, texts: Sequence[str], references: Sequence[Reference]) -> bool:
        """Do these words say, one by one, what one of the references says?"""
        mine = self.keys(texts)
        return any(mine == self.keys(reference.words) for reference in references)

    def nearest(self, texts: Sequence[str], references: Sequence[Reference]) -> Reference:
        """The reference with the fewest word edits, the first of several."""
        mine = self.keys(texts)
        return min(references, key=lambda reference: distance(mine, self.keys(reference.words)))

    def score(self, text: str, references: Sequence[Reference]) -> float:
        """Sentence BLEU."""
        metric = _sentence_bleu(self)
        return float(metric.sentence_score(text, [reference.text for reference in references]).score)

    def bleu(self, *, sentence: bool = False) -> BLEU:
        """sacrebleu's metric, for a corpus or for one sentence."""
        return BLEU(
            lowercase=self.lowercase, tokenize=bleu_tokenizer(self.language), effective_order=sentence
        )


@lru_cache
def _sentence_bleu(judge: Judge) -> BLEU:
    return judge.bleu(sentence=True)


@dataclass(frozen=True)
class Block:
    """Where screen and reference differ: words `start:stop` of the one, `first:last` of the other."""

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
    for i, j in [*matches(mine, theirs), (len(mine), len(theirs))]:
        if i > at or j > start:
            result.append(Block(at, i, start, j))
        at, start = i + 1, j + 1
    return result


def distance(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """Word edits (replace, insert, delete) between two sentences."""
    return sum(max(b.stop - b.start, b.last - b.first) for b in blocks(mine, theirs))


def matches(mine: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of places with equal words, by a Levenshtein alignment; of the shortest, one with most pairs."""
    n, m = len(mine), len(theirs)
    # cost[i][j]: edits and minus matches for mine[i:] and theirs[j:]
    cost = [[(m - j, 0) for j in range(m + 1)] for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        cost[i][m] = (n - i, 0)
        for j in range(m - 1, -1, -1):
            cost[i][j] = min(step for step, _ in _steps(cost, mine, theirs, i, j))
    pairs = []
    i = j = 0
    while i < n and j < m:
        _, (down, across) = min(_steps(cost, mine, theirs, i, j), key=lambda step: step[0])
        if down and across and mine[i] == theirs[j]:
            pairs.append((i, j))
        i, j = i + down, j + across
    return pairs


def _steps(
    cost: list[list[tuple[int, int]]], mine: Sequence[str], theirs: Sequence[str], i: int, j: int
) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """What each way on from (i, j) costs, and where it leads."""
    both, down, across = cost[i + 1][j + 1], cost[i + 1][j], cost[i][j + 1]
    equal = mine[i] == theirs[j]
    return (
        ((both[0] + (not equal), both[1] - equal), (1, 1)),
        ((down[0] + 1, down[1]), (1, 0)),
        ((across[0] + 1, across[1]), (0, 1)),
    )


def candidates(screen: Version, references: Sequence[Reference], judge: Judge) -> list[Edit]:
    """Every single edit that tells the system a reference word, reference by reference, from left to right.

    In a block with words on both sides each reference word may take the place of the screen word that faces
    it. Where words are missing each of them may be inserted; where several are, one may also take the place
    of the word behind the gap, as the paper has it, and the system writes the rest. Words too many are
    deleted together. What the user fixed earlier stays: another word near by gives way, or none. Only when
    nothing else is wrong do they take back a fix of their own that came to stand in the wrong place.

    Of several references the user has those in mind that say all they told so far, in this order.
    """
    found: dict[Edit, None] = {}
    mine = judge.keys(words(screen))
    locked = [token.locked for token in screen.tokens]
    for fixed in (locked, [False] * len(locked)):
        for reference in _in_mind(screen, references, judge):
            for block in blocks(mine, judge.keys(reference.words)):
                found.update(dict.fromkeys(_in_block(reference, block, fixed)))
        if found:
            break
    return list(found)


def _in_mind(screen: Version, references: Sequence[Reference], judge: Judge) -> Sequence[Reference]:
    """The references that have all words told so far, in order; if none has, the nearest one."""
    told = judge.keys([token.text for token in screen.tokens if token.locked])

    def says_all(reference: Reference) -> bool:
        said = iter(judge.keys(reference.words))
        return all(word in said for word in told)

    return [r for r in references if says_all(r)] or [judge.nearest(words(screen), references)]


def _in_block(reference: Reference, block: Block, fixed: Sequence[bool]) -> list[Edit]:
    told = reference.words[block.first : block.last]
    free = [at for at in range(block.start, block.stop) if not fixed[at]]
    if not told:
        return [Edit(start, stop) for start, stop in _runs(free)]
    if free:
        width = block.stop - block.start
        faced = [block.start + n * width // len(told) for n in range(len(told))]
        places = [min(free, key=lambda at: abs(at - facing)) for facing in faced]
        return [Edit(at, at + 1, word) for at, word in zip(places, told, strict=True)]
    gaps = sorted({block.start, block.stop})  # on either side of words that are all fixed
    edits = [Edit(gap, gap, word) for gap in gaps for word in told]
    if len(told) > 1 and len(gaps) == 1 and block.start < len(fixed) and not fixed[block.start]:
        edits += [Edit(block.start, block.start + 1, word) for word in told]
    return edits


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours together: [2, 3, 5] is 2 to 4 and 5 to 6."""
    grouped = groupby(enumerate(places), key=lambda pair: pair[1] - pair[0])
    return [(run[0][1], run[-1][1] + 1) for run in (list(group) for _, group in grouped)]


def leftmost(screen: Version, references: Sequence[Reference], judge: Judge) -> list[Edit]:
    """Only what tells the first word of the first mistake: all a user may do where the left never changes.

    Each reference has its own first mistake.
    """
    found: dict[Edit, None] = {}
    for reference in _in_mind(screen, references, judge):
        edits = candidates(screen, [reference], judge)
        found.update(
            {edit: None for edit in edits if (edit.start, edit.text) == (edits[0].start, edits[0].text)}
        )
    return list(found)


@dataclass(frozen=True)
class Situation:
    """What a user sees and knows when it is their turn."""

    screen: Version
    references: tuple[Reference, ...]
    judge: Judge
    edits: tuple[Edit, ...]  # what the protocol lets them do
    chance: random.Random


Proposer = Callable[[Situation], Sequence[Edit]]


def _ideal(now: Situation) -> Sequence[Edit]:
    return now.edits


def _ideal_fast(now: Situation) -> Sequence[Edit]:
    """By the BLEU of the edit made by hand; of equals the longer word first, which tells the network more."""

    def rank(edit: Edit) -> tuple[float, int]:
        return -now.judge.score(by_hand(now.screen, edit), now.references), -len(edit.text)

    return sorted(now.edits, key=rank)[:FAST_PROPOSALS]


def _left_to_right(now: Situation) -> Sequence[Edit]:
    """The first wrong word, by the reference that is nearest."""
    nearest = now.judge.nearest(words(now.screen), _in_mind(now.screen, now.references, now.judge))
    return (leftmost(now.screen, [nearest], now.judge) or now.edits)[:1]


def _random(now: Situation) -> Sequence[Edit]:
    return [now.chance.choice(now.edits)]


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
