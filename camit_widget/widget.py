"""The widget: an anywidget whose traits mirror a `camit.Session`; its messages reach it through the
dispatcher.
"""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import anywidget
import msgspec
import traitlets

import camit
from camit.errors import CamitError, InputError
from camit.interchange import split_sentences
from camit_widget import files, offline, protocol
from camit_widget.desk import Desk
from camit_widget.dispatcher import Dispatcher
from camit_widget.figures import Figure, FigureKind, draw
from camit_widget.handlers import Handlers
from camit_widget.problems import BundleError

_STATIC = pathlib.Path(__file__).parent / "static"


class CamitWidget(anywidget.AnyWidget):
    """Interactive translation in a notebook: click the worst word, and the whole sentence mends itself.

    >>> CamitWidget(["你好。", "再见。"], model="zh-en")    # in the last line of a cell

    `sentences` is a list of sentences, or a text that is cut into sentences. A new session is made for
    `model`, with `memory` and `learning` on unless switched off; or give a `session` of your own, whose
    drafts come first.
    """

    if (_STATIC / "widget.js").is_file():
        _esm = _STATIC / "widget.js"
        _css = _STATIC / "widget.css"

    _overview = traitlets.Dict(read_only=True).tag(sync=True)
    _sentence = traitlets.Dict(read_only=True).tag(sync=True)
    _looks = traitlets.Dict(read_only=True).tag(sync=True)
    _memory = traitlets.Dict(read_only=True).tag(sync=True)
    _learning = traitlets.Dict(read_only=True).tag(sync=True)
    _settings = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(
        self,
        sentences: str | Iterable[str] = (),
        *,
        model: str | None = None,
        memory: bool | None = None,
        learning: bool | None = None,
        session: camit.Session | None = None,
    ) -> None:
        if not hasattr(self, "_esm"):
            raise BundleError(
                f"The browser half of the widget is missing: there is no {_STATIC / 'widget.js'}. "
                "In a checkout, `make install` builds it; otherwise install the package again."
            )
        texts = _sentences(sentences)
        self._owns_session = session is None
        if session is None:
            if not texts:
                raise InputError("There is nothing to translate: give a sentence, or a list of sentences.")
            translator = camit.load(model or "zh-en")
            session = camit.Session(translator, memory=memory is not False, learning=learning is not False)
        elif (model, memory, learning) != (None, None, None):
            raise InputError("A session has its own model, memory and learning: give it, or these, not both.")
        elif not texts and not session.drafts:
            raise InputError("The session has no drafts yet: give sentences too, or open some first.")
        self._session = session
        self._desk = Desk(session, texts)
        self._handlers = Handlers(self._desk, self._publish, self._exported, self._trouble)
        self._dispatcher = Dispatcher(session, self._handlers.handle, self._answer, self._show_again)
        self._publishing = threading.RLock()
        self._published: dict[str, msgspec.Struct] = {}
        self._closed = False
        super().__init__()
        _answer_on_the_asking_thread(self.comm)
        self.on_msg(lambda _widget, content, _buffers: self._dispatcher.receive(content))
        session.submit(self._publish).result()
        self._unlisten = session.on_change(self._publish_soon)
        session.post(self._open_next)

    # --- what people use in code ---------------------------------------------------------------------------

    @property
    def session(self) -> camit.Session:
        """The session behind the widget; what is done to it in code shows in the widget too."""
        return self._session

    @property
    def drafts(self) -> tuple[camit.Draft, ...]:
        """The draft of every sentence, in the order of the text; waits for those not translated yet."""
        opening = [self._session.submit(partial(self._desk.open, row)) for row in range(len(self._desk))]
        return tuple(future.result() for future in opening)

    def export(self, file_format: protocol.ExportFormat = "text") -> str:
        """The document as text of a file: "text", "tsv", "tmx", "xliff" or "html".

        >>> pathlib.Path("talk.tmx").write_text(widget.export("tmx"))    # doctest: +SKIP
        """
        files.check(file_format)
        return self._session.submit(lambda: self._exported(file_format)).result().text

    def to_html(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write one offline file that shows the same view, read-only; needs neither a kernel nor a
        network.
        """
        path = pathlib.Path(path)
        path.write_text(self._page(), encoding="utf-8")
        return path

    def figure(self, kind: FigureKind = "memory") -> Figure:
        """A picture of the sentence on the desk as SVG: "memory", "attention" or "revision".

        It is shown in the notebook and can be kept: `widget.figure("attention").save("attention.svg")`.
        """

        def run() -> Figure:
            desk = self._desk
            desk.open(desk.row)
            return draw(kind, desk.sentence(), desk.looks(), desk.memory())

        return self._session.submit(run).result()

    def close(self) -> None:
        """Let the widget go, and its session if it made one."""
        if getattr(self, "_closed", True):
            return
        self._closed = True
        self._unlisten()
        super().close()
        if self._owns_session:
            self._session.close()

    # --- state to the browser ------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Show every view what changed since the last time; unchanged values are not sent again."""
        changed = self._show(
            _overview=self._desk.overview(),
            _sentence=self._desk.sentence(),
            _memory=self._desk.memory(),
            _learning=self._desk.learning(),
            _settings=self._desk.settings(),
        )
        if changed & {"_sentence", "_memory"}:
            self._session.post(lambda: self._show(_looks=self._desk.looks()), key=("looks", id(self)))

    def _publish_soon(self) -> None:
        """Something happened in the session, perhaps by code in another cell: show it when the worker is
        free.
        """
        if not self._closed:
            self._session.post(self._publish, key=("publish", id(self)))

    def _show(self, **values: msgspec.Struct) -> set[str]:
        if self._closed:
            return set()
        # Cells run on the main thread, everything else on the worker; trait notifications are not thread-
        # safe.
        with self._publishing, self.hold_sync():
            changed = {name for name, value in values.items() if self._published.get(name) != value}
            for name in changed:
                self._published[name] = values[name]
                self.set_trait(name, msgspec.to_builtins(values[name]))
        return changed

    def _show_again(self) -> None:
        """Send everything once more to a view that is new.

        A page reads the state of a widget first and listens for changes a moment later (ipywidgets' manager
        does when a page is loaded anew, and in Voila): a change in between would never be seen.
        """
        with self._publishing:
            self.send_state(list(self._published))

    def _answer(self, answer: protocol.AnyAnswer) -> None:
        self.send(msgspec.to_builtins(answer))

    def _trouble(self, problem: protocol.Problem) -> None:
        """Something went wrong that no open request can be answered with: tell every view."""
        self._answer(protocol.Failed(protocol.EVERYBODY, 0, problem))

    # --- work on the worker --------------------------------------------------------------------------------

    def _open_next(self) -> None:
        """Translate one waiting sentence and queue the next: a click in between waits for no more than
        one.
        """
        row = None if self._closed else self._desk.next_waiting()
        if row is None:
            return
        try:
            self._desk.open(row)
        except CamitError as error:
            self.log.warning("Sentence %d could not be translated: %s", row + 1, error)
        except Exception:
            self.log.exception("Sentence %d could not be translated", row + 1)
        self._publish()
        self._session.post(self._open_next)

    def _exported(self, file_format: protocol.ExportFormat) -> protocol.Exported:
        """For the export menu; runs on the worker."""
        text = self._page() if file_format == "html" else files.write(self._desk.document(), file_format)
        return files.exported(file_format, text)

    def _page(self) -> str:
        return self._session.worker.call(lambda: offline.page(self._desk, _STATIC))


def _answer_on_the_asking_thread(comm: Any) -> None:
    """Let JupyterLab's choice of subshell stand, so that the widget answers while a cell runs.

    Since 7.4 ipykernel sends a comm's messages to the shell that last wrote to it. Written to from a
    cell, that is the main shell, where a click waits until the cell is done. Nothing here waits for a
    reply inside a cell.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, chosen: chosen


def _sentences(given: str | Iterable[str]) -> list[str]:
    if isinstance(given, str):
        return split_sentences(given)
    lines: list[Any] = list(given)
    for position, line in enumerate(lines):
        if not isinstance(line, str):
            kind = type(line).__name__
            raise InputError(
                f"Sentence {position + 1} is of type {kind}, {line!r}: give sentences as strings."
            )
    return [line.strip() for line in lines if line.strip()]
