"""XLIFF 1.2 and 2.x, the exchange formats of translation jobs (OASIS).

Version 1.2 is what nearly every tool reads; 2.0 has an element of its own (`cp`) for characters that XML
forbids, 1.2 gets a `ph` code of our type. Inline elements that enclose text keep it, those that are code
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from camit.errors import DocumentError
from camit.interchange.document import Document, Sentence, nothing_in, one_line, where
from camit.interchange.xml import Element, character, forbidden_as, tag

CHARACTER = "x-camit-character"
_CODES = ("bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec", "sm", "em")
_ACCEPTED = ("final", "signed-off", "reviewed")


def read_xliff(root: Element, name: str) -> Document:
    version = root.attributes.get("version", "")
    if version.startswith("1."):
        sentences = [sentence for file in root.children("file") for sentence in _file_1(file, name)]
        first = root.child("file")
        languages = (
            (first.attributes.get("source-language"), first.attributes.get("target-language"))
            if first
            else (None, None)
        )
    elif version.startswith("2."):
        sentences = [sentence for file in root.children("file") for sentence in _file_2(file, name)]
        languages = (root.attributes.get("srcLang"), root.attributes.get("trgLang"))
    else:
        raise DocumentError(
            f"{where(name, root.line)}: XLIFF version {version or 'not given'!r}; 1.x and 2.x can be read."
        )
    if not sentences:
        raise nothing_in(name, "translation units with text")
    return Document(tuple(sentences), *languages)


def _file_1(file: Element, name: str) -> Iterator[Sentence]:
    """Units of an XLIFF 1.2 file; a unit that was segmented gives one sentence per segment."""
    for unit in file.descendants("trans-unit"):
        source, target = unit.child("source"), unit.child("target")
        if source is None:
            raise DocumentError(f"{where(name, unit.line)}: this <trans-unit> has no <source>.")
        segmented = unit.child("seg-source")
        pieces = _marked(segmented) if segmented else {}
        translated = _marked(target) if target and pieces else {}
        identifier = unit.attributes.get("id", "")
        if not pieces:
            pieces = {"": source}
            translated = {"": target} if target else {}
        confirmed = unit.attributes.get("approved") == "yes" or (
            target is not None and target.attributes.get("state") in _ACCEPTED
        )
        for mark, piece in pieces.items():
            yield from _sentence(
                piece,
                translated.get(mark),
                file.attributes.get("original", ""),
                f"{identifier}.{mark}" if mark else identifier,
                confirmed,
            )


def _marked(element: Element) -> dict[str, Element]:
    """Segments inside a unit: <mrk mtype="seg" mid="...">."""
    return {
        mark.attributes.get("mid", ""): mark
        for mark in element.descendants("mrk")
        if mark.attributes.get("mtype") == "seg"
    }


def _file_2(file: Element, name: str) -> Iterator[Sentence]:
    for unit in file.descendants("unit"):
        segments = list(unit.children("segment"))
        if not segments:
            raise DocumentError(f"{where(name, unit.line)}: this <unit> has no <segment>.")
        for number, segment in enumerate(segments, start=1):
            source = segment.child("source")
            if source is None:
                raise DocumentError(f"{where(name, segment.line)}: this <segment> has no <source>.")
            identifier = unit.attributes.get("name") or unit.attributes.get("id", "")
            yield from _sentence(
                source,
                segment.child("target"),
                file.attributes.get("original", ""),
                identifier if len(segments) == 1 else f"{identifier}.{number}",
                segment.attributes.get("state") in _ACCEPTED,
            )


def _sentence(
    source: Element, target: Element | None, document: str, identifier: str, confirmed: bool
) -> Iterator[Sentence]:
    text = source.text(_code)
    if one_line(text):
        yield Sentence(text, target.text(_code) if target else None, document, identifier, confirmed)


def _code(element: Element) -> str | None:
    if element.name == "cp":
        return character(element.attributes.get("hex", ""))
    if element.name == "ph" and element.attributes.get("ctype") == CHARACTER:
        return character(element.text(lambda _: ""))
    return "" if element.name in _CODES else None


def write_xliff_1(document: Document, source: str, target: str) -> str:
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">',
    ]
    for original, sentences in _files(document):
        about = {
            "original": original,
            "source-language": source,
            "target-language": target,
            "datatype": "plaintext",
        }
        parts += [f"  <{tag('file', about)}>", "    <body>"]
        ids = [sentence.id for sentence in sentences]
        if not all(ids) or len(set(ids)) < len(ids):  # they have to be unique in a file
            ids = [str(number) for number in range(1, len(ids) + 1)]
        for identifier, sentence in zip(ids, sentences, strict=True):
            unit = {"id": identifier, "approved": "yes" if sentence.confirmed else None}
            parts.append(f"      <{tag('trans-unit', unit)}>")
            parts.append(f"        <source>{_content_1(sentence.source)}</source>")
            if sentence.target is not None:
                state = "final" if sentence.confirmed else "needs-review-translation"
                parts.append(f'        <target state="{state}">{_content_1(sentence.target)}</target>')
            parts.append("      </trans-unit>")
        parts += ["    </body>", "  </file>"]
    return "\n".join([*parts, "</xliff>", ""])


def write_xliff_2(document: Document, source: str, target: str) -> str:
    about = {
        "version": "2.0",
        "xmlns": "urn:oasis:names:tc:xliff:document:2.0",
        "srcLang": source,
        "trgLang": target,
    }
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', f"<{tag('xliff', about)}>"]
    number = 0
    for file, (original, sentences) in enumerate(_files(document), start=1):
        parts.append(f"  <{tag('file', {'id': f'f{file}', 'original': original})}>")
        for sentence in sentences:
            number += 1
            state = "initial" if sentence.target is None else "final" if sentence.confirmed else "translated"
            parts.append(f"    <{tag('unit', {'id': f'u{number}', 'name': sentence.id or None})}>")
            parts.append(f'      <segment state="{state}">')
            parts.append(f"        <source>{_content_2(sentence.source)}</source>")
            if sentence.target is not None:
                parts.append(f"        <target>{_content_2(sentence.target)}</target>")
            parts += ["      </segment>", "    </unit>"]
        parts.append("  </file>")
    return "\n".join([*parts, "</xliff>", ""])


def _files(document: Document) -> list[tuple[str, list[Sentence]]]:
    """Adjacent sentences of one document are one <file>."""
    grouped = groupby(
        document.sentences, key=lambda sentence: sentence.document or document.name or "document"
    )
    return [(original, list(sentences)) for original, sentences in grouped]


def _content_1(text: str) -> str:
    number = 0

    def code(point: int) -> str:
        nonlocal number
        number += 1
        return f'<ph id="{number}" ctype="{CHARACTER}">{point:04X}</ph>'

    return forbidden_as(code, text)


def _content_2(text: str) -> str:
    return forbidden_as(lambda point: f'<cp hex="{point:04X}"/>', text)
