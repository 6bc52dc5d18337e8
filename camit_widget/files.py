"""Files the document can leave the widget as: names, types, and who writes them."""

from __future__ import annotations

import typing

from camit import interchange
from camit.errors import InputError
from camit_widget import protocol

_KINDS: dict[protocol.ExportFormat, tuple[str, str]] = {
    "text": ("translation.txt", "text/plain"),
    "tsv": ("translation.tsv", "text/tab-separated-values"),
    "tmx": ("translation.tmx", "application/xml"),
    "xliff": ("translation.xlf", "application/xliff+xml"),
    "html": ("translation.html", "text/html"),
}


def check(file_format: str) -> None:
    if file_format not in _KINDS:
        allowed = ", ".join(typing.get_args(protocol.ExportFormat))
        raise InputError(f"There is no export format {file_format!r}; choose one of {allowed}.")


def write(document: interchange.Document, file_format: protocol.ExportFormat) -> str:
    """The text of an exchange file."""
    assert file_format != "html", "the offline page is written by camit_widget.offline"
    return interchange.export(document, file_format)


def exported(file_format: protocol.ExportFormat, text: str) -> protocol.Exported:
    filename, mime = _KINDS[file_format]
    return protocol.Exported(filename, mime, text)
