"""The revision memory: every fix of a session, to be copied when its context comes again."""

from camit.memory.entries import MemoryEntry, MemorySnapshot
from camit.memory.revision_memory import (
    PRESETS,
    Known,
    MemorySettings,
    MemoryWeights,
    Preset,
    RevisionMemory,
)

__all__ = [
    "PRESETS",
    "Known",
    "MemoryEntry",
    "MemorySettings",
    "MemorySnapshot",
    "MemoryWeights",
    "Preset",
    "RevisionMemory",
]
