"""Sentences, pieces and words: people click words, the network writes pieces.

A vocabulary turns text into piece ids and back, and knows where words begin: a *token* on screen is a word
or a punctuation mark and always a slice of pieces. Two vocabularies share one interface: sentencepiece
(`PieceVocabulary`) and the paper's word list with UNK (`WordVocabulary`, section "Implementation Details").

Whether two neighbouring pieces belong to one word depends on these two pieces alone, so that a search can
test a word boundary one step at a time, in either direction.
"""

from __future__ import annotations

import math
import threading
import unicodedata
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import sentencepiece

from camit.errors import CheckpointError, InputError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = 4
SPACE = "\u2581"  # sentencepiece's mark for "a space stands before this piece"
MAX_CHARACTERS = 5_000
NUMBERS = 1 << 16  # so many signs stand for numbers; above them, characters that are spelled in bytes
COMMON_PIECES = 200  # of a short list, a tenth
# Marks that a word follows without a space: always, and when there is a space before them.
OPENING, QUOTES = frozenset("([{$#@“‘«¿¡"), frozenset('"')
OPENING_QUOTES, CLOSING = frozenset("“‘«"), frozenset("\"'”’»)]}")
SENTENCE_ENDS = frozenset(".!?…")
# Words that stand between those that say something; of a language without a list, its most frequent ones.
# (With the 200 most frequent pieces of English in place of the list, drafts of 1,086 lines of dialogue gained
# 0.9 BLEU by memory and learning, with the list 1.1; chance is of that size.)
SMALL_PIECES = 50
_SMALL_ENGLISH = """
    i you he she it we they a an the this that these those some any no not very so as and or but of in on at
    to for by with from about into over out off up down my your his her our their its is are was were be been
    am isn wasn has have had do does did don didn will would won can could should"""
SMALL_WORDS = {"en": frozenset(_SMALL_ENGLISH.split())}
# Words that negate what stands behind them. Of a language without a list nothing is known.
_NEGATE_CHINESE = """
    不 没 没有 别 未 勿 莫 不会 不能 不要 不是 不太 不再 不用 不必 不可 不得 不想 不敢 不愿 不曾 不该 不应
    不应该 没能 并不 并没 并没有 并非 从不 从没 从未 从来不 决不 绝不 毫不 还不 也不 都不 尚未 未曾 未必
    无法"""
_NEGATE_ENGLISH = "not no never without cannot nor neither hardly"
NEGATIONS = {
    "zh": frozenset(_NEGATE_CHINESE.split()),
    "en": frozenset(_NEGATE_ENGLISH.split()),
}
# How people write a language: Chinese and Japanese put no space between words.
UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th"})
# How sacrebleu cuts text of a language into words for BLEU; others as it does by default.
_BLEU_TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char", "th": "char"}
_JOINERS = frozenset("'\u2019-\u2010\u2011_")


def bleu_tokenizer(language: str) -> str:
    """The name of sacrebleu's tokenizer for a language."""
    return _BLEU_TOKENIZERS.get(language, "13a")


class Edge(IntEnum):
    """What a piece begins or ends with, as far as word boundaries care."""

    WORD = 0
    JOINER = 1  # apostrophe or hyphen: part of a word when it touches one
    MARK = 2  # any other punctuation: a token of its own
    SPACE = 3  # a lone space mark: belongs to what follows


# BOUNDARY[end of the left piece, start of the right piece], when the right piece has no space before it.
BOUNDARY = np.ones((4, 4), dtype=bool)
BOUNDARY[Edge.WORD, Edge.WORD] = False
BOUNDARY[Edge.WORD, Edge.JOINER] = False
BOUNDARY[Edge.JOINER, Edge.WORD] = False
BOUNDARY[Edge.SPACE, :] = False


def _edge(character: str) -> Edge:
    if character in _JOINERS:
        return Edge.JOINER
    # Letters, digits, combining marks, and everything exotic (emoji, private use) sticks to its neighbours.
    return Edge.MARK if unicodedata.category(character)[0] in "PS" else Edge.WORD


