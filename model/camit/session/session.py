"""A session: the sentences of one document, revised and confirmed one after the other.

The paper's session (section "Preliminary"): each revision regenerates the whole sentence, each confirmed
sentence is written into the revision memory and teaches the model one guarded step. One worker thread owns
the model, so every method may be called from any thread. Lessons are given to a copy of the network, in short
steps between clicks: no click meets weights that are half changed. With a journal, nothing is ever lost.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import torch

from camit.errors import Cancelled, InputError, SessionError
from camit.learning import Knowledge, Lesson
from camit.memory import MemorySnapshot
from camit.search.revise import Protocol, Settings
from camit.search.threads import begin_with
from camit.session import plan as planning
from camit.session.draft import Draft, Effort
from camit.session.engine import Engine
from camit.session.events import Event, Result, Statistics, statistics
from camit.session.journal import VERSION, Header, Journal, JournalWarning, snapshot_name
from camit.session.ledger import (
    AnyRecord,
    Configured,
    Confirmed,
    File,
    Learned,
    Ledger,
    Mind,
    Moved,
    Noted,
    Opened,
    Remembered,
    Revised,
    StoredVersion,
    Unconfirmed,
    Undo,
    Unlearned,
)
from camit.session.owned import SessionLearner, SessionMemory
from camit.session.plan import Version
from camit.session.worker import Steps, Worker
from camit.text import normalise
from camit.translator import Translator

T = TypeVar("T")
STATES_KEPT = 4  # how many of the last changes of memory or weights may be lost without harm to those before
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _State:
    """What is remembered and learned at one moment, exactly."""

    memory: MemorySnapshot
    learning: Knowledge


class Session:
    """Many drafts, one memory, one learner.

    `journal` is a directory to save the session in from the start; see `save`. The session learns for itself:
    the translator it is given stays as it is.

    >>> session = camit.Session(camit.load("zh-en"))  # doctest: +SKIP
    >>> draft = session.open("我们昨天在公园里看到了他。")  # doctest: +SKIP
    >>> draft.replace(1, "met").text  # doctest: +SKIP
    'We met him in the park yesterday.'
    """

    def __init__(
        self,
        translator: Translator,
        *,
        memory: bool = True,
        learning: bool = True,
        beam: int = 4,
        stability: float | None = None,
        protocol: Protocol = "bidirectional",
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        if not isinstance(translator, Translator):
            raise SessionError(
                f"a session needs a translator from camit.load(...), not {type(translator).__name__}."
            )
        _check_switches(memory=memory, learning=learning)
        settings = Settings(protocol=protocol, beam=beam)
        if stability is not None:
            settings = replace(settings, stability=stability)
        self.translator = translator.fork()
        self.student = translator.fork()
        self.worker = Worker()
        self.worker.submit(partial(begin_with, torch.get_num_threads()))
        # A session nobody holds any more lets its thread go, and its journal. (At the end of the process the
        # worker finishes its lesson first, and the system closes the journal.)
        weakref.finalize(self, self.worker.stop).atexit = False
        self.ledger = Ledger(self.translator.target_vocabulary, settings, memory, learning)
        self.memory = SessionMemory(self)
        self.memory.enabled = memory
        self.learning = SessionLearner(self)
        self.learning.enabled = learning
        self.engine = Engine(self.translator, self.memory, self.worker.check)
        self._drafts: tuple[Draft, ...] = ()
        self._undo: tuple[_State | None, ...] = ()  # beside ledger.undo; None: only the journal has it
        self._listeners: dict[int, Callable[[], None]] = {}
        self._listened = count()
        self._journal: Journal | None = None
        self._before: deque[tuple[File, ...]] = deque(maxlen=STATES_KEPT)
        if journal is not None:
            self.save(journal)

    # What there is

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return self._drafts

    @property
    def settings(self) -> Settings:
        """How revisions are searched; `configure` changes it."""
        return self.ledger.settings

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that was done, in order."""
        return tuple(self.ledger.events)

    def statistics(self) -> Statistics:
        """Effort over the confirmed sentences: revisions and seconds per sentence, WSR, MAR, KSMR."""
        confirmed = [draft for draft in self._drafts if draft.confirmed]
        results = [Result(d.id, len(d.tokens), len(d.text), d.revisions) for d in confirmed]
        return statistics(results, self.events, self.translator.target_vocabulary.language)

    # What a person does

    def open(self, text: str) -> Draft:
        """Translate a sentence into a draft; one that was learned from comes back as it was confirmed."""
        source = normalise(text)

        def run() -> Draft:
            version = self._first(source)
            draft = Draft(self, len(self._drafts), source)
            self._record_first(draft, version, "open")
            self._drafts = (*self._drafts, draft)
            self._tell()
            return draft

        return self.worker.call(run)

    def refresh(self, draft: Draft) -> Draft:
        """Translate a sentence that nobody has touched anew, with what was learned since it was opened."""

        def run() -> Draft:
            self._check_mine(draft)
            if not draft.untouched:
                raise SessionError("only a draft that nobody has worked on can be translated anew.")
            version = self._first(draft.source)
            if version.pieces != draft.pieces or _reasons(version) != _reasons(draft.version):
                self._record_first(draft, version, "refresh")
                self._tell()
            return draft

        return self.worker.call(run)

    def visit(self, draft: Draft) -> None:
        """Say that a person turned to this draft, so that its time is counted."""

        def run() -> None:
            self._check_mine(draft)
            self._record(Noted(event=_event("visit", draft.id)))
            self._tell()

        self.worker.call(run)

    def confirm(self, draft: Draft | None = None) -> Lesson:
        """Accept a sentence as it stands, the latest by default, and wait for the lesson it gives.

        Its fixes are remembered, and the model learns one guarded step from it.
        """
        lesson = self.confirm_soon(draft)
        if self.worker.inside:
            self.worker.settle()
        return lesson.result()

    def confirm_soon(self, draft: Draft | None = None) -> Future[Lesson]:
        """`confirm` without the wait: sentence and fixes are safe, the lesson is given between clicks."""

        def run() -> Future[Lesson]:
            self.worker.settle()  # lessons come one after the other
            chosen = self._to_confirm(draft)
            before = self._state()
            self._accept(chosen, before)
            lesson = self.worker.patiently(self._teach(chosen))
            self._tell()  # only now: who takes the confirmation back at once finds its lesson
            return lesson

        return self.worker.call(run)

    def undo_confirm(self) -> Draft:
        """Take the last confirmation back: weights and memory are exactly what they were before it.

        Only what was added to the memory, or taken from it, by hand since then stays so.
        """

        def run() -> Draft:
            self.worker.settle()
            if not self.ledger.undo:
                raise SessionError("no confirmation to undo; the last few of a session can be taken back.")
            undo = self.ledger.undo[-1]
            before = self._undo[-1] or self._load_state(undo.before)
            memory, file, now = before.memory, undo.before.memory, self.memory.snapshot()
            if undo.by_hand:
                changed = memory.with_changes(now, undo.added, undo.removed)
                memory = replace(changed, entries=self.memory.fitting(changed.entries))
            if undo.by_hand or now.next_id > memory.next_id:
                # Numbers are not given twice: an open draft may still name an entry that is taken back.
                memory = replace(memory, next_id=now.next_id)
                file = self._store_memory(memory)
            self._record(Unconfirmed(memory=file, event=_event("undo_confirm", undo.draft, mouse=1)))
            self._undo = self._undo[:-1]
            self._put(_State(memory, before.learning))
            self._tell()
            return self._drafts[undo.draft]

        return self.worker.call(run)

    def configure(
        self,
        *,
        beam: int | None = None,
        stability: float | None = None,
        protocol: Protocol | None = None,
        memory: bool | None = None,
        learning: bool | None = None,
    ) -> Settings:
        """Change how revisions are searched from now on, and switch memory and learning on or off.

        With learning off nothing new is learned; what was learned before is still used.
        """
        _check_switches(memory=memory, learning=learning)
        given = {"beam": beam, "stability": stability, "protocol": protocol}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

        def run() -> Settings:
            settings = replace(self.settings, **changes)
            self._record(
                Configured(
                    settings=settings,
                    memory=bool(self.memory.enabled) if memory is None else memory,
                    learning=bool(self.learning.enabled) if learning is None else learning,
                )
            )
            self.memory.enabled, self.learning.enabled = self.ledger.memory, self.ledger.learning
            self._tell()
            return settings

        return self.worker.call(run)

    def submit(self, run: Callable[[], T], *, key: Hashable | None = None) -> Future[T]:
        """Run something on the worker without waiting; a newer one of the same key cancels an older one."""
        return self.worker.submit(run, key=key)

    def post(self, run: Callable[[], object], *, key: Hashable | None = None) -> None:
        """`submit` for what nobody waits for: should it fail, the log says so."""
        self.submit(run, key=key).add_done_callback(_log_failure)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called on the worker after each change, whoever caused it; until what this gives
        is called."""
        number = next(self._listened)
        self._listeners[number] = listener

        def stop() -> None:
            self._listeners.pop(number, None)

        return stop

    # Saving and restoring

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session into a new directory, and from now on every change as it happens.

        After that the process may end at any moment: `Session.restore` brings back every confirmed sentence,
        every version of the open ones, the memory and what was learned.
        """
        directory = Path(path).absolute()  # wherever the process goes meanwhile

        def run() -> None:
            journal = self._journal
            if journal is not None and not journal.lost and _same(journal.directory, directory):
                self._note_switches()
                return  # it is all there already
            self.worker.settle()
            snapshots: dict[str, bytes] = {}
            undo: list[Undo] = []
            states: list[_State] = []
            for undone, known in zip(reversed(self.ledger.undo), reversed(self._undo), strict=True):
                try:
                    state = known or self._load_state(undone.before)
                except SessionError:  # it went with the old directory, or is damaged there
                    warnings.warn(
                        f"of {len(self.ledger.undo)} confirmations that could be taken back, {len(undo)} "
                        "still can: for the others, snapshots are missing or damaged where the session was.",
                        JournalWarning,
                        stacklevel=2,
                    )
                    break
                mind = self._pack(undone.before, state, snapshots)
                undo.insert(0, msgspec.structs.replace(undone, before=mind))
                states.insert(0, state)
            mind = self._pack(self.ledger.mind, self._state(), snapshots)
            new = Journal.create(directory, self._header(), snapshots, self.ledger.saved(mind, tuple(undo)))
            self.ledger.mind, self.ledger.undo = mind, tuple(undo)
            self._undo = tuple(states)
            self._before.clear()  # which name snapshots of another directory
            self._follow(new)
            self._note_switches()

        self.worker.call(run)

    @classmethod
    def restore(cls, path: str | os.PathLike[str], translator: Translator) -> Session:
        """The session that was saved at `path`, as it was last; it goes on being saved there."""
        session = cls(translator)
        try:
            session.worker.call(lambda: session._restore(Path(path).absolute()))
        except BaseException:
            session._leave()
            raise
        return session

    def close(self) -> None:
        """Finish what is queued, let the worker go, and close the journal."""
        try:
            if not self.worker.closed:
                self.worker.call(self._note_switches)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Let worker and journal go as they are."""

        def close_journal() -> None:
            if self._journal is not None:
                self._journal.close()

        self.worker.close(close_journal)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # What drafts, memory and learner tell the session; on the worker

    def record_version(self, draft: Draft, version: Version, kind: str, effort: Effort) -> None:
        """A draft has a new version."""
        stored = StoredVersion.of(version, self.translator.target_vocabulary)
        self._record(Revised(draft=draft.id, version=stored, event=_effort_event(kind, draft.id, effort)))
        self._tell()

    def record_move(self, draft: Draft, by: Literal[-1, 1], kind: str, effort: Effort) -> None:
        """A draft shows another version."""
        self._record(Moved(draft=draft.id, by=by, event=_effort_event(kind, draft.id, effort)))
        self._tell()

    def record_memory(self, before: MemorySnapshot, added: Iterable[int], removed: Iterable[int]) -> None:
        """The memory was changed by hand; if that cannot be recorded, it is as before."""
        try:
            file = self._store_memory(self.memory.snapshot())
            self._record(Remembered(memory=file, added=tuple(added), removed=tuple(removed)))
        except BaseException:
            self.memory.restore(before)
            raise
        self._tell()

    def unlearn(self) -> None:
        """Everything that was learned is forgotten."""
        self.worker.settle()
        if not any(lesson.accepted for lesson in self.ledger.lessons):
            return
        self._record(Unlearned())
        self._undo = ()
        self._put(_State(self.memory.snapshot(), self.learning.knowledge(None)))
        self._tell()

    # Inside

    def _to_confirm(self, draft: Draft | None) -> Draft:
        latest = next((e.draft for e in reversed(self.ledger.events) if e.draft is not None), None)
        if draft is None and latest is None:
            raise SessionError("there is no draft to confirm; open a sentence first.")
        chosen = self._drafts[latest] if draft is None and latest is not None else draft
        assert chosen is not None
        self._check_mine(chosen)
        if chosen.confirmed:
            raise SessionError("this sentence is confirmed already; session.undo_confirm() takes that back.")
        return chosen

    def _check_mine(self, draft: Draft) -> None:
        if draft not in self._drafts:
            raise SessionError("this draft belongs to another session.")

    def _accept(self, draft: Draft, before: _State) -> None:
        """The sentence is confirmed and its fixes are in the memory: all that must never be lost."""
        version = draft.version
        try:
            self.memory.count_copies(token.copied_from for token in version.tokens)
            if self.memory.enabled:
                vocabulary = self.translator.target_vocabulary
                spans = planning.written(version, vocabulary)
                first = self._drafted(draft)
                known = set() if first is None else planning.in_both(version, first, vocabulary)
                ids = self.translator.encode_source(draft.source)
                self.memory.write(draft.source, ids, version.pieces, spans, draft.id, known)
            now = self.memory.snapshot()
            changed = now != before.memory
            self._record(
                Confirmed(
                    draft=draft.id,
                    memory=self._store_memory(now) if changed else self.ledger.mind.memory,
                    event=_event("confirm", draft.id, mouse=1),
                )
            )
        except BaseException:
            self.memory.restore(before.memory)
            raise
        self._undo = (*self._undo, before)[-len(self.ledger.undo) :]

    def _drafted(self, draft: Draft) -> planning.Version | None:
        """What the machine had written by itself; after very many operations that is not known any more."""
        first = self.ledger.pages[draft.id].history.versions[0]
        return None if first.revisions else first

    def _teach(self, draft: Draft) -> Steps[Lesson]:
        """The lesson of a confirmed sentence: a student learns, the session changes in one last step."""
        before = self.learning.snapshot()
        ids, pieces = self.translator.encode_source(draft.source), draft.pieces
        first = self._drafted(draft)
        drafted = () if first is None else first.pieces
        lesson = yield from self.learning.study(ids, pieces, draft.id, drafted)
        # No step ends between here and the next yield: a click sees all of the lesson or nothing.
        mind = self.ledger.mind
        try:
            self._record(
                Learned(
                    lesson=lesson,
                    replayed=self.learning.snapshot().replayed,
                    learned=self._store_learned() if lesson.accepted else mind.learned,
                )
            )
        except SessionError as error:
            self.learning.restore(before)
            raise SessionError(f"the sentence is confirmed, but not its lesson: {error}") from error
        except BaseException:
            self.learning.restore(before)
            raise
        if lesson.accepted:
            self.translator.adopt(self.student)
        self._tell()
        yield
        if lesson.accepted:
            self.engine.warm()
        return lesson

    def _first(self, source: str) -> Version:
        """What a draft begins with: a sentence that was confirmed before is recalled, not written anew."""
        draft = self.learning.recalled_as(self.translator.encode_source(source))
        # Words outside a word list are all the same to the learner; and it may have learned elsewhere.
        if draft is None or draft >= len(self._drafts) or self._drafts[draft].source != source:
            return self.engine.first(source, self.settings)
        return self.engine.again(source, self._drafts[draft].pieces, draft, self.settings)

    def _record_first(self, draft: Draft, version: Version, kind: str) -> None:
        stored = StoredVersion.of(version, self.translator.target_vocabulary)
        event = _event(kind, draft.id)
        self._record(Opened(draft=draft.id, source=draft.source, version=stored, event=event))

    def _record(self, record: AnyRecord) -> None:
        """Put a change on the disk, then make it."""
        if not isinstance(record, Configured):
            self._note_switches()
        if self._journal is not None:
            self._journal.append(record)
        before = tuple(self.ledger.files)
        self.ledger.apply(record)
        if self._journal is not None and before != (now := tuple(self.ledger.files)):
            # Also those of the states before: should the last records be lost, one of them is restored.
            self._before.append(before)
            self._journal.keep((*chain(*self._before), *now))

    def _note_switches(self) -> None:
        """`memory.enabled` and `learning.enabled` are plain attributes: see whether somebody changed them."""
        now = bool(self.memory.enabled), bool(self.learning.enabled)
        if now != (self.ledger.memory, self.ledger.learning):
            self._record(Configured(settings=self.settings, memory=now[0], learning=now[1]))

    def _tell(self) -> None:
        for listener in tuple(self._listeners.values()):
            try:
                listener()
            except Exception as error:  # whoever looks on must not break what is looked at
                # Of a closed session nobody can ask for more; its last lesson is finished all the same.
                if not (isinstance(error, SessionError) and self.worker.closed):
                    _log.exception("a listener of the session failed")

    def _state(self) -> _State:
        return _State(self.memory.snapshot(), self.learning.snapshot())

    def _put(self, state: _State) -> None:
        self.learning.restore(state.learning)
        self.translator.adopt(self.student)
        self.memory.restore(state.memory)

    # Snapshots

    def _store_memory(self, memory: MemorySnapshot) -> File | None:
        return (
            None if self._journal is None else self._journal.store("memory", memory.to_bytes(self.translator))
        )

    def _store_learned(self) -> File | None:
        return None if self._journal is None else self._journal.store("learned", self.learning.offset())

    def _pack(self, mind: Mind, state: _State, snapshots: dict[str, bytes]) -> Mind:
        """A state as snapshots for a new journal, by the names they get there; equal ones are stored once."""

        def name(kind: str, data: bytes) -> File:
            known = [name for name, other in snapshots.items() if other == data]
            chosen = known[0] if known else snapshot_name(kind, len(snapshots) + 1)
            snapshots[chosen] = data
            return File.of(chosen, data)

        memory = name("memory", state.memory.to_bytes(self.translator)) if state.memory.next_id > 1 else None
        learned = None
        if any(lesson.accepted for lesson in state.learning.lessons):
            learned = name("learned", self.learning.offset(state.learning))
        return msgspec.structs.replace(mind, memory=memory, learned=learned)

    def _load_state(self, mind: Mind) -> _State:
        """A state that only the journal has."""
        assert self._journal is not None
        memory = MemorySnapshot()
        if mind.memory is not None:
            data = self._journal.load(mind.memory)
            try:
                memory = MemorySnapshot.from_bytes(data, self.translator)
            except SessionError as error:
                raise SessionError(f"{self._journal.directory / mind.memory.name}: {error}") from error
        offset = None if mind.learned is None else self._journal.load(mind.learned)
        lessons = self.ledger.lessons[: mind.lessons]
        return _State(memory, self.learning.knowledge(offset, lessons, mind.replayed))

    def _header(self) -> Header:
        translator = self.translator
        return Header(version=VERSION, model=translator.name, digest=translator.digest, created=time.time())

    def _follow(self, journal: Journal) -> None:
        """Append to this journal from now on."""
        if self._journal is not None:
            self._journal.close()
        self._journal = journal
        weakref.finalize(self, journal.close).atexit = False

    def _restore(self, directory: Path) -> None:
        journal, records = Journal.open(directory, self.translator.name, self.translator.digest)
        self._follow(journal)
        for number, record in enumerate(records, 2):
            before = tuple(self.ledger.files)
            try:
                self.ledger.apply(record)
            except SessionError as error:
                raise SessionError(
                    f"{directory}: line {number} of the journal does not fit what stands before it: {error}. "
                    "Put the directory back from a copy. Nothing was changed."
                ) from error
            if before != tuple(self.ledger.files):
                self._before.append(before)
        self.ledger.complete(journal.has)
        self._put(self._load_state(self.ledger.mind))
        self.memory.enabled, self.learning.enabled = self.ledger.memory, self.ledger.learning
        self._drafts = tuple(Draft(self, n, page.source) for n, page in enumerate(self.ledger.pages))
        self._undo = (None,) * len(self.ledger.undo)
        journal.go_on((*chain(*self._before), *self.ledger.files))
        self._record(Noted(event=_event("restore", None)))
        if self.ledger.untaught is not None:
            lesson = self.worker.patiently(self._teach(self._drafts[self.ledger.untaught]))
            lesson.add_done_callback(_log_failure)


def _log_failure(future: Future[Any]) -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None and not isinstance(error, Cancelled):
        _log.error("something the session did in the background failed", exc_info=error)


def _event(kind: str, draft: int | None, *, mouse: int = 0) -> Event:
    return Event(time.time(), kind, draft, mouse=mouse)


def _effort_event(kind: str, draft: int, effort: Effort) -> Event:
    return Event(time.time(), kind, draft, effort.typed, effort.keystrokes, effort.mouse)


def _reasons(version: Version) -> list[tuple[float, int | None, int | None]]:
    """What the past had to say about each word."""
    return [(token.theta, token.copied_from, token.recalled_from) for token in version.tokens]


def _check_switches(**switches: bool | None) -> None:
    for name, value in switches.items():
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{name} must be True or False, not {value!r}.")


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
