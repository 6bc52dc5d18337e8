"""What carries over from one sentence of a document to the next: revision memory and online learning.

A new document begins with an empty memory and the checkpoint's own weights.
"""

from __future__ import annotations

from typing import Literal

from camit.learning import Lesson, OnlineLearner
from camit.memory import RevisionMemory
from camit.search.problem import Phrase, Readers, Span
from camit.session.plan import Version, written
from camit.simulate.rounds import Round
from camit.simulate.screen import words
from camit.simulate.users import Judge, Reference, matches
from camit.text import Vocabulary
from camit.translator import Translator

Preset = Literal["default", "paper"]  # see RevisionMemory and OnlineLearner
# What a person confirms in the end: the reference (they finish by hand), or what is on the screen after the
# last revision.
Confirmed = Literal["reference", "screen"]


class History:
    """Memory and learner over a document. With both off nothing is remembered, and lines are independent."""

    def __init__(
        self,
        translator: Translator,
        judge: Judge,
        *,
        memory: bool,
        learning: bool,
        preset: Preset,
        confirmed: Confirmed,
    ) -> None:
        self._translator = translator
        self._judge = judge
        self._confirmed = confirmed
        self._memory = RevisionMemory(translator, preset=preset) if memory else None
        self._learner = OnlineLearner(translator, preset=preset) if learning else None

    def readers(self, source: str) -> Readers | None:
        return self._memory.readers(source) if self._memory is not None else None

    def confirm(self, played: Round) -> None:
        """The user is done with a sentence: remember its fixes, learn from it."""
        vocabulary = self._translator.target_vocabulary
        ids = self._translator.encode_source(played.line.source)
        if self._confirmed == "screen":
            pieces, spans = played.screen.pieces, written(played.screen, vocabulary)
        else:
            nearest = self._judge.nearest(words(played.screen), played.references)
            pieces = tuple(vocabulary.encode(nearest.text))
            spans = typed_spans(played.screen, nearest, pieces, vocabulary, self._judge)
        if self._memory is not None:
            self._memory.write(played.line.source, ids, pieces, spans, played.line.line)
        if self._learner is not None:
            lesson = self._learner.learn(ids, pieces, drafted=played.draft.pieces)
            if lesson.accepted and self._learner.moves_all and self._memory is not None:
                self._memory.rekey()

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        return self._learner.lessons if self._learner is not None else ()

    @property
    def entries(self) -> int:
        """How many words are remembered."""
        return len(self._memory.entries) if self._memory is not None else 0

    def forget(self) -> None:
        """Back to the state before the first sentence."""
        if self._memory is not None:
            self._memory.clear()
        if self._learner is not None:
            self._learner.reset()


def typed_spans(
    screen: Version, reference: Reference, pieces: Phrase, vocabulary: Vocabulary, judge: Judge
) -> list[Span]:
    """Words of a confirmed reference that the user typed, as slices of its pieces: those told in revisions,
    and those that were still wrong and typed by hand in the end, one by one."""
    slices = [(word.start, word.stop) for word in vocabulary.words(pieces)]
    told = {at for f in screen.fixed for at, mine in enumerate(f.mine, f.start) if mine}
    stands = {j: i for i, j in matches(judge.keys(words(screen)), judge.keys(reference.words))}
    return [span for j, span in enumerate(slices) if j not in stands or stands[j] in told]