@dataclass(frozen=True)
class Word:
    """A token on screen: its text, whether a space stands before it, and its slice of the pieces."""

    text: str
    space_before: bool
    start: int
    stop: int


def normalise(text: object, *, limit: int = MAX_CHARACTERS, what: str = "text") -> str:
    """Text as the model takes it: folded, without control characters; raises `InputError` for what is no
    sentence.

    >>> normalise("  \uff46\uff55\uff4c\uff4c\\twidth ")
    'full width'
    """
    if not isinstance(text, str):
        raise InputError(f"{what} must be a string, not {type(text).__name__}; pass one sentence as str.")
    if len(text) > limit:
        raise InputError(
            f"{what} has {len(text):,} characters; at most {limit:,} fit. Split it into sentences first."
        )
    clean = fold(printable(text))
    if all(unicodedata.category(c) == "Cf" for c in clean):  # marks that show nothing of their own
        raise InputError(
            f"{what} is empty (nothing but white space or control characters); pass at least one word."
        )
    if len(clean) > limit:  # NFKC can expand one character to eighteen
        raise InputError(
            f"{what} has {len(clean):,} characters once normalised; at most {limit:,} fit. Split it first."
        )
    return clean


def printable(text: str) -> str:
    """Text with a space for every control character and every lone surrogate, which nothing can encode."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def fold(text: str) -> str:
    """The normal form in which text is compared and encoded: NFKC and single spaces."""
    # NFKC can itself make spaces (U+00A8 becomes space + diaeresis), so folding white space comes last.
    return " ".join(unicodedata.normalize("NFKC", text).split())


def edges_split(chunk: str) -> list[str]:
    """A chunk without white space cut into words and punctuation marks, by the same rule as pieces are."""
    parts: list[str] = []
    for character in chunk:
        if parts and not BOUNDARY[_edge(parts[-1][-1]), _edge(character)]:
            parts[-1] += character
        else:
            parts.append(character)
    return parts


def is_cjk(character: str) -> bool:
    """Han, kana and the punctuation that goes with them: written without spaces."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or character >= "\U00020000"


def segment(chunk: str) -> list[str]:
    """A chunk of Chinese cut into words by jieba; runs of other scripts stay whole."""
    import jieba  # its dictionary takes half a second to load, and only Chinese needs it

    jieba.setLogLevel(60)
    words: list[str] = []
    for word in jieba.cut(chunk):
        # jieba splits scripts it does not know (Cyrillic, say) into single characters.
        if words and not _needs_cut(words[-1][-1], word[0]):
            words[-1] += word
        else:
            words.append(word)
    return [part for word in words for part in ([word] if any(map(is_cjk, word)) else edges_split(word))]


def _needs_cut(left: str, right: str) -> bool:
    return is_cjk(left) or is_cjk(right) or bool(BOUNDARY[_edge(left), _edge(right)])


def screen_words(text: str, language: str) -> list[tuple[str, bool]]:
    """Source text as tokens for the screen, each with whether a space stands before it."""
    cut = segment if language in UNSPACED_LANGUAGES else edges_split
    tokens: list[tuple[str, bool]] = []
    for chunk in text.split():
        for index, word in enumerate(cut(chunk)):
            tokens.append((word, index == 0 and bool(tokens)))
    return tokens


