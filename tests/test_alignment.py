"""Which source words a target word stands for, and where they stand."""

from __future__ import annotations

import pytest

import camit
from camit.alignment import (
    Alignment,
    find_anchors,
    match_anchors,
    read_along,
    stands_for,
    strongest,
)
from tests.helpers import tiny_translator


@pytest.mark.parametrize("words", [False, True], ids=["pieces", "a word list"])
def test_every_source_piece_belongs_to_its_own_word_behind_words_outside_the_list_too(words: bool) -> None:
    translator = tiny_translator(words=words)
    source = "zyzzyva the cat Redford sat on the mat."
    matrix = translator.alignment(source)
    assert matrix.shape == (len(translator.encode_source(source)), len(translator.source_tokens(source)))
    assert matrix.sum(1).tolist() == [1.0] * len(matrix)
    if words:
        assert matrix.tolist() == [[float(row == word) for word in range(9)] for row in range(9)]


def test_an_anchor_is_found_behind_words_outside_the_list() -> None:
    translator = tiny_translator(words=True)
    chosen, match = match_anchors(translator, "zyzzyva the cat sat.", [(("dog", 1.0),), (("cat", 1.0),)])
    assert chosen == [1]
    assert match.pieces[:, 0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_the_model_tells_which_source_words_a_translation_stands_for() -> None:
    found = stands_for(camit.load("zh-en"), "我们的婚礼在教堂。", "Our wedding is in the church.")
    assert found[1] == ("婚礼",) and found[5] == ("教堂",)


def test_a_word_is_anchored_where_it_would_not_be_said_without() -> None:
    # Attention alone looks around: at 古代, 平原 and others with nearly the same weight.
    translator = camit.load("zh-en")
    source = "他们曾经占领了哥伦比亚的加勒比海岸平原地区，那里有很多古代的城市。"
    target = "They once conquered the Caribbean plain of Colombia, where many ancient cities are."
    ids, pieces = translator.encode_source(source), tuple(translator.target_vocabulary.encode(target))
    wanted = {
        "Caribbean": "加勒比海",
        "plain": "平原",
        "Colombia": "哥伦比亚",
        "ancient": "古代",
        "cities": "城市",
    }
    words = [word for word in translator.target_vocabulary.words(pieces) if word.text in wanted]
    spans = [(word.start, word.stop) for word in words]
    read = read_along(translator, [(ids, pieces)])
    found = find_anchors(translator, source, ids, pieces, spans, read)
    assert {word.text: anchors[0][0] for word, anchors in zip(words, found, strict=True)} == wanted
    assert all(weight > 0 for anchors in found for _, weight in anchors)
    assert find_anchors(translator, source, ids, pieces, [], read) == []


def test_a_source_of_one_word_is_an_anchor_though_nothing_is_left_without_it() -> None:
    for translator, source, target in (
        (camit.load("zh-en"), "教堂", "church"),
        (tiny_translator(words=True), "cat", "zyzzyva"),
    ):
        ids, pieces = translator.encode_source(source), tuple(translator.target_vocabulary.encode(target))
        read = read_along(translator, [(ids, pieces)])
        [[(word, weight)]] = find_anchors(translator, source, ids, pieces, [(0, len(pieces))], read)
        assert word == source and weight > 0


def test_a_word_outside_the_list_is_anchored_where_attention_rests() -> None:
    """Leaving words out says nothing of it: decoders only know that it is UNK, which may stand anywhere."""
    translator = tiny_translator(words=True)
    source, target = "the cat sat on the mat.", "the zyzzyva sat on the mat."
    ids, pieces = translator.encode_source(source), tuple(translator.target_vocabulary.encode(target))
    read = read_along(translator, [(ids, pieces)])
    looks = (read[False].attention[0], read[True].attention[0])
    alignment = Alignment.of(translator, source, ids, *looks, len(pieces))
    outside, known = find_anchors(translator, source, ids, pieces, [(1, 2), (2, 3)], read)
    assert outside == strongest(alignment.looks(1, 2))
    assert known != strongest(alignment.looks(2, 3))


@pytest.mark.parametrize(
    ("source", "target", "word", "anchor"),
    [
        # a source word that stands twice
        (
            "银行的行长说银行要破产了。",
            "The president of the lender said it was going broke.",
            "lender",
            "银行",
        ),
        # a source word in one piece with its neighbour
        ("我不知道他去看了什么电影。", "I have no idea what movie he saw.", "idea", "知道"),
    ],
)
def test_a_word_is_missed_with_all_its_places_and_pieces(
    source: str, target: str, word: str, anchor: str
) -> None:
    translator = camit.load("zh-en")
    ids, pieces = translator.encode_source(source), tuple(translator.target_vocabulary.encode(target))
    [span] = [(w.start, w.stop) for w in translator.target_vocabulary.words(pieces) if w.text == word]
    [found] = find_anchors(translator, source, ids, pieces, [span], read_along(translator, [(ids, pieces)]))
    assert found[0][0] == anchor
