"""What is remembered, as data: the entries of a memory, and all of them as they are stored."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

import msgspec

from camit.errors import InputError, SessionError
from camit.memory.alignment import Anchor
from camit.search.problem import Phrase
from camit.text import SPECIALS, UNK, normalise
from camit.translator import Translator


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A remembered word or phrase, and the sentence it comes from."""

    id: int
    text: str
    source: str
    target: str
    sentence: int | None  # the draft it was confirmed in; None when added by hand
    start: int  # the slice of the target's pieces
    stop: int
    pieces: Phrase
    target_pieces: Phrase
    # The source words it stands for, and how surely; for a phrase, one: all the text that it stands for.
    anchor: tuple[Anchor, ...]
    pinned: bool = False
    copies: int = 0
    agreed: int = 0  # sentences confirmed later that have its source word, and this translation of it
    refused: int = 0  # or another one
    created: float = 0.0

    @property
    def place(self) -> tuple[str, Phrase, int, int]:
        """Where it stands: all that its keys are made from."""
        return self.source, self.target_pieces, self.start, self.stop

    @property
    def term(self) -> str:
        """What it stands for, as that stands in its sentence: its source words if they stand together, or
        else the one that counts most."""
        if self.sentence is None or not self.anchor:
            return self.source
        words = sorted((word for word, _ in self.anchor), key=self.source.find)
        spaced = (r"\s*".join(map(re.escape, text)) for text in ("".join(words), self.anchor[0][0]))
        found = (re.search(text, self.source) for text in spaced)
        return next((term[0] for term in found if term), self.anchor[0][0])


@dataclass(frozen=True)
class MemorySnapshot:
    """Everything a memory holds, exactly. As bytes it is data, never code: JSON."""

    entries: tuple[MemoryEntry, ...] = ()
    next_id: int = 1

    def with_changes(self, now: MemorySnapshot, added: Set[int], removed: Set[int]) -> MemorySnapshot:
        """This one with what was added, removed and pinned by hand since, as it is `now`."""
        present = {entry.id: entry for entry in now.entries}
        kept = {
            entry.id: msgspec.structs.replace(entry, pinned=present.get(entry.id, entry).pinned)
            for entry in self.entries
            if entry.id not in removed
        }
        new = {id: present[id] for id in added if id in present and id not in kept}
        return MemorySnapshot(tuple(sorted((kept | new).values(), key=lambda entry: entry.id)), now.next_id)

    def to_bytes(self, translator: Translator) -> bytes:
        vocabulary = translator.target_vocabulary
        used = {i for entry in self.entries for i in entry.target_pieces}
        extra = {i: vocabulary.piece(i) for i in sorted(used) if i >= len(vocabulary)}
        return msgspec.json.encode(_Stored(self.entries, self.next_id, extra))

    @classmethod
    def from_bytes(cls, data: bytes, translator: Translator) -> MemorySnapshot:
        """What `to_bytes` wrote, checked, for a translator of the same model."""
        try:
            stored = msgspec.json.decode(data, type=_Stored)
            entries = tuple(checked(entry, stored.extra, translator) for entry in stored.entries)
            ids = [entry.id for entry in entries]
            if len(set(ids)) < len(ids) or not all(0 < i < stored.next_id for i in ids):
                raise InputError("its entries are not numbered one by one")
        except (msgspec.MsgspecError, ValueError, InputError) as error:
            raise SessionError(
                f"the stored revision memory cannot be read ({error}). Put the directory of the session back "
                "from a copy. Nothing was changed."
            ) from error
        return cls(entries, stored.next_id)


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`extra`: the written form of ids outside the vocabulary, which mean something in one process only."""

    entries: tuple[MemoryEntry, ...]
    next_id: int
    extra: dict[int, str]


def checked(entry: MemoryEntry, extra: dict[int, str], translator: Translator) -> MemoryEntry:
    """An entry with the ids of this process, if it can be read at all."""
    vocabulary = translator.target_vocabulary
    known = {i: vocabulary.extra(piece) for i, piece in extra.items()}
    pieces = tuple(known.get(i, i) for i in entry.target_pieces)
    mine = tuple(known.get(i, i) for i in entry.pieces)
    if any(i != UNK and not SPECIALS <= i < len(vocabulary) and i not in known.values() for i in pieces):
        raise InputError(f"entry {entry.id} has pieces this model does not know")
    if not 0 <= entry.start < entry.stop <= len(pieces) or pieces[entry.start : entry.stop] != mine:
        raise InputError(f"entry {entry.id} is no part of its sentence")
    if not all(weight > 0.0 for _, weight in entry.anchor):
        raise InputError(f"entry {entry.id} stands for a source word with no weight")
    translator.encode_source(normalise(entry.source, what=f"the source of entry {entry.id}"))
    return msgspec.structs.replace(entry, target_pieces=pieces, pieces=mine)
