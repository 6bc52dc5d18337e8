"""Memories for tests: sentences that are remembered, and what comes of them."""

from __future__ import annotations

from functools import cache

import torch

import camit
from camit.memory import MemoryEntry, RevisionMemory
from camit.memory.reader import MemoryReader
from camit.search.grid import search
from camit.search.problem import Phrase, Problem, Readers
from camit.translator import Translator


@cache
def chinese() -> Translator:
    return camit.load("zh-en")


class Sentence:
    """A source and its translation, as a draft has them."""

    def __init__(self, translator: Translator, source: str, target: str) -> None:
        self.source = source
        self.ids = translator.encode_source(source)
        self.pieces: Phrase = tuple(translator.target_vocabulary.encode(target))
        self._vocabulary = translator.target_vocabulary

    def spans(self, *words: str) -> list[tuple[int, int]]:
        return [(w.start, w.stop) for w in self._vocabulary.words(self.pieces) if w.text in words]


def remember(memory: RevisionMemory, source: str, target: str, *words: str, draft: int = 0) -> None:
    sentence = Sentence(memory._translator, source, target)
    assert sentence.spans(*words), "the test asks for words that are not there"
    memory.write(source, sentence.ids, sentence.pieces, sentence.spans(*words), draft)


def translate(translator: Translator, source: str, memory: RevisionMemory | None) -> str:
    readers = memory.readers(source) if memory is not None else None
    sources = translator.read([translator.encode_source(source)])
    pieces, _ = translator.best(sources, 4, readers)[0]
    return translator.target_vocabulary.decode(pieces)


def eager(memory: RevisionMemory) -> RevisionMemory:
    """A memory whose gates stand wide open: it copies wherever a copy is allowed."""
    for gate in (memory._gates.forward_gate, memory._gates.backward_gate):
        gate.bias.fill_(20.0)
    return memory


def remember_phrase(memory: RevisionMemory, source: str, target: str, phrase: str) -> tuple[MemoryEntry, ...]:
    """Confirm a sentence in which one phrase was typed."""
    vocabulary = chinese().target_vocabulary
    pieces = tuple(vocabulary.encode(target))
    words = vocabulary.words(pieces)
    span = next(
        (first.start, last.stop)
        for n, first in enumerate(words)
        for last in words[n:]
        if vocabulary.decode(pieces[first.start : last.stop]) == phrase
    )
    return memory.write(source, chinese().encode_source(source), pieces, [span], 1)


def offered(memory: RevisionMemory, source: str) -> set[str]:
    """The entries that are read for a source."""
    readers = memory.readers(source)
    return {memory[entry].text for entry in reader_of(readers).ids} if readers else set()


def remembered(memory: RevisionMemory, source: str, *fixes: tuple[str, str]) -> tuple[MemoryEntry, ...]:
    """Confirm sentences in which one word was fixed."""
    vocabulary = chinese().target_vocabulary
    entries: list[MemoryEntry] = []
    for sentence, fixed in fixes:
        pieces = tuple(vocabulary.encode(sentence))
        span = next((w.start, w.stop) for w in vocabulary.words(pieces) if w.text == fixed)
        entries += memory.write(source, chinese().encode_source(source), pieces, [span], 1)
    return tuple(entries)


def reader_of(readers: Readers, backward: bool = False) -> MemoryReader:
    reader = readers.backward if backward else readers.forward
    assert isinstance(reader, MemoryReader)
    return reader


def searched(translator: Translator, memory: RevisionMemory, source: str, backward: bool) -> list[Phrase]:

    readers = memory.readers(source)
    assert readers is not None
    direction = translator.directions.backward if backward else translator.directions.forward
    sources = translator.read([translator.encode_source(source)])
    with torch.inference_mode():
        found = search(
            direction,
            sources.start(direction),
            [Problem(0, 20)],
            beam=3,
            best=3,
            reader=reader_of(readers, backward),
        )
    return [direction.order(written.pieces) for written in found[0]]
