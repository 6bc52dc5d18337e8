"""TMX 1.4b, the exchange format of translation memories (LISA OSCAR, 2005).

A unit holds the same sentence in several languages; two are read and two are written. Inline elements hold
codes of other formats: those that enclose text keep it, those that are code are left out. TMX has no way to
write a character that XML forbids; it is written as a `ph` code of our own type and read back from it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import metadata
from xml.sax.saxutils import escape

from camit.errors import DocumentError
from camit.interchange.document import Document, Sentence, nothing_in, one_line, where
from camit.interchange.languages import matching
from camit.interchange.xml import Element, allowed, character, forbidden_as, tag

CHARACTER = "x-camit-character"  # type of the code that stands for a character XML forbids
_CODES = ("bpt", "ept", "it", "ph", "ut")


def read_tmx(root: Element, name: str, source: str | None, target: str | None) -> Document:
    header, body = root.child("header"), root.child("body")
    if body is None:
        raise DocumentError(f"{where(name, root.line)}: a TMX file needs a <body> with <tu> units.")
    declared = (header.attributes.get("srclang") if header else None) or "*all*"
    source_language = source or (None if declared.lower() == "*all*" else declared)
    target_language = target
    sentences: list[Sentence] = []
    for unit in body.children("tu"):
        variants = _variants(unit, name)
        wanted = source_language or unit.attributes.get("srclang") or next(iter(variants))
        chosen = matching(wanted, variants)
        if chosen is None:
            raise DocumentError(
                f"{where(name, unit.line)}: this unit has {', '.join(variants)}, but the source language is "
                f"{wanted!r}; say which one to read with source_language=..."
            )
        others = [language for language in variants if language != chosen]
        other = matching(target_language, others) if target_language else next(iter(others), None)
        source_language, target_language = source_language or chosen, target_language or other
        text = variants[chosen]
        if not one_line(text):
            continue
        properties = {item.attributes.get("type", ""): item.text(_code) for item in unit.children("prop")}
        sentences.append(
            Sentence(
                text,
                variants[other] if other else None,
                properties.get("x-document", ""),
                unit.attributes.get("tuid", ""),
                properties.get("x-status") == "confirmed",
            )
        )
    if not sentences:
        raise nothing_in(name, "<tu> units with text")
    return Document(tuple(sentences), source_language, target_language)


def _variants(unit: Element, name: str) -> dict[str, str]:
    variants: dict[str, str] = {}
    for variant in unit.children("tuv"):
        # TMX before 1.4 wrote lang without the prefix.
        language = variant.attributes.get("xml:lang") or variant.attributes.get("lang")
        segment = variant.child("seg")
        if not language or segment is None:
            missing = "a <seg>" if language else "xml:lang"
            raise DocumentError(f"{where(name, variant.line)}: this <tuv> has no {missing}.")
        variants.setdefault(language, segment.text(_code))
    if not variants:
        raise DocumentError(f"{where(name, unit.line)}: this <tu> has no <tuv>, so no sentence.")
    return variants


def _code(element: Element) -> str | None:
    if element.name == "ph" and element.attributes.get("type") == CHARACTER:
        return character(element.text(lambda _: ""))
    return "" if element.name in _CODES else None


def write_tmx(document: Document, source: str, target: str) -> str:
    """A memory of all sentences that have a translation."""
    header = {
        "creationtool": "camit",
        "creationtoolversion": metadata.version("camit-widget"),
        "segtype": "sentence",
        "o-tmf": "camit",
        "adminlang": "en",
        "srclang": source,
        "datatype": "plaintext",
        "creationdate": datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"),
    }
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd">',
        '<tmx version="1.4">',
        f"  <{tag('header', header)}/>",
        "  <body>",
    ]
    for sentence in document.sentences:
        if sentence.target is None:
            continue
        parts.append(f"    <{tag('tu', {'tuid': sentence.id or None})}>")
        if origin := sentence.document or document.name:
            parts.append(f'      <prop type="x-document">{escape(allowed(origin))}</prop>')
        status = "confirmed" if sentence.confirmed else "draft"
        parts.append(f'      <prop type="x-status">{status}</prop>')
        for language, text in ((source, sentence.source), (target, sentence.target)):
            parts.append(f"      <{tag('tuv', {'xml:lang': language})}><seg>{_segment(text)}</seg></tuv>")
        parts.append("    </tu>")
    return "\n".join([*parts, "  </body>", "</tmx>", ""])


def _segment(text: str) -> str:
    return forbidden_as(lambda code: f'<ph type="{CHARACTER}">{code:04X}</ph>', text)
