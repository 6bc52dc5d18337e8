"""The memory and the learner of a session, as it shows them: what is changed by hand runs on the session's
worker and goes into its journal."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from camit.errors import SessionError
from camit.learning import OnlineLearner
from camit.memory import Known, MemoryEntry, MemoryWeights, RevisionMemory
from camit.memory.gate import Keys

if TYPE_CHECKING:
    from camit.session.session import Session

T = TypeVar("T")


class SessionMemory(RevisionMemory):
    """The memory of a session: what is changed by hand runs on its worker and goes into its journal."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.translator)
        self._session = weakref.ref(session)
        self._changing = False

    def add(self, source: str, text: str) -> MemoryEntry:
        return self._by_hand(partial(super().add, source, text))

    def remove(self, entry: int) -> None:
        self._by_hand(partial(super().remove, entry), forgets=True)

    def put_back(self, entry: MemoryEntry) -> None:
        self._by_hand(partial(super().put_back, entry))

    def pin(self, entry: int) -> None:
        self._by_hand(partial(super().pin, entry))

    def unpin(self, entry: int) -> None:
        self._by_hand(partial(super().unpin, entry))

    def clear(self) -> None:
        self._by_hand(super().clear, forgets=True)

    def import_tsv(self, path: str | Path) -> tuple[MemoryEntry, ...]:
        return self._by_hand(partial(super().import_tsv, path))

    def keys(self, way: Literal["forward", "backward"] = "forward") -> Keys:
        return self._of_session.worker.call(partial(super().keys, way))

    def weights(self, draft: Known) -> MemoryWeights:
        return self._of_session.worker.call(partial(super().weights, draft))

    @property
    def _of_session(self) -> Session:
        session = self._session()
        if session is None:
            raise SessionError("the session of this memory is gone; keep the session, or restore it.")
        return session

    def _by_hand(self, change: Callable[[], T], *, forgets: bool = False) -> T:
        """`forgets`: what is gone afterwards was meant to go; it did not only make room."""

        def run() -> T:
            if self._changing:  # a glossary is one change, not one for each row
                return change()
            before = self.snapshot()
            self._changing = True
            try:
                result = change()
            except BaseException:
                self.restore(before)
                raise
            finally:
                self._changing = False
            if self.entries != before.entries:
                was, now = ({entry.id for entry in entries} for entries in (before.entries, self.entries))
                # Who clears the memory means what made room before, too.
                gone = was - now if now else range(1, before.next_id)
                self._of_session.record_memory(before, sorted(now - was), gone if forgets else ())
            return result

        return self._of_session.worker.call(run)


class SessionLearner(OnlineLearner):
    """The learner of a session: it teaches a student, and what is changed by hand goes into the journal."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.student)
        self._session = weakref.ref(session)

    def reset(self) -> None:
        """Forget everything that was learned. What was confirmed before cannot be taken back any more."""
        session = self._session()
        if session is None:
            raise SessionError("the session of this learner is gone; keep the session, or restore it.")
        session.worker.call(session.unlearn)
