"""Glossaries: files of terms and their translations, `source<TAB>translation`."""

from __future__ import annotations

from pathlib import Path

from camit.errors import InputError
from camit.text import normalise

Term = tuple[str, str]  # source, translation


def read_glossary(path: Path) -> dict[Term, int]:
    """The rows of a glossary, each with the number of its (last) line."""
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # splitlines() knows ten more ends of a line
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read as a glossary ({error}); give UTF-8 text, source<TAB>translation."
        ) from error
    rows: dict[Term, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or (line.startswith("#") and "\t" not in line):
            continue
        columns = line.split("\t")
        if len(columns) < 2 or not columns[0].strip() or not columns[1].strip():
            raise InputError(
                f"{path}, line {number}: need source<TAB>translation, both non-empty; got {line!r}."
            )
        rows[
            normalise(columns[0], what=f"{path}, line {number}"),
            normalise(columns[1], what=f"{path}, line {number}"),
        ] = number
    if not rows:
        raise InputError(f"{path} has no rows; a glossary has lines source<TAB>translation.")
    return rows
