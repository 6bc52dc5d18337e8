"""What a document leaves behind for text of another kind: loss and BLEU of another corpus before and after.

Learning must not unlearn, and a memory full of words from elsewhere must not meddle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from camit.corpus import documents
from camit.simulate.history import History
from camit.simulate.metrics import columns
from camit.simulate.run import Experiment, check_sources, prepare
from camit.simulate.screen import text
from camit.training.scores import losses
from camit.training.start import dev_batches
from camit.translator import load


@dataclass(frozen=True)
class Effect:
    """Of the other corpus."""

    loss: float  # per piece of the references, mean of both directions; the memory has no part in it
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
    vocabularies = translator.source_vocabulary, translator.target_vocabulary
    batches = dev_batches(Path(other.corpus), others, *vocabularies)
    sessions = list(documents(lines))
    progress = announce(len(lines) + (len(sessions) + 1) * len(others))
    rules = msgspec.structs.replace(experiment, revisions=0).rules()

    def effect(history: History) -> Effect:
        forward, backward, pieces = losses(translator.network, batches)
        drafts = []
        for line in others:
            [played] = rules.play(translator, [line], history.readers(line.source))
            drafts.append(text(played.draft))
            progress(1)
        bleu = other.judge.bleu().corpus_score(drafts, columns([line.references for line in others]))
        return Effect((forward + backward) / (2 * pieces), float(bleu.score))

    def history(*, memory: bool, learning: bool) -> History:
        return History(
            translator, rules.judge, memory=memory, learning=learning, confirmed=experiment.confirmed
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
