"""The revision memory: what it keeps, when it speaks, that words come out whole, and that it does no harm."""

from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import pytest
import torch

import camit
from camit.errors import InputError, SessionError
from camit.memory import MemorySnapshot, RevisionMemory
from camit.search.scoring import follow
from camit.text import UNK
from tests.helpers import tiny_translator
from tests.memories import Sentence, chinese, eager, reader_of, remember, searched, translate


def test_an_entry_says_what_it_is_and_where_it_comes_from() -> None:
    memory = RevisionMemory(chinese())
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel", draft=7)
    (entry,) = memory.entries
    assert (entry.text, entry.source, entry.target) == (
        "chapel",
        "我记得那座教堂。",
        "I remember the chapel.",
    )
    assert (entry.sentence, entry.pinned, entry.copies) == (7, False, 0)
    assert entry.target_pieces[entry.start : entry.stop] == entry.pieces
    assert entry.anchor[0][0] == "教堂"


def test_the_network_does_not_say_a_remembered_word_again_behind_it() -> None:
    with camit.Session(chinese()) as session:
        for source, text in (
            ("每年春天，祖母都会打开蜂箱。", "Every spring, Grandmother opened the hives."),
            ("一个蜂箱里大约有五万只蜜蜂。", "There are about fifty thousand honeybees in a hive."),
            ("但是每个蜂箱只有一个蜂王。", "But every hive has only one queen."),
        ):
            draft = session.open(source)
            draft.replace((0, len(draft.tokens)), text)
            session.confirm(draft)
        assert "hive hive" not in session.open("我把两个蜂箱放在屋顶上。").text


def test_the_oldest_go_first_but_neither_pinned_ones_nor_rare_words_before_common_ones() -> None:
    memory = RevisionMemory(chinese(), size=3)
    for number, word in enumerate(["chapel", "the", "whale"]):
        remember(memory, "我记得那座教堂。", f"I remember {word}.", word, draft=number)
    memory.pin(memory.entries[0].id)
    remember(memory, "我记得那座教堂。", "I remember Vegas.", "Vegas")
    assert [entry.text for entry in memory.entries] == ["chapel", "whale", "Vegas"]
    remember(memory, "我记得那座教堂。", "I remember Ross.", "Ross")
    assert [entry.text for entry in memory.entries] == ["chapel", "Vegas", "Ross"]
    memory.unpin(memory.entries[0].id)
    remember(memory, "我记得那座教堂。", "I remember dinner.", "dinner")
    assert [entry.text for entry in memory.entries] == ["Vegas", "Ross", "dinner"]


def test_entries_are_removed_by_id_and_an_unknown_id_is_an_error_that_helps() -> None:
    memory = RevisionMemory(tiny_translator())
    first, second = memory.add("猫", "cat"), memory.add("狗", "dog")
    memory.remove(first.id)
    assert memory.entries == (second,)
    with pytest.raises(InputError, match="no entry 1"):
        memory.remove(first.id)
    memory.count_copies([first.id, None, second.id])  # the first is gone meanwhile: nothing to count
    assert memory[second.id].copies == 1


def test_an_entry_that_is_put_back_is_as_it_was() -> None:
    memory = RevisionMemory(tiny_translator())
    first, _ = memory.add("猫", "cat"), memory.add("狗", "dog")
    memory.pin(first.id)
    before = memory.snapshot()
    entry = memory[first.id]
    memory.remove(first.id)
    memory.put_back(entry)
    assert memory.snapshot() == before
    with pytest.raises(InputError, match="already"):
        memory.put_back(entry)
    for wrong in ({"stop": 9}, {"target_pieces": (10**6,)}, {"id": 0}):
        with pytest.raises(InputError):
            memory.put_back(msgspec.structs.replace(entry, **{"id": 7, **wrong}))
    assert memory.snapshot() == before


