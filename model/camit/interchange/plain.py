"""Plain text and TSV.

TSV has the columns of a corpus, `document<TAB>source<TAB>translation`, so an exported session can be
simulated or trained on as it is. There is no quoting: a sentence never holds a tab or a line break
(`one_line` sees to that).
"""

from __future__ import annotations

import re

from camit.errors import DocumentError
from camit.interchange.document import Document, Sentence, nothing_in, one_line, where

_LINES = re.compile(r"\r\n|\r|\n")
_END = re.compile(r"[。！？!?.]+([”’」』》）)\"'\]]*)")
_OPENING = "“‘「『《（(\"'"
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|vs|etc|e\.g|i\.e|cf|al)\.$", re.IGNORECASE
)
_HEADERS = (("document", "source", "target"), ("source", "target"), ("document", "source", "reference"))


def lines(text: str) -> list[str]:
    """Lines as editors count them: other separators that Python knows stand inside sentences."""
    found = _LINES.split(text)
    return found[:-1] if found[-1] == "" else found


def split_sentences(text: str) -> list[str]:
    """Prose cut into sentences; a line break always ends one.

    >>> split_sentences("他来了。“你好！”她说。Mr. Li left. It was 3.5 km.")
    ['他来了。', '“你好！”她说。', 'Mr. Li left.', 'It was 3.5 km.']
    """
    found: list[str] = []
    for line in lines(text):
        begin = 0
        for match in _END.finditer(line):
            if _ends_sentence(line, begin, match):
                found.append(one_line(line[begin : match.end()]))
                begin = match.end()
        found.append(one_line(line[begin:]))
    return [sentence for sentence in found if sentence]


def _ends_sentence(line: str, begin: int, match: re.Match[str]) -> bool:
    rest = line[match.end() :]
    if not rest:
        return True
    chinese = any(mark in match[0] for mark in "。！？")
    if chinese:
        # 「你好！」她说。 goes on after the quotation; a new quotation or a space begins something new.
        return not match[1] or rest[0] in _OPENING or rest[0].isspace()
    if not rest[0].isspace():
        return False
    following = rest.lstrip()[:1]
    if match[0].startswith(".") and _ABBREVIATION.search(line[begin : match.end()]):
        return False
    return not following.islower()


def read_text(text: str, name: str) -> Document:
    """Sentences of prose."""
    sentences = tuple(Sentence(sentence) for sentence in split_sentences(text))
    if not sentences:
        raise nothing_in(name, "sentences")
    return Document(sentences)


def read_tsv(text: str, name: str) -> Document:
    """Rows of source, translation; or of document, source, translation (more references are left aside)."""
    sentences: list[Sentence] = []
    columns = 0
    for number, line in enumerate(lines(text), start=1):
        fields = [one_line(item) for item in line.split("\t")]
        if not any(fields) or (number == 1 and tuple(item.lower() for item in fields) in _HEADERS):
            continue
        if len(fields) < 2:
            raise DocumentError(
                f"{where(name, number)}: one column; write source<TAB>translation or "
                "document<TAB>source<TAB>translation. The translation may be empty, its tab not missing."
            )
        if columns and len(fields) != columns:
            raise DocumentError(
                f"{where(name, number)}: {len(fields)} columns, but the rows before have {columns}."
            )
        columns = len(fields)
        document, source, target = ("", *fields) if columns == 2 else fields[:3]
        if not source:
            raise DocumentError(
                f"{where(name, number)}: the source is empty; delete the row or fill in a sentence."
            )
        sentences.append(Sentence(source, target or None, document))
    if not sentences:
        raise nothing_in(name, "rows")
    return Document(tuple(sentences))


def write_text(document: Document) -> str:
    """Translations, a line each; a sentence without one leaves its line empty."""
    return "".join(f"{sentence.target or ''}\n" for sentence in document.sentences)


def write_tsv(document: Document) -> str:
    return "".join(
        f"{sentence.document or document.name}\t{sentence.source}\t{sentence.target or ''}\n"
        for sentence in document.sentences
    )
