"""What of a person's fixes is remembered, and for which source words it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import camit
from camit.memory import RevisionMemory
from camit.memory.alignment import Alignment, strongest
from camit.memory.fixes import without_possessive
from camit.memory.matching import Characters, match_anchors, stretch
from tests.helpers import tiny_translator
from tests.memories import Sentence, chinese, offered, remember, remember_phrase, translate


def test_source_words_that_are_hardly_looked_at_are_anchors_all_the_same() -> None:
    """A network that looks almost nowhere in particular once led to an anchor of weight 0."""
    words, nowhere = ("猫", "狗"), torch.tensor([[1.0, 0.0]])
    hardly = torch.tensor([[1e-12, 1e-12]])
    alignment = Alignment(words, nowhere, hardly)
    anchor = strongest(alignment.looks(0, 1))
    assert [word for word, _ in anchor] == ["猫"]
    chosen, match = match_anchors(tiny_translator(), "大猫", [anchor])
    assert chosen == [0] and match.found.tolist() == [1.0]


def test_punctuation_is_not_worth_remembering_and_a_span_is_written_once() -> None:
    memory = RevisionMemory(tiny_translator())
    sentence = Sentence(memory._translator, "猫", "the cat sat.")
    spans = sentence.spans(".", "cat", "sat")
    written = memory.write("猫", sentence.ids, sentence.pieces, [*spans, *spans], 0)
    assert [entry.text for entry in written] == ["cat", "sat"]


@pytest.mark.parametrize(
    ("source", "target", "fix", "text", "term"),
    [
        ("哥哥在学校。", "My older brother is at school.", "older", "older brother", "哥哥"),
        ("他们会说很多语言。", "They know many spoken languages.", "spoken", "spoken languages", "语言"),
        ("我哥哥在学校。", "My brother is at school.", "brother", "brother", "哥哥"),
        ("我在公园里看到了他。", "I met him in the park.", "met", "met", "看到"),
        ("我昨天遇到了市长。", "I met a mayor yesterday.", "a", "a", "市长"),  # small words say nothing
        ("哥哥在学校。", "Older brother is at school.", "Older", "Older", "哥哥"),  # it may be a name
    ],
)
def test_what_says_more_of_a_right_word_is_remembered_with_it(
    source: str, target: str, fix: str, text: str, term: str
) -> None:
    memory = RevisionMemory(chinese())
    remember(memory, source, target, fix)
    [entry] = memory.entries
    assert (entry.text, entry.term[:2]) == (text, term)


def test_what_the_source_does_not_say_is_not_remembered_for_its_neighbour() -> None:
    memory = RevisionMemory(chinese())
    remember(memory, "我的厨师很好。", "My head chef is good.", "head")
    assert "head chef" not in [entry.text for entry in memory.entries]


@pytest.mark.parametrize(
    ("source", "target", "name", "later"),
    [
        ("诸葛亮很聪明。", "Zhuge Liang is clever.", "Zhuge Liang", "我读过诸葛亮的故事。"),
        ("赵子龙很勇敢。", "Zhao Zilong is brave.", "Zhao Zilong", "我喜欢赵子龙。"),
    ],
)
def test_a_full_name_is_remembered_as_one(source: str, target: str, name: str, later: str) -> None:
    with camit.Session(chinese(), learning=False) as session:
        draft = session.open(source)
        draft.replace((0, len(draft.tokens)), target)
        session.confirm(draft)
        assert name in [entry.text for entry in session.memory.entries]
        assert name in session.open(later).text


def test_a_phrase_with_a_name_that_nobody_can_place_is_not_remembered() -> None:
    """It would come for all the other names: "surname is Guo" wherever there is a 姓."""
    with camit.Session(chinese(), learning=False) as session:
        draft = session.open("院长姓郭，大家都叫他老郭。")
        draft.replace((0, len(draft.tokens)), "The director's surname is Guo, everyone calls him Old Guo.")
        session.confirm(draft)
        assert not any("surname" in entry.text for entry in session.memory.entries)
        assert "Guo" not in session.open("我姓李，你呢？").text


def test_a_phrase_is_offered_where_all_it_stands_for_stands(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    target = "He spotted a hound in the park."
    entries = remember_phrase(memory, "他在公园里看到了一只狗。", target, "spotted a hound")
    assert [(e.text, e.term) for e in entries] == [
        ("spotted a hound", "看到了一只狗"),
        ("spotted", "看到"),
        ("hound", "狗"),
    ]
    assert offered(memory, "那只狗很大。") == {"hound"}
    assert offered(memory, "我没看到一只狗。") == {"spotted", "hound"}
    assert offered(memory, "我看到了一只狗。") == {"spotted a hound"}
    memory.export_tsv(tmp_path / "glossary.tsv")
    glossary = (tmp_path / "glossary.tsv").read_text("utf-8")
    assert glossary.splitlines()[0] == "看到了一只狗\tspotted a hound"


@pytest.mark.parametrize(
    ("source", "target", "phrase", "remembered"),
    [
        (
            "我在北京大学学习。",
            "I study at Peking University.",
            "at Peking University",
            ["Peking University"],
        ),
        ("峰会下周开始。", "The summit begins next week.", "The summit", ["summit"]),
        (
            "外交部长明天来。",
            "The Minister of Foreign Affairs comes tomorrow.",
            "Minister of Foreign Affairs",
            ["Minister of Foreign Affairs"],
        ),
        ("欣怡昨天来了。", "Xinyi came yesterday.", "Xinyi came", ["Xinyi came", "Xinyi"]),
        ("他每天喝豆浆。", "He drinks soy milk every day.", "soy milk", ["soy milk"]),
        ("老板说老板不在。", "The head honcho says he is not in.", "The head honcho", ["head honcho"]),
    ],
)
def test_what_is_special_in_a_phrase_is_remembered(
    source: str, target: str, phrase: str, remembered: list[str]
) -> None:
    entries = remember_phrase(RevisionMemory(chinese()), source, target, phrase)
    assert [entry.text for entry in entries] == remembered


@pytest.mark.parametrize(
    ("source", "typed", "others"),
    [
        ("医生说他死了。", "The doctor said he was dead.", ["医生说他没死。"]),
        ("我喜欢这部电影。", "I love this movie.", ["我讨厌这部电影。", "我没看过这部电影。"]),
        ("他每天吃三个苹果。", "He eats three apples a day.", ["他每天不吃三个苹果。", "我每天吃三个苹果。"]),
        ("会议在三点开始。", "The meeting starts at three.", ["会议在三点半开始。", "会议在十三点开始。"]),
        ("明天会下雨。", "It is going to rain tomorrow.", ["明天不会下雨。", "明天会下雨吗？"]),
    ],
)
def test_a_sentence_that_was_typed_anew_does_not_come_for_others(
    source: str, typed: str, others: list[str]
) -> None:
    with camit.Session(chinese(), learning=False) as session:
        draft = session.open(source)
        session.confirm(draft.replace((0, len(draft.tokens)), typed))
        for other in others:
            assert session.open(other).text == chinese().translate(other).text


@pytest.mark.parametrize(
    ("source", "words", "text"),
    [
        ("老板说老板不在。", ["老板"], "老板"),
        ("他喝豆浆，我也喝豆浆。", ["喝", "豆浆"], "喝豆浆"),
        ("我们要养活65亿人。", ["65", "亿人"], "65亿人"),
        ("会议在三点半开始。", ["三点", "半"], "三点半"),
        ("会议在三点半开始。", ["半"], "半"),
        ("周一一早出发。", ["一早", "出发"], "一早出发"),
    ],
)
def test_what_a_phrase_stands_for_is_the_shortest_text_with_its_words(
    source: str, words: list[str], text: str
) -> None:
    assert stretch(source, "zh", words) == text


def test_numbers_are_found_whole_and_words_of_a_source_in_it() -> None:
    for source, word, found in [
        ("会议在十三点开始。", "三点", False),
        ("会议在三点半开始。", "三点", False),
        ("会议在三点开始。", "三点", True),
        ("第二天半夜他来了。", "半夜", True),
        ("我们周一一早出发。", "周一", True),
        ("我们周一一早出发。", "一早", True),
    ]:
        assert bool(Characters(source, "zh").find(word)) == found, (source, word)


def test_a_name_that_was_typed_with_its_sentence_comes_back_whole() -> None:
    with camit.Session(chinese()) as session:
        draft = session.open("欣怡昨天来了。")
        session.confirm(draft.replace((0, len(draft.tokens)), "Xinyi came yesterday."))
        for source in ("欣怡喜欢吃苹果。", "我看见欣怡在公园里。", "你认识欣怡吗？"):
            assert "Xinyi" in [token.text for token in session.open(source).tokens]


def test_of_a_phrase_that_was_typed_anew_only_what_is_new_is_a_fix() -> None:
    with camit.Session(chinese(), learning=False) as session:
        draft = session.open("会议在三点开始。")
        assert draft.text == "The meeting starts at 3:00."
        session.confirm(draft.replace((0, len(draft.tokens)), "The meeting starts at three."))
        assert [entry.text for entry in session.memory.entries] == ["meeting starts at three"]
        again = session.open("明天会下雨。")
        session.confirm(again.replace((0, len(again.tokens)), "It is going to rain tomorrow."))
        assert len(session.memory.entries) == 1  # "rain" and "tomorrow" stood there already


def test_of_a_sentence_that_is_typed_anew_the_words_are_remembered() -> None:
    """As one phrase it once took the place of every translation that shares a word with it."""
    memory = RevisionMemory(chinese())
    source, target = (
        "昨天晚上他在公园里看到了一只狗和三只鸭子。",
        "Last night he spotted a hound and three ducks in the gardens",
    )
    entries = remember_phrase(memory, source, target, target)
    assert {"hound", "ducks", "gardens"} <= {entry.text for entry in entries}
    assert {entry.text for entry in entries if " " in entry.text} == {"Last night"}  # for one source word
    assert "gardens" not in translate(chinese(), "昨天我很忙。", memory)


def test_a_fix_that_no_decoder_expected_stands_for_its_source_word() -> None:
    with camit.Session(chinese(), learning=False) as session:
        draft = session.open("我们昨天在公园里看到了他。")
        draft.replace([token.text for token in draft.tokens].index("park"), "garden")
        session.confirm(draft)
        assert [word for word, _ in session.memory.entries[-1].anchor] == ["公园"]
        for later in ("我们昨天在公园里看到了他。", "她昨天在公园里。", "公园很大。"):
            assert "garden" in session.open(later).text


# What a fix stands for, and what it does not


def taught(memory: RevisionMemory, source: str, target: str, phrase: str) -> dict[str, list[str]]:
    """What is remembered of a phrase, and the source words it stands for."""
    entries = remember_phrase(memory, source, target, phrase)
    return {entry.text: [word for word, _ in entry.anchor] for entry in entries}


@pytest.mark.parametrize(
    ("source", "target", "word", "negated", "others"),
    [
        ("我不同意。", "I disagree.", "disagree", "不同意", ["我同意他的看法。", "你同意吗？"]),
        ("他不高兴。", "He's unhappy.", "unhappy", "不高兴", ["我很高兴见到你。", "她高兴吗？"]),
        ("他不是很高兴。", "He's unhappy.", "unhappy", "不是很高兴", ["他很高兴。"]),
        ("我不记得他的名字。", "I forgot his name.", "forgot", "不记得", ["我记得他的名字。"]),
    ],
)
def test_a_fix_that_says_a_negation_comes_back_with_it_alone(
    source: str, target: str, word: str, negated: str, others: list[str]
) -> None:
    memory = RevisionMemory(chinese())
    assert taught(memory, source, target, word) == {word: [negated]}
    for other in others:
        assert offered(memory, other) == set()
        assert translate(chinese(), other, memory) == translate(chinese(), other, None)
    assert offered(memory, source) == {word}


@pytest.mark.parametrize(
    "source", ["他不同意。", "我们不同意你的看法。", "他们都不同意。", "不，他们不同意。", "不行，我不同意。"]
)
def test_a_fix_that_says_a_negation_is_not_negated_once_more(source: str) -> None:
    memory = RevisionMemory(chinese())
    taught(memory, "我不同意。", "I disagree.", "disagree")
    said = translate(chinese(), source, memory)
    assert "isagree" in said and "not" not in said and "n't" not in said


@pytest.mark.parametrize(
    ("source", "target", "word", "anchor"),
    [
        ("这辆车特别贵。", "This car is very expensive.", "expensive", "贵"),
        ("他特别忙。", "He is extremely busy.", "busy", "忙"),
    ],
)
def test_signs_of_a_negation_in_other_words_are_none(
    source: str, target: str, word: str, anchor: str
) -> None:
    assert taught(RevisionMemory(chinese()), source, target, word)[word][0] == anchor


def test_a_title_is_no_part_of_a_name() -> None:
    memory = RevisionMemory(chinese())
    target = "Professor Wang Jianguo came yesterday."
    known = taught(memory, "王建国教授昨天来了。", target, target.rstrip("."))
    assert known["Wang Jianguo"] == ["王建国"]
    assert "Wang Jianguo" not in offered(memory, "教授走了。")


def test_a_term_may_begin_like_a_negation(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    memory.add("不锈钢", "stainless steel")
    assert "not stainless steel" in translate(chinese(), "这不是不锈钢。", memory)


def test_a_fix_beside_a_negation_comes_back_without_it_too() -> None:
    memory = RevisionMemory(chinese())
    assert taught(memory, "他不高兴。", "He is not glad.", "glad") == {"glad": ["高兴"]}
    assert offered(memory, "她很高兴。") == {"glad"}


def test_a_word_is_not_offered_where_what_is_known_of_its_negation_stands() -> None:
    memory = RevisionMemory(chinese())
    remember_phrase(memory, "我不记得他的名字。", "I forgot his name.", "forgot")
    remember_phrase(memory, "我记得那座教堂。", "I recall that church.", "recall")
    assert offered(memory, "你不记得我。") == {"forgot"}
    assert offered(memory, "你记得我。") == {"recall"}


def test_names_that_were_typed_together_come_back_one_by_one() -> None:
    memory = RevisionMemory(chinese())
    pair = "Wang Jianguo and Li Xiuying"
    names = taught(memory, "王建国和李秀英结婚了。", f"{pair} got married.", f"{pair} got married")
    assert names["Wang Jianguo"] == ["王建国"] and names["Li Xiuying"] == ["李秀英"]
    assert offered(memory, "李秀英很漂亮。") == {"Li Xiuying"}
    assert offered(memory, "王建国走了。") == {"Wang Jianguo"}
    assert "Li Xiuying" in translate(chinese(), "李秀英很漂亮。", memory)


def test_a_name_has_no_possessive() -> None:
    memory = RevisionMemory(chinese())
    target = "Zhang Wei's mother is a teacher."
    assert taught(memory, "张伟的妈妈是老师。", target, "Zhang Wei's") == {"Zhang Wei": ["张伟"]}
    remember_phrase(memory, "张伟的妈妈是老师。", target, "teacher")
    assert [entry.refused for entry in memory.entries if entry.text == "Zhang Wei"] == [0]
    assert translate(chinese(), "我喜欢张伟。", memory) == "I like Zhang Wei."


@pytest.mark.parametrize("word", ["That's", "it's", "What's", "world's"])
def test_what_is_no_name_keeps_its_end(word: str) -> None:
    vocabulary = chinese().target_vocabulary
    pieces = tuple(vocabulary.encode(f"{word} right."))
    [whole, *_] = vocabulary.words(pieces)
    assert without_possessive(vocabulary, pieces, (0, whole.stop)) == (0, whole.stop)


def test_another_form_of_a_word_does_not_speak_against_it() -> None:
    memory = RevisionMemory(chinese())
    word, plural = memory.add("关闭", "close"), memory.add("大门", "gates")
    others = memory.add("关闭", "lock"), memory.add("关闭", "clothes")
    remember_phrase(memory, "他关闭了大门。", "He closed the gate.", "He")
    for same in (word, plural):
        assert (memory[same.id].agreed, memory[same.id].refused) == (0, 0)
    assert [memory[other.id].refused for other in others] == [1, 1]


def test_a_phrasal_verb_is_remembered_whole() -> None:
    memory = RevisionMemory(chinese())
    assert taught(memory, "请打开收音机。", "Please turn on the radio.", "turn on") == {"turn on": ["打开"]}


def test_a_word_nobody_can_place_is_remembered_with_its_neighbour() -> None:
    memory = RevisionMemory(chinese())
    target = "Before closing the main valve, please check the pressure gauge."
    known = taught(memory, "关闭主阀门之前，请检查压力表。", target, target.rstrip("."))
    assert known["pressure gauge"] == ["压力表"] and "gauge" not in known
    assert "gauge" not in " ".join(offered(memory, "阀门坏了。"))
    assert "pressure gauge" in translate(chinese(), "压力表坏了。", memory)
