"""What a person waits for, timed: opening a sentence, a revision after one to five others, alternatives.

Every figure is the whole way through the public names, worker thread included, as a click in the widget
takes it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeVar

import msgspec
import torch

from camit.bench.peers import Peer
from camit.bench.sentences import SENTENCES
from camit.memory import RevisionMemory
from camit.search.grid import search
from camit.search.problem import Phrase, Problem, Reader
from camit.search.recall import ENDS, HERE, SPELLED, Here
from camit.search.scoring import Sources, follow
from camit.session import Session
from camit.session.draft import Draft
from camit.text import SPECIALS
from camit.translator import Translator

T = TypeVar("T")
REVISIONS = 5
PLACES = HERE + SPELLED + ENDS  # recalled for one source, at most
TYPED = "friends"  # where the model has no other word to offer


class Timing(msgspec.Struct, frozen=True):
    """Milliseconds: how many were measured, their median, and what 95 of 100 stay below."""

    count: int
    median: float
    p95: float

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> Timing:
        ranked = sorted(milliseconds)
        p95 = ranked[min(len(ranked) - 1, int(0.95 * len(ranked)))]
        return cls(len(ranked), statistics.median(ranked), p95)


class Figures(msgspec.Struct, frozen=True):
    """One length of sentence. `revisions[k]` is the revision number k + 1 of a sentence."""

    words: int  # the length aimed at
    written: float  # the length the model wrote
    open: Timing
    revision: Timing
    revisions: tuple[Timing, ...]
    alternatives: Timing
    completions: Timing


class Comparison(msgspec.Struct, frozen=True):
    """Another engine on the same sentences in the same minutes; ratios above 1 mean that we are slower."""

    name: str
    translation: Timing  # theirs
    ours: Timing  # text to pieces, by the forward decoder alone, as theirs
    ratio: float
    revision_ratio: float | None  # our whole revision against their plain translation


class Reading(msgspec.Struct, frozen=True):
    """What it costs to look something up at every step of a search. Milliseconds are those of a step."""

    entries: int
    without: Timing
    reading: Timing
    ratio: float  # what reading adds: 0.1 makes a step a tenth longer


def timed(run: Callable[[], T], into: list[float]) -> T:
    started = time.perf_counter()
    result = run()
    into.append(1000 * (time.perf_counter() - started))
    return result


def measure(
    translator: Translator, words: int, *, beam: int, rounds: int, done: Callable[[], None]
) -> Figures:
    """Open and revise each sentence of a length `rounds` times, each time at other places."""
    opened: list[float] = []
    alternatives: list[float] = []
    completions: list[float] = []
    revisions: list[list[float]] = [[] for _ in range(REVISIONS)]
    written: list[int] = []
    random = Random(words)
    session = Session(translator, beam=beam)
    try:
        for number in range(-1, rounds):  # the first round warms up
            if number == 0:
                for figures in (opened, alternatives, completions, *revisions):
                    figures.clear()
            for sentence in SENTENCES[words]:
                draft = timed(lambda text=sentence: session.open(text), opened)  # type: ignore[misc]
                written.append(len(draft.tokens))
                for figures in revisions:
                    _revise(draft, random, figures, alternatives, completions)
                done()
    finally:
        session.close()
    return Figures(
        words,
        statistics.mean(written),
        Timing.of(opened),
        Timing.of([t for figures in revisions for t in figures]),
        tuple(map(Timing.of, revisions)),
        Timing.of(alternatives),
        Timing.of(completions),
    )


def _revise(
    draft: Draft, random: Random, revisions: list[float], alternatives: list[float], completions: list[float]
) -> None:
    """Another word at a place that is not fixed yet: the model's own next best one, as a person picks it."""
    free = [i for i, token in enumerate(draft.tokens) if not token.locked]
    place = random.choice(free or range(len(draft.tokens)))
    offered = timed(lambda: draft.alternatives(place), alternatives)
    text = offered[0].text if offered else TYPED
    timed(lambda: draft.complete(place, text[:2]), completions)
    timed(lambda: draft.replace(place, text), revisions)


