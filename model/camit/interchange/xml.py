"""Reading XML that strangers wrote, and writing XML that strict tools accept.

Expat, from the standard library, does the parsing. Entity declarations are refused as soon as they are met,
so neither exponential expansion nor the reading of other files can begin; depth is bounded. Every element
knows its line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from camit.errors import DocumentError
from camit.interchange.document import where

MAX_DEPTH = 100
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Everything outside XML 1.0's Char production: most control characters, lone surrogates, two non-characters.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Element:
    """A parsed element; `name` is the local name, attributes of the xml namespace keep the prefix xml:."""

    name: str
    namespace: str
    attributes: Mapping[str, str]
    line: int
    content: list[str | Element] = field(default_factory=list)

    def children(self, *names: str) -> Iterator[Element]:
        """Child elements, of these names if any are given."""
        for item in self.content:
            if isinstance(item, Element) and (not names or item.name in names):
                yield item

    def child(self, name: str) -> Element | None:
        return next(self.children(name), None)

    def descendants(self, name: str) -> Iterator[Element]:
        """Elements of this name below this one, in reading order."""
        for item in self.children():
            if item.name == name:
                yield item
            yield from item.descendants(name)

    def text(self, code: Callable[[Element], str | None]) -> str:
        """The running text; `code` says what an inline element stands for, None meaning its own text."""
        parts = []
        for item in self.content:
            if isinstance(item, str):
                parts.append(item)
            else:
                stands_for = code(item)
                parts.append(item.text(code) if stands_for is None else stands_for)
        return "".join(parts)


def decode(data: bytes, name: str) -> str:
    """The text of an XML file: by byte-order mark, else as it declares itself, else UTF-8."""
    encoding = next((encoding for bom, encoding in _BOMS if data.startswith(bom)), None)
    if encoding is None:
        declared = _DECLARED.match(data)
        encoding = declared[1].decode("ascii") if declared else "utf-8"
    try:
        return data.decode(encoding)
    except LookupError:
        raise DocumentError(
            f"{where(name, 1)}: the encoding {encoding!r} is not known; save it as UTF-8."
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(
            f"{where(name, line)}: not {encoding} as the file says; save it as UTF-8."
        ) from error


def parse(text: str, name: str) -> Element:
    """The root element; `DocumentError` names file and line of what is wrong or not allowed."""
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.ordered_attributes = False
    roots: list[Element] = []
    open_elements: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open_elements) == MAX_DEPTH:
            raise _refused(name, parser, f"elements are nested more than {MAX_DEPTH} deep")
        namespace, local = _split(tag)
        named = {_attribute(key): value for key, value in attributes.items()}
        element = Element(local, namespace, named, parser.CurrentLineNumber)
        if open_elements:
            open_elements[-1].content.append(element)
        else:
            roots.append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        open_elements.pop()

    def characters(data: str) -> None:
        open_elements[-1].content.append(data)

    def entity(*declaration: object) -> None:
        raise _refused(name, parser, f"it declares the entity {declaration[0]!r}")

    def skipped(entity_name: str, is_parameter_entity: bool) -> None:
        raise DocumentError(
            f"{where(name, parser.CurrentLineNumber)}: the entity &{entity_name}; is declared nowhere; "
            "write the character itself."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = entity
    parser.SkippedEntityHandler = skipped
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DocumentError(
            f"{where(name, error.lineno)}, column {error.offset + 1}: this is not well-formed XML "
            f"({expat.ErrorString(error.code)})."
        ) from None
    return roots[0]


def forbidden_as(markup: Callable[[int], str], text: str) -> str:
    """Escaped text in which `markup` stands for every character that XML cannot hold."""
    parts = []
    at = 0
    for match in _FORBIDDEN.finditer(text):
        parts += [escape(text[at : match.start()]), markup(ord(match[0]))]
        at = match.end()
    return "".join([*parts, escape(text[at:])])


def allowed(text: str) -> str:
    """Text for an attribute or a note: what XML cannot hold becomes the replacement character."""
    return _FORBIDDEN.sub("\ufffd", text)


def tag(name: str, attributes: Mapping[str, str | None] | None = None) -> str:
    """What stands between < and > of a start tag; attributes that are None are left out."""
    given = {key: value for key, value in (attributes or {}).items() if value is not None}
    return " ".join([name, *(f"{key}={quoteattr(allowed(value))}" for key, value in given.items())])


def character(hexadecimal: str) -> str:
    """The character that a code point in hexadecimal stands for; nothing when it is none."""
    try:
        return chr(int(hexadecimal.strip(), 16))
    except (ValueError, OverflowError):
        return ""


def _refused(name: str, parser: expat.XMLParserType, what: str) -> DocumentError:
    return DocumentError(
        f"{where(name, parser.CurrentLineNumber)}: refused, because {what}. "
        "Documents made by translation tools do not need that; if you trust the file, take it out."
    )


def _split(tag: str) -> tuple[str, str]:
    namespace, _, local = tag.rpartition(" ")
    return namespace, local


def _attribute(key: str) -> str:
    namespace, local = _split(key)
    return f"xml:{local}" if namespace == XML_NAMESPACE else local
