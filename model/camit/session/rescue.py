"""`camit rescue`: the sentences of a session that cannot be restored any more, as far as they can be read.

`Session.restore` takes a journal whole or not at all, since memory and weights must be exact. But the words a
person wrote stand in its lines, each of which can be read by itself.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from camit.errors import SessionError
from camit.session.journal import readable
from camit.session.ledger import (
    AnyRecord,
    Confirmed,
    Drafted,
    Moved,
    Opened,
    Revised,
    StoredVersion,
    Unconfirmed,
)
from camit.text import detokenise

FIRST_DRAFT = 2  # the line a saved session begins its drafts with


@dataclass
class Rescued:
    """A sentence, as it was last seen."""

    source: str = ""  # lost with its line
    versions: list[str] = field(default_factory=list)
    at: int = 0
    confirmed: bool = False

    @property
    def text(self) -> str:
        return self.versions[min(max(self.at, 0), len(self.versions) - 1)] if self.versions else ""

    def add(self, version: StoredVersion) -> None:
        text = detokenise((token.text, token.space_before) for token in version.tokens)
        self.versions = [*self.versions[: self.at + 1], text]
        self.at = len(self.versions) - 1


def sentences(directory: Path) -> tuple[list[Rescued], int]:
    """All that can be read, and how many lines cannot."""
    records, lost = readable(directory)
    found: dict[int, Rescued] = {}
    confirmed: set[int] = set()
    for number, record in records:
        _apply(number, record, found, confirmed)
    for draft in confirmed:
        found[draft].confirmed = True
    return [found[draft] for draft in sorted(found)], lost


def _apply(number: int, record: AnyRecord, found: dict[int, Rescued], confirmed: set[int]) -> None:
    def page(draft: int) -> Rescued:
        return found.setdefault(draft, Rescued())

    match record:
        case Opened(draft=draft, source=source, version=version):
            found[draft] = Rescued(source)
            found[draft].add(version)
        case Revised(draft=draft, version=version):
            page(draft).add(version)
        case Moved(draft=draft, by=by):
            page(draft).at += by
        case Confirmed(draft=draft):
            page(draft)
            confirmed.add(draft)
        case Unconfirmed(event=event) if event.draft is not None:
            confirmed.discard(event.draft)
        case Drafted(source=source, versions=versions, at=at):
            draft = number - FIRST_DRAFT
            found[draft] = Rescued(source)
            for version in versions:
                found[draft].add(version)
            found[draft].at = at
            if record.confirmed:
                confirmed.add(draft)


def rescue(
    directory: Annotated[Path, typer.Argument(help="Where the session was saved.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Sentences that were not confirmed, too.")
    ] = False,
) -> None:
    """Print the confirmed sentences of a damaged session, source and translation, as TSV.

    Nothing in the directory is changed. Try `camit.Session.restore` first: it brings back everything.
    """
    found, lost = sentences(directory)
    rows = [s for s in found if s.text and (s.confirmed or everything)]
    if not rows:
        raise SessionError(f"no {'' if everything else 'confirmed '}sentence in {directory} can be read.")
    sys.stdout.write("".join(f"{s.source}\t{s.text}\n" for s in rows))
    lines = f"{lost} line{'' if lost == 1 else 's'} could not be read: look the last changes over"
    Console(stderr=True, soft_wrap=True).print(
        f"{len(rows)} sentences; " + (lines if lost else "every line could be read"), markup=False
    )
