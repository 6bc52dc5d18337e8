"""What every format is read into and written from: sentences, in order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from camit.errors import DocumentError, InputError

_BREAKS = re.compile(r"[ \t\r\n]+")


def one_line(text: str) -> str:
    """A sentence as all formats keep it: on one line, single spaces, nothing else touched.

    >>> one_line(" He\\n  came. ")
    'He came.'
    """
    return _BREAKS.sub(" ", text).strip(" ")


@dataclass(frozen=True)
class Sentence:
    """A source sentence, its translation if there is one, and where it belongs."""

    source: str
    target: str | None = None
    document: str = ""
    id: str = ""
    confirmed: bool = False  # a person has accepted the translation

    def __post_init__(self) -> None:
        for name in ("source", "target", "document", "id"):
            value = getattr(self, name)
            if value is None and name == "target":
                continue
            if not isinstance(value, str):
                raise InputError(f"the {name} of a sentence must be a string, not {type(value).__name__}.")
            object.__setattr__(self, name, one_line(value))
        if not self.source:
            raise InputError("a sentence needs a source; this one is empty.")
        if not self.target:
            object.__setattr__(self, "target", None)
            object.__setattr__(self, "confirmed", False)


@dataclass(frozen=True)
class Document:
    """Sentences in reading order, with the languages a file declares (None where it declares none).

    >>> Document((Sentence("你好。", "Hello."),)).pairs
    (('你好。', 'Hello.'),)
    """

    sentences: tuple[Sentence, ...]
    source_language: str | None = None
    target_language: str | None = None
    name: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """What a widget or a session is to translate."""
        return tuple(sentence.source for sentence in self.sentences)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Sentences that have a translation, with it."""
        return tuple((s.source, s.target) for s in self.sentences if s.target is not None)

    def __len__(self) -> int:
        return len(self.sentences)


def where(name: str, line: int | None = None) -> str:
    """The beginning of an error message: file and line; a text that is no file has no name."""
    return f"{name or 'the text'}, line {line}" if line else name or "the text"


def nothing_in(name: str, what: str) -> DocumentError:
    return DocumentError(f"{where(name)} has no {what}; there is nothing to translate in it.")
