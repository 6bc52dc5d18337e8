"""From a message to its answer: every request is carried out on the worker and answered with its number.

Changes are carried out in the order they arrive, every one of them; a newer question for suggestions takes
the place of an older one. Nothing raised on the way may vanish.
"""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Callable, Hashable, Mapping

import msgspec

import camit
from camit.errors import Cancelled
from camit_widget import protocol
from camit_widget.problems import StaleError, describe, stands_after

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
            self._send(_failure(request, error))
            return
        future.add_done_callback(lambda done: self._send(_answer(request, done)))


def replaces(request: protocol.AnyRequest) -> Hashable:
    """Requests with equal keys replace each other. None: carried out in turn, whatever comes after.

    A change has a key of its own: only the request to stop it takes its place, never another change.
    """
    match request:
        case protocol.Replace() | protocol.Insert() | protocol.Delete() | protocol.Blank():
            return ("change", request.view, request.id)
        case protocol.Cancel():
            return ("change", request.view, request.request)
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
        return _failure(request, error)
    return protocol.Done(request.view, request.id, done.result())


def _failure(request: protocol.AnyRequest, error: BaseException) -> protocol.Failed:
    outdated = isinstance(error, StaleError)
    return protocol.Failed(request.view, request.id, describe(error, stands_after(request)), outdated)


def _refusal(content: object, error: msgspec.ValidationError) -> protocol.Failed:
    """An answer to a malformed message: to its sender as far as one can be made out, else to every view."""
    said = content if isinstance(content, Mapping) else {}
    view = said["view"] if isinstance(said.get("view"), str) else protocol.EVERYBODY
    number = said["id"] if isinstance(said.get("id"), int) else 0
    problem = protocol.Problem("The widget and its kernel do not match", str(error), "Run the cell again.")
    return protocol.Failed(view, number, problem)
