"""Which source words a target word stands for, and where they stand."""

from __future__ import annotations

import pytest

import camit
from camit.alignment import match_anchors, stands_for
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
