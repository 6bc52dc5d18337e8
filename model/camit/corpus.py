"""Corpora: `document<TAB>source<TAB>reference[<TAB>reference...]`, plain or gzip; errors name file and line.

The one reader of this format, for training, evaluation and simulation alike. Adjacent lines of one document
are one session (the revision memory lives on that), so their order is kept.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from camit.errors import CorpusError, InputError

# A corpus with more lines than this that begin with a small letter was lower-cased in part, and is scored
# without case.
LOWERCASE_SHARE = 0.2


@dataclass(frozen=True)
class Pair:
    """One line of a corpus."""

    line: int
    document: str
    source: str
    references: tuple[str, ...]

    @property
    def target(self) -> str:
        """What training aims at: the first reference."""
        return self.references[0]


def read_corpus(path: Path, limit: int | None = None) -> Iterator[Pair]:
    """The (first `limit`) lines of a TSV corpus, gzip or not; `CorpusError` at the first that is none."""
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit!r}; leave it out to read the whole corpus.")
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; give a TSV file: document<TAB>source<TAB>reference.")
    number = 0
    try:
        with gzip.open(path, "rb") if _is_gzip(path) else path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                yield _parse(path, number, data)
                if number == limit:
                    return
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path}, line {number + 1}: cannot be read ({error}); the file is damaged or cut, copy it again."
        ) from error
    if number == 0:
        raise CorpusError(
            f"{path} is empty; a corpus has at least one line document<TAB>source<TAB>reference."
        )


def documents(lines: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Adjacent lines of one document together, in order."""
    for _, group in groupby(lines, key=lambda line: line.document):
        yield list(group)


def looks_lowercased(lines: Sequence[Pair]) -> bool:
    """Do many references begin with a small letter?"""
    firsts = [reference[0] for line in lines for reference in line.references if reference[0].isalpha()]
    small = sum(first.islower() for first in firsts)
    return bool(firsts) and small > LOWERCASE_SHARE * len(firsts)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _parse(path: Path, number: int, data: bytes) -> Pair:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}, line {number}: byte {error.start + 1} is not UTF-8; "
            "save the file as UTF-8 (for example: iconv -f GB18030 -t UTF-8)."
        ) from None
    text = text.rstrip("\r\n")
    if "\r" in text:
        raise CorpusError(
            f"{path}, line {number}: there is a carriage return in the line; end lines with a line feed "
            "(for example: tr '\\r' '\\n')."
        )
    if number == 1:
        text = text.removeprefix("\ufeff")
    if not text.strip():
        raise CorpusError(
            f"{path}, line {number}: the line is empty; delete it (document borders need none)."
        )
    fields = text.split("\t")
    if len(fields) < 3:
        raise CorpusError(
            f"{path}, line {number}: {len(fields)} column(s) where at least 3 belong: "
            "document<TAB>source<TAB>reference. Are the separators tabs?"
        )
    document, source, *references = (field.strip() for field in fields)
    if not source or not references[0]:
        side = "source" if not source else "reference"
        raise CorpusError(f"{path}, line {number}: the {side} column is empty; delete the line or fill it.")
    return Pair(number, document, source, tuple(reference for reference in references if reference))
