"""Text: what a person types comes back as typed, and words are slices of pieces under every vocabulary."""

from __future__ import annotations

import itertools
import sys
import threading
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from camit.checkpoint import load_checkpoint
from camit.errors import CheckpointError, InputError
from camit.text import (
    SPECIALS,
    UNK,
    PieceVocabulary,
    Vocabulary,
    WordVocabulary,
    detokenise,
    edges_split,
    fold,
    normalise,
    screen_words,
    segment,
)
from tests.helpers import piece_vocabulary, word_vocabulary


@cache
def embedded() -> tuple[Vocabulary, Vocabulary]:
    checkpoint = load_checkpoint("zh-en")
    return checkpoint.source, checkpoint.target


@cache
def chinese_words() -> WordVocabulary:
    return WordVocabulary.build(["我们昨天在公园里看到了他。", "他们是中国人。"], 12, "zh")


VOCABULARIES: dict[str, Callable[[], Vocabulary]] = {
    "embedded English": lambda: embedded()[1],
    "embedded Chinese": lambda: embedded()[0],
    "tiny pieces": piece_vocabulary,
    "English words": word_vocabulary,
    "Chinese words": chinese_words,
}

everything = pytest.mark.parametrize("name", VOCABULARIES)
# Whole sentences, and the characters that make trouble: joiners, marks, combining, wide, spaces of all kinds.
unicode_text = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40)
awkward = st.text(
    st.sampled_from("ab Z09'’-_‑.,;()《》“”…▁ \u00a0\u3000é\u0301ü\u200bｆ①½ﬁ中文字，。！😀\u200d🇨🇳"),
    max_size=30,
)


@everything
@settings(max_examples=50)
@given(text=unicode_text | awkward)
@example(text="▁")
@example(text="a ▁ b ▁▁c")
@example(text="<s> </s> <unk> <0x41>")
@example(text="don't stop-and-go rock 'n' roll")
def test_text_comes_back_as_typed(name: str, text: str) -> None:
    vocabulary = VOCABULARIES[name]()
    if isinstance(vocabulary, WordVocabulary):
        text = text.replace("▁", "_")  # a word list has no way to write sentencepiece's own mark
    decoded = vocabulary.decode(vocabulary.encode(text))
    if vocabulary.spaced:
        assert decoded == fold(text)
    else:  # written Chinese keeps no spaces but those between words of other scripts
        assert decoded.replace(" ", "") == fold(text).replace(" ", "")


@pytest.mark.parametrize("side", [0, 1])
def test_real_sentences_come_back_as_written(side: int) -> None:
    sentences = [
        ("我们昨天在公园里看到了他。", "We saw him in the park yesterday."),
        ("“你为什么不告诉我真相？”她问。", "“Why didn't you tell me the truth?” she asked."),
        ("价格是１，２３４．５０元（含税）。", "It's $1,234.50 (tax included) — a well-known price."),
        ("NBA球星C罗……", "Mr. O'Neill's e-mail: a.b@c.org; see §3.2 & p. 45%"),
        ("《红楼梦》第120回", "“Rock ’n’ roll”, café naïve coöperate"),
    ]
    vocabulary = embedded()[side]
    for pair in sentences:
        assert vocabulary.decode(vocabulary.encode(pair[side])) == fold(pair[side])


@everything
@settings(max_examples=50)
@given(text=awkward)
def test_words_are_slices_that_cover_all_pieces(name: str, text: str) -> None:
    vocabulary = VOCABULARIES[name]()
    ids = vocabulary.encode(text)
    words = vocabulary.words(ids)
    assert [word.start for word in words] == [0, *[word.stop for word in words[:-1]]][: len(words)]
    assert not words or words[-1].stop == len(ids)
    assert all(word.text and not word.text.isspace() for word in words)
    assert detokenise((word.text, word.space_before) for word in words) == vocabulary.decode(ids)


@everything
@settings(max_examples=50)
@given(text=awkward)
def test_words_begin_where_two_neighbours_say_so(name: str, text: str) -> None:
    vocabulary = VOCABULARIES[name]()
    ids = vocabulary.encode(text)
    starts = {word.start for word in vocabulary.words(ids)}
    for at in range(1, len(ids)):
        if at in starts:
            assert vocabulary.boundary(ids[at - 1], ids[at])


