"""A stand-in for the person at the keyboard, so that these notebooks run by themselves."""

from __future__ import annotations

from difflib import SequenceMatcher

import camit

AT_ONCE = 4  # words the person types at once; of a longer stretch only the longest word
PATIENCE = 8  # fixes of one sentence, after which a whole stretch is typed, however long


def revise(draft: camit.Draft, wanted: str, vocabulary: camit.text.Vocabulary) -> list[str]:
    """Fix a draft until it says what is wanted: the worst place, a look at what came of it, the next place.

    Returns what was typed, a text for each fix; an empty one is a deletion.
    """
    typed = []
    words = vocabulary.words(vocabulary.encode(wanted))
    while (mine := [token.text for token in draft.tokens]) != [word.text for word in words]:
        start, stop, first, last = _worst(mine, [word.text for word in words])
        if last - first > AT_ONCE and len(typed) < PATIENCE:
            longest = max(range(first, last), key=lambda n: len(words[n].text))
            if stop > start:  # over the word that faces it
                start += (longest - first) * (stop - start) // (last - first)
                stop = start + 1
            first, last = longest, longest + 1
        if len(typed) >= 4 * PATIENCE:
            raise RuntimeError(f"no way from {draft.text!r} to {wanted!r}")
        text = "".join(" " * word.space_before + word.text for word in words[first:last]).strip()
        if not text:
            draft.delete((start, stop))
        elif start == stop:
            draft.insert(start, text)
        else:
            draft.replace((start, stop), text)
        typed.append(text)
    return typed


def _worst(mine: list[str], theirs: list[str]) -> tuple[int, int, int, int]:
    """The longest stretch of words that differ: its place in the one and in the other."""
    changes = SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
    stretches = [places for kind, *places in changes if kind != "equal"]
    start, stop, first, last = max(stretches, key=lambda p: max(p[1] - p[0], p[3] - p[2]))
    return start, stop, first, last


def looking_at(draft: camit.Draft, source_word: str) -> int:
    """The token of a draft that attends most to a word of its source."""
    begin = draft.source.index(source_word)
    end, at, columns = begin + len(source_word), 0, []
    for column, token in enumerate(draft.source_tokens):
        at = draft.source.index(token.text, at)
        if at < end and begin < at + len(token.text):
            columns.append(column)
        at += len(token.text)
    return max(range(len(draft.tokens)), key=lambda n: sum(draft.tokens[n].attention[c] for c in columns))