@pytest.mark.parametrize("options", [{"preset": "bold"}, {"size": 0}])
def test_settings_that_cannot_be_are_named(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        RevisionMemory(tiny_translator(), **options)  # type: ignore[arg-type]


def test_it_is_silent_when_empty_switched_off_or_with_nothing_to_say() -> None:
    memory = RevisionMemory(tiny_translator())
    assert memory.readers("猫") is None
    memory.add("猫", "cat")
    assert memory.readers("大猫") is not None
    assert memory.readers("狗") is None
    memory.enabled = False
    assert memory.readers("大猫") is None


def test_a_word_that_stands_for_too_much_is_read_only_if_it_is_pinned_or_added_by_hand() -> None:
    memory = RevisionMemory(chinese())
    remember(memory, "我记得那座教堂。", "I remember it.", "it")
    assert memory.readers("那座教堂很旧。") is None
    memory.pin(memory.entries[0].id)
    assert memory.readers("那座教堂很旧。") is not None
    by_hand = RevisionMemory(chinese())
    by_hand.add("教堂", "it")
    assert by_hand.readers("那座教堂很旧。") is not None


def test_what_later_sentences_agree_with_speaks_up_and_what_they_refuse_falls_silent() -> None:
    source = "昨天我们去过教堂。"

    def strongest(*confirmed: str) -> float:
        memory = RevisionMemory(chinese())
        remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel")
        for target in confirmed:
            remember(memory, "教堂很漂亮。", target, "beautiful")
        readers = memory.readers(source)
        assert readers is not None
        sources = chinese().read([chinese().encode_source(source)])
        pieces = Sentence(chinese(), source, "Yesterday we went to the chapel.").pieces
        with torch.inference_mode():
            features = follow(chinese().directions.forward, sources.forward, [pieces])
        reader = reader_of(readers)
        return float(reader.shares(features)[0, :, reader.ids.index(memory.entries[0].id)].max())

    fresh = strongest()
    agreed = strongest("The chapel is beautiful.")
    refused = strongest("The church is beautiful.", "A beautiful church.")
    assert agreed > fresh > refused
    assert refused < fresh / 3


def test_a_word_that_is_remembered_many_times_is_still_copied() -> None:
    for times in (1, 90):
        memory = RevisionMemory(chinese())
        for _ in range(times):
            memory.add("王小波", "Wang Xiaobo")
        assert "Wang Xiaobo" in translate(chinese(), "我最喜欢的作家是王小波。", memory)


def test_of_a_word_fixed_again_and_again_the_latest_fixes_are_read() -> None:
    memory = RevisionMemory(chinese())
    source, target = "他是我的老板。", "He is my captain."
    pieces = tuple(chinese().target_vocabulary.encode(target))
    [span] = [(w.start, w.stop) for w in chinese().target_vocabulary.words(pieces) if w.text == "captain"]
    for sentence in range(12):
        memory.write(source, chinese().encode_source(source), pieces, [span], sentence)
    memory.add("老板", "chief")
    readers = memory.readers(source)
    assert readers is not None
    ids = [entry.id for entry in memory.entries]
    assert list(reader_of(readers).ids) == ids[-9:]  # eight captains and the other word


def test_of_many_fixes_of_a_source_word_only_so_many_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camit.memory.revision_memory.READ", 6)
    memory, source = RevisionMemory(chinese()), "他是我的老板。"
    for sentence, name in enumerate(f"Z{a}q{b}x" for a in "aeio" for b in "bdg"):
        remember(memory, source, f"He is my {name}.", name, draft=sentence)
    ids = [entry.id for entry in memory.entries]
    pinned, agreed, refused = ids[0], ids[5], ids[-2]
    known = {agreed: {"agreed": 3, "refused": 0}, refused: {"agreed": 0, "refused": 3}}
    entries = [
        msgspec.structs.replace(e, anchor=(("老板", 1.0),), **known.get(e.id, {"agreed": 0, "refused": 0}))
        for e in memory.entries
    ]
    memory.restore(MemorySnapshot(tuple(entries), ids[-1] + 1))
    memory.pin(pinned)
    by_hand = [memory.add("老板", f"chief {n}").id for n in range(3)]
    readers = memory.readers(source)
    assert readers is not None
    latest = [i for i in ids if i != refused][-5:]
    assert list(reader_of(readers).ids) == [pinned, agreed, *latest, *by_hand]


def test_the_papers_memory_waits_for_more_than_twenty_revisions_and_reads_every_entry() -> None:
    memory = RevisionMemory(tiny_translator(), preset="paper")
    for n in range(20):
        memory.add("猫", f"cat {n}")
    assert memory.readers("狗") is None
    memory.add("猫", "dog")
    readers = memory.readers("狗")
    assert readers is not None
    assert len(reader_of(readers).ids) == 21


@pytest.mark.parametrize(
    ("source", "target", "word", "again"),
    [
        ("我记得那座教堂。", "I remember the chapel.", "chapel", "他们在教堂里结婚。"),
        ("维尔丹是一座小城。", "Vildanskoje is a small town.", "Vildanskoje", "我住在维尔丹。"),
        ("这是我的正字标记。", "This is my trademark.", "trademark", "这不是你的正字标记。"),
    ],
)
def test_a_corrected_word_comes_back_whole_in_the_next_sentence(
    source: str, target: str, word: str, again: str
) -> None:
    memory = RevisionMemory(chinese())
    assert word not in translate(chinese(), again, memory)
    remember(memory, source, target, word)
    text = translate(chinese(), again, memory)
    assert text.count(word) == 1, text


def test_a_glossary_term_is_used_where_the_source_has_it() -> None:
    memory = RevisionMemory(chinese())
    memory.add("维尔丹", "Vildanskoje")
    assert "Vildanskoje" in translate(chinese(), "我住在维尔丹。", memory)
    assert "Vildanskoje" not in translate(chinese(), "我住在北京。", memory)


def test_a_word_of_many_pieces_is_copied_whole_or_not_at_all() -> None:
    translator = tiny_translator(seed=3)
    memory = eager(RevisionMemory(translator))
    entry = memory.add("猫", "zyxwv")
    assert len(entry.pieces) >= 5
    assert entry.text in translate(translator, "大猫", memory).split()
    for backward in (False, True):
        for pieces in searched(translator, memory, "大猫", backward):
            words = [word.text for word in translator.target_vocabulary.words(pieces)]
            assert not set(entry.pieces) & set(pieces) or {"zyxwv", "Zyxwv"} & set(words)


@pytest.mark.parametrize(
    ("term", "text", "source", "written"),
    [
        ("蓝鲸", "blue whale", "蓝鲸很大。", "The blue whale is big."),
        ("蓝鲸", "blue whale", "蓝鲸在哪里？", "Where's the blue whale?"),
        ("蓝鲸", "blue whale", "我看见了蓝鲸。", "I saw the blue whale."),
        ("灯塔", "beacon", "灯塔很高。", "The beacon is tall."),
        ("苹果手机", "iPhone", "我买了苹果手机。", "I bought an iPhone."),
        ("经理", "director", "新来的经理很年轻。", "The new director is young."),
        ("经理", "director", "经理昨天去了北京。", "The director went to Beijing yesterday."),
        ("AI", "artificial intelligence", "AI很有用。", "Artificial intelligence is useful."),
        ("AI", "artificial intelligence", "这是AI。", "This is artificial intelligence."),
        ("必须", "have to", "我们必须走。", "We have to go."),
        ("关于", "on", "这是一本关于历史的书。", "This is a book on history."),
        ("披头士", "The Beatles", "他昨天看到了披头士。", "He saw The Beatles yesterday."),
        ("披头士", "The Beatles", "我们都听过披头士。", "We've all heard of The Beatles."),
    ],
)
def test_the_sentence_around_a_term_stays_whole(term: str, text: str, source: str, written: str) -> None:
    memory = RevisionMemory(chinese())
    memory.add(term, text)
    assert translate(chinese(), source, memory) == written


def test_a_word_that_was_right_again_and_again_does_not_push_out_small_words() -> None:
    memory = RevisionMemory(chinese())
    said = "The neighbour repaired the bicycle."
    for n in range(4):
        remember(memory, "邻居修好了自行车。", said, "neighbour", "repaired", "bicycle", draft=n)
    assert translate(chinese(), "我妹妹修好了自行车。", memory) == "My sister repaired the bicycle."


def test_a_sentence_in_a_glossary_stands_for_itself_alone() -> None:
    memory = RevisionMemory(chinese())
    source, target = "我们明天早上一起去公园散步。", "We will walk in the park together tomorrow morning."
    memory.add(source, target)
    for other in ("明天见。", "我们走吧。", "他在公园里。"):
        assert translate(chinese(), other, memory) == translate(chinese(), other, None)
    assert translate(chinese(), source, memory) == target


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_a_word_outside_a_word_list_is_copied_and_written_out(arch: str) -> None:
    translator = tiny_translator(arch, words=True)
    memory = eager(RevisionMemory(translator))
    memory.add("cat", "Redford")
    assert "Redford" in translate(translator, "the cat ran", memory).split()


def test_a_word_is_not_copied_more_often_than_the_source_says_it() -> None:
    translator = tiny_translator(seed=1)
    memory = eager(RevisionMemory(translator))
    memory.add("猫", "catalogue")
    for times in (1, 2):
        for backward in (False, True):
            for pieces in searched(translator, memory, "猫" * times, backward):
                text = translator.target_vocabulary.decode(pieces)
                assert text.split().count("catalogue") <= times


UNRELATED = [
    "医生说她需要多休息几天。",
    "我把钥匙忘在办公室了。",
    "孩子们在院子里跑来跑去。",
    "今天的会议推迟了。",
]


def test_a_hundred_unrelated_entries_change_nothing() -> None:
    memory = RevisionMemory(chinese())
    for number in range(100):
        memory.add(f"维尔{chr(0x4E00 + 7 * number)}", f"Vild{number}")
    assert len(memory.entries) == 100
    for source in UNRELATED:
        assert translate(chinese(), source, memory) == translate(chinese(), source, None)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_new_keys_are_those_of_a_memory_written_with_the_new_weights(arch: str) -> None:
    translator = tiny_translator(arch)
    old = RevisionMemory(translator, preset="paper", active_from=1)
    for target in ("the cat sat.", "a dog ran, the cat sat!", "the cat sat."):
        remember(old, "猫 大", target, "cat")
    draft = Sentence(translator, "猫 大", "the cat sat.")
    old.weights(draft)
    with torch.no_grad():
        for p in translator.network.parameters():
            p.mul_(1.1)
    stale = old.weights(draft).r  # what comes last in a decoder is that of now, the rest is not
    old.rekey()
    new = RevisionMemory(translator, preset="paper", active_from=1)
    for target in ("the cat sat.", "a dog ran, the cat sat!", "the cat sat."):
        remember(new, "猫 大", target, "cat")
    fresh = new.weights(draft).r
    assert np.allclose(old.weights(draft).r, fresh, atol=1e-5)
    assert not np.allclose(stale, fresh, atol=1e-4)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_keys_stand_where_the_decoders_begin_the_words(arch: str) -> None:
    translator = tiny_translator(arch)
    memory = RevisionMemory(translator)
    assert len(memory.keys().s) == len(memory.keys("backward").c) == 0
    remember(memory, "猫 大", "the cat sat.", "cat", "sat")
    pieces = memory.entries[0].target_pieces
    ids = translator.encode_source("猫 大")
    with torch.inference_mode():
        sources = translator.read([ids])
        forward = follow(translator.directions.forward, sources.forward, [pieces])
        backward = follow(translator.directions.backward, sources.backward, [pieces])
    memory.rekey()
    for n, entry in enumerate(memory.entries):
        assert torch.allclose(memory.keys().s[n], forward.s[0, entry.start], atol=1e-5)
        at = len(pieces) - entry.stop
        assert torch.allclose(memory.keys("backward").c[n], backward.c[0, at], atol=1e-5)


def test_a_snapshot_is_data_and_brings_everything_back() -> None:
    memory = RevisionMemory(chinese())
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel", "remember")
    memory.add("维尔丹", "Vildanskoje")
    memory.pin(memory.entries[0].id)
    before = memory.snapshot()
    other = RevisionMemory(chinese())
    other.restore(MemorySnapshot.from_bytes(before.to_bytes(chinese()), chinese()))
    assert other.entries == memory.entries
    draft = Sentence(chinese(), "他们在教堂里结婚。", "They got married in the chapel.")
    assert other.weights(draft) == memory.weights(draft)
    memory.remove(memory.entries[1].id)
    memory.restore(before)
    assert memory.snapshot() is not before
    assert memory.entries == before.entries
    assert other.add("猫", "cat").id == memory.add("猫", "cat").id


def test_words_outside_the_vocabulary_survive_in_a_snapshot() -> None:
    here, there = (tiny_translator("rnnsearch", words=True) for _ in range(2))
    memory = RevisionMemory(here)
    # What a word list writes for a word it does not know is no text that could be read again.
    pieces = (UNK, *here.target_vocabulary.encode("Redford sat"))
    memory.write("cat", here.encode_source("cat"), pieces, [(1, 2)], 0)
    elsewhere = RevisionMemory(there)
    elsewhere.add("dog", "Newman")  # takes the id that Redford has in the first
    elsewhere.restore(MemorySnapshot.from_bytes(memory.snapshot().to_bytes(here), there))
    memory.restore(memory.snapshot())
    for restored, translator in ((elsewhere, there), (memory, here)):
        (entry,) = restored.entries
        assert translator.target_vocabulary.decode(entry.pieces) == "Redford"
        assert translator.target_vocabulary.decode(entry.target_pieces[2:]) == "sat"


@pytest.mark.parametrize("damage", [lambda data: data[:40], lambda data: b"", lambda data: b"x" * len(data)])
def test_a_damaged_snapshot_is_an_error_that_says_so(damage) -> None:  # type: ignore[no-untyped-def]
    memory = RevisionMemory(tiny_translator())
    memory.add("猫", "cat")
    with pytest.raises(SessionError, match="revision memory"):
        MemorySnapshot.from_bytes(damage(memory.snapshot().to_bytes(tiny_translator())), tiny_translator())


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": -1},
        {"stop": 99},
        {"pieces": []},
        {"target_pieces": [-5, 7]},
        {"target_pieces": [10**6]},
        {"anchor": [["猫", 0.0]]},
        {"source": ""},
        {"source": "猫" * 500},
        {"id": 0},
        {"id": 7},
        {"copies": 1.5},
        {"unheard": 1},
    ],
    ids=str,
)
def test_an_entry_that_cannot_be_is_refused_before_it_is_read(wrong: dict[str, object]) -> None:
    translator = tiny_translator()
    memory = RevisionMemory(translator)
    memory.add("猫", "cat")
    stored = json.loads(memory.snapshot().to_bytes(translator))
    stored["entries"][0] |= wrong
    with pytest.raises(SessionError, match="revision memory"):
        MemorySnapshot.from_bytes(json.dumps(stored).encode(), translator)


