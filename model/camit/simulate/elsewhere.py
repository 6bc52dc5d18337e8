"""What learning from a document does to text of another kind: the loss of another corpus before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from camit.corpus import Pair, documents
from camit.learning import OnlineLearner
from camit.simulate.corpus import read_lines
from camit.training.scores import losses
from camit.training.start import dev_batches
from camit.translator import Translator


@dataclass(frozen=True)
class Drift:
    """One document, all of whose references were confirmed and learned from in order."""

    document: str
    lessons: int
    accepted: int
    before: float  # loss of the other corpus per piece, mean of both directions
    after: float

    @property
    def change(self) -> float:
        return self.after / self.before - 1.0


def elsewhere(
    translator: Translator,
    lines: Sequence[Pair],
    other: Path,
    *,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Drift]:
    """Learn from each document of a corpus, beginning with the checkpoint's own weights each time."""
    vocabularies = translator.source_vocabulary, translator.target_vocabulary
    batches = dev_batches(other, read_lines(other), *vocabularies)

    def loss() -> float:
        forward, backward, pieces = losses(translator.network, batches)
        return (forward + backward) / (2 * pieces)

    before = loss()
    found = []
    for document in documents(lines):
        learner = OnlineLearner(translator)
        try:
            for line in document:
                pieces = tuple(translator.target_vocabulary.encode(line.target))
                learner.learn(translator.encode_source(line.source), pieces)
                progress(1)
            accepted = sum(lesson.accepted for lesson in learner.lessons)
            found.append(Drift(document[0].document, len(document), accepted, before, loss()))
        finally:
            learner.reset()
    return found
