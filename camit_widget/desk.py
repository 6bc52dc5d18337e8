"""The document as the widget shows it: its sentences, which one is on the desk, and snapshots of both.

Everything here runs on the session's one worker thread, so it needs no locks; sentences are opened one by
one, the one on the desk first, so that a long document never stands in the way of a click.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing
from collections.abc import Iterable

import camit
from camit.errors import CamitError
from camit.interchange import Document, Sentence
from camit.search.revise import MAX_BEAM, Protocol
from camit.session.events import Clock
from camit.text import normalise
from camit_widget import protocol
from camit_widget.problems import StaleError, WidgetError, describe

_FAINTEST_LOOK = 2  # percent; fainter cells cannot be seen in the heat map


@dataclasses.dataclass
class _Line:
    """One sentence: its draft once it is open, and the wording that requests refer to."""

    source: str
    draft: camit.Draft | None = None
    problem: protocol.Problem | None = None
    wording: tuple[str, ...] = ()
    version: int = 0
    known: object = None  # what was remembered and learned when it was translated
    due: bool = False  # somebody came to it, and more is known by now: it is to be translated anew
    row: protocol.Row | None = None  # the last snapshot
    tokens: tuple[camit.Token, ...] = ()  # what the last snapshot was made of


class Desk:
    """Sentences of one session in the order of the text, one of them on the desk."""

    def __init__(self, session: camit.Session, sentences: Iterable[str]) -> None:
        self.session = session
        self.row = 0
        self.studying: int | None = None
        self._lines: list[_Line] = []
        self._clock = Clock()
        self._forgotten: dict[int, camit.MemoryEntry] = {}  # by hand: they can be put back
        self._adopt()
        self._lines += [_Line(source) for source in sentences]

    def __len__(self) -> int:
        return len(self._lines)

    # --- moving and opening --------------------------------------------------------------------------------

    def go(self, row: int) -> None:
        """Put a sentence on the desk; what nobody has touched is translated anew if more is known by now."""
        line = self._line(row)
        line.problem = None
        self.row = row
        self.reconsider()
        if line.draft is not None:
            self.session.visit(line.draft)

    def reconsider(self) -> None:
        """See whether the sentence on the desk is out of date. Only when asked: no text changes by itself."""
        line = self._line(self.row)
        line.due = line.draft is not None and line.draft.untouched and line.known != self._knowledge()

    def open(self, row: int) -> camit.Draft:
        """The draft of a row, translated now if that is still to be done."""
        line = self._line(row)
        if line.draft is None:
            try:
                line.draft = self.session.open(line.source)
            except Exception as error:
                line.problem = describe(error)
                raise
            line.known = self._knowledge()
        elif line.due:
            line.due = False
            self.session.refresh(line.draft)
            line.known = self._knowledge()
        return line.draft

    def document(self) -> Document:
        """Every sentence with its source as it was given (the engine reads a folded one, which is nobody's
        text), and its translation unless it cannot be translated.
        """
        self.open_all()
        sentences = (
            Sentence(line.source, line.draft.text, id=str(row + 1), confirmed=line.draft.confirmed)
            if line.draft is not None
            else Sentence(line.source, id=str(row + 1))
            for row, line in enumerate(self._lines)
        )
        translator = self.session.translator
        return Document(tuple(sentences), translator.source_language, translator.target_language)

    def open_all(self) -> None:
        """Translate every sentence that can be translated; one that cannot keeps its problem."""
        for row in range(len(self)):
            with contextlib.suppress(CamitError):
                self.open(row)

    def next_waiting(self) -> int | None:
        """The row to translate next: the one on the desk, then those after it, then those before it."""
        order = [*range(self.row, len(self)), *range(self.row)]
        lines = self._lines
        return next((row for row in order if lines[row].draft is None and lines[row].problem is None), None)

    def next_unconfirmed(self, row: int) -> int:
        """Where to go on after `row`: the next sentence that is not confirmed, or stay."""
        order = [*range(row + 1, len(self)), *range(row)]
        return next((other for other in order if self._status(self._lines[other]) != "confirmed"), row)

    def draft(self, row: int, version: int | None = None) -> camit.Draft:
        """The draft of an open row; with a version, only if its wording is still the one the request was
        about.
        """
        line = self._line(row)
        if line.draft is None:
            raise WidgetError(f"Sentence {row + 1} is not translated yet: wait for it, or press Try again.")
        if version is not None and version != self._version(line):
            raise StaleError(f"Sentence {row + 1} reads differently now.")
        return line.draft

    def unconfirmed(self, row: int, version: int | None = None) -> camit.Draft:
        """The draft of a row that is to be changed or confirmed."""
        draft = self.draft(row, version)
        if draft.confirmed:
            raise WidgetError(f"Sentence {row + 1} is confirmed already: take that back to change it.")
        return draft

    def unconfirm(self) -> None:
        """Take the last confirmation back and put its sentence on the desk."""
        row = self.row_of(self.session.undo_confirm().id)
        self.go(self.row if row is None else row)
        self.studying = None
        self._forgotten.clear()  # what the confirmation had taught is not to come back

    def row_of(self, draft_id: int | None) -> int | None:
        if draft_id is None:
            return None
        rows = (
            n for n, line in enumerate(self._lines) if line.draft is not None and line.draft.id == draft_id
        )
        return next(rows, None)

    def _like(self, token: camit.Token) -> int | None:
        """The confirmed row a word is recalled from; None when that was taken back, or says it no more."""
        row = self.row_of(token.recalled_from)
        draft = None if row is None else self._lines[row].draft
        says = draft is not None and draft.confirmed and token.text in (t.text for t in draft.tokens)
        return row if says else None

    def _line(self, row: int) -> _Line:
        if not 0 <= row < len(self):
            raise WidgetError(f"There is no sentence {row + 1}: this document has {len(self)}.")
        return self._lines[row]

    def _adopt(self) -> None:
        """Drafts that code in another cell opened join the document at its end."""
        ours = {line.draft.id for line in self._lines if line.draft is not None}
        known = self._knowledge()
        self._lines += [_Line(d.source, d, known=known) for d in self.session.drafts if d.id not in ours]

    def _knowledge(self) -> object:
        """What a translation depends on besides its source: an untouched draft made from less is out of
        date.
        """
        session = self.session
        entries = tuple(entry.id for entry in session.memory.entries) if session.memory.enabled else ()
        return entries, session.learning.lessons, session.settings.beam

    # --- the memory, by hand -------------------------------------------------------------------------------

    def remember(self, source: str, text: str) -> tuple[int, bool]:
        """The entry for a term and its translation, and whether it is a new one."""
        memory = self.session.memory
        wanted = normalise(source, what="the source term"), normalise(text, what="the translation")
        for entry in memory.entries:
            if (entry.source, entry.text) == wanted:
                return entry.id, False
        return memory.add(*wanted).id, True

    def pin(self, entry: int, pinned: bool) -> None:
        memory = self.session.memory
        (memory.pin if pinned else memory.unpin)(self._entry(entry).id)

    def forget(self, entry: int) -> None:
        self._forgotten[entry] = self._entry(entry)
        self.session.memory.remove(entry)

    def recall(self, entry: int) -> None:
        """Take `forget` back."""
        if entry not in self._forgotten:
            raise WidgetError("That was not forgotten here, or its confirmation was taken back since.")
        self.session.memory.put_back(self._forgotten[entry])
        del self._forgotten[entry]

    def _entry(self, entry: int) -> camit.MemoryEntry:
        found = next((known for known in self.session.memory.entries if known.id == entry), None)
        if found is None:
            raise WidgetError("The memory does not hold that any more.")
        return found

    # --- snapshots -----------------------------------------------------------------------------------------

    def overview(self) -> protocol.Overview:
        self._adopt()
        seconds = self._clock.read(self.session.events)
        translator = self.session.translator
        return protocol.Overview(
            model=translator.name,
            source_language=translator.source_language,
            target_language=translator.target_language,
            rows=tuple(self._row(line, seconds) for line in self._lines),
        )

    def sentence(self, row: int | None = None) -> protocol.Sentence:
        """A sentence in full, by default the one on the desk."""
        row = self.row if row is None else row
        line = self._line(row)
        draft = line.draft
        if draft is None or line.due:
            return self._waiting(row, line)
        return protocol.Sentence(
            row=row,
            version=self._version(line),
            status=self._status(line),
            source=_source(draft),
            words=tuple(_word(token, self._like(token)) for token in draft.tokens),
            can_undo=draft.can_undo,
            can_redo=draft.can_redo,
            can_unconfirm=self._confirmed()[-1:] == [draft.id],
            stages=tuple(map(_stage, draft.trace)),
            problem=None,
        )

    def _waiting(self, row: int, line: _Line) -> protocol.Sentence:
        source = _source(line.draft) if line.draft else (protocol.SourceWord(line.source, False),)
        status: protocol.Status = "failed" if line.problem else "waiting"
        return protocol.Sentence(row, 0, status, source, (), False, False, False, (), line.problem)

    def looks(self, row: int | None = None) -> protocol.Looks:
        """What each memory entry was looked at for; takes a pass of the network, so it comes after the
        words.
        """
        row = self.row if row is None else row
        line = self._line(row)
        if line.draft is None or line.due or not self.session.memory.entries:
            return protocol.Looks(row, 0, ())
        weights = self.session.memory.weights(line.draft)
        cells = tuple(
            protocol.Look(word, entry, percent)
            for word, per_entry in enumerate(weights.r)
            for entry, weight in zip(weights.entries, per_entry, strict=True)
            if (percent := _percent(weight)) >= _FAINTEST_LOOK
        )
        return protocol.Looks(row, self._version(line), cells)

    def memory(self) -> protocol.Memory:
        memory = self.session.memory
        entries = tuple(
            protocol.Entry(
                id=entry.id,
                text=entry.text,
                source=entry.source,
                target=entry.target,
                row=self.row_of(entry.sentence),
                pinned=entry.pinned,
                copies=entry.copies,
            )
            for entry in memory.entries
        )
        return protocol.Memory(memory.enabled, entries)

    def learning(self) -> protocol.Learning:
        learner = self.session.learning
        lessons = tuple(
            protocol.Lesson(
                row=self.row_of(lesson.draft),
                outcome="off" if lesson.skipped else "learned" if lesson.accepted else "rejected",
                before=round(lesson.before, 4),
                after=round(lesson.after, 4),
                guard=round(lesson.guard, 5),
                seconds=round(lesson.seconds, 3),
                reason=lesson.reason.removeprefix("learned").removeprefix("; "),
            )
            for lesson in learner.lessons
        )
        return protocol.Learning(learner.enabled, lessons, self.studying if learner.enabled else None)

    def settings(self) -> protocol.Settings:
        settings = self.session.settings
        choices: tuple[str, ...] = typing.get_args(Protocol)
        return protocol.Settings(settings.beam, MAX_BEAM, settings.stability, settings.protocol, choices)

    def _confirmed(self) -> list[int]:
        """Ids of the drafts whose confirmation stands, in the order they were confirmed."""
        stack: list[int] = []
        for event in self.session.events:
            if event.kind == "confirm" and event.draft is not None:
                stack.append(event.draft)
            elif event.kind == "undo_confirm" and stack:
                stack.pop()
        return stack

    def _row(self, line: _Line, seconds: dict[int, float]) -> protocol.Row:
        draft, status = line.draft, self._status(line)
        if draft is None:
            return protocol.Row(line.source, "", status, 0, 0.0)
        old = line.row
        text = old.text if old is not None and line.tokens is draft.tokens else draft.text
        line.tokens = draft.tokens
        line.row = protocol.Row(
            line.source, text, status, draft.revisions, round(seconds.get(draft.id, 0.0), 1)
        )
        return line.row

    @staticmethod
    def _status(line: _Line) -> protocol.Status:
        if line.draft is None:
            return "failed" if line.problem else "waiting"
        if line.draft.confirmed:
            return "confirmed"
        return "revised" if line.draft.revisions else "draft"

    @staticmethod
    def _version(line: _Line) -> int:
        assert line.draft is not None
        wording = tuple(token.text for token in line.draft.tokens)
        if wording != line.wording:
            line.wording = wording
            line.version += 1
        return line.version


def _percent(weight: float) -> protocol.Percent:
    return round(100 * weight)


def _source(draft: camit.Draft) -> tuple[protocol.SourceWord, ...]:
    return tuple(protocol.SourceWord(token.text, token.space_before) for token in draft.source_tokens)


def _word(token: camit.Token, like: int | None) -> protocol.Word:
    return protocol.Word(
        text=token.text,
        space=token.space_before,
        origin=token.origin,
        locked=token.locked,
        probability=round(token.probability, 3),
        theta=round(token.theta, 3),
        memory=token.copied_from,
        recalled=round(token.recalled, 3),
        like=like,
        attention=tuple(_percent(weight) for weight in token.attention),
    )


def _stage(stage: camit.Stage) -> protocol.Stage:
    words = (protocol.StageWord(token.text, token.space_before, token.origin) for token in stage.tokens)
    return protocol.Stage(stage.name, stage.caption, tuple(words))
