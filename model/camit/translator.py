"""A loaded model as an object: text in, tokens out. What `camit.load` returns."""

from __future__ import annotations

import copy
import math
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import nn

from camit.checkpoint import Checkpoint, digest_of, load_checkpoint
from camit.errors import InputError
from camit.search.problem import Phrase, Readers
from camit.search.recall import NOBODY, Recall
from camit.search.revise import Searcher, Settings, check_beam
from camit.search.scoring import Directions, Readings, Sources, read_sources, recollections
from camit.text import Word, detokenise, normalise, screen_words
from camit.tokens import SourceToken, Token

T = TypeVar("T")
# The longest source, in pieces, the model is asked to read at once; a longer one is an error that says so.
MAX_SOURCE_PIECES = 400


@dataclass(frozen=True)
class Translation:
    """A finished translation."""

    source: str
    text: str
    tokens: tuple[Token, ...]
    score: float  # log-probability per piece, mean of both decoders


class Translator:
    """A network with its vocabularies.

    >>> import camit
    >>> camit.load("zh-en").translate("你好。").text  # doctest: +SKIP
    'Hello.'
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.name = checkpoint.name
        self.directory = checkpoint.directory
        self.network = checkpoint.network
        self.source_vocabulary = checkpoint.source
        self.target_vocabulary = checkpoint.target
        self.directions = Directions.of(checkpoint.network, checkpoint.target)
        # Whoever teaches a network puts new weights in the place of the old, so these stay the checkpoint's.
        self._base = {name: p.data for name, p in checkpoint.network.named_parameters()}
        self._shared: dict[Hashable, Any] = {}

    @property
    def source_language(self) -> str:
        return self.source_vocabulary.language

    @property
    def target_language(self) -> str:
        return self.target_vocabulary.language

    @cached_property
    def digest(self) -> str:
        """Which model this is: sha256 of the checkpoint's weights and vocabularies."""
        vocabularies = (self.source_vocabulary, self.target_vocabulary)
        pieces = ("\n".join(map(known.piece, range(len(known)))) for known in vocabularies)
        return digest_of(self._base, *pieces)

    def fork(self) -> Translator:
        """A translator that learns on its own; it shares the checkpoint's weights till then."""
        shared: dict[int, object] = {
            id(p): nn.Parameter(self._base[name], requires_grad=p.requires_grad)
            for name, p in self.network.named_parameters()
        }
        network = copy.deepcopy(self.network, shared)
        fork = Translator(
            Checkpoint(self.name, network, self.source_vocabulary, self.target_vocabulary, self.directory)
        )
        fork._shared = self._shared
        return fork

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is known of the checkpoint's own weights, found out once for this translator and its forks."""
        if any(p.data_ptr() != self._base[name].data_ptr() for name, p in self.network.named_parameters()):
            return make()  # it has been taught: what is found out now holds for it alone
        if key not in self._shared:
            self._shared.setdefault(key, make())  # of two threads that come at once, one is heard
        made: T = self._shared[key]
        return made

    def adopt(self, fork: Translator) -> None:
        """Take over what a fork has learned, all at once."""
        theirs = dict(fork.network.named_parameters())
        for name, p in self.network.named_parameters():
            p.data = theirs[name].data
        self.set_recalls(fork.directions.recalls)

    def set_recalls(self, recalls: tuple[Recall, Recall] | None) -> None:
        """What both decoders recall of earlier sentences from now on."""
        self.directions = replace(self.directions, recalls=recalls)

    def translate(self, text: str, *, beam: int = 4) -> Translation:
        """Translate one sentence.

        >>> camit.load("zh-en").translate("谢谢。").text  # doctest: +SKIP
        'Thank you.'
        """
        return self.translate_batch([text], beam=beam)[0]

    def translate_batch(
        self,
        texts: Sequence[str],
        *,
        beam: int = 4,
        batch: int = 32,
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[Translation]:
        """Translate many sentences, similar lengths together; the result does not depend on the company."""
        if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
            raise InputError("translate_batch takes a list of sentences; use translate for a single one.")
        check_beam(beam)
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise InputError(f"batch must be a whole number from 1, not {batch!r}.")
        names = [f"sentence {i + 1}" if len(texts) > 1 else "text" for i in range(len(texts))]
        sources = [normalise(text, what=name) for text, name in zip(texts, names, strict=True)]
        ids = [self.encode_source(source, what=name) for source, name in zip(sources, names, strict=True)]
        results: list[Translation | None] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(ids[i]))
        if self.directions.recalls:
            batch = 1  # what is recalled depends on the source
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            for i, translation in zip(
                chosen, self._batch([sources[i] for i in chosen], [ids[i] for i in chosen], beam), strict=True
            ):
                results[i] = translation
            progress(len(chosen))
        return [translation for translation in results if translation is not None]

    def encode_source(self, text: str, *, what: str = "the sentence") -> list[int]:
        """Source pieces as the network reads them."""
        ids = self.source_vocabulary.feed(self.source_vocabulary.encode(text))
        if len(ids) > MAX_SOURCE_PIECES:
            raise InputError(
                f"{what} has {len(ids)} pieces; the model reads at most {MAX_SOURCE_PIECES}. "
                "Split it into sentences first."
            )
        return ids

    def read(self, ids: Sequence[Sequence[int]]) -> Sources:
        """Encode a batch of source pieces for searching."""
        with torch.inference_mode():
            return read_sources(self.network, self.directions, ids)

    def source_tokens(self, text: str) -> tuple[SourceToken, ...]:
        return tuple(SourceToken(word, space) for word, space in screen_words(text, self.source_language))

    def best(
        self,
        sources: Sources,
        beam: int,
        readers: Readers | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> list[tuple[Phrase, float]]:
        """A translation of every source: pieces and score."""
        return Searcher(self.directions, sources, Settings(beam=beam), readers, check).first()

    def _batch(self, texts: Sequence[str], ids: Sequence[Sequence[int]], beam: int) -> list[Translation]:
        searcher = Searcher(self.directions, self.read(ids), Settings(beam=beam))
        best = searcher.first()
        sentences = [pieces for pieces, _ in best]
        tokens = self.tokens(searcher.readings, range(len(texts)), texts, ids, sentences)
        return [
            Translation(text, detokenise((t.text, t.space_before) for t in row), row, value)
            for text, row, (_, value) in zip(texts, tokens, best, strict=True)
        ]

    @torch.inference_mode()
    def tokens(
        self,
        readings: Readings,
        rows: Sequence[int],
        texts: Sequence[str],
        ids: Sequence[Sequence[int]],
        sentences: Sequence[Phrase],
        readers: Readers | None = None,
    ) -> list[tuple[Token, ...]]:
        """Sentences of pieces as tokens with probability and attention, as the forward decoder reads them.

        What is copied is for both decoders to say.
        """
        directions = readings.directions
        scored = readings.along(directions.forward, rows, sentences)
        mixed, recalled = None, []
        if readers is not None or directions.recalling:
            behind = readings.along(directions.backward, rows, sentences)
            recalled.append(recollections(directions.forward, scored, sentences))
            recalled.append(recollections(directions.backward, behind, sentences))
            if readers is not None:
                shares, _ = readers.shares(scored.features, behind.features, sentences)
                mixed = readers.forward.mix(
                    directions.forward, shares, scored.features, scored.logp, sentences
                )
        logps = (mixed.logp if mixed else scored.logp).tolist()
        thetas = mixed.theta.tolist() if mixed else None
        result = []
        for row, (text, source, pieces) in enumerate(zip(texts, ids, sentences, strict=True)):
            attention = scored.features.attention[row, : len(pieces), : len(source)]
            spread = attention @ self.alignment(text)  # [pieces, source tokens]
            words = self.target_vocabulary.words(pieces)
            copies = copied_words(words, mixed.copied[row] if mixed else ())
            recollected = [recalled_word(word, [along[row] for along in recalled]) for word in words]
            result.append(
                tuple(
                    Token(
                        text=word.text,
                        space_before=word.space_before,
                        probability=min(1.0, math.exp(sum(logps[row][word.start : word.stop]))),
                        attention=tuple(round(x, 4) for x in spread[word.start : word.stop].mean(0).tolist()),
                        theta=thetas[row][start] if thetas else 0.0,
                        copied_from=entry,
                        recalled=share,
                        recalled_from=draft,
                    )
                    for word, (start, entry), (share, draft) in zip(words, copies, recollected, strict=True)
                )
            )
        return result

    def alignment(self, text: str) -> torch.Tensor:
        """Which share of each source piece belongs to which source token. [pieces, source tokens]"""
        words = screen_words(text, self.source_language)
        ids = self.source_vocabulary.encode(text)  # a word outside a list is as long as it is, UNK is not
        owner = [index for index, (word, _) in enumerate(words) for _ in word]
        matrix = torch.zeros(len(ids), len(words))
        at = 0
        for row, index in enumerate(ids):
            width = self.source_vocabulary.characters(index)
            covered = owner[at : at + width] or owner[min(at, len(owner) - 1) :][:1]
            for word in covered:
                matrix[row, word] += 1.0 / len(covered)
            at += width
        return matrix


def copied_words(
    words: Sequence[Word], copied: Sequence[tuple[int, int, int]]
) -> list[tuple[int, int | None]]:
    """For each word the piece at which it was decided whether to copy it, and the entry it came from.

    `copied` is that of `Mixed`. A phrase is copied as a whole: what holds of its first word holds of all.
    """
    phrases = [next((c for c in copied if c[0] <= word.start < c[1]), None) for word in words]
    return [(p[0], p[2]) if p else (word.start, None) for word, p in zip(words, phrases, strict=True)]


def recalled_word(word: Word, directions: Sequence[Sequence[tuple[float, int]]]) -> tuple[float, int | None]:
    """The part of a word that both decoders recall, and the draft that says most of it, if it is most of the
    word; `directions` are what `recollections` found along its sentence."""
    said: defaultdict[int, float] = defaultdict(float)
    for along in directions:
        for share, draft in along[word.start : word.stop]:
            said[draft] += share / len(directions) / (word.stop - word.start)
    total = min(1.0, sum(said.values(), 0.0))
    draft = max(said, key=said.__getitem__, default=NOBODY)
    return total, draft if total > 0.5 and draft != NOBODY else None


def load(name_or_directory: str | os.PathLike[str]) -> Translator:
    """Load an embedded model by name, or any checkpoint directory.

    >>> import camit
    >>> camit.load("zh-en").translate("你好。").text  # doctest: +SKIP
    'Hello.'
    """
    return Translator(load_checkpoint(name_or_directory))
