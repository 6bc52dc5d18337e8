"""Corpora with references: `document<TAB>source<TAB>reference[<TAB>reference...]`, gzip or not.

Adjacent lines of one document are one session, as in the paper, so the order of lines is kept.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from camit.errors import CorpusError, InputError
from camit.text import normalise


@dataclass(frozen=True)
class Line:
    """One sentence to translate, with what a person would accept."""

    number: int  # line of the file, from 1
    document: str
    source: str
    references: tuple[str, ...]


def read_corpus(path: Path | str, limit: int | None = None) -> list[Line]:
    """The lines of a corpus; `CorpusError` names the first line that is wrong.

    >>> read_corpus("dev.tsv", limit=2)[0].references  # doctest: +SKIP
    ('okay, this is it.',)
    """
    path = Path(path)
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit!r}; leave it out to read the whole corpus.")
    lines: list[Line] = []
    columns = 0
    for number, text in enumerate(_texts(path), start=1):
        line = _line(path, number, text)
        if columns and len(line.references) + 2 != columns:
            raise CorpusError(
                f"{path}, line {number}: {len(line.references) + 2} columns, but the lines before it have {columns}. "
                "Give every line the same number of references."
            )
        columns = len(line.references) + 2
        lines.append(line)
        if len(lines) == limit:
            break
    if not lines:
        raise CorpusError(f"{path} is empty; a corpus needs lines of document<TAB>source<TAB>reference.")
    return lines


def documents(lines: Sequence[Line]) -> list[list[Line]]:
    """Adjacent lines of one document together, in order."""
    return [list(group) for _, group in groupby(lines, key=lambda line: line.document)]


def _texts(path: Path) -> Iterator[str]:
    number = 0
    try:
        zipped = path.open("rb").read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except FileNotFoundError:
        raise CorpusError(f"there is no corpus {path}; check the path.") from None
    except IsADirectoryError:
        raise CorpusError(f"{path} is a directory; name a TSV file in it.") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}, line {number}: not UTF-8 ({error.reason}). Convert the file first.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"{path}, after line {number}: damaged gzip ({error}). Copy the file again.") from error
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}.") from error


def _line(path: Path, number: int, text: str) -> Line:
    where = f"{path}, line {number}"
    fields = text.split("\t")
    if len(fields) < 3:
        missing = "the reference is missing" if len(fields) == 2 else "source and reference are missing"
        raise CorpusError(
            f"{where}: {len(fields)} column{'s' * (len(fields) > 1)}, {missing}; "
            "write document<TAB>source<TAB>reference[<TAB>reference...]."
        )
    try:
        source = normalise(fields[1], what="the source")
        references = tuple(
            normalise(field, what=f"reference {n}") for n, field in enumerate(fields[2:], start=1)
        )
    except InputError as error:
        raise CorpusError(f"{where}: {error}") from None
    return Line(number, fields[0], source, references)
