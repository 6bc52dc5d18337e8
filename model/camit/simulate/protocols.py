"""The protocols the paper compares, and two it leaves out: `replace-only`, the control that regenerates
nothing, and `unidirectional-free`, unidirectional decoding whose user may start anywhere.

A protocol is a way to search plus a rule about where the user may put a fix.
"""

from __future__ import annotations

from dataclasses import dataclass

from camit.errors import InputError
from camit.search.revise import Protocol as SearchProtocol


@dataclass(frozen=True)
class Protocol:
    """`leftmost`: nothing left of a fix ever changes, so the user has to fix the first mistake."""

    name: str
    search: SearchProtocol
    leftmost: bool
    label: str  # for tables
    paper: str  # the paper's name for it


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("replace-only", "replace-only", False, "replace only", ""),
        Protocol("unidirectional", "unidirectional", True, "unidirectional", "UniDiR"),
        Protocol("unidirectional-free", "unidirectional", False, "unidirectional, free position", ""),
        Protocol("unidirectional-grid", "unidirectional-grid", False, "unidirectional, grid", "UniDiR_G"),
        Protocol("bidirectional", "bidirectional", False, "bidirectional", "BiDiR"),
    )
}


def protocol(name: str) -> Protocol:
    """A protocol by name.

    >>> protocol("unidirectional").leftmost
    True
    """
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol {name!r}; choose one of {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[name]
