"""Which source words a target word stands for, and where they stand: not inside longer terms."""

from __future__ import annotations

import pytest

import camit
from camit.memory import RevisionMemory
from camit.memory.alignment import Alignment, find_anchors, read_along, stands_for, strongest
from camit.memory.matching import Characters, match_anchors, meant
from tests.helpers import tiny_translator
from tests.memories import chinese, offered


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
        # a source word in one piece with its neighbour, a negation, without which nobody would say it
        ("我不知道他去看了什么电影。", "I have no idea what movie he saw.", "idea", "不知道"),
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


@pytest.mark.parametrize(
    ("language", "word", "places"),
    [("en", "he", []), ("en", "cat", [3]), ("en", "thecat", [0]), ("zh", "cat", [3]), ("en", "at", [])],
)
def test_a_source_word_stands_between_words_where_there_are_spaces(
    language: str, word: str, places: list[int]
) -> None:
    assert Characters("the cat sat", language).find(word) == places


@pytest.mark.parametrize(
    ("source", "word", "places"),
    [
        ("我坐BUS去。", "US", []),
        ("我坐BUS去。", "BUS", [2]),
        ("他去US了，US很大。", "US", [2, 6]),
        ("卖了1000个", "100", []),
        ("买了5kg米", "kg", [3]),
        ("坐车去US BUS站", "US", [3]),
        ("他们的小猫", "小猫", [3]),
    ],
)
def test_a_foreign_word_in_a_language_without_spaces_is_found_whole_only(
    source: str, word: str, places: list[int]
) -> None:
    assert Characters(source, "zh").find(word) == places


def test_a_term_inside_a_longer_term_is_not_meant() -> None:
    characters = Characters("北京大学在北京。", "zh")
    found = characters.find_all(["北京", "北京大学", "大学", "上海"])
    assert found == {"北京": [0, 5], "北京大学": [0], "大学": [2]}
    assert meant(found, [((word, 1.0),) for word in found]) == {"北京": [5], "北京大学": [0]}
    assert meant(found, [(("北京", 1.0),)]) == found


def test_a_term_is_hidden_only_by_what_is_offered() -> None:
    memory = RevisionMemory(chinese())
    memory.add("鲸", "cetacean")
    memory.add("蓝鲸岛", "Whale Island")
    assert offered(memory, "蓝鲸在海里。") == {"cetacean"}
    assert offered(memory, "蓝鲸岛在海里。") == {"Whale Island"}


def test_a_longer_term_does_not_speak_against_a_shorter_one() -> None:
    memory = RevisionMemory(chinese())
    short, long = memory.add("鲸", "cetacean"), memory.add("蓝鲸", "blue whale")
    source, target = "我看见了蓝鲸。", "I saw a blue whale."
    ids, pieces = chinese().encode_source(source), tuple(chinese().target_vocabulary.encode(target))
    memory.write(source, ids, pieces, [], 1)
    assert memory[short.id].refused == 0 and memory[long.id].agreed == 1


def test_a_longer_term_that_is_not_on_offer_hides_no_shorter_one() -> None:
    """What is offered and not taken is refused, whatever else the memory knows."""
    memory = RevisionMemory(chinese())
    short = memory.add("鲸", "cetacean")
    memory.add("看到了蓝鲸", "spotted gargantuan whales")
    before = memory[short.id].refused
    source = "蓝鲸在海里。"
    readers = memory.readers(source)
    assert readers is not None and readers.forward.ids == (short.id,)
    ids, pieces = chinese().encode_source(source), tuple(chinese().target_vocabulary.encode("It is there."))
    memory.write(source, ids, pieces, [], 2)
    assert memory[short.id].refused == before + 1


def test_a_word_of_a_longer_copied_term_comes_from_that_term() -> None:
    session = camit.Session(camit.load("zh-en"), learning=False)
    session.memory.add("北京", "Peking")
    university = session.memory.add("北京大学", "Peking University")
    draft = session.open("我在北京大学学习。")
    assert "Peking University" in draft.text
    assert {t.copied_from for t in draft.tokens if t.text in ("Peking", "University")} == {university.id}
    session.close()
