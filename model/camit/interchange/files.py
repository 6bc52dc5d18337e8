"""From a file, a text or a session to a document, and back: which format, and who reads and writes it."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from camit.checkpoint import write_atomically
from camit.errors import DocumentError, InputError
from camit.interchange import plain, tmx, xliff, xml
from camit.interchange.document import Document, Sentence, where
from camit.session import Session
from camit.session.draft import Draft
from camit.text import normalise

Format = Literal["text", "tsv", "tmx", "xliff", "xliff2"]
FORMATS: tuple[Format, ...] = get_args(Format)
MAX_BYTES = 100_000_000
_SUFFIXES: dict[str, Format] = {
    ".txt": "text",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
}
_XML_BEGINS = re.compile(rb"<(\?xml|!DOCTYPE|!--|(\w+:)?(tmx|xliff)\b)", re.IGNORECASE)
Exportable = Session | Document | Iterable[Draft | Sentence]


def read_document(
    path_or_text: str | os.PathLike[str],
    *,
    format: Format | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> Document:
    """Read a document from a file, or from text that is one already.

    A `Path` is a file; so is a string of one line that names an existing file or ends like one (.txt, .tsv,
    .tmx, .xlf, .xliff, each also with .gz). The format follows from the name and the content unless it is
    given. The languages choose among those of a TMX file.

    >>> [sentence.source for sentence in read_document("他来了。她走了。").sentences]
    ['他来了。', '她走了。']
    """
    if format is not None:
        _check_format(format)
    if isinstance(path_or_text, str) and not _names_a_file(path_or_text):
        text = path_or_text.removeprefix("\ufeff")
        return _read(text, "", format, source_language, target_language)
    try:
        path = Path(path_or_text)
    except TypeError:
        raise InputError(f"give a path or a text, not {type(path_or_text).__name__}.") from None
    data = _contents(path)
    text = xml.decode(data, str(path)) if _looks_like_xml(data) else _decoded(data, str(path))
    document = _read(text, str(path), format or _by_suffix(path), source_language, target_language)
    return replace(document, name=_stem(path))


def export(
    what: Exportable,
    format: Format,
    *,
    sentences: Literal["all", "confirmed"] = "all",
    name: str = "",
    source_language: str | None = None,
    target_language: str | None = None,
) -> str:
    """Sentences as the text of a file, to be stored as UTF-8 (`write` does both).

    `what` is a session, a document, or drafts or sentences. `name` is the document they belong to where
    they do not say themselves. TMX and XLIFF need both languages; a session or a document that was read
    knows them.

    >>> export([Sentence("你好。", "Hello.")], "tsv", name="letter")
    'letter\\t你好。\\tHello.\\n'
    """
    _check_format(format)
    if sentences not in ("all", "confirmed"):
        raise InputError(f"sentences must be 'all' or 'confirmed', not {sentences!r}.")
    document = _document(what, name)
    if sentences == "confirmed":
        document = replace(document, sentences=tuple(s for s in document.sentences if s.confirmed))
    source = source_language or document.source_language
    target = target_language or document.target_language
    if format == "text":
        return plain.write_text(document)
    if format == "tsv":
        return plain.write_tsv(document)
    if not source or not target:
        raise InputError(
            f"{format} names its languages; say which: export(..., {format!r}, source_language='zh', "
            "target_language='en')."
        )
    writers = {"tmx": tmx.write_tmx, "xliff": xliff.write_xliff_1, "xliff2": xliff.write_xliff_2}
    return writers[format](document, source, target)


def fill(document: Document, work: Session | Iterable[Draft]) -> Document:
    """A document with the translations of a session: its wording, ids and order as they were read.

    A session folds what it reads (full-width commas become plain ones, for example), so a file that goes
    back to where it came from is filled in rather than written from the session.

    >>> job = read_document("job.xliff")  # doctest: +SKIP
    >>> write(fill(job, session), "job.xliff")  # doctest: +SKIP
    """
    waiting: dict[str, list[Draft]] = {}
    drafts = work.drafts if isinstance(work, Session) else tuple(work)
    for draft in drafts:
        waiting.setdefault(draft.source, []).append(draft)
    sentences = []
    for sentence in document.sentences:
        same = waiting.get(normalise(sentence.source))
        if not same:
            sentences.append(sentence)
            continue
        # Sentences that occur twice are filled in order; the last draft stands for all that are left.
        found = same.pop(0) if len(same) > 1 else same[0]
        sentences.append(replace(sentence, target=found.text, confirmed=found.confirmed))
    source, target = drafts[0].languages if drafts else (None, None)
    return replace(
        document,
        sentences=tuple(sentences),
        source_language=document.source_language or source,
        target_language=document.target_language or target,
    )


def write(
    what: Exportable,
    path: str | os.PathLike[str],
    *,
    format: Format | None = None,
    sentences: Literal["all", "confirmed"] = "all",
    source_language: str | None = None,
    target_language: str | None = None,
) -> Path:
    """Store sentences in a file; the format follows from its name. The document is called as the file.

    >>> write(session, "scene.tmx")  # doctest: +SKIP
    """
    path = Path(path)
    chosen = format or _by_suffix(path)
    if chosen is None:
        raise InputError(
            f"{path.name!r} does not say its format; end it with {', '.join(_SUFFIXES)}, or give format=... "
            "(a web page is written by widget.to_html)."
        )
    text = export(
        what,
        chosen,
        sentences=sentences,
        name=_stem(path),
        source_language=source_language,
        target_language=target_language,
    )
    data = text.encode("utf-8", "replace" if chosen in ("text", "tsv") else "strict")
    try:
        write_atomically(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise DocumentError(f"{path} cannot be written: {error.strerror or error}.") from error
    return path


def _document(what: object, name: str) -> Document:
    if isinstance(what, Document):
        return replace(what, name=name or what.name)
    if isinstance(what, Session):
        translator = what.translator
        return Document(
            tuple(map(_sentence, what.drafts)), translator.source_language, translator.target_language, name
        )
    if not isinstance(what, Iterable) or isinstance(what, str | bytes):
        raise InputError(f"give a session, a document or drafts to export, not {type(what).__name__}.")
    items = list(what)
    source, target = next((item.languages for item in items if isinstance(item, Draft)), (None, None))
    return Document(tuple(map(_sentence, items)), source, target, name)


def _sentence(item: object) -> Sentence:
    if isinstance(item, Sentence):
        return item
    if isinstance(item, Draft):
        return Sentence(item.source, item.text, id=str(item.id + 1), confirmed=item.confirmed)
    raise InputError(f"{type(item).__name__} is neither a draft nor a sentence; it cannot be exported.")


def _check_format(format: object) -> None:
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}.")


def _names_a_file(text: str) -> bool:
    if not text or "\n" in text or "\0" in text or len(text) > 1000:
        return False
    try:
        return _by_suffix(Path(text)) is not None or Path(text).is_file()
    except (OSError, ValueError):
        return False


def _by_suffix(path: Path) -> Format | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _stem(path: Path) -> str:
    return path.name.split(".")[0] or path.name


def _contents(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            data: bytes = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DocumentError(f"there is no file {path}; check the name and the folder.") from None
    except IsADirectoryError:
        raise DocumentError(f"{path} is a folder; name a file in it.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DocumentError(f"{path} is damaged gzip ({error}); copy it again.") from error
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > MAX_BYTES:
        raise DocumentError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB; split it first.")
    return data


def _decoded(data: bytes, name: str) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(
            f"{name}, line {line}: not UTF-8; save it as UTF-8 (for example: iconv -f GB18030 -t UTF-8)."
        ) from error


def _looks_like_xml(data: bytes) -> bool:
    start = data[:200].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return _XML_BEGINS.match(start) is not None


def _read(text: str, name: str, known: Format | None, source: str | None, target: str | None) -> Document:
    if known == "text":
        return plain.read_text(text, name)
    if known == "tsv":
        return plain.read_tsv(text, name)
    if known is None and not _looks_like_xml(text[:200].encode("utf-8", "replace")):
        rows = [line for line in plain.lines(text) if line.strip()]
        return (plain.read_tsv if rows and all("\t" in row for row in rows) else plain.read_text)(text, name)
    root = xml.parse(text, name)
    if root.name == "tmx":
        return tmx.read_tmx(root, name, source, target)
    if root.name == "xliff":
        return xliff.read_xliff(root, name)
    raise DocumentError(
        f"{where(name, root.line)}: the outermost element is <{root.name}>; "
        "TMX begins with <tmx>, XLIFF with <xliff>."
    )
