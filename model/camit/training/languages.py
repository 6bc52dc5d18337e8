"""Is a corpus of the languages it is said to be of? Told by script, so that swapped columns are found."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from camit.corpus import Pair
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


def check_languages(path: Path, pairs: Sequence[Pair], source: str, target: str) -> None:
    """Raise `CorpusError` when a column is plainly not of the language named, by its script."""
    for side, language in (("source", source), ("reference", target)):
        scripts = _SCRIPTS.get(language)
        if scripts is None:
            continue
        foreign: dict[int, str] = {}  # by line
        sample = pairs[:LANGUAGE_SAMPLE]
        for pair in sample:
            for text in (pair.source,) if side == "source" else pair.references:
                letters = [c for c in fold(text) if c.isalpha()]
                if letters and not any(unicodedata.name(c, "").startswith(scripts) for c in letters):
                    foreign.setdefault(pair.line, text)
        if len(foreign) * 2 > len(sample):
            line, text = next(iter(foreign.items()))
            raise CorpusError(
                f"{path}, line {line}: the {side} column is not {language!r} ({text[:40]!r}), and so in "
                f"{len(foreign)} of {len(sample)} lines; are the columns swapped, or the languages others?"
            )
