"""The widget itself: an anywidget whose traits mirror a `camit.Session`, and whose messages reach it through the dispatcher."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Iterable
from typing import Any

import anywidget
import msgspec
import traitlets

import camit
from camit.errors import InputError
from camit_widget import protocol
from camit_widget.desk import Desk
from camit_widget.dispatcher import Dispatcher
from camit_widget.handlers import Handlers
from camit_widget.problems import BundleMissing

_STATIC = pathlib.Path(__file__).parent / "static"


class CamitWidget(anywidget.AnyWidget):
    """Interactive translation in a notebook: click the worst word, and the whole sentence mends itself.

    >>> CamitWidget(["你好。", "再见。"], model="zh-en")    # in the last line of a cell

    `sentences` is a list of sentences or one string, one sentence a line. A new session is made for `model`, with `memory` and
    `learning` on unless switched off; or give a `session` of your own, whose drafts then come first.
    """

    if (_STATIC / "widget.js").is_file():
        _esm = _STATIC / "widget.js"
        _css = _STATIC / "widget.css"

    _overview = traitlets.Dict(read_only=True).tag(sync=True)
    _sentence = traitlets.Dict(read_only=True).tag(sync=True)
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
            raise BundleMissing(
                f"The browser half of the widget is missing: there is no {_STATIC / 'widget.js'}. "
                "In a checkout, build it with `make build`; otherwise install the package again."
            )
        texts = _sentences(sentences)
        self._owns_session = session is None
        if session is None:
            translator = camit.load(model or "zh-en")
            session = camit.Session(translator, memory=memory is not False, learning=learning is not False)
        elif (model, memory, learning) != (None, None, None):
            raise InputError("A session brings its own model, memory and learning: give either session=... or these, not both.")
        if not texts and not session.drafts:
            raise InputError('There is nothing to translate: give a sentence, or a list of sentences, such as ["你好。"].')
        self._session = session
        self._desk = Desk(session, texts)
        self._handlers = Handlers(self._desk, self._publish, self._exported)
        self._dispatcher = Dispatcher(session, self._handlers.handle, self._send_answer)
        self._publishing = threading.RLock()
        self._published: dict[str, msgspec.Struct] = {}
        super().__init__()
        _answer_on_the_asking_thread(self.comm)
        self.on_msg(lambda _widget, content, _buffers: self._dispatcher.receive(content))
        session.submit(self._publish).result()
        session.submit(self._open_next)

    # --- state to the browser ---------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Show every view what changed since the last time; unchanged values are not sent again."""
        values = {
            "_overview": self._desk.overview(),
            "_sentence": self._desk.sentence(),
            "_memory": self._desk.memory(),
            "_learning": self._desk.learning(self._handlers.studying),
            "_settings": self._desk.settings(),
        }
        with self._publishing, self.hold_sync():
            for name, value in values.items():
                if self._published.get(name) != value:
                    self._published[name] = value
                    self.set_trait(name, msgspec.to_builtins(value))

    def _send_answer(self, answer: protocol.AnyAnswer) -> None:
        self.send(msgspec.to_builtins(answer))

    # --- opening in the background -----------------------------------------------------------------------------------------------

    def _open_next(self) -> None:
        """Translate one waiting sentence and queue the next: a click in between never waits for more than one of them."""
        row = self._desk.next_waiting()
        if row is None:
            return
        try:
            self._desk.open(row)
        except Exception:
            self.log.exception("Sentence %d could not be translated", row + 1)
        finally:
            self._publish()
            self._session.submit(self._open_next)

    def _exported(self, file_format: protocol.ExportFormat) -> protocol.Exported:
        raise NotImplementedError

    @property
    def session(self) -> camit.Session:
        """The session behind the widget; what is done to it in code shows in the widget too."""
        return self._session


def _answer_on_the_asking_thread(comm: object) -> None:
    """Let JupyterLab's choice of subshell stand, so that the widget answers while a cell runs.

    Since 7.4 ipykernel sends a comm's messages to the shell that last wrote to it. Written to from a cell, that is the main
    shell, where a click waits until the cell is done. Nothing here waits for replies inside a cell, so the choice can stand.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, chosen: chosen


def _sentences(given: str | Iterable[str]) -> list[str]:
    lines: list[Any] = given.splitlines() if isinstance(given, str) else list(given)
    for position, line in enumerate(lines):
        if not isinstance(line, str):
            raise InputError(f"Sentence {position + 1} is {line!r}, of type {type(line).__name__}: sentences must be strings.")
    return [line.strip() for line in lines if line.strip()]
