"""Vocabularies of a new model: sentencepiece pieces, or the paper's list of frequent words with UNK."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import sentencepiece

from camit.corpus import read_corpus
from camit.errors import TrainingError
from camit.text import (
    BOS,
    EOS,
    PAD,
    UNK,
    UNSPACED_LANGUAGES,
    PieceVocabulary,
    Vocabulary,
    WordVocabulary,
    fold,
    segment,
)
from camit.training.settings import Preset, Settings

SAMPLE = 1_000_000  # sentences that sentencepiece looks at


def train_vocabularies(settings: Settings, preset: Preset, cache: Path) -> tuple[Vocabulary, Vocabulary]:
    """Source and target vocabulary of the training corpora, kept in the run's cache."""
    size = settings.vocabulary or preset.vocabulary
    make = _words if preset.words else _pieces
    return make(settings, "source", size, cache), make(settings, "target", size, cache)


def _words(settings: Settings, side: str, size: int, cache: Path) -> Vocabulary:
    language = settings.source if side == "source" else settings.target
    path = cache / f"{side}.txt"
    if not path.exists():
        vocabulary = WordVocabulary.build(_sentences(settings, side), size, language)
        _keep(vocabulary, path)
    return WordVocabulary.load(path, language, segmented=language in UNSPACED_LANGUAGES)


def _pieces(settings: Settings, side: str, size: int, cache: Path) -> Vocabulary:
    language = settings.source if side == "source" else settings.target
    # People click words of the target, so there pieces must not reach over them.
    segmented = side == "target" and language in UNSPACED_LANGUAGES
    path = cache / f"{side}.model"
    if not path.exists():
        model = _train_pieces(settings, side, size, language, segmented)
        _keep(PieceVocabulary(model, language, segmented=segmented), path)
    return PieceVocabulary.load(path, language, segmented=segmented)


def _train_pieces(settings: Settings, side: str, size: int, language: str, segmented: bool) -> bytes:
    sentences = list(_sentences(settings, side))  # read first: sentencepiece would hide a corpus's errors
    if segmented:
        sentences = [
            " ".join(word for chunk in fold(sentence).split() for word in segment(chunk))
            for sentence in sentences
        ]
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(settings.seed)  # it samples sentences of a large corpus
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,  # a small corpus has fewer pieces than asked for
            normalization_rule_name="nfkc",
            byte_fallback=True,
            split_digits=True,
            # Rare characters of a large script are spelled in bytes.
            character_coverage=0.9995 if language in UNSPACED_LANGUAGES else 1.0,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            input_sentence_size=SAMPLE,
            shuffle_input_sentence=True,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise TrainingError(
            f"no {side} vocabulary of {size} pieces can be trained on this text "
            f"({str(error).splitlines()[0]}); give more text or another --vocabulary."
        ) from error
    return model.getvalue()


def _sentences(settings: Settings, side: str) -> Iterator[str]:
    for mixture in settings.train:
        for pair in read_corpus(Path(mixture.path)):
            yield pair.source if side == "source" else pair.target


def _keep(vocabulary: Vocabulary, path: Path) -> None:
    temporary = path.with_name(path.name + ".part")
    vocabulary.save(temporary)
    temporary.replace(path)