@pytest.mark.parametrize("name", ["tiny pieces", "English words", "Chinese words"])
def test_boundary_tables_say_what_boundary_says(name: str) -> None:
    vocabulary = VOCABULARIES[name]()
    vocabulary.encode("zebra, zebras' x-ray")  # words it does not have get ids beyond the tables
    known = range(len(vocabulary))
    extra = [i for i in vocabulary.encode("zebra, zebras' x-ray") if i >= len(vocabulary)]
    for piece in (*known[SPECIALS:], *extra):
        after, before = vocabulary.boundaries_after(piece), vocabulary.boundaries_before(piece)
        for other in known:
            assert bool(after[other]) == vocabulary.boundary(piece, other)
            assert bool(before[other]) == vocabulary.boundary(other, piece)
    for way in (True, False):
        tables: dict[int, list[bool]] = {}
        for piece in (*known[SPECIALS:], *extra):
            table = (vocabulary.boundaries_before if way else vocabulary.boundaries_after)(piece).tolist()
            assert tables.setdefault(vocabulary.boundary_class(piece, way), table) == table


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't go.", ["Don't", "go", "."]),
        ("a well-known man", ["a", "well-known", "man"]),
        ("It cost $5 (five)!", ["It", "cost", "$", "5", "(", "five", ")", "!"]),
        ("the filmmakers' film", ["the", "filmmakers'", "film"]),
        ("Wait: what?", ["Wait", ":", "what", "?"]),
        ("naïve café 😀", ["naïve", "café", "😀"]),
    ],
)
def test_english_tokens(text: str, words: list[str]) -> None:
    vocabulary = embedded()[1]
    assert [word.text for word in vocabulary.words(vocabulary.encode(text))] == words
    assert [word for word, _ in screen_words(text, "en")] == words


def test_chinese_tokens_are_words() -> None:
    assert segment("我们在公园里看到了他。") == ["我们", "在", "公园", "里", "看到", "了", "他", "。"]
    words = [w for w, _ in screen_words("他在读Don't Look Back。", "zh")]
    assert words[-1] == "。" and "Look" in words and "Back" in words


def test_chinese_targets_have_words_too() -> None:
    vocabulary = chinese_words()
    ids = vocabulary.encode("我们昨天在New York公园里看到了他。")
    words = vocabulary.words(ids)
    assert [w.text for w in words][:3] == ["我们", "昨天", "在"]
    assert vocabulary.decode(ids) == "我们昨天在New York公园里看到了他。"


def test_a_word_list_keeps_words_it_does_not_have() -> None:
    vocabulary = word_vocabulary()
    ids = vocabulary.encode("the zebra sat on the zebra, zebra!")
    unknown = [i for i in ids if i >= len(vocabulary)]
    assert len(unknown) == 3 and len(set(unknown)) == 1
    assert vocabulary.feed(ids).count(UNK) == 3
    assert vocabulary.decode(ids) == "the zebra sat on the zebra, zebra!"
    assert vocabulary.encode("zebra") == [unknown[0]]


def test_sessions_of_one_model_may_meet_new_words_at_once() -> None:
    vocabulary = WordVocabulary.build(["a cat"], 10, "en")
    asked = [[f"w{n:03d}" for n in range(300)], [f"w{n:03d}" for n in range(299, -1, -1)]]
    found: list[dict[str, int]] = [{}, {}]
    at_once = threading.Barrier(2)

    def meet(n: int) -> None:
        at_once.wait()
        found[n] = {word: vocabulary.extra(word) for word in asked[n]}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=meet, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found[0] == found[1]
    assert all(vocabulary.piece(number) == word for word, number in found[0].items())
    spaced = [vocabulary.extra("▁" + word) for word in asked[0]]
    assert [word.text for word in vocabulary.words(spaced)] == asked[0]


def test_a_word_list_is_built_by_frequency_and_survives_its_file(tmp_path: Path) -> None:
    built = WordVocabulary.build(["b a b", "c, b a"], SPECIALS + 3, "en")
    assert [built.piece(i) for i in range(SPECIALS, len(built))] == ["▁b", "▁a", ","]
    path = tmp_path / "target.txt"
    built.save(path)
    again = WordVocabulary.load(path, "en", segmented=False)
    assert again.encode("b, a c") == built.encode("b, a c")


def test_without_a_space_before_it() -> None:
    for vocabulary in (piece_vocabulary(), word_vocabulary(), embedded()[1]):
        comma = vocabulary.encode(",", attach=True)
        ids = [*vocabulary.encode("the cat"), *comma]
        assert vocabulary.decode(ids) == "the cat,"
        assert vocabulary.decode([*vocabulary.encode("the cat"), *vocabulary.encode(",")]) == "the cat ,"


def test_a_separated_piece_begins_a_token_everywhere() -> None:
    vocabulary = piece_vocabulary()
    for piece in range(SPECIALS, len(vocabulary)):
        text = vocabulary.decode([piece])
        if not text or "\ufffd" in text:
            continue
        assert vocabulary.decode(vocabulary.separated(piece)) == text
        assert vocabulary.boundary(vocabulary.encode("cat")[-1], vocabulary.separated(piece)[0])


