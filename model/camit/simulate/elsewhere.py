"""What a document leaves behind for text of another kind: loss and BLEU of another corpus before and after.

Learning must not unlearn, and a memory full of words from elsewhere must not meddle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import torch

from camit.corpus import Pair, documents
from camit.search.scoring import score
from camit.simulate.history import History
from camit.simulate.metrics import columns
from camit.simulate.run import Experiment, check_sources, prepare
from camit.simulate.screen import text
from camit.translator import Translator, load


@dataclass(frozen=True)
class Effect:
    """Of the other corpus."""

    # Per piece of the references, mean of both directions, with all that was learned; the memory has no part.
    loss: float
    bleu: float  # of drafts


@dataclass(frozen=True)
class Drift:
    """One document, all of whose references were confirmed in order."""

    document: str
    lessons: int
    accepted: int
    entries: int  # in the memory at the end
    before: Effect
    after: Effect


def elsewhere(
    experiment: Experiment,
    other: Experiment,
    announce: Callable[[int], Callable[[int], None]] = lambda lines: lambda done: None,
) -> list[Drift]:
    """Confirm each document of a corpus from its beginning, with memory and learning as the experiment says,
    and look at the corpus of the other one after each."""
    translator = load(experiment.model)
    experiment, lines = prepare(experiment)
    other, others = prepare(other)
    for corpus, pairs in ((experiment.corpus, lines), (other.corpus, others)):
        check_sources(translator, corpus, pairs)
    sessions = list(documents(lines))
    progress = announce(len(lines) + (len(sessions) + 1) * len(others))
    rules = msgspec.structs.replace(experiment, revisions=0).rules()

    def effect(history: History) -> Effect:
        drafts = []
        for line in others:
            [played] = rules.play(translator, [line], history.readers(line.source))
            drafts.append(text(played.draft))
            progress(1)
        bleu = other.judge.bleu().corpus_score(drafts, columns([line.references for line in others]))
        return Effect(_loss(translator, others), float(bleu.score))

    def history(*, memory: bool, learning: bool) -> History:
        return History(
            translator,
            rules.judge,
            memory=memory,
            learning=learning,
            preset=experiment.preset,
            confirmed=experiment.confirmed,
        )

    before = effect(history(memory=False, learning=False))
    found = []
    for document in sessions:
        carried = history(memory=experiment.memory, learning=experiment.learning)
        try:
            for line in document:
                [played] = rules.play(translator, [line], carried.readers(line.source))
                carried.confirm(played)
                progress(1)
            lessons = carried.lessons
            accepted = sum(lesson.accepted for lesson in lessons)
            after = effect(carried)
            found.append(Drift(document[0].document, len(lessons), accepted, carried.entries, before, after))
        finally:
            carried.forget()
    return found


@torch.inference_mode()
def _loss(translator: Translator, lines: Sequence[Pair]) -> float:
    """Mean loss per piece, ends too, of the first references, over both directions."""
    total, places = 0.0, 0
    for line in lines:
        target = tuple(translator.target_vocabulary.encode(line.target))
        sources = translator.read([translator.encode_source(line.source)])
        directions = sources.bind(translator.directions)
        for direction in directions.both:
            total -= float(score(direction, sources.start(direction), [0], [target]).logp.sum())
            places += len(target) + 1
    return total / places
