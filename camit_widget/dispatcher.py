"""From a message to its answer: every request is carried out on the worker and answered with its number.

A newer change of the same sentence takes the place of one that is still running; nothing raised on the
way may vanish.
"""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Callable, Hashable, Mapping

import msgspec

import camit
from camit.errors import Cancelled
from camit_widget import protocol
from camit_widget.problems import describe

_log = logging.getLogger(__name__)


class Dispatcher:
    """Reads requests on whatever thread they arrive, has them handled on the worker, sends one answer for
    each.
    """

    def __init__(
        self,
        session: camit.Session,
        handle: Callable[[protocol.AnyRequest], protocol.AnyResult],
        send: Callable[[protocol.AnyAnswer], None],
        greet: Callable[[], None],
    ) -> None:
        self._session = session
        self._handle = handle
        self._send = send
        self._greet = greet

    def receive(self, content: object) -> None:
        """Take one message from the browser; never raises."""
        try:
            request = msgspec.convert(content, protocol.AnyRequest)
        except msgspec.ValidationError as error:
            _log.warning("A message that is no request of the protocol: %s", error)
            self._send(_refusal(content, error))
            return
        if isinstance(request, protocol.Hello):
            # At once, even while the worker is busy.
            self._greet()
            self._send(protocol.Done(request.view, request.id, protocol.Nothing()))
            return
        try:
            future = self._session.submit(lambda: self._handle(request), key=replaces(request))
        except Exception as error:
            self._send(protocol.Failed(request.view, request.id, describe(error)))
            return
        future.add_done_callback(lambda done: self._send(_answer(request, done)))


def replaces(request: protocol.AnyRequest) -> Hashable:
    """Requests with equal keys replace each other. None: carried out in turn, whatever comes after."""
    match request:
        case (
            protocol.Replace() | protocol.Insert() | protocol.Delete() | protocol.Blank() | protocol.Cancel()
        ):
            return ("change", request.row)
        case protocol.Alternatives() | protocol.Complete():
            return ("suggest", request.view)
        case _:
            return None


def _answer(
    request: protocol.AnyRequest, done: concurrent.futures.Future[protocol.AnyResult]
) -> protocol.AnyAnswer:
    if done.cancelled() or isinstance(done.exception(), Cancelled):
        return protocol.Cancelled(request.view, request.id)
    if (error := done.exception()) is not None:
        _log.error("The request %r failed", type(request).__name__, exc_info=error)
        return protocol.Failed(request.view, request.id, describe(error))
    return protocol.Done(request.view, request.id, done.result())


def _refusal(content: object, error: msgspec.ValidationError) -> protocol.Failed:
    """An answer to a malformed message: to its sender as far as one can be made out, else to every view."""
    said = content if isinstance(content, Mapping) else {}
    view = said["view"] if isinstance(said.get("view"), str) else protocol.EVERYBODY
    number = said["id"] if isinstance(said.get("id"), int) else 0
    problem = protocol.Problem("The widget and its kernel do not match", str(error), "Run the cell again.")
    return protocol.Failed(view, number, problem)
