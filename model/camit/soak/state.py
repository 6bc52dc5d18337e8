"""A whole session as one value, to compare a restored one with what it was."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from camit.search.problem import Phrase
from camit.session import Session


def everything(session: Session) -> dict[str, Any]:
    """All that a session must not lose: drafts with all versions, events, lessons, memory, weights,
    settings."""
    return session.worker.call(lambda: _everything(session))


def _everything(session: Session) -> dict[str, Any]:
    ledger, memory = session.ledger, session.memory.snapshot()
    events = list(ledger.events)
    while events and events[-1].kind == "restore":  # coming back is no change
        events.pop()
    return {
        "drafts": [(page.source, page.history, page.confirmed) for page in ledger.pages],
        "events": events,
        "lessons": (tuple(ledger.lessons), session.learning.lessons),
        "memory": memory.entries,
        "numbers": memory.next_id,  # of entries: they are not given twice, not even after an undo
        "weights": {name: _digest(p.data) for name, p in session.translator.network.named_parameters()},
        "student": {name: _digest(p.data) for name, p in session.learning.snapshot().weights.items()},
        "recalled": [(s.source, s.target, s.draft) for s in session.learning.snapshot().sentences],
        "settings": (session.settings, session.memory.enabled, session.learning.enabled),
        "undo": tuple((undo.draft, undo.before.lessons, undo.by_hand) for undo in ledger.undo),
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Which parts of two sessions differ."""
    return [name for name in one if one[name] != other[name]]


def digest(session: Session) -> str:
    """The same in a few letters, for another process: there, words outside a word list have other ids."""
    state = everything(session)
    vocabulary = session.translator.target_vocabulary

    def spelt(pieces: Phrase) -> list[str]:
        return [vocabulary.piece(i) for i in pieces]

    state["drafts"] = [
        (source, [(spelt(v.pieces), replace(v, pieces=())) for v in history.versions], history.at, confirmed)
        for source, history, confirmed in state["drafts"]
    ]
    state["memory"] = [
        (spelt(e.pieces), spelt(e.target_pieces), msgspec.structs.replace(e, pieces=(), target_pieces=()))
        for e in state["memory"]
    ]
    return hashlib.sha256(msgspec.json.encode(state)).hexdigest()


def _digest(tensor: Any) -> str:
    return hashlib.sha256(tensor.detach().cpu().contiguous().numpy().data).hexdigest()


def resident() -> int:
    """Bytes of memory this process holds; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
