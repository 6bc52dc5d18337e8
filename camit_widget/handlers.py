"""What each request does: one place where words of the protocol become calls of the engine. Runs on the
worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future

import msgspec

import camit
from camit_widget import protocol
from camit_widget.desk import Desk
from camit_widget.problems import describe

_SUGGESTIONS = 6


class Handlers:
    """Carries requests out on a desk.

    `publish` shows every view the new state, `export` makes a file, `trouble` tells every view of a problem.
    """

    def __init__(
        self,
        desk: Desk,
        publish: Callable[[], None],
        export: Callable[[protocol.ExportFormat], protocol.Exported],
        trouble: Callable[[protocol.Problem], None],
    ) -> None:
        self._desk = desk
        self._publish = publish
        self._export = export
        self._trouble = trouble

    def handle(self, request: protocol.AnyRequest) -> protocol.AnyResult:
        match request:
            case protocol.Alternatives():
                draft = self._desk.draft(request.row, request.version)
                return _suggestions(draft.alternatives(_span(request), k=_SUGGESTIONS))
            case protocol.Complete():
                draft = self._desk.draft(request.row, request.version)
                place = (request.start, request.stop)
                return _suggestions(draft.complete(place, request.typed, k=_SUGGESTIONS))
            case protocol.Export():
                return self._export(request.format)
            case protocol.Remember():
                entry, new = self._desk.remember(request.source, request.text)
                self._publish()
                return protocol.Remembered(entry, new)
            case protocol.Cancel():
                return protocol.Nothing()  # that it took the place of the change is all it is for
            case _:
                self._act(request)
                return protocol.Nothing()

    def _act(self, request: protocol.AnyRequest) -> None:
        try:
            match request:
                case protocol.Go():
                    self._desk.go(request.row)
                    self._publish()  # the source line at once; the translation when it is there
                case protocol.Confirm():
                    self._confirm(request)
                case protocol.Configure():
                    self._configure(request)
                case protocol.Unconfirm():
                    self._desk.unconfirm()
                case protocol.Pin():
                    self._desk.pin(request.entry, request.pinned)
                case protocol.Forget():
                    self._desk.forget(request.entry)
                case protocol.Recall():
                    self._desk.recall(request.entry)
                case protocol.Undo():
                    self._desk.unconfirmed(request.row).undo()
                case protocol.Redo():
                    self._desk.unconfirmed(request.row).redo()
                case protocol.Keep():
                    self._desk.unconfirmed(request.row, request.version).keep(_span(request))
                case protocol.Release():
                    self._desk.unconfirmed(request.row, request.version).release(_span(request))
                case _:
                    self._revise(request)
            self._desk.open(self._desk.row)
        finally:
            self._publish()

    def _revise(self, request: protocol.AnyRequest) -> None:
        match request:
            case protocol.Insert():
                draft = self._desk.unconfirmed(request.row, request.version)
                draft.insert(request.at, request.text, **_effort(request))
            case protocol.Replace():
                draft = self._desk.unconfirmed(request.row, request.version)
                draft.replace(_span(request), request.text, **_effort(request))
            case protocol.Delete():
                draft = self._desk.unconfirmed(request.row, request.version)
                draft.delete(_span(request), **_effort(request))
            case protocol.Blank():
                draft = self._desk.unconfirmed(request.row, request.version)
                draft.blank(_span(request), **_effort(request))

    def _confirm(self, request: protocol.Confirm) -> None:
        """Remember at once and go on; the lesson is given between clicks and shown when it is there."""
        desk = self._desk
        lesson = desk.session.confirm_soon(desk.unconfirmed(request.row, request.version))
        desk.studying = request.row

        def learned(done: Future[camit.Lesson]) -> None:
            desk.studying = None if desk.studying == request.row else desk.studying
            self._publish()
            if (error := done.exception()) is not None:
                self._trouble(describe(error))

        lesson.add_done_callback(learned)
        if desk.row == request.row:
            desk.go(desk.next_unconfirmed(request.row))
        self._publish()

    def _configure(self, request: protocol.Configure) -> None:
        fields = msgspec.structs.asdict(request)
        named = ("memory", "learning", "beam", "stability", "protocol")
        chosen = {name: fields[name] for name in named if fields[name] is not None}
        self._desk.session.configure(**chosen)
        self._desk.reconsider()
        self._publish()


def _effort(request: protocol.Insert | protocol.Replace | protocol.Delete | protocol.Blank) -> dict[str, int]:
    return {"keystrokes": request.effort.keystrokes, "mouse": request.effort.mouse}


def _span(request: protocol.About) -> int | tuple[int, int]:
    one_word = request.stop == request.start + 1
    return request.start if one_word else (request.start, request.stop)


def _suggestions(found: Iterable[camit.Alternative]) -> protocol.Suggestions:
    return protocol.Suggestions(
        tuple(protocol.Suggestion(item.text, round(item.probability, 3), item.from_memory) for item in found)
    )