@pytest.mark.parametrize(
    "wrong",
    [{"pinned": "x"}, {"text": 5}, {"created": math.nan}, {"id": 21.5}, {"anchor": (("猫", math.inf),)}],
    ids=str,
)
def test_what_could_not_be_stored_is_not_put_back(wrong: dict[str, object]) -> None:
    memory = RevisionMemory(tiny_translator())
    entry = memory.add("猫", "cat")
    for other in (msgspec.structs.replace(entry, **{"id": 9, **wrong}), None, 5):
        with pytest.raises(InputError, match="no entry of a memory"):
            memory.put_back(other)  # type: ignore[arg-type]
    assert memory.entries == (entry,)


def test_who_adds_to_a_memory_full_of_pinned_entries_is_told() -> None:
    memory = RevisionMemory(tiny_translator(), size=1)
    first = memory.add("猫", "cat")
    memory.remove(first.id)
    memory.pin(memory.add("狗", "dog").id)
    with pytest.raises(InputError, match="all 1 entries are pinned"):
        memory.add("红", "red")
    with pytest.raises(InputError, match="all 1 entries are pinned"):
        memory.put_back(first)
    assert [e.text for e in memory.entries] == ["dog"]


def test_a_common_word_added_by_hand_is_not_the_first_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = tiny_translator()
    memory = RevisionMemory(translator, size=2)
    rare = {tuple(translator.target_vocabulary.encode(text)) for text in ("dog", "red")}
    monkeypatch.setattr(translator.target_vocabulary, "is_common", lambda pieces: tuple(pieces) not in rare)
    remember(memory, "狗 红", "red dog", "red", "dog")
    memory.add("猫", "cat")
    assert "cat" in [e.text for e in memory.entries]