class Vocabulary(ABC):
    """Piece ids, their text, and where words begin. Ids from `len(vocabulary)` on stand for words it does
    not have.

    Such an *extra* id is made by `encode` when a word has no id of its own: the network is fed UNK for it
    (`feed`), the text keeps the word itself, as the paper does for copied unknown words.
    """

    kind: ClassVar[str]

    def __init__(self, pieces: Sequence[str], language: str, segmented: bool) -> None:
        self.language = language
        self.segmented = segmented  # text is cut into words before it is cut into pieces
        self.spaced = (
            not segmented
        )  # in segmented text the space mark means "a word begins", not "a space stands here"
        self._extra: dict[str, int] = {}
        self._growing = threading.Lock()
        self._pieces: list[str] = list(pieces)
        self._size = len(pieces)
        self._first = SPECIALS  # the first that is text; from here on in the order of frequency
        bodies = [piece.removeprefix(SPACE) for piece in pieces]
        self.bodies: tuple[str, ...] = (*[""] * SPECIALS, *bodies[SPECIALS:])  # the letters of each piece
        self._opens = np.array([piece.startswith(SPACE) for piece in pieces])
        self._head = np.array([_edge(b[0]) if b else Edge.SPACE for b in bodies], dtype=np.int8)
        self._tail = np.array([_edge(b[-1]) if b else Edge.SPACE for b in bodies], dtype=np.int8)

    def __len__(self) -> int:
        return self._size

    @abstractmethod
    def encode_word(self, chunk: str, space_before: bool) -> tuple[int, ...]:
        """The ids of one chunk of text without white space."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the vocabulary into one file."""

    def signs(self, ids: Sequence[int]) -> list[int]:
        """What each piece of a sentence is part of, as a number: equal for the same piece; for the bytes of a
        character, equal for the same character, since others share some of its bytes; and for a number with
        what is counted, equal for the same number of it, since 三月 is no part of 六月."""
        return list(ids)

    @property
    def never_generated(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of pieces a search must not write freely: specials, and fragments that are no text of their
        own."""
        mask = np.zeros(len(self), dtype=bool)
        mask[:SPECIALS] = True
        return mask

    def encode(self, text: str, *, attach: bool = False) -> list[int]:
        """Ids of a sentence or phrase; what `decode` gives back equals `fold(text)`.

        With `attach` no space stands before the first piece, as for a comma that follows a word.
        """
        ids: list[int] = []
        for chunk in self._chunks(fold(text)):
            ids.extend(self.encode_word(chunk, not (attach and not ids)))
        return ids

    def _chunks(self, text: str) -> list[str]:
        if not self.segmented:
            return text.split()
        return [word for chunk in text.split() for word in segment(chunk)]

    def feed(self, ids: Sequence[int]) -> list[int]:
        """The ids as the network knows them: extra ids become UNK."""
        return [i if i < self._size else UNK for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a sequence of pieces."""
        return detokenise((word.text, word.space_before) for word in self.words(ids))

    def characters(self, index: int) -> int:
        """How many characters of text this piece stands for, spaces not counted."""
        return len(self._pieces[index].removeprefix(SPACE))

    def piece(self, index: int) -> str:
        """The written form of one id, with the space mark."""
        return self._pieces[index]

    def boundary(self, left: int, right: int) -> bool:
        """True when a new token begins between these two neighbouring pieces.

        Sentence ends (BOS, EOS) are always boundaries.
        """
        if left < SPECIALS or right < SPECIALS:
            return True
        return bool(self._opens[right] or BOUNDARY[self._tail[left], self._head[right]])

    def opens(self, piece: int) -> bool:
        """Does a word behind this piece stand without a space? Brackets say so, and quotation marks with a
        space before them."""
        last = self._pieces[piece][-1:]
        return last in OPENING or (last in QUOTES and bool(self._opens[piece]))

    def begins(self, pieces: Sequence[int]) -> bool:
        """Does a sentence begin behind these pieces?"""
        text = self.decode(pieces).rstrip()
        if text[-1:] in OPENING_QUOTES or f" {text}"[-2:] in (' "', " '"):
            return True
        said = text.rstrip("".join((*OPENING, *CLOSING))).rstrip()
        return not said or said[-1] in SENTENCE_ENDS

    def separated(self, piece: int) -> tuple[int, ...]:
        """This piece with a space before it, so that it begins a token wherever it stands."""
        if self._opens[piece]:
            return (piece,)
        return self.encode_word(self._text([piece]), True)

    @property
    def _uncommon(self) -> int:
        """The first piece that is not among the most frequent ones."""
        return self._first + min(COMMON_PIECES, (self._size - self._first) // 10)

    def is_common(self, phrase: Sequence[int]) -> bool:
        """Punctuation and the most frequent words, which may well stand in a sentence several times."""
        return all(i < self._uncommon for i in phrase)

    @cached_property
    def small(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of pieces that are a small word as they stand; see `SMALL_WORDS`."""
        known = SMALL_WORDS.get(self.language)
        frequent = range(self._first, min(self._uncommon, self._first + SMALL_PIECES))
        small = (
            i in frequent and body[:1].isalpha() if known is None else body.lower() in known
            for i, body in enumerate(self.bodies)
        )
        mask: np.ndarray[Any, np.dtype[np.bool_]] = np.fromiter(small, dtype=bool) & self._opens[: self._size]
        return mask

    def rarity(self, phrase: Sequence[int]) -> float:
        """From 0, the most frequent piece, to 1, the rarest; whatever takes several pieces is rare."""
        pieces = [i for i in phrase if i >= self._size or self.bodies[i]]
        if len(pieces) != 1 or pieces[0] >= self._size:
            return 1.0
        return math.log(max(1, pieces[0] - self._first + 1)) / math.log(self._size)

    def boundary_class(self, piece: int, before: bool) -> int:
        """Pieces of one class have the same `boundaries_after` (or, with `before`, the same
        `boundaries_before`)."""
        if before:
            return len(Edge) if self._opens[piece] else int(self._head[piece])
        return int(self._tail[piece])

    def boundaries_after(self, left: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each id of the vocabulary: would it begin a new token right after `left`?"""
        mask: np.ndarray[Any, np.dtype[np.bool_]] = (
            self._opens[: self._size] | BOUNDARY[self._tail[left]][self._head[: self._size]]
        )
        mask[:SPECIALS] = True
        return mask

    def boundaries_before(self, right: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each id of the vocabulary: would `right` begin a new token right after it? (decoding
        backward)"""
        if self._opens[right]:
            return np.ones(self._size, dtype=bool)
        mask: np.ndarray[Any, np.dtype[np.bool_]] = BOUNDARY[self._tail[: self._size], self._head[right]]
        mask[:SPECIALS] = True
        return mask

    def words(self, ids: Sequence[int]) -> list[Word]:
        """The tokens on screen, as slices of `ids`; special ids are not allowed in it.

        >>> [w.text for w in english.words(english.encode("Don't go."))]  # doctest: +SKIP
        ["Don't", 'go', '.']
        """
        words: list[Word] = []
        start = 0
        for stop in range(1, len(ids) + 1):
            if stop < len(ids) and not self.boundary(ids[stop - 1], ids[stop]):
                continue
            text = self._text(ids[start:stop])
            if text:
                space = bool(words) and self._space_before(words[-1].text, ids[start], text)
                words.append(Word(text, space, start, stop))
                start = stop
            elif stop == len(ids) and words:  # a lone space mark at the very end
                words[-1] = replace(words[-1], stop=stop)
        return words

    def _space_before(self, previous: str, first: int, text: str) -> bool:
        if self.spaced:
            return bool(self._opens[first])
        left, right = previous[-1], text[0]  # Chinese: only words of other scripts are set apart
        return not (is_cjk(left) or is_cjk(right)) and _edge(left) == Edge.WORD and _edge(right) == Edge.WORD

    def _text(self, ids: Sequence[int]) -> str:
        return "".join(self._pieces[i] for i in ids).replace(SPACE, "")

    def extra(self, piece: str) -> int:
        """The id of a written form the vocabulary does not have; the same form always gets the same id."""
        with self._growing:  # sessions of one model share its vocabulary
            if piece not in self._extra:
                body = piece.removeprefix(SPACE)
                self._opens = np.append(self._opens, piece.startswith(SPACE))
                self._head = np.append(self._head, np.int8(_edge(body[0])))
                self._tail = np.append(self._tail, np.int8(_edge(body[-1])))
                self._pieces.append(piece)
                self._extra[piece] = len(self._pieces) - 1
            return self._extra[piece]


def says_something(word: str) -> bool:
    """A word, as opposed to a punctuation mark."""
    return any(map(str.isalnum, word))


def negates(word: str, language: str) -> bool:
    """Does this word negate what stands behind it?"""
    text = word.lower().replace("\u2019", "'")
    return text in NEGATIONS.get(language, ()) or (language == "en" and text.endswith("n't"))


def detokenise(words: Iterable[tuple[str, bool]]) -> str:
    """Tokens with their `space_before` as running text.

    >>> detokenise([("Go", False), (",", False), ("now", True)])
    'Go, now'
    """
    return "".join((" " if space else "") + text for text, space in words).strip()


class PieceVocabulary(Vocabulary):
    """Sentencepiece with byte fallback: every text has ids, so nothing is ever unknown."""

    kind = "pieces"

    def __init__(
        self, model: bytes, language: str, *, segmented: bool = False, name: str = "sentencepiece model"
    ) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except (RuntimeError, TypeError) as error:
            raise CheckpointError(
                f"{name} is not a sentencepiece model ({error}); copy the checkpoint again."
            ) from error
        size = self._processor.get_piece_size()
        super().__init__([self._processor.id_to_piece(i) for i in range(size)], language, segmented)
        self._byte = np.array([self._processor.is_byte(i) for i in range(size)])
        self._head[self._byte] = self._tail[self._byte] = Edge.WORD
        self._first += int(self._byte.sum())
        self._bytes = {int(self._pieces[i][3:5], 16): int(i) for i in np.flatnonzero(self._byte)}
        if len(self._bytes) != 256:
            raise CheckpointError(f"{name} has no byte fallback; train it with byte_fallback=True.")
        self._index = {
            piece: i for i, piece in enumerate(self._pieces) if i >= SPECIALS and not self._byte[i]
        }
        self.encode_word = lru_cache(maxsize=65536)(self._encode_word)  # type: ignore[method-assign]

    @classmethod
    def load(cls, path: Path, language: str, *, segmented: bool) -> PieceVocabulary:
        return cls(path.read_bytes(), language, segmented=segmented, name=str(path))

    def save(self, path: Path) -> None:
        path.write_bytes(self._model)

    @cached_property
    def never_generated(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        # A lone byte is a fraction of a character, and a piece that folding would change could
        # not be typed again.
        odd = [
            fold(piece.replace(SPACE, "")) != piece.replace(SPACE, "") for piece in self._pieces[: len(self)]
        ]
        mask: np.ndarray[Any, np.dtype[np.bool_]] = super().never_generated | self._byte | np.array(odd)
        return mask

    def encode_word(self, chunk: str, space_before: bool) -> tuple[int, ...]:
        raise NotImplementedError  # replaced by the cached method in __init__

    def _encode_word(self, chunk: str, space_before: bool) -> tuple[int, ...]:
        ids = tuple(self._processor.encode(chunk))
        if not space_before:
            ids = self._without_space(ids)
        # sentencepiece folds some characters its own way; a person's words must come back as typed.
        return (
            ids if ids and UNK not in ids and self._text(ids) == chunk else self._spell(chunk, space_before)
        )

    def _without_space(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        head = self._pieces[ids[0]].removeprefix(SPACE) if ids else ""
        if not head:
            return ids[1:]
        return (self._index[head], *ids[1:]) if head in self._index else ()

    def _spell(self, chunk: str, space_before: bool) -> tuple[int, ...]:
        ids = [self._index[SPACE]] if space_before else []
        for character in chunk:
            known = self._index.get(character) if character != SPACE else None
            ids.extend(
                [known]
                if known is not None
                else [self._bytes[b] for b in character.encode("utf-8", "replace")]
            )
        return tuple(ids)

    def _text(self, ids: Sequence[int]) -> str:
        if not any(self._byte[i] for i in ids):
            return super()._text(ids)
        data = b"".join(
            bytes([int(self._pieces[i][3:5], 16)])
            if self._byte[i]
            else self._pieces[i].replace(SPACE, "").encode()
            for i in ids
        )
        return data.decode("utf-8", "replace")

    def separated(self, piece: int) -> tuple[int, ...]:
        known = None if self._byte[piece] else self._index.get(SPACE + self._pieces[piece])
        if self._opens[piece]:
            return (piece,)
        return (self._index[SPACE], piece) if known is None else (known,)

    def signs(self, ids: Sequence[int]) -> list[int]:
        found = list(ids)
        at = 0
        while at < len(ids):
            stop = at + 1
            if self._byte[ids[at]]:
                while stop < len(ids) and self._byte[ids[stop]] and not self.characters(ids[stop]):
                    stop += 1
                found[at:stop] = [len(self) + NUMBERS + ord(self._text(ids[at:stop])[0])] * (stop - at)
            elif self._counts(ids[at]):
                while stop < len(ids) and self._counts(ids[stop]):
                    stop += 1
                said = "".join(self._pieces[i].removeprefix(SPACE) for i in ids[at:stop])
                if stop < len(ids) and self._is_counted(ids[stop]):
                    said += self._pieces[ids[stop]][0]
                    stop += 1
                number = zlib.crc32(said.encode()) % NUMBERS
                found[at:stop] = [len(self) + number] * (stop - at)
            at = stop
        return found

    def _counts(self, index: int) -> bool:
        """Is this piece a number, or a part of one?"""
        return self._pieces[index].removeprefix(SPACE).isnumeric()

    def _is_counted(self, index: int) -> bool:
        """Does this piece behind a number say what of?"""
        return not self._opens[index] and self._pieces[index][:1].isalpha()

    def characters(self, index: int) -> int:
        """How many characters of text begin with this piece (a byte in the middle of a character begins
        none)."""
        if self._byte[index]:
            return int(int(self._pieces[index][3:5], 16) & 0xC0 != 0x80)
        return super().characters(index)


class WordVocabulary(Vocabulary):
    """The paper's vocabulary for RNNSearch: the most frequent words, everything else UNK."""

    kind = "words"

    def __init__(self, words: Sequence[str], language: str, *, segmented: bool = False) -> None:
        super().__init__(["<pad>", "<unk>", "<s>", "</s>", *words], language, segmented)
        self._index = {word: i + SPECIALS for i, word in enumerate(words)}
        self._opens[UNK] = True  # on the screen it stands for a word

    @property
    def never_generated(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        # "A word belongs here that I do not have" is an answer, and the memory may have the word.
        mask = super().never_generated
        mask[UNK] = False
        return mask

    @classmethod
    def build(cls, sentences: Iterable[str], size: int, language: str) -> WordVocabulary:
        """The `size` most frequent words of some text, ties in alphabetical order."""
        empty = cls([], language, segmented=language in UNSPACED_LANGUAGES)
        counts: Counter[str] = Counter()
        for sentence in sentences:
            for chunk in empty._chunks(fold(sentence)):
                counts.update(empty._split(chunk, True))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(ranked[: size - SPECIALS], language, segmented=empty.segmented)

    @classmethod
    def load(cls, path: Path, language: str, *, segmented: bool) -> WordVocabulary:
        try:
            lines = path.read_text("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{path} is not UTF-8 text; copy the checkpoint again.") from error
        return cls([line for line in lines if line], language, segmented=segmented)

    def save(self, path: Path) -> None:
        path.write_text("".join(word + "\n" for word in self._pieces[SPECIALS : len(self)]), "utf-8")

    def encode_word(self, chunk: str, space_before: bool) -> tuple[int, ...]:
        return tuple(self._index.get(word) or self.extra(word) for word in self._split(chunk, space_before))

    def _split(self, chunk: str, space_before: bool) -> list[str]:
        parts = [chunk.replace(SPACE, "_")] if self.segmented else edges_split(chunk.replace(SPACE, "_"))
        return [(SPACE if space_before else "") + parts[0], *parts[1:]]
