"""What a person did, and what it took: the figures of the paper's real environment, and the usual rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

PAUSE = 300.0  # seconds without an event after which nobody is counted as working


@dataclass(frozen=True)
class Event:
    """Something that was done, with what it took; `draft` is None where it concerns the whole session."""

    time: float
    kind: str
    draft: int | None
    typed: str = ""
    keystrokes: int = 0
    mouse: int = 0


@dataclass(frozen=True)
class Statistics:
    """Effort over the confirmed sentences.

    WSR: words typed per word of the result. MAR: mouse actions per character of the result. KSMR: keystrokes
    and mouse actions per character of the result.
    """

    confirmed: int = 0
    revisions_per_sentence: float = 0.0
    seconds_per_sentence: float = 0.0
    wsr: float = 0.0
    mar: float = 0.0
    ksmr: float = 0.0


@dataclass(frozen=True)
class Result:
    """A confirmed sentence, as far as effort is measured against it."""

    draft: int
    words: int
    characters: int
    revisions: int


def statistics(results: Sequence[Result], events: Sequence[Event]) -> Statistics:
    """Effort per confirmed sentence, per word and per character."""
    if not results:
        return Statistics()
    drafts = {result.draft for result in results}
    done = [event for event in events if event.draft in drafts]
    words, characters = sum(r.words for r in results), sum(r.characters for r in results)
    keys, mouse = sum(event.keystrokes for event in done), sum(event.mouse for event in done)
    return Statistics(
        confirmed=len(results),
        revisions_per_sentence=sum(r.revisions for r in results) / len(results),
        seconds_per_sentence=sum(seconds(draft, events) for draft in drafts) / len(results),
        wsr=sum(len(event.typed.split()) for event in done) / words,
        mar=mouse / characters,
        ksmr=(keys + mouse) / characters,
    )


def seconds(draft: int, events: Sequence[Event]) -> float:
    """How long a person worked on a draft: the time between neighbouring events of it, pauses cut short."""
    return sum(
        min(max(after.time - before.time, 0.0), PAUSE)
        for before, after in pairwise(events)
        if before.draft == after.draft == draft
    )
