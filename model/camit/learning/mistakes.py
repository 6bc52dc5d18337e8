"""What the machine had written and a person did not confirm; lessons that led to such words unlearn them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile

from camit.search.problem import Phrase, Span
from camit.text import UNK, Vocabulary


def mistakes(vocabulary: Vocabulary, drafted: Phrase, confirmed: Phrase) -> list[Span]:
    """The words of a draft, as slices of its pieces, that the confirmed sentence lacks. One that only moved,
    or got a capital, is none; nor is an unknown word, for that says nothing."""
    words = vocabulary.words(drafted)
    shown = [word.text.lower() for word in words]
    wanted = [word.text.lower() for word in vocabulary.words(confirmed)]
    blocks = SequenceMatcher(None, shown, wanted, autojunk=False).get_matching_blocks()
    kept = {n for block in blocks for n in range(block.a, block.a + block.size)}
    moved = Counter(wanted) - Counter(shown[n] for n in kept)
    found = []
    for n, word in enumerate(words):
        if n in kept or UNK in vocabulary.feed(drafted[word.start : word.stop]):
            continue
        if moved[shown[n]] > 0:
            moved[shown[n]] -= 1
        else:
            found.append((word.start, word.stop))
    return found


def departures(drafted: Phrase, confirmed: Phrase, wrong: Sequence[Span]) -> list[int]:
    """Where somebody who writes a draft from its first piece to its last goes wrong: the first piece of each
    wrong word that the confirmed sentence does not have there, too. "I'm" goes wrong behind its I where "I
    am" was confirmed, "hives" behind its "hive" where that was."""
    same = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(drafted, confirmed, strict=False)))
    blocks = SequenceMatcher(None, drafted, confirmed, autojunk=False).get_matching_blocks()
    shared = {*range(same), *(n for block in blocks for n in range(block.a, block.a + block.size))}
    first = (next((n for n in range(start, stop) if n not in shared), None) for start, stop in wrong)
    return [place for place in first if place is not None]
