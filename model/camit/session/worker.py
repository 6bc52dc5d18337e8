"""One worker thread owns the model; everybody else hands it work and waits or goes on.

A newer request of the same key takes the place of an older one: what is queued is dropped, what runs raises
`Cancelled` at its next step. So ten fast clicks cost one search. Long work, a lesson for example, comes as a
generator and goes on only while nobody waits: between any two of its steps waiting clicks are answered first.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from camit.errors import Cancelled, SessionError

T = TypeVar("T")
Steps = Generator[None, None, T]


@dataclass
class _Task:
    run: Callable[[], Any]
    key: Hashable | None = None
    future: Future[Any] = field(default_factory=Future)
    cancelled: bool = False


@dataclass
class _Study:
    steps: Steps[Any]
    future: Future[Any] = field(default_factory=Future)


class Worker:
    """Two queues and one thread: requests go first, in order; patient work fills the time between them."""

    def __init__(self, name: str = "camit") -> None:
        self._requests: deque[_Task] = deque()
        self._patient: deque[_Study] = deque()
        self._wake = threading.Condition()
        self._current: _Task | None = None
        self._stepping = False
        self._closed = False
        self._then: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        _running.add(self)

    def submit(self, run: Callable[[], T], *, key: Hashable | None = None) -> Future[T]:
        """Queue a request; with a key, cancel whatever was asked before under it."""
        return self._queue(_Task(run, key)).future

    def call(self, run: Callable[[], T]) -> T:
        """Make a request and wait; directly when already on the worker."""
        if self.inside:
            return run()
        task = self._queue(_Task(run))
        try:
            answer: T = task.future.result()
            return answer
        except BaseException:
            task.cancelled = True  # an interrupted cell (KeyboardInterrupt) waits no longer
            raise

    def patiently(self, steps: Steps[T]) -> Future[T]:
        """Queue work that gives way to requests between its steps; one work ends before the next begins."""
        study = _Study(steps)
        with self._wake:
            if not self.inside:  # what was queued before the session was closed is finished, lesson and all
                self._check_open()
            self._patient.append(study)
            self._wake.notify()
        return study.future

    @property
    def closed(self) -> bool:
        """Does it take no more work? (The thread does not live on in a forked process.)"""
        return self._closed or self.ended

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    @property
    def inside(self) -> bool:
        """Is this the worker's own thread?"""
        return threading.current_thread() is self._thread

    def settle(self) -> None:
        """On the worker: finish all patient work now."""
        if self._stepping:
            raise SessionError(
                "a lesson is being given. Who is told of a change may look at the session; to confirm, undo "
                "or save, hand that to session.submit(...)."
            )
        while self._patient:
            self._go_on(self._patient[0])

    def check(self) -> None:
        """Raise `Cancelled` if a newer request has taken the place of the one that is running."""
        if self.inside and self._current is not None and self._current.cancelled:
            raise Cancelled("a newer request took the place of this one; nothing was changed.")

    def close(self, then: Callable[[], None] | None = None) -> None:
        """Finish what is queued, do one last thing, and stop; on the worker itself that is soon, not now."""
        self.stop(then)
        if not self.inside:
            self._thread.join()

    def stop(self, then: Callable[[], None] | None = None) -> None:
        """The same, and do not wait for it."""
        with self._wake:
            self._closed = True
            self._then = self._then or (None if self.ended else then)
            self._wake.notify()

    def _queue(self, task: _Task) -> _Task:
        with self._wake:
            self._check_open()
            if task.key is not None:
                for older in (*self._requests, *([self._current] if self._current else [])):
                    older.cancelled = older.cancelled or older.key == task.key
            self._requests.append(task)
            self._wake.notify()
        return task

    def _check_open(self) -> None:
        if self.closed:
            raise SessionError(
                "this session is closed, or belongs to another process; open a new one, or restore it from "
                "where it was saved."
            )

    def _work(self) -> None:
        while True:
            with self._wake:
                while not (self._requests or self._patient or self._closed):
                    self._wake.wait()
                if self._requests:
                    self._current = self._requests.popleft()
                elif not self._patient:
                    break
            if self._current is not None:
                self._answer(self._current)
                self._current = None
            else:
                self._go_on(self._patient[0])
        then, self._then = self._then, None  # it may hold on to a whole session
        if then is not None:
            then()

    def _answer(self, task: _Task) -> None:
        """The answer to a request is its result or its error, never silence."""
        if not task.future.set_running_or_notify_cancel():
            return
        try:
            self.check()
            answer = task.run()
        except BaseException as error:
            task.future.set_exception(error)
        else:
            task.future.set_result(answer)

    def _go_on(self, study: _Study) -> None:
        """One step of patient work."""
        self._stepping = True
        try:
            next(study.steps)
            return
        except StopIteration as done:
            result, problem = done.value, None
        except BaseException as error:
            result, problem = None, error
        finally:
            self._stepping = False
        self._patient.popleft()
        if not study.future.set_running_or_notify_cancel():
            return  # nobody wants to know how it ended
        if problem is not None:
            study.future.set_exception(problem)
        else:
            study.future.set_result(result)


_running: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    """A process that ends lets its workers finish what is queued: a thread that is cut off in the middle of a
    lesson takes the process down with it, and the lesson is lost."""
    for worker in list(_running):
        while not worker.ended:
            with contextlib.suppress(KeyboardInterrupt):  # it is a matter of a second
                worker.close()
