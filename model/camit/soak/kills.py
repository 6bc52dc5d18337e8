"""A session in another process, killed at random moments, and whether everything was there afterwards.

The victim says after every operation what its session looks like. Whatever it has said must be in what is
restored: nothing but the operation it was killed in may be missing. Now and then it is killed before it has
said a word, while it restores its session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import msgspec

from camit.errors import InputError
from camit.session import Session
from camit.session.journal import FILE, JournalWarning
from camit.soak import chance
from camit.soak.oracle import Violation
from camit.soak.state import digest
from camit.translator import Translator


class Said(msgspec.Struct):
    """What the victim says after an operation, in one line."""

    doing: str  # what comes next
    lines: int  # of the journal
    digest: str  # of everything
    confirmed: dict[int, str]  # the text of each confirmed draft
    events: int


EARLY = 0.2  # of the victims are killed without waiting for a word of theirs


def kill_once(
    directory: Path, translator: Translator, sources: tuple[str, ...], rng: Random, before: str
) -> tuple[str, str]:
    """Run a victim on a saved session, kill it after a while, restore and compare.

    `before` is the digest of the session as it was saved. What the victim was doing, and the digest now.
    """
    reader, writer = os.pipe()
    victim = os.fork()
    if victim == 0:
        os.close(reader)
        try:
            _live(directory, translator, sources, rng, writer)
        finally:
            os._exit(1)  # it never comes to an end by itself
    os.close(writer)
    early = rng.random() < EARLY
    patience = (0.1 if early else rng.choice((0.05, 0.3, 1.0, 2.0))) * rng.random()
    listen = _listen_late if early else _listen
    said = listen(reader, lambda: os.kill(victim, signal.SIGKILL), patience)
    _, status = os.waitpid(victim, 0)
    if not os.WIFSIGNALED(status):
        raise Violation(f"the victim ended by itself with status {status}; it last said {said}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JournalWarning)
        session = Session.restore(directory, translator)
    with session:
        if said is not None:
            _compare(session, said, directory)
        elif digest(session) != before:
            raise Violation("killed while it was restored, the session is another one than was there")
        session.worker.call(session.worker.settle)  # a lesson that was not over
        doing = (said.doing if said else "restoring") + (", half a line" if caught else "")
        return doing, digest(session)


def _listen(reader: int, kill: Callable[[], None], patience: float) -> Said | None:
    """What the victim said last before it was killed; the time runs from its first word."""
    said: Said | None = None
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            if said is None:
                stop = time.monotonic() + patience
            said = msgspec.json.decode(line, type=Said)
            if time.monotonic() >= stop:
                break
        time.sleep(patience / 50)  # into the middle of the next operation
        kill()
        return _last(lines) or said


def _listen_late(reader: int, kill: Callable[[], None], patience: float) -> Said | None:
    """The same, but the time runs from the beginning: the victim may not have said a word."""
    with os.fdopen(reader, "rb") as lines:
        time.sleep(patience)
        kill()
        return _last(lines)


def _last(lines: Iterable[bytes]) -> Said | None:
    whole = [line for line in lines if line.endswith(b"\n")]
    return msgspec.json.decode(whole[-1], type=Said) if whole else None


def _compare(session: Session, said: Said, directory: Path) -> None:
    lines = (directory / FILE).read_bytes().count(b"\n") - 1  # restoring has added one
    if lines < said.lines:
        raise Violation(f"{said.lines} lines were written, {lines} are left; {said}")
    if lines == said.lines and digest(session) != said.digest:
        raise Violation(f"the restored session is another one than was there: {said}")
    if len(session.events) < said.events:
        raise Violation(f"events are missing: {len(session.events)} of {said.events}; {said}")
    for draft, text in said.confirmed.items():
        restored = session.drafts[draft]
        if said.doing != "undo_confirm" and not (restored.confirmed and restored.text == text):
            raise Violation(f"confirmed sentence {draft} {text!r} came back as {restored}; {said}")


def _live(
    directory: Path, translator: Translator, sources: tuple[str, ...], rng: Random, writer: int
) -> None:
    """The life of a victim: restore, and then one operation after the other."""
    warnings.simplefilter("ignore", JournalWarning)
    session = Session.restore(directory, translator)
    while True:
        doing, run = _next(session, sources, rng)
        confirmed = {draft.id: draft.text for draft in session.drafts if draft.confirmed}
        lines = (directory / FILE).read_bytes().count(b"\n")
        said = Said(doing, lines, digest(session), confirmed, len(session.events))
        os.write(writer, msgspec.json.encode(said) + b"\n")
        with contextlib.suppress(InputError):  # what cannot be done to this draft; all else is a finding
            run()


def _next(session: Session, sources: tuple[str, ...], rng: Random) -> tuple[str, Callable[[], object]]:
    """Something to do."""
    open_ones = [draft for draft in session.drafts[-12:] if not draft.confirmed]
    if not open_ones or (len(open_ones) < 3 and rng.random() < 0.3):
        return "open", lambda: session.open(rng.choice(sources))
    kind = rng.choice(
        ("revise", "revise", "revise", "confirm", "confirm", "undo_confirm", "memory", "configure")
    )
    draft = rng.choice(open_ones)
    entries = session.memory.entries
    if kind == "confirm":
        return kind, lambda: session.confirm(draft)
    if kind == "undo_confirm" and session.ledger.undo and rng.random() < 0.5:
        return kind, session.undo_confirm
    if kind == "memory" and entries:
        entry = rng.choice(entries).id
        return kind, rng.choice((lambda: session.memory.pin(entry), lambda: session.memory.remove(entry)))
    if kind == "memory":
        return kind, lambda: session.memory.add(rng.choice(sources), "blue whale")
    if kind == "configure":
        return kind, lambda: session.configure(learning=rng.random() < 0.8, memory=rng.random() < 0.8)
    action = chance.action(rng, session.translator.target_vocabulary, draft)
    return action.kind, lambda: action.do(draft)
