"""How good a model is: BLEU, chrF and perplexity of each decoder alone, and of both together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import sacrebleu
import torch

from camit.corpus import Pair
from camit.networks import Network
from camit.search.grid import search
from camit.search.problem import Problem
from camit.search.revise import Searcher, Settings
from camit.search.scoring import Directions, read_sources
from camit.text import Vocabulary, bleu_tokenizer
from camit.training.batches import Batch
from camit.training.loss import BothDirections

AT_ONCE = 64  # sentences searched together

Way = Literal["both", "forward", "backward"]


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """One way to translate with one model, on one corpus."""

    bleu: float
    chrf: float
    perplexity: float


@torch.inference_mode()
def translate(
    network: Network,
    vocabularies: tuple[Vocabulary, Vocabulary],
    sources: Sequence[str],
    *,
    way: Way,
    beam: int,
    progress: Callable[[int], None] = lambda done: None,
) -> list[str]:
    """Translations by both decoders, as a user gets them, or by one of them alone."""
    directions = Directions.of(network, vocabularies[1])
    direction = directions.backward if way == "backward" else directions.forward
    ids = [vocabularies[0].feed(vocabularies[0].encode(source)) for source in sources]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    texts = [""] * len(ids)
    for first in range(0, len(order), AT_ONCE):
        chosen = order[first : first + AT_ONCE]
        read = read_sources(network, directions, [ids[i] for i in chosen])
        if way == "both":
            best = [pieces for pieces, _ in Searcher(directions, read, Settings(beam=beam)).first()]
        else:
            problems = [Problem(row, read.limit(row)) for row in range(len(read.lengths))]
            found = search(direction, read.start(direction), problems, beam=beam)
            best = [direction.order(hypotheses[0].pieces) for hypotheses in found]
        for i, pieces in zip(chosen, best, strict=True):
            texts[i] = vocabularies[1].decode(pieces)
        progress(len(chosen))
    return texts


def corpus_scores(
    translations: Sequence[str], pairs: Sequence[Pair], *, language: str, lowercase: bool
) -> tuple[float, float]:
    """BLEU and chrF (sacrebleu) against one or more references a line."""
    most = max(len(pair.references) for pair in pairs)
    references = [[(*pair.references, *[None] * most)[i] for pair in pairs] for i in range(most)]
    bleu = sacrebleu.BLEU(lowercase=lowercase, tokenize=bleu_tokenizer(language), force=True)
    chrf = sacrebleu.CHRF(lowercase=lowercase)
    return (
        bleu.corpus_score(translations, references).score,  # type: ignore[arg-type]
        chrf.corpus_score(translations, references).score,  # type: ignore[arg-type]
    )


@torch.no_grad()
def losses(network: Network, batches: Sequence[Batch]) -> tuple[float, float, int]:
    """Summed negative log-probability of the references, forward and backward, and their number of pieces."""
    module = BothDirections(network, 0.0)
    forward = backward = 0.0
    pieces = 0
    for batch in batches:
        moved = batch.to(network.device)
        _, left, right = module(moved.source, moved.target)
        forward, backward, pieces = forward + float(left), backward + float(right), pieces + batch.pieces
    return forward, backward, pieces


def evaluate_model(
    network: Network,
    vocabularies: tuple[Vocabulary, Vocabulary],
    pairs: Sequence[Pair],
    batches: Sequence[Batch],
    *,
    beam: int,
    lowercase: bool,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[Way, Scores]:
    """Both decoders of a model on one corpus, together and alone."""
    forward, backward, pieces = losses(network, batches)
    result: dict[Way, Scores] = {}
    ways: tuple[tuple[Way, float], ...] = (
        ("both", (forward + backward) / 2),
        ("forward", forward),
        ("backward", backward),
    )
    for way, loss in ways:
        texts = translate(
            network, vocabularies, [pair.source for pair in pairs], way=way, beam=beam, progress=progress
        )
        bleu, chrf = corpus_scores(texts, pairs, language=vocabularies[1].language, lowercase=lowercase)
        result[way] = Scores(bleu=bleu, chrf=chrf, perplexity=math.exp(loss / pieces))
    return result
