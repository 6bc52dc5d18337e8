"""What has happened in a session, as data: each change is a record, and all of them in order give the state.

A session changes its state in no other way, and its journal stores nothing else. So what `Session.restore`
brings back is, by construction, what was there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from camit.errors import SessionError
from camit.learning import Lesson
from camit.search.problem import Phrase
from camit.search.revise import Settings
from camit.session.events import Event
from camit.session.plan import Fixed, Stage, Version
from camit.text import SPECIALS, UNK, Vocabulary
from camit.tokens import Token

UNDO = 200  # operations of one draft that can be undone
UNDO_CONFIRM = 8  # confirmations that can be undone: each holds on to the weights before it


# Records


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A snapshot that lies beside the journal."""

    name: str
    digest: str  # sha256

    @classmethod
    def of(cls, name: str, data: bytes) -> File:
        return cls(name, hashlib.sha256(data).hexdigest())


class Record(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="is", tag=str.lower
):
    """A change of the state."""


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version without what its neighbours know. `extra`: the written form of ids outside the vocabulary."""

    pieces: Phrase
    tokens: tuple[Token, ...]
    fixed: tuple[Fixed, ...]
    starts: bool
    ends: bool
    revisions: int
    stages: tuple[Stage, ...]
    extra: dict[int, str] = {}

    @classmethod
    def of(cls, version: Version, vocabulary: Vocabulary) -> StoredVersion:
        fields = {name: getattr(version, name) for name in cls.__struct_fields__ if name != "extra"}
        extra = {i: vocabulary.piece(i) for i in version.pieces if i >= len(vocabulary)}
        return cls(**fields, extra=extra)

    def version(self, before: Version | None, vocabulary: Vocabulary) -> Version:
        """The version itself, checked; `before` is the one it was made from."""
        known = {i: vocabulary.extra(piece) for i, piece in self.extra.items()}
        pieces = tuple(known.get(i, i) for i in self.pieces)
        size = len(vocabulary)
        # A word list writes UNK where it has no word; a sentence with it is stored like any other.
        if any(i != UNK and not SPECIALS <= i < size and i not in known.values() for i in pieces):
            raise SessionError("it has pieces this model does not know")
        if [word.text for word in vocabulary.words(pieces)] != [token.text for token in self.tokens]:
            raise SessionError("its pieces and its words do not say the same")
        reached = 0
        for f in self.fixed:
            if not reached <= f.start < f.stop <= len(self.tokens) or len(f.mine) != f.stop - f.start:
                raise SessionError("its fixed words lie outside the sentence")
            reached = f.stop
        searched = before is not None and self.revisions > before.revisions
        return Version(
            pieces=pieces,
            tokens=self.tokens,
            fixed=self.fixed,
            starts=self.starts,
            ends=self.ends,
            revisions=self.revisions,
            stages=self.stages,
            before=() if before is None else before.tokens if searched else before.before,
        )


class Opened(Record, frozen=True):
    """A sentence was translated; a draft that is there already starts over."""

    draft: int
    source: str
    version: StoredVersion
    event: Event


class Revised(Record, frozen=True):
    """A draft has a new version."""

    draft: int
    version: StoredVersion
    event: Event


class Moved(Record, frozen=True):
    """Undo or redo: a draft shows another of its versions."""

    draft: int
    by: Literal[-1, 1]
    event: Event


class Confirmed(Record, frozen=True):
    """A sentence is accepted and its fixes are remembered; its lesson follows."""

    draft: int
    memory: File | None
    event: Event


class Learned(Record, frozen=True):
    """The lesson of the last confirmation is over; without `learned` the weights are the checkpoint's."""

    lesson: Lesson
    replayed: int
    learned: File | None


class Unlearned(Record, frozen=True):
    """Everything that was learned is forgotten: the weights are the checkpoint's, and nothing is recalled."""


class Unconfirmed(Record, frozen=True):
    """The last confirmation is taken back."""

    memory: File | None
    event: Event


class Remembered(Record, frozen=True):
    """The memory was changed by hand: entries with these ids were added, or removed."""

    memory: File | None
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