def test_terms_added_by_hand_stay_when_words_of_sentences_come() -> None:
    memory = RevisionMemory(chinese(), size=3)
    for source, text in (("教堂", "chapel"), ("老板", "chief")):
        memory.add(source, text)
    source, target = "我们昨天在公园里看到了他。", "We saw him in the park yesterday."
    remember(memory, source, target, "yesterday", "park")
    assert [e.text for e in memory.entries] == ["chapel", "chief", "yesterday"]


def test_a_term_that_is_added_again_is_forgiven_what_refused_it() -> None:
    memory = RevisionMemory(chinese())
    term = memory.add("教堂", "chapel")
    for _ in range(3):
        remember(memory, "那座教堂很旧。", "That church is old.", "old")
    assert memory[term.id].refused == 3
    assert memory.add("教堂", "chapel") == term
    assert [e.text for e in memory.entries].count("chapel") == 1


def test_an_undo_keeps_the_contexts_of_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = RevisionMemory(chinese())
    source, target = "我们昨天在公园里看到了他。", "We saw him in the park yesterday."
    remember(memory, source, target, "yesterday")
    before = memory.snapshot()
    keys = memory.keys()
    remember(memory, source, target, "park")
    memory.restore(before)
    monkeypatch.setattr("camit.memory.revision_memory.read_along", None)  # nothing is read anew
    assert torch.equal(memory.keys().s, keys.s)


def test_an_entry_from_elsewhere_takes_a_number_of_its_own() -> None:
    memory = RevisionMemory(tiny_translator())
    entry = memory.add("猫", "cat")
    other = RevisionMemory(tiny_translator())
    other.put_back(entry)
    assert other.add("狗", "dog").id != entry.id


def test_a_translation_longer_than_a_sentence_is_refused() -> None:
    memory = RevisionMemory(tiny_translator())
    with pytest.raises(InputError, match="at most"):
        memory.add("猫", "dog " * 500)
    assert memory.entries == ()
