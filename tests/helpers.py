"""Small networks and vocabularies for tests: real code, toy sizes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache

import sentencepiece
import torch

from camit.checkpoint import Checkpoint
from camit.networks import Network, NetworkConfig, build
from camit.text import PieceVocabulary, WordVocabulary
from camit.translator import Translator

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "log", "big", "red", "is", "not"]
MARKS = [",", ".", "!"]


def tiny_network(
    arch: str, *, source: int = 20, target: int = 24, seed: int = 0, scale: float = 3.0, d: int = 16
) -> Network:
    """A random network whose distributions are far from flat, so that mistakes show."""
    torch.manual_seed(seed)
    network = build(
        NetworkConfig(
            arch=arch,
            source_size=source,
            target_size=target,
            d=d,
            heads=2,
            ff=24,
            encoder_layers=2,
            decoder_layers=2,
        )
    )
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    return network.eval()


def word_vocabulary(words: Sequence[str] = (*WORDS, *MARKS), language: str = "en") -> WordVocabulary:
    """Every word with and without a space before it, punctuation without."""
    spaced = [f"\u2581{word}" for word in words if word not in MARKS]
    return WordVocabulary([*spaced, *[word for word in words if word in MARKS]], language)


@cache
def piece_vocabulary(language: str = "en") -> PieceVocabulary:
    """Sentencepiece trained on a few lines: words of one and of several pieces, and bytes for the rest."""
    lines = [
        "the cat sat on the mat.",
        "the dog ran, the cat sat!",
        "a catalogue of dogs and cats, mats and logs.",
        "the cat's dog isn't red; it is a big red dog.",
        "not now, not then, not ever.",
    ]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20),
        model_writer=model,
        vocab_size=320,
        model_type="unigram",
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return PieceVocabulary(model.getvalue(), language)


def tiny_translator(arch: str = "transformer", seed: int = 0, words: bool = False) -> Translator:
    """A translator with random weights, over pieces or over words."""
    source, target = (
        (word_vocabulary(), word_vocabulary()) if words else (piece_vocabulary("zh"), piece_vocabulary())
    )
    network = tiny_network(arch, source=len(source), target=len(target), seed=seed)
    return Translator(Checkpoint("tiny", network, source, target))
