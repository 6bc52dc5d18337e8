"""Corpora: `document<TAB>source<TAB>reference`, plain or gzip, read with errors that name file and line.

Adjacent lines of one document are one session (the revision memory lives on that), so their order is kept.
"""

from __future__ import annotations

import gzip
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from camit.errors import CorpusError
from camit.text import fold

LANGUAGE_SAMPLE = 2_000  # lines looked at when a corpus is checked against the languages named

# Unicode's names of letters begin with their script. Languages not listed here are not checked.
_SCRIPTS: dict[str, tuple[str, ...]] = {
    "zh": ("CJK",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL",),
    "ru": ("CYRILLIC",),
    "uk": ("CYRILLIC",),
    "bg": ("CYRILLIC",),
    "el": ("GREEK",),
    "ar": ("ARABIC",),
    "fa": ("ARABIC",),
    "he": ("HEBREW",),
    "hi": ("DEVANAGARI",),
    "th": ("THAI",),
    **dict.fromkeys(
        ["en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "cs"], ("LATIN",)
    ),
    **dict.fromkeys(
        ["sk", "hu", "ro", "tr", "vi", "id", "et", "lv", "lt", "sl", "hr", "ca", "eu"], ("LATIN",)
    ),
}


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


def read_corpus(path: Path) -> Iterator[Pair]:
    """The lines of a TSV corpus, gzip or not; raises `CorpusError` at the first line that is none."""
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; give a TSV file: document<TAB>source<TAB>reference.")
    number = 0
    try:
        with gzip.open(path, "rb") if _is_gzip(path) else path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                yield _parse(path, number, data)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path}, line {number + 1}: cannot be read ({error}); the file is damaged or cut, copy it again."
        ) from error
    if number == 0:
        raise CorpusError(
            f"{path} is empty; a corpus has at least one line document<TAB>source<TAB>reference."
        )


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


def check_languages(path: Path, pairs: Sequence[Pair], source: str, target: str) -> None:
    """Raise `CorpusError` when a column is plainly not of the language named, by its script."""
    for side, language in (("source", source), ("reference", target)):
        scripts = _SCRIPTS.get(language)
        if scripts is None:
            continue
        foreign: list[Pair] = []
        sample = pairs[:LANGUAGE_SAMPLE]
        for pair in sample:
            letters = [c for c in fold(pair.source if side == "source" else pair.target) if c.isalpha()]
            if letters and not any(unicodedata.name(c, "").startswith(scripts) for c in letters):
                foreign.append(pair)
        if len(foreign) * 2 > len(sample):
            pair = foreign[0]
            text = pair.source if side == "source" else pair.target
            raise CorpusError(
                f"{path}, line {pair.line}: the {side} column is not {language!r} ({text[:40]!r}), and so in "
                f"{len(foreign)} of {len(sample)} lines; are the columns or --source and --target swapped?"
            )
