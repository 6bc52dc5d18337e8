"""Corpora to simulate on: every line has the same number of references, all of them sentences.

Adjacent lines of one document are one session, as in the paper, so the order of lines is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from camit.corpus import Pair, read_corpus
from camit.errors import CorpusError, InputError
from camit.text import normalise

MOST = 10**12  # lines: beyond that is a slip of the pen
# Up to the first letter of a sentence: behind a full stop, but not behind "..."
_START = re.compile(r"(?:^|(?<!\.)[.?!][^\w\s]?\s)\W*\w")


def read_lines(path: Path | str, limit: int | None = None, skip: int = 0) -> list[Pair]:
    """The lines of a corpus, `limit` of them after the first `skip`; `CorpusError` names the first one that
    cannot be used.

    >>> read_lines("dev.tsv", limit=2)[0].references  # doctest: +SKIP
    ('okay, this is it.',)
    """
    if not 0 <= skip < MOST or (limit is not None and not 1 <= limit < MOST):
        raise InputError(
            f"limit must be at least 1, skip at least 0, both below {MOST:,}; not {limit!r} and {skip!r}."
        )
    pairs: list[Pair] = []
    for pair in islice(read_corpus(Path(path)), skip, None if limit is None else skip + limit):
        where = f"{path}, line {pair.line}"
        if pairs and len(pair.references) != len(pairs[0].references):
            raise CorpusError(
                f"{where}: {len(pair.references)} reference(s), but line {pairs[0].line} has "
                f"{len(pairs[0].references)}. Give every line the same number of columns, none of them empty."
            )
        try:
            source = normalise(pair.source, what="the source")
            references = tuple(
                normalise(text, what=f"reference {n}") for n, text in enumerate(pair.references, start=1)
            )
        except InputError as error:
            raise CorpusError(f"{where}: {error}") from None
        pairs.append(replace(pair, source=source, references=references))
    if not pairs:
        raise InputError(f"{path} has no line after the first {skip:,}; skip fewer.")
    return pairs


def with_capitals(lines: Sequence[Pair]) -> list[Pair]:
    """Capitals where sentences begin, for references that lost theirs.

    Case is not scored there, but the references are what the user types and confirms. Nobody confirms "what?"
    for "What?", and a model that learned from it would mostly learn to begin with small letters.

    >>> with_capitals([Pair(1, "a", "你好。什么?", ("hello. what?",))])[0].references
    ('Hello. What?',)
    """
    return [replace(line, references=tuple(map(_with_capitals, line.references))) for line in lines]


def _with_capitals(text: str) -> str:
    return _START.sub(lambda start: start[0][:-1] + start[0][-1].upper(), text)
