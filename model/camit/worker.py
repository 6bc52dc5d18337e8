"""One worker thread owns the model; everybody else hands it work and waits or goes on.

A newer request of the same key takes the place of an older one: what is queued is dropped, what runs raises `Cancelled`
at its next step. So ten fast clicks cost one search, and the notebook is never frozen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from camit.errors import Cancelled, SessionError

T = TypeVar("T")


@dataclass
class _Task:
    run: Callable[[], Any]
    key: Hashable | None
    future: Future[Any] = field(default_factory=Future)
    cancelled: bool = False


class Worker:
    """A queue and one thread. Tasks run in order; `check` raises inside a task that has been cancelled."""

    def __init__(self, name: str = "camit") -> None:
        self._queue: deque[_Task] = deque()
        self._wake = threading.Condition()
        self._current: _Task | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, run: Callable[[], T], *, key: Hashable | None = None) -> Future[T]:
        """Queue `run`; with a key, cancel whatever was asked before under it."""
        task = _Task(run, key)
        with self._wake:
            if self._closed:
                raise SessionError("this session is closed; open a new one or restore it from its file.")
            if key is not None:
                for older in (*self._queue, *([self._current] if self._current else [])):
                    older.cancelled = older.cancelled or older.key == key
            self._queue.append(task)
            self._wake.notify()
        return task.future

    def call(self, run: Callable[[], T]) -> T:
        """Run and wait; directly when already on the worker."""
        return run() if self.inside else self.submit(run).result()

    @property
    def inside(self) -> bool:
        return threading.current_thread() is self._thread

    def check(self) -> None:
        """Raise `Cancelled` if a newer request has taken the place of the one that is running."""
        if self.inside and self._current is not None and self._current.cancelled:
            raise Cancelled("a newer request took the place of this one; nothing was changed.")

    def close(self) -> None:
        """Finish what is queued and stop."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if not self.inside:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closed:
                    self._wake.wait()
                if not self._queue:
                    return
                task = self._current = self._queue.popleft()
            try:
                self.check()
                task.future.set_result(task.run())
            except (
                BaseException
            ) as error:  # the answer to a request is its result or its error, never silence
                task.future.set_exception(error)
            finally:
                self._current = None
                del task
