"""What each request does: one place where words of the protocol become calls of the engine. Runs on the worker."""

from __future__ import annotations

from collections.abc import Callable

from camit_widget import protocol
from camit_widget.desk import Desk

_SUGGESTIONS = 6


class Handlers:
    """Carries requests out on a desk; `publish` shows the new state to every view, `export` writes a file's text."""

    def __init__(
        self,
        desk: Desk,
        publish: Callable[[], None],
        export: Callable[[protocol.ExportFormat], protocol.Exported],
    ) -> None:
        self._desk = desk
        self._publish = publish
        self._export = export
        self.studying: int | None = None

    def handle(self, request: protocol.AnyRequest) -> protocol.AnyResult:
        try:
            return self._carry_out(request)
        finally:
            self._publish()

    def _carry_out(self, request: protocol.AnyRequest) -> protocol.AnyResult:
        match request:
            case protocol.Alternatives():
                return self._alternatives(request)
            case protocol.Complete():
                return self._complete(request)
            case protocol.Export():
                return self._export(request.format)
            case protocol.Go() | protocol.Retry():
                self._go(request.row)
            case protocol.Confirm():
                self._confirm(request)
            case protocol.Configure():
                self._configure(request)
            case protocol.Unconfirm() | protocol.Pin() | protocol.Forget() | protocol.Remember():
                self._recall(request)
            case protocol.Hello() | protocol.Cancel():
                pass
            case _:
                self._change(request)
        return protocol.Nothing()

    def _go(self, row: int) -> None:
        self._desk.go(row)
        self._publish()  # the source line at once; the translation when it is there
        self._desk.open(row)

    def _change(self, request: protocol.AnyRequest) -> None:
        match request:
            case protocol.Undo():
                self._desk.draft(request.row).undo()
            case protocol.Redo():
                self._desk.draft(request.row).redo()
            case protocol.Insert():
                self._desk.draft(request.row, request.version).insert(request.at, request.text)
            case protocol.Replace():
                self._desk.draft(request.row, request.version).replace(_span(request), request.text)
            case protocol.Delete():
                self._desk.draft(request.row, request.version).delete(_span(request))
            case protocol.Blank():
                self._desk.draft(request.row, request.version).blank(_span(request))
            case protocol.Keep():
                draft = self._desk.draft(request.row, request.version)
                for index in range(request.start, request.stop):
                    draft.keep(index)
            case protocol.Release():
                draft = self._desk.draft(request.row, request.version)
                for index in range(request.start, request.stop):
                    draft.release(index)

    def _confirm(self, request: protocol.Confirm) -> None:
        draft = self._desk.draft(request.row, request.version)
        self.studying = request.row
        self._publish()
        try:
            self._desk.session.confirm(draft)
        finally:
            self.studying = None
        if self._desk.row == request.row:
            self._go(self._desk.next_unconfirmed(request.row))

    def _configure(self, request: protocol.Configure) -> None:
        session = self._desk.session
        if request.memory is not None:
            session.memory.enabled = request.memory
        if request.learning is not None:
            session.learning.enabled = request.learning
        named = {"beam": request.beam, "stability": request.stability, "protocol": request.protocol}
        chosen = {name: value for name, value in named.items() if value is not None}
        if chosen:
            session.configure(**chosen)

    def _recall(self, request: protocol.Unconfirm | protocol.Pin | protocol.Forget | protocol.Remember) -> None:
        session = self._desk.session
        match request:
            case protocol.Unconfirm():
                session.undo_confirm()
            case protocol.Pin():
                (session.memory.pin if request.pinned else session.memory.unpin)(request.entry)
            case protocol.Forget():
                session.memory.remove(request.entry)
            case protocol.Remember():
                session.memory.add(request.source, request.text)

    def _alternatives(self, request: protocol.Alternatives) -> protocol.Suggestions:
        draft = self._desk.draft(request.row, request.version)
        return _suggestions(draft.alternatives(_span(request), k=_SUGGESTIONS))

    def _complete(self, request: protocol.Complete) -> protocol.Suggestions:
        draft = self._desk.draft(request.row, request.version)
        return _suggestions(draft.complete(request.at, request.typed, k=_SUGGESTIONS))


def _span(request: protocol.About) -> int | tuple[int, int]:
    one_word = request.stop == request.start + 1
    return request.start if one_word else (request.start, request.stop)


def _suggestions(found: object) -> protocol.Suggestions:
    return protocol.Suggestions(
        tuple(protocol.Suggestion(item.text, round(item.probability, 3), item.from_memory) for item in found)
    )