class Configured(Record, frozen=True):
    settings: Settings
    memory: bool
    learning: bool


class Noted(Record, frozen=True):
    """Something that changes nothing but the statistics."""

    event: Event


class Mind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is remembered and learned, by its snapshots; None where there are none."""

    memory: File | None = None
    learned: File | None = None
    lessons: int = 0
    replayed: int = 0

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(file for file in (self.memory, self.learned) if file is not None)


class Undo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What taking a confirmation back needs."""

    draft: int
    before: Mind
    # What was done to the memory by hand since: ids of entries.
    by_hand: bool = False
    added: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()

    def and_then(self, change: Remembered) -> Undo:
        """The same after one more change by hand."""
        added, removed = frozenset(change.added), frozenset(change.removed)
        return msgspec.structs.replace(
            self,
            by_hand=True,
            added=self.added - removed | added - self.removed,  # what was put back was only gone for a while
            removed=self.removed - added | removed - self.added,
        )


class Saved(Record, frozen=True):
    """The state of a session without its drafts and events, which follow; every journal begins with one."""

    lessons: tuple[Lesson, ...]
    settings: Settings
    memory: bool
    learning: bool
    mind: Mind
    undo: tuple[Undo, ...]


class Drafted(Record, frozen=True):
    """A draft with all its versions; `before` is what the first of them, maybe the 200th, was made from."""

    source: str
    versions: tuple[StoredVersion, ...]
    at: int
    confirmed: bool
    before: tuple[Token, ...] = ()


AnyRecord = (
    Opened
    | Revised
    | Moved
    | Confirmed
    | Learned
    | Unlearned
    | Unconfirmed
    | Remembered
    | Configured
    | Noted
    | Saved
    | Drafted
)


# The state they make


@dataclass(frozen=True)
class History:
    """The versions of a draft, and which of them is shown."""

    versions: tuple[Version, ...]
    at: int = 0

    @property
    def shown(self) -> Version:
        return self.versions[self.at]

    def grown(self, version: Version) -> History:
        versions = (*self.versions[: self.at + 1], version)[-UNDO - 1 :]
        return History(versions, len(versions) - 1)

    def moved(self, by: int) -> History:
        if not 0 <= self.at + by < len(self.versions):
            raise SessionError("it goes to a version that is not there")
        return History(self.versions, self.at + by)

    def forgotten(self) -> History:
        """Only what is shown, without how it came about."""
        return History((replace(self.shown, stages=(), before=()),))


@dataclass(frozen=True)
class Page:
    """A draft in the ledger."""

    source: str
    history: History
    confirmed: bool = False


