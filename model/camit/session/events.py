"""What a person did, and what it took: the figures of the paper's real environment, and the usual rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from camit.text import screen_words

PAUSE = 300.0  # seconds without an event after which nobody is counted as working
OPENING = ("open", "refresh")


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


def statistics(results: Sequence[Result], events: Sequence[Event], language: str) -> Statistics:
    """Effort per confirmed sentence, per word and per character; `language` is the target's."""
    if not results:
        return Statistics()
    drafts = {result.draft for result in results}
    done = [event for event in events if event.draft in drafts]
    spent = Clock().read(events)
    words, characters = sum(r.words for r in results), sum(r.characters for r in results)
    keys, mouse = sum(event.keystrokes for event in done), sum(event.mouse for event in done)
    return Statistics(
        confirmed=len(results),
        revisions_per_sentence=sum(r.revisions for r in results) / len(results),
        seconds_per_sentence=sum(spent.get(draft, 0.0) for draft in drafts) / len(results),
        wsr=sum(len(screen_words(event.typed, language)) for event in done) / words,
        mar=mouse / characters,
        ksmr=(keys + mouse) / characters,
    )


class Clock:
    """How long a person worked on each draft, pauses cut short; reads each event once, as they come.

    Time runs between neighbouring events of a draft. Opening is often done ahead, for a whole document, while
    the person works on another sentence: it is taken for the beginning of work only where nobody is at work.
    """

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self._seen = 0
        self._last: Event | None = None

    def read(self, events: Sequence[Event]) -> dict[int, float]:
        """Seconds by draft after all events of a session, of which earlier calls saw the first."""
        for event in events[self._seen :]:
            last = self._last
            if event.kind in OPENING and last is not None and last.kind not in (*OPENING, "confirm"):
                continue
            at_work = last is not None and (last.draft == event.draft or last.kind in OPENING)
            if last is not None and at_work and event.draft is not None and event.kind not in OPENING:
                spent = min(max(event.time - last.time, 0.0), PAUSE)
                self.seconds[event.draft] = self.seconds.get(event.draft, 0.0) + spent
            self._last = event
        self._seen = len(events)
        return self.seconds
