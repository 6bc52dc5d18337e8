"""What a hypothesis may write next: word boundaries, no fix twice, no copy twice, no loops, and a limit of
length."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, islice, takewhile

from torch import Tensor

from camit.search.direction import Direction
from camit.search.problem import Copy, Hypothesis, Phrase, Problem
from camit.text import SPACE, UNK, negates, says_something

WORD_LIMIT = 12  # pieces a word begun at the length limit may still take
# "No, no, no" is said; what a network says more often than that in a row, it goes on saying. Such loops were
# 5 of 400 drafts of long sentences from talks.
IN_A_ROW = 3
LONGEST_LOOP = 10  # pieces
NEGATED = 4  # words before one among which a negation counts


def may_begin(direction: Direction, problem: Problem, hypothesis: Hypothesis, phrase: Phrase) -> bool:
    """May these pieces, a token of their own or several, come next?"""
    pieces = hypothesis.pieces
    if pieces and not direction.boundary(pieces[-1], phrase[0]):
        return False
    return not _doubled(direction, problem, hypothesis)


def may_copy(
    direction: Direction, problem: Problem, hypothesis: Hypothesis, copy: Copy
) -> tuple[Phrase, ...]:
    """The spellings of a remembered word that may come next."""
    if hypothesis.forced or not {*copy.spellings, *copy.attached}.isdisjoint(problem.once):
        return ()
    if _doubled(direction, problem, hypothesis):
        return ()
    # What a phrase will bring is as good as written.
    return fitting_spellings(direction, copy, hypothesis.pieces, problem.phrases[hypothesis.phrase :])


def fitting_spellings(
    direction: Direction, copy: Copy, written: Phrase, coming: tuple[Phrase, ...] = ()
) -> tuple[Phrase, ...]:
    """On a word boundary, not behind itself or its own beginning, and not more often than the source says it:
    or a strong memory would repeat itself."""
    if copy.negates and not direction.backward and negated(direction, written):
        return ()
    known = (*copy.spellings, *copy.attached)
    # Asked very often, and nearly always none of its pieces stands anywhere.
    mine = _pieces(known)
    if not mine.isdisjoint(written[-1:]):
        begun = (spelling[:n] for spelling in known for n in range(1, len(spelling) + 1))
        if any(_ends_with(direction, written, part) for part in begun if part[-1] == written[-1]):
            return ()
    said = [pieces for pieces in (written, *coming) if not mine.isdisjoint(pieces)]
    if sum(occurrences(direction, pieces, known) for pieces in said) >= copy.times:
        return ()
    glued = bool(copy.attached and written) and direction.opens(written[-1])
    return tuple(
        spelling
        for spelling in (copy.attached if glued else copy.spellings)
        if not written or direction.boundary(written[-1], spelling[0])
    )


def negated(direction: Direction, pieces: Phrase) -> bool:
    """Does a text end with a negation, so that "disagree" behind it would say the opposite?"""
    vocabulary = direction.vocabulary
    words = (word.text for word in reversed(vocabulary.words(pieces)))
    last = islice(takewhile(says_something, words), NEGATED)  # "No, I" negates nothing that follows
    return any(negates(word, vocabulary.language) for word in last)


@lru_cache(maxsize=4096)
def _pieces(spellings: tuple[Phrase, ...]) -> frozenset[int]:
    return frozenset(chain.from_iterable(spellings))


def _ends_with(direction: Direction, pieces: Phrase, part: Phrase) -> bool:
    before = len(pieces) - len(part)
    return pieces[-len(part) :] == part and (before == 0 or direction.boundary(pieces[before - 1], part[0]))


def occurrences(direction: Direction, pieces: Phrase, spellings: tuple[Phrase, ...]) -> int:
    """How often a word stands in a sequence of pieces, however it is spelled: "fish", but not "goldfish"."""
    ends = {
        end
        for spelling in spellings
        if spelling[-1] in pieces
        for end in range(len(spelling), len(pieces) + 1)
        if pieces[end - len(spelling) : end] == spelling
        and _ends_with(direction, pieces[:end], spelling)
        and (end == len(pieces) or direction.boundary(pieces[end - 1], pieces[end]))
    }
    return len(ends)


def looping(direction: Direction, pieces: Phrase) -> set[int]:
    """What must not come next, or the last words would stand there once too often in a row.

    Digits, marks and single letters may: 8888, "!!!!", YYYY. What a vocabulary lacks is another word each
    time.
    """
    found = set()
    for n in range(1, LONGEST_LOOP + 1):
        tail = pieces[1 - n * (IN_A_ROW + 1) :]
        if len(tail) < n * (IN_A_ROW + 1) - 1:
            break
        if tail[n:] == tail[:-n] and _wordy(direction, tail[-n:]):
            found.add(tail[-n])
    return found


def said_anew(direction: Direction, written: Phrase, offers: Iterable[Copy]) -> set[int]:
    """What must not come next, or a remembered word that was just written would be said by the network, too:
    "hive hives"."""
    found = set()
    for copy in offers:
        for way in filter(None, (*copy.spellings, *copy.attached)):
            *begun, last = way
            before = written[: len(written) - len(begun)]
            again = written[len(before) :] == tuple(begun) and _ends_with(direction, before, way)
            if again and direction.known(last) == last:
                found.add(last)
    return found


def _wordy(direction: Direction, unit: Phrase) -> bool:
    """Is it words that are repeated here, and not the parts of a number, a line of marks or "Yyyyy"?"""
    if any(direction.known(piece) == UNK for piece in unit) or (len(unit) > 1 and len(set(unit)) == 1):
        return False
    said = "".join(map(direction.vocabulary.piece, unit))
    spaced = SPACE in said or not any(map(str.isdigit, said))
    return spaced and len(said) > 1 and any(map(str.isalpha, said))


def room(direction: Direction, problem: Problem, hypothesis: Hypothesis) -> bool:
    """May anything still be written freely?"""
    complete = hypothesis.phrase == len(problem.phrases)
    if complete and problem.anchored:
        return False
    free = hypothesis.scored - hypothesis.covered
    if complete or not hypothesis.pieces or free < problem.limit:
        return free < problem.limit
    # A word begun at the limit may be finished, or the next phrase could never start.
    return free < problem.limit + WORD_LIMIT and not direction.boundary(
        hypothesis.pieces[-1], problem.phrases[hypothesis.phrase][0]
    )


def free_pieces(direction: Direction, problem: Problem, hypothesis: Hypothesis) -> Tensor:
    """What a hypothesis may write freely: 0 or minus infinity for each piece."""
    pieces = hypothesis.pieces
    # An empty sentence is no translation: the end needs something before it, and not only space marks.
    doubled = _doubled(direction, problem, hypothesis)
    may_end = any(map(direction.says, pieces)) and hypothesis.phrase == len(problem.phrases) and not doubled
    if not room(direction, problem, hypothesis):  # only the phrases that are still due, and then the end
        return direction.allowed("nothing", None, may_end)
    if hypothesis.closed and pieces:
        return direction.allowed("new token", pieces[-1], may_end)
    if direction.backward and not pieces:  # no space behind the last word, and never spaces alone
        return direction.allowed("no space", None, may_end=False)
    lone_space = bool(pieces) and not direction.backward and not direction.says(pieces[-1])
    if lone_space or doubled:
        return direction.allowed("same token", pieces[-1], may_end=False)
    return direction.allowed("anything", None, may_end)


def _doubled(direction: Direction, problem: Problem, hypothesis: Hypothesis) -> bool:
    """Has the hypothesis just written, freely, a phrase that must stand only once?

    It may have begun in the prefix, if that has an open end.
    """
    if hypothesis.closed or not hypothesis.scored:
        return False
    pieces = hypothesis.pieces
    for phrase in problem.once:
        n = len(phrase)
        if pieces[-n:] == phrase and (len(pieces) == n or direction.boundary(pieces[-n - 1], pieces[-n])):
            return True
    return False