def read_memory(
    translator: Translator, words: int, *, beam: int, rounds: int, done: Callable[[], None]
) -> Reading:
    """Translate in turns without a memory and with one whose every entry is read at every step.

    That is the worst case: told its source, a search reads only the entries whose source words stand there.
    """
    memory = RevisionMemory(translator, size=100)
    vocabulary = translator.target_vocabulary
    for sentence in SENTENCES[40]:
        pieces = tuple(vocabulary.encode(translator.translate(sentence).text))
        slices = [(word.start, word.stop) for word in vocabulary.words(pieces)]
        memory.write(sentence, translator.encode_source(sentence), pieces, slices, 1)
    readers = memory.readers()
    assert readers is not None  # a text of four sentences has words worth remembering
    plainly, reading = partial(_plain, beam=beam), partial(_plain, beam=beam, reader=readers.forward)
    return _in_turns(len(memory.entries), translator, (plainly, reading), words, rounds, done)


def recall_places(
    translator: Translator, words: int, *, beam: int, rounds: int, done: Callable[[], None]
) -> Reading:
    """Translate in turns without and with as many recalled places as a search looks at, at most.

    They are random, so that what is written stays the same.
    """
    with torch.inference_mode():
        source = translator.encode_source(SENTENCES[words][0])
        forward = translator.directions.forward
        d = follow(forward, translator.read([source]).forward, [()]).place.shape[2]
    chance = torch.Generator().manual_seed(1)
    keys = torch.nn.functional.normalize(torch.randn(PLACES, d, generator=chance), dim=1)
    pieces = torch.randint(SPECIALS, len(translator.target_vocabulary), (PLACES,), generator=chance)
    every = pieces >= 0
    recall = Here(keys, pieces, every, every, pieces, every, torch.ones(0, PLACES))
    plainly, reading = partial(_plain, beam=beam), partial(_plain, beam=beam, recall=recall)
    return _in_turns(PLACES, translator, (plainly, reading), words, rounds, done)


def _in_turns(
    entries: int,
    translator: Translator,
    ways: tuple[Callable[[Translator, Sources], Phrase], Callable[[Translator, Sources], Phrase]],
    words: int,
    rounds: int,
    done: Callable[[], None],
) -> Reading:
    """Two ways to search the same sentences; the second one has something to look up."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(-1, rounds):
        for sentence in SENTENCES[words]:
            sources = translator.read([translator.encode_source(sentence)])
            for way, into in zip(ways, taken, strict=True):
                whole: list[float] = []
                pieces = timed(partial(way, translator, sources), whole)
                into.append(whole[0] / (len(pieces) + 1))  # what is copied may make a sentence longer
        if number < 0:
            for into in taken:
                into.clear()
        done()
    without, reading = taken
    ratios = [mine / theirs for mine, theirs in zip(reading, without, strict=True)]
    return Reading(entries, Timing.of(without), Timing.of(reading), statistics.median(ratios) - 1)


@torch.inference_mode()
def _plain(
    translator: Translator,
    sources: Sources,
    beam: int,
    reader: Reader | None = None,
    recall: Here | None = None,
) -> Phrase:
    """One beam search by the forward decoder: what other engines call a translation. Each recalled place is
    said to have all of the source."""
    direction = translator.directions.forward
    if recall is not None:
        shared = torch.ones(sources.lengths[0], len(recall.keys))
        direction = replace(direction, recall=recall._replace(shared=shared))
    problem = Problem(0, sources.limit(0))
    found = search(direction, sources.forward, [problem], beam=beam, reader=reader)
    return found[0][0].pieces


def compare(
    translator: Translator,
    peer: Peer,
    words: int,
    *,
    beam: int,
    rounds: int,
    revision: Timing | None,
    done: Callable[[], None],
) -> Comparison:
    """Translate in turns, so that both engines meet the same state of the machine."""
    theirs: list[float] = []
    ours: list[float] = []
    for number in range(-1, rounds):
        for sentence in SENTENCES[words]:
            ids = translator.encode_source(sentence)
            pieces = timed(lambda ids=ids: _plain(translator, translator.read([ids]), beam), ours)  # type: ignore[misc]
            length = len(pieces) + 1
            timed(lambda ids=ids, length=length: peer(ids, beam, length), theirs)  # type: ignore[misc]
        if number < 0:
            ours.clear()
            theirs.clear()
        done()
    translated = Timing.of(theirs)
    return Comparison(
        peer.name,
        translated,
        Timing.of(ours),
        Timing.of(ours).median / translated.median,
        None if revision is None else revision.median / translated.median,
    )
