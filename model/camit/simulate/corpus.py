"""Corpora to simulate on: the trainer's TSV format, with at least one reference on every line.

Adjacent lines of one document are one session, as in the paper, so the order of lines is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

from camit.errors import CorpusError, InputError
from camit.text import normalise
from camit.training.corpus import Pair, read_corpus

# A corpus with more lines than this that begin with a small letter was lower-cased in part, and is scored
# without case.
LOWERCASE_SHARE = 0.2


def read_lines(path: Path | str, limit: int | None = None) -> list[Pair]:
    """The lines of a corpus; `CorpusError` names the first one that cannot be used.

    >>> read_lines("dev.tsv", limit=2)[0].references  # doctest: +SKIP
    ('okay, this is it.',)
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit!r}; leave it out to read the whole corpus.")
    pairs: list[Pair] = []
    for pair in islice(read_corpus(Path(path)), limit):
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
    return pairs


def documents(lines: Sequence[Pair]) -> list[list[Pair]]:
    """Adjacent lines of one document together, in order."""
    return [list(group) for _, group in groupby(lines, key=lambda line: line.document)]


def looks_lowercased(lines: Sequence[Pair]) -> bool:
    """Do many references begin with a small letter?"""
    firsts = [reference[0] for line in lines for reference in line.references if reference[0].isalpha()]
    small = sum(first.islower() for first in firsts)
    return bool(firsts) and small > LOWERCASE_SHARE * len(firsts)