@dataclass
class Ledger:
    """The state of a session, apart from the network and the memory themselves."""

    vocabulary: Vocabulary
    settings: Settings
    memory: bool = True  # switched on?
    learning: bool = True
    pages: list[Page] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    mind: Mind = field(default_factory=Mind)
    undo: tuple[Undo, ...] = ()

    def apply(self, record: AnyRecord) -> None:
        """Make the change a record stands for; `SessionError` if it does not fit the state."""
        match record:
            case Opened(draft=draft, source=source, version=stored):
                if not 0 <= draft <= len(self.pages):
                    raise SessionError(f"it opens draft {draft}, but there are {len(self.pages)}")
                self.pages[draft:] = [
                    Page(source, History((stored.version(None, self.vocabulary),))),
                    *self.pages[draft + 1 :],
                ]
            case Revised(draft=draft, version=stored):
                history = self._page(draft).history
                version = stored.version(history.shown, self.vocabulary)
                self._turn(draft, history=history.grown(version))
            case Moved(draft=draft, by=by):
                self._turn(draft, history=self._page(draft).history.moved(by))
            case Confirmed(draft=draft, memory=memory):
                self._page(draft)
                self._turn(draft, confirmed=True)
                self.undo = (*self.undo, Undo(draft=draft, before=self.mind))
                self.mind = msgspec.structs.replace(self.mind, memory=memory)
                self._settle(len(self.undo) - UNDO_CONFIRM)
            case Learned(lesson=lesson, replayed=replayed, learned=learned):
                self.lessons.append(lesson)
                self.mind = msgspec.structs.replace(
                    self.mind, learned=learned, lessons=len(self.lessons), replayed=replayed
                )
            case Unlearned():
                self.lessons.clear()
                self.mind = Mind(memory=self.mind.memory)
                self._settle(len(self.undo))  # or else an undo would bring back what was learned
            case Unconfirmed(memory=memory):
                if not self.undo:
                    raise SessionError("it takes back a confirmation that is not there")
                *rest, last = self.undo
                self.undo = tuple(rest)
                self.mind = msgspec.structs.replace(last.before, memory=memory)
                del self.lessons[self.mind.lessons :]
                self._turn(last.draft, confirmed=False)
            case Remembered(memory=memory):
                self.mind = msgspec.structs.replace(self.mind, memory=memory)
                self.undo = tuple(undo.and_then(record) for undo in self.undo)
            case Configured(settings=settings, memory=on, learning=learns):
                self.settings, self.memory, self.learning = settings, on, learns
            case Noted():
                pass
            case Saved():
                self.lessons, self.mind, self.undo = list(record.lessons), record.mind, record.undo
                self.settings, self.memory, self.learning = record.settings, record.memory, record.learning
            case Drafted(source=source, versions=stored_versions, at=at, confirmed=confirmed):
                versions: list[Version] = []
                for stored in stored_versions:
                    version = stored.version(versions[-1] if versions else None, self.vocabulary)
                    versions.append(version if versions else replace(version, before=record.before))
                if not 0 <= at < len(versions):
                    raise SessionError("it shows a version that is not there")
                self.pages.append(Page(source, History(tuple(versions), at), confirmed))
        event = getattr(record, "event", None)
        if event is not None:
            self.events.append(event)

    def saved(self, mind: Mind, undo: tuple[Undo, ...]) -> Iterator[AnyRecord]:
        """Records that make this state; `mind` and `undo` name snapshots as they are called where it goes."""
        yield Saved(
            lessons=tuple(self.lessons),
            settings=self.settings,
            memory=self.memory,
            learning=self.learning,
            mind=mind,
            undo=undo,
        )
        for page in self.pages:
            versions = tuple(StoredVersion.of(v, self.vocabulary) for v in page.history.versions)
            yield Drafted(
                source=page.source,
                versions=versions,
                before=page.history.versions[0].before,
                at=page.history.at,
                confirmed=page.confirmed,
            )
        for event in self.events:
            yield Noted(event=event)

    def complete(self, has: Callable[[File], bool]) -> None:
        """All records are applied. A confirmation whose draft went with a damaged tail cannot be undone; nor
        can one that needs a snapshot which was tidied away before the tail was lost, nor any before that."""
        undo = tuple(undo for undo in self.undo if undo.draft < len(self.pages))
        gone = (at for at, one in enumerate(undo, 1) if not all(map(has, one.before.files)))
        self.undo = undo[max(gone, default=0) :]

    @property
    def untaught(self) -> int | None:
        """The draft that was confirmed last, if its lesson was not over when the session ended."""
        last = self.undo[-1] if self.undo else None
        return last.draft if last is not None and last.before.lessons == self.mind.lessons else None

    @property
    def files(self) -> Iterator[File]:
        """All snapshots that are still needed."""
        for mind in (self.mind, *(undo.before for undo in self.undo)):
            yield from mind.files

    def _page(self, draft: int) -> Page:
        """A page that can still be changed."""
        if not 0 <= draft < len(self.pages):
            raise SessionError(f"it is about draft {draft}, but there are {len(self.pages)}")
        if self.pages[draft].confirmed:
            raise SessionError(f"it changes draft {draft}, which is confirmed")
        return self.pages[draft]

    def _settle(self, confirmations: int) -> None:
        """The earliest of those that could be taken back stand for good."""
        for settled in self.undo[: max(0, confirmations)]:
            self._turn(settled.draft, history=self.pages[settled.draft].history.forgotten())
            self.undo = self.undo[1:]

    def _turn(self, draft: int, **changes: Any) -> None:
        self.pages[draft] = replace(self.pages[draft], **changes)
