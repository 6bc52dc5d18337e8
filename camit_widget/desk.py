"""The document as the widget shows it: which sentences there are, which one is on the desk, and snapshots of both.

Everything here runs on the session's one worker thread, so it needs no locks; sentences are opened one by one, the one on
the desk first, so that a long document never stands in the way of a click.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import camit
from camit_widget import protocol
from camit_widget.problems import StaleRequest, WidgetError, describe

_FAINTEST_LOOK = 2  # percent; fainter cells cannot be seen in the heat map


@dataclasses.dataclass
class _Line:
    """One sentence: its draft once it is open, and the wording that requests refer to."""

    source: str
    draft: camit.Draft | None = None
    problem: protocol.Problem | None = None
    wording: tuple[str, ...] = ()
    version: int = 0


class Desk:
    """Sentences of one session in the order of the text, one of them on the desk."""

    def __init__(self, session: camit.Session, sentences: Iterable[str]) -> None:
        self.session = session
        self._lines = [_Line(draft.source, draft) for draft in session.drafts]
        self._lines += [_Line(source) for source in sentences]
        self.row = 0

    def __len__(self) -> int:
        return len(self._lines)

    # --- moving and opening ----------------------------------------------------------------------------------------------------

    def go(self, row: int) -> None:
        self._line(row)
        self.row = row

    def open(self, row: int) -> camit.Draft:
        """The draft of a row, translated now if it was not yet."""
        line = self._line(row)
        if line.draft is None:
            line.problem = None
            try:
                line.draft = self.session.open(line.source)
            except Exception as error:
                line.problem = describe(error)
                raise
        return line.draft

    def next_waiting(self) -> int | None:
        """The row to translate next: the one on the desk, then those after it, then those before it."""
        order = [*range(self.row, len(self)), *range(self.row)]
        waiting = (row for row in order if self._lines[row].draft is None and self._lines[row].problem is None)
        return next(waiting, None)

    def next_unconfirmed(self, row: int) -> int:
        """Where to go on after `row`: the next sentence that is not confirmed, or stay."""
        order = [*range(row + 1, len(self)), *range(row)]
        return next((other for other in order if self._status(self._lines[other]) != "confirmed"), row)

    def draft(self, row: int, version: int | None = None) -> camit.Draft:
        """The draft of an open row; with a version, only if its wording is still the one the request was about."""
        line = self._line(row)
        if line.draft is None:
            raise WidgetError(f"Sentence {row + 1} is not translated yet: wait for it, or press Try again.")
        if version is not None and version != self._version(line):
            raise StaleRequest(f"Sentence {row + 1} reads differently now.")
        return line.draft

    def row_of(self, draft_id: int | None) -> int | None:
        rows = (row for row, line in enumerate(self._lines) if line.draft is not None and line.draft.id == draft_id)
        return next(rows, None)

    def _line(self, row: int) -> _Line:
        if not 0 <= row < len(self):
            raise WidgetError(f"There is no sentence {row + 1}: this document has {len(self)}.")
        return self._lines[row]

    # --- snapshots -------------------------------------------------------------------------------------------------------------

    def overview(self) -> protocol.Overview:
        translator = self.session.translator
        return protocol.Overview(
            model=translator.name,
            source_language=translator.source_language,
            target_language=translator.target_language,
            rows=tuple(self._row(line) for line in self._lines),
        )

    def sentence(self, row: int | None = None) -> protocol.Sentence:
        row = self.row if row is None else row
        line = self._line(row)
        draft = line.draft
        if draft is None:
            unsplit = (protocol.SourceWord(line.source, False),)
            return protocol.Sentence(row, 0, self._status(line), unsplit, (), False, False, (), (), line.problem)
        return protocol.Sentence(
            row=row,
            version=self._version(line),
            status=self._status(line),
            source=tuple(protocol.SourceWord(token.text, token.space_before) for token in draft.source_tokens),
            words=tuple(_word(token) for token in draft.tokens),
            can_undo=draft.can_undo,
            can_redo=draft.can_redo,
            stages=tuple(_stage(stage) for stage in draft.trace),
            looks=self._looks(draft),
            problem=None,
        )

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

    def learning(self, studying: int | None) -> protocol.Learning:
        learner = self.session.learning
        lessons = tuple(
            protocol.Lesson(None, item.accepted, item.before, item.after, item.guard, item.seconds, item.reason)
            for item in learner.lessons
        )
        return protocol.Learning(learner.enabled, lessons, studying)

    def settings(self) -> protocol.Settings:
        settings = self.session.settings
        return protocol.Settings(settings.beam, settings.stability, settings.protocol, ())

    def _looks(self, draft: camit.Draft) -> tuple[protocol.Look, ...]:
        if not self.session.memory.entries:
            return ()
        weights = self.session.memory.weights(draft)
        return tuple(
            protocol.Look(word, entry, percent)
            for word, per_entry in enumerate(weights.r)
            for entry, weight in zip(weights.entries, per_entry, strict=True)
            if (percent := _percent(weight)) >= _FAINTEST_LOOK
        )

    def _row(self, line: _Line) -> protocol.Row:
        draft = line.draft
        if draft is None:
            return protocol.Row(line.source, "", self._status(line), 0, 0.0)
        return protocol.Row(line.source, draft.text, self._status(line), draft.revisions, 0.0)

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


def _word(token: camit.Token) -> protocol.Word:
    return protocol.Word(
        text=token.text,
        space=token.space_before,
        origin=token.origin,
        locked=token.locked,
        probability=round(token.probability, 3),
        theta=round(token.theta, 3),
        memory=token.copied_from,
        attention=tuple(_percent(weight) for weight in token.attention),
    )


def _stage(stage: camit.Stage) -> protocol.Stage:
    words = tuple(protocol.StageWord(token.text, token.space_before, token.origin) for token in stage.tokens)
    return protocol.Stage(stage.name, stage.caption, words)