def test_what_is_never_written_freely() -> None:
    vocabulary = embedded()[1]
    never = vocabulary.never_generated
    assert never[:SPECIALS].all()
    assert not never[vocabulary.encode("the")].any()
    assert never[vocabulary.encode("鬱")].sum() >= 3  # bytes
    free = [i for i in range(len(vocabulary)) if not never[i]]
    assert all(fold(vocabulary.decode([i])) == vocabulary.decode([i]) for i in free)


def test_a_word_list_may_say_that_it_lacks_a_word() -> None:
    vocabulary = word_vocabulary()
    never = vocabulary.never_generated
    assert [i for i in range(len(vocabulary)) if never[i]] == [i for i in range(SPECIALS) if i != UNK]
    the, cat = vocabulary.encode("the cat")
    assert vocabulary.decode([the, UNK, cat]) == "the <unk> cat"
    assert [word.text for word in vocabulary.words([UNK, cat])] == ["<unk>", "cat"]


@given(text=st.text(max_size=60))
def test_normal_form_is_stable(text: str) -> None:
    try:
        once = normalise(text)
    except InputError:
        return
    assert normalise(once) == once == fold(once)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in once)


@pytest.mark.parametrize(
    ("given_text", "message"),
    [
        ("", "is empty"),
        (" \t\n\u3000", "is empty"),
        ("\x00\x1b\x7f", "is empty"),
        ("\ud800", "is empty"),
        ("字" * 5001, "5,001 characters; at most 5,000"),
        ("ﷺ" * 4000, "once normalised"),
        (None, "must be a string, not NoneType"),
        (["a"], "must be a string, not list"),
        (b"bytes", "must be a string, not bytes"),
    ],
)
def test_what_is_no_sentence_is_refused(given_text: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        normalise(given_text)


@given(text=awkward)
def test_screen_words_say_the_whole_text(text: str) -> None:
    for language in ("en", "zh"):
        words = screen_words(fold(text), language)
        assert "".join(word for word, _ in words) == fold(text).replace(" ", "")
        assert detokenise(words) == fold(text)


@given(chunk=st.text(st.sampled_from("ab9'-.,!中"), min_size=1, max_size=12))
def test_splitting_a_chunk_loses_nothing(chunk: str) -> None:
    parts = edges_split(chunk)
    assert "".join(parts) == chunk and all(parts)
    assert all(edges_split(part) == [part] for part in parts)


def test_a_file_that_is_no_sentencepiece_model_is_named() -> None:
    with pytest.raises(CheckpointError, match="target model is not a sentencepiece model"):
        PieceVocabulary(b"nonsense", "en", name="target model")


def test_all_pieces_of_a_pair_agree_on_their_boundary() -> None:
    vocabulary = piece_vocabulary()
    texts = ["the cat's dog", "isn't, is it?", "catalogue-dogs"]
    for text in texts:
        ids = vocabulary.encode(text)
        inside = [not vocabulary.boundary(a, b) for a, b in itertools.pairwise(ids)]
        words = vocabulary.words(ids)
        assert len(words) == len(ids) - sum(inside)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("", True),
        ('"', True),
        ('He said, "', True),
        ("He said, “", True),
        ("He left.", True),
        ("“He left.”", True),
        ("(He left.)", True),
        ("He left", False),
        ("He left (", False),
        ('He said "no"', False),
        ("He left,", False),
    ],
)
def test_where_a_sentence_begins(text: str, begins: bool) -> None:
    vocabulary = embedded()[1]
    assert vocabulary.begins(vocabulary.encode(text) if text else ()) is begins


def test_small_words_are_listed_for_english_and_the_most_frequent_ones_elsewhere() -> None:
    chinese, english = embedded()
    listed = {english.bodies[i].lower() for i in english.small.nonzero()[0]}
    assert {"the", "of", "was", "she"} <= listed and not listed & {"house", "said", ",", "ing"}
    frequent = chinese.small.nonzero()[0]
    assert 0 < len(frequent) <= 50 and chinese.is_common(list(frequent))
    assert all(chinese.bodies[i][:1].isalpha() for i in frequent)


def test_a_number_and_what_is_counted_are_one_sign() -> None:
    """Of 三月 no part stands in 六月, nor does 二十五 in 五十二."""
    vocabulary, _ = embedded()

    def signs(text: str) -> dict[str, int]:
        ids = vocabulary.encode(text)
        return dict(zip(map(vocabulary.piece, ids), vocabulary.signs(ids), strict=True))

    march, june = signs("会议定在三月五号。"), signs("会议定在六月五号。")
    assert march["三"] == march["月"] != june["六"] == june["月"]
    assert {piece: march[piece] for piece in "定在五号。"} == {piece: june[piece] for piece in "定在五号。"}
    assert signs("我们二十五号见。")["号"] != signs("我们五十二号见。")["号"]
    moon = "今晚月亮很圆。"
    assert list(signs(moon).values()) == vocabulary.encode(moon)  # nothing is counted
