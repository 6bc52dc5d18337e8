"""What a session computes for one sentence: first translations, revisions, refilled gaps, words for a place.

Everything runs on the session's worker with the weights, the memory and the settings of the moment. Encoded
sources are kept at hand, so that a click never waits for the encoder.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from camit.errors import InputError
from camit.memory import RevisionMemory
from camit.search.problem import Phrase
from camit.search.revise import Searcher, Settings
from camit.search.scoring import Sources
from camit.search.words import Candidate, words_between
from camit.session import plan as planning
from camit.session.plan import Gap, Plan, Version
from camit.text import SPECIALS
from camit.tokens import Token
from camit.translator import Translator

SOURCES_KEPT = 32  # encoded sentences at hand; one takes about 100 kB


@dataclass(frozen=True)
class Read:
    """A source sentence, encoded."""

    text: str
    ids: tuple[int, ...]
    sources: Sources


class Engine:
    """A translator and a memory at work on single sentences; `check` may raise in the middle of a search."""

    def __init__(self, translator: Translator, memory: RevisionMemory, check: Callable[[], None]) -> None:
        self._translator = translator
        self._memory = memory
        self._check = check
        self._encoded: OrderedDict[str, Read] = OrderedDict()

    def first(self, source: str, settings: Settings) -> Version:
        """The machine's own translation."""
        read = self._read(source)
        searcher = self._searcher(read, settings)
        pieces, _ = searcher.first()[0]
        tokens = self._tokens(read, pieces, searcher)
        if not tokens:
            raise InputError(f"the model has no words for {source!r}; put it another way.")
        return Version(pieces, tokens)

    def again(self, source: str, pieces: Phrase, draft: int, settings: Settings) -> Version:
        """A sentence that was confirmed as this, by that draft."""
        read = self._read(source)
        tokens = self._tokens(read, pieces, self._searcher(read, settings))
        return Version(pieces, tuple(replace(t, recalled=1.0, recalled_from=draft) for t in tokens))

    def revise(self, source: str, version: Version, plan: Plan, settings: Settings) -> Version:
        """Search what a plan asks for."""
        read = self._read(source)
        searcher = self._searcher(read, settings)
        revision = searcher.revise([plan.request])[0]
        vocabulary = self._translator.target_vocabulary
        tokens = self._tokens(read, revision.pieces, searcher)
        return planning.revised(version, plan, vocabulary, revision, tokens, settings.protocol)

    def refill(self, source: str, version: Version, gap: Gap, settings: Settings) -> Version:
        """Write something else into a gap."""
        read = self._read(source)
        searcher = self._searcher(read, settings)
        middle = searcher.refill(0, gap.left, gap.right, gap.old, gap.once)
        tokens = self._tokens(read, (*gap.left, *middle, *gap.right), searcher)
        return planning.filled(version, gap, middle, tokens)

    def words(
        self, source: str, left: Phrase, right: Phrase, typed: str, *, attached: bool
    ) -> list[Candidate]:
        """Words for the place between two parts that begin with what was typed, best first."""
        return words_between(
            self._translator.directions,
            self._read(source).sources,
            0,
            left,
            right,
            typed=typed,
            attached=attached,
            readers=self._memory.readers(source),
        )

    def warm(self) -> None:
        """Have the network lay out new weights for decoding now, not with the next click."""
        with torch.inference_mode():
            self._translator.best(self._translator.read([[SPECIALS]]), 1)

    def _read(self, source: str) -> Read:
        if source not in self._encoded:
            ids = tuple(self._translator.encode_source(source))
            self._encoded[source] = Read(source, ids, self._translator.read([ids]))
            while len(self._encoded) > SOURCES_KEPT:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(source)
        return self._encoded[source]

    def _searcher(self, read: Read, settings: Settings) -> Searcher:
        readers = self._memory.readers(read.text)
        return Searcher(self._translator.directions, read.sources, settings, readers, self._check)

    def _tokens(self, read: Read, pieces: Phrase, searcher: Searcher) -> tuple[Token, ...]:
        """A sentence that was searched as tokens with all that is shown of them."""
        asked = [read.text], [read.ids], [pieces]
        return self._translator.tokens(searcher.readings, [0], *asked, searcher.readers)[0]
