"""The revision memory: what it keeps, when it speaks, that words come out whole, and that it does no harm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

import camit
from camit.alignment import Alignment, Characters, match_anchors, meant, stretch, strongest
from camit.errors import CheckpointError, InputError, SessionError
from camit.gate import FILE, Gates, Keys, Match, MemoryReader, evidence
from camit.memory import MemoryEntry, MemorySnapshot, RevisionMemory
from camit.networks import Features
from camit.search.direction import Direction
from camit.search.exchange import exchanged
from camit.search.grid import search
from camit.search.problem import Copy, Mixed, Phrase, Problem, Readers, Span
from camit.search.rules import fitting_spellings, occurrences
from camit.search.scoring import follow, score
from camit.spelling import Spellings
from camit.text import UNK
from camit.translator import Translator
from tests.helpers import tiny_translator


@cache
def chinese() -> Translator:
    return camit.load("zh-en")


class Sentence:
    """A source and its translation, as a draft has them."""

    def __init__(self, translator: Translator, source: str, target: str) -> None:
        self.source = source
        self.ids = translator.encode_source(source)
        self.pieces: Phrase = tuple(translator.target_vocabulary.encode(target))
        self._vocabulary = translator.target_vocabulary

    def spans(self, *words: str) -> list[tuple[int, int]]:
        return [(w.start, w.stop) for w in self._vocabulary.words(self.pieces) if w.text in words]


def remember(memory: RevisionMemory, source: str, target: str, *words: str, draft: int = 0) -> None:
    sentence = Sentence(memory._translator, source, target)
    assert sentence.spans(*words), "the test asks for words that are not there"
    memory.write(source, sentence.ids, sentence.pieces, sentence.spans(*words), draft)


def translate(translator: Translator, source: str, memory: RevisionMemory | None) -> str:
    readers = memory.readers(source) if memory is not None else None
    sources = translator.read([translator.encode_source(source)])
    pieces, _ = translator.best(sources, 4, readers)[0]
    return translator.target_vocabulary.decode(pieces)


def eager(memory: RevisionMemory) -> RevisionMemory:
    """A memory whose gates stand wide open: it copies wherever a copy is allowed."""
    for gate in (memory._gates.forward_gate, memory._gates.backward_gate):
        gate.bias.fill_(20.0)
    return memory


class Overlooked:
    """A memory whose words every search has missed: on offer only where a whole sentence is read. There
    `worth` is added for each of them that stands, or the whole log-probability is `known`."""

    def __init__(
        self,
        translator: Translator,
        *words: str,
        worth: float,
        known: float | None = None,
        looks: bool = True,
    ) -> None:
        self._vocabulary = translator.target_vocabulary
        self._words, self._worth, self._known = words, worth, known
        self.looks, self.backward = looks, False

    def read(self, features: Features) -> list[list[Copy]]:
        return [[] for _ in features.s]

    def offers(self, features: Features, pieces: Phrase) -> list[tuple[Span, Copy]]:
        copies = [Copy((tuple(self._vocabulary.encode(word)),), 0.5, 1) for word in self._words]
        return [((w.start, w.stop), copy) for w in self._vocabulary.words(pieces) for copy in copies]

    def shares(self, features: Features) -> torch.Tensor:
        return torch.zeros(*features.s.shape[:2], 0)

    def mix(
        self,
        direction: Direction,
        shares: torch.Tensor,
        features: Features,
        logp: torch.Tensor,
        sentences: Sequence[Phrase],
    ) -> Mixed:
        mixed = logp.clone()
        for row, pieces in enumerate(sentences):
            text = self._vocabulary.decode(pieces[::-1] if self.backward else pieces)
            found = sum(word in text.split() for word in self._words)
            mixed[row, 0] += self._worth * found
            if found and self._known is not None:
                mixed[row] = 0.0
                mixed[row, 0] = self._known
        return Mixed(mixed, torch.zeros_like(logp), [[] for _ in sentences])


def helped(translator: Translator, source: str, forward: Overlooked, backward: Overlooked) -> str:
    """A first draft with these readers."""
    backward.backward = True
    sources = translator.read([translator.encode_source(source)])
    [(pieces, _)] = translator.best(sources, 4, Readers(forward, backward))
    return translator.target_vocabulary.decode(pieces)


@pytest.mark.parametrize(
    ("forward", "backward", "taken"),
    [(90.0, 90.0, True), (90.0, -30.0, True), (-90.0, -90.0, False), (30.0, -90.0, False)],
)
def test_a_remembered_word_the_search_has_lost_is_put_in_if_the_sentence_is_likelier_with_it(
    forward: float, backward: float, taken: bool
) -> None:
    translator = tiny_translator(seed=3)
    plain = translate(translator, "大猫", None)
    readers = [Overlooked(translator, "zebra", worth=worth) for worth in (forward, backward)]
    text = helped(translator, "大猫", *readers)
    assert "zebra" not in plain
    assert text.split().count("zebra") == taken
    assert taken or text == plain


@pytest.mark.parametrize(("difference", "taken"), [(-0.1, False), (0.1, True)])
def test_a_word_of_many_pieces_is_not_put_in_for_having_many(difference: float, taken: bool) -> None:
    source = "今天天气真好。"
    sources = chinese().read([chinese().encode_source(source)])
    [(pieces, mean)] = chinese().best(sources, 4)
    known = mean * (len(pieces) + 1) + difference
    readers = [Overlooked(chinese(), "Xyzzyqux", worth=0.0, known=known) for _ in range(2)]
    assert ("Xyzzyqux" in helped(chinese(), source, *readers)) == taken


def test_at_most_three_words_are_put_in_and_none_for_the_papers_memory() -> None:
    source, words = "我们明天早上在火车站见面。", ("zebra", "gnu", "yak", "ibex", "okapi")
    for looks, most in ((True, 3), (False, 0)):
        readers = [Overlooked(chinese(), *words, worth=90.0, looks=looks) for _ in range(2)]
        assert len(set(helped(chinese(), source, *readers).split()) & set(words)) == most


def exchanges(draft: str, *terms: str) -> list[str]:
    """What a draft becomes with a remembered term in place of one of its words, wherever that is tried."""
    translator = chinese()
    vocabulary, forward = translator.target_vocabulary, translator.directions.forward
    pieces = tuple(vocabulary.encode(draft))

    def ways(attach: bool) -> tuple[Phrase, ...]:
        return tuple(tuple(vocabulary.encode(term, attach=attach)) for term in terms)

    copy = Copy(ways(False), 0.5, 1, attached=ways(True))
    offers = [((word.start, word.stop), copy) for word in vocabulary.words(pieces)]
    with torch.inference_mode():
        sources = translator.read([translator.encode_source("我喜欢苹果。")])
        features = follow(forward, sources.forward, [pieces])
        found = exchanged(forward, pieces, offers, forward.decoder.logits(features.s[0]))
    return [vocabulary.decode(sentence) for sentence in found]


def test_words_are_exchanged_but_marks_are_not() -> None:
    assert exchanges("I saw it.", "beacon", "Beacon") == ["Beacon saw it.", "I beacon it.", "I saw beacon."]
    assert exchanges('He said, "Now."', "beacon", "Beacon")[-1] == 'He said, "Beacon."'


@pytest.mark.parametrize(
    ("draft", "terms"),
    [
        ("I like apple.", ("apple", "Apple")),
        ("The world health organization came.", ("world health organization",)),
    ],
)
def test_a_term_that_stands_in_a_draft_is_exchanged_for_nothing(draft: str, terms: tuple[str, ...]) -> None:
    assert exchanges(draft, *terms) == []


def test_a_plural_is_not_exchanged_for_its_singular() -> None:
    assert exchanges("I like apples.", "apple", "Apple") == ["Apple like apples."]


def test_an_exchange_does_not_double_the_end_of_a_phrase() -> None:
    assert "The blue whale whale is here." not in exchanges("The big whale is here.", "blue whale")
    assert "The big blue whale is here." in exchanges("The big whale is here.", "blue whale")


@pytest.mark.parametrize(
    ("draft", "term", "doubled"),
    [
        ("It is in silicon valley now.", "Silicon Valley", ("silicon silicon", "valley valley")),
        ("I saw the president.", "The President", ("the the", "president president")),
    ],
)
def test_an_exchange_doubles_nothing_in_another_case(draft: str, term: str, doubled: tuple[str, ...]) -> None:
    found = [text.lower() for text in exchanges(draft, term)]
    assert not [text for text in found for words in doubled if words in text]


def test_a_draft_keeps_the_small_letter_of_a_glossary_term() -> None:
    memory = RevisionMemory(chinese())
    memory.add("苹果", "apple")
    for source in ("我喜欢苹果。", "他昨天买了一个苹果，很高兴。"):
        text = translate(chinese(), source, memory)
        assert " apple" in text and "Apple" not in text


def test_what_is_on_offer_along_a_sentence_has_its_place_there() -> None:
    """As both decoders see it, in the order of the text."""
    memory = RevisionMemory(chinese())
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel")
    draft = Sentence(chinese(), "那座教堂很老。", "That church is very old.")
    readers = memory.readers(draft.source)
    assert readers is not None
    for direction, reader in (
        (chinese().directions.forward, readers.forward),
        (chinese().directions.backward, readers.backward),
    ):
        with torch.inference_mode():
            sources = chinese().read([draft.ids])
            features = follow(direction, sources.start(direction), [draft.pieces])
            offered = {
                span: [chinese().target_vocabulary.decode(way) for way in copy.spellings]
                for span, copy in reader.offers(features, draft.pieces)
            }
        assert "chapel" in offered[draft.spans("church")[0]]


# Writing, forgetting


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


# Speaking, and keeping silent


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
        reader = _reader(readers)
        return float(reader.shares(features)[0, :, reader.ids.index(memory.entries[0].id)].max())

    fresh = strongest()
    agreed = strongest("The chapel is beautiful.")
    refused = strongest("The church is beautiful.", "A beautiful church.")
    assert agreed > fresh > refused
    assert refused < fresh / 3


@torch.inference_mode()
def test_a_first_translation_is_worth_what_reading_it_again_says() -> None:
    # A remembered word may be the beginning of the one that is written, house of houses: then it is no copy.
    memory = RevisionMemory(chinese())
    memory.add("房子", "house")
    memory.add("苹果", "apple")
    source = "我喜欢大房子和苹果。"
    readers, sources = memory.readers(source), chinese().read([chinese().encode_source(source)])
    assert readers is not None
    [(pieces, value)] = chinese().best(sources, 4, readers)
    directions = chinese().directions
    ahead = score(directions.forward, sources.forward, [0], [pieces])
    behind = score(directions.backward, sources.backward, [0], [pieces])
    shares = readers.shares(ahead.features, behind.features, [pieces])
    total = float(
        readers.forward.mix(
            chinese().directions.forward, shares[0], ahead.features, ahead.logp, [pieces]
        ).logp.sum()
    )
    total += float(
        readers.backward.mix(
            chinese().directions.backward, shares[1], behind.features, behind.logp, [pieces[::-1]]
        ).logp.sum()
    )
    assert value == pytest.approx(total / (2 * (len(pieces) + 1)), abs=1e-4)


@torch.inference_mode()
def test_both_decoders_copy_a_word_of_a_known_sentence_with_the_mean_of_what_they_give_it() -> None:
    memory = RevisionMemory(chinese())
    memory.add("苹果", "apple")
    memory.add("大房子", "big house")
    source = "我喜欢大房子和苹果。"
    vocabulary, directions = chinese().target_vocabulary, chinese().directions
    sentences = [tuple(vocabulary.encode(t)) for t in ("I like big house and apple.", "Apples", "I like")]
    sources = chinese().read([chinese().encode_source(source)])
    start = torch.zeros(len(sentences), dtype=torch.long)
    ahead = follow(directions.forward, sources.forward.select(start), sentences)
    behind = follow(directions.backward, sources.backward.select(start), sentences)
    readers = memory.readers(source)
    assert readers is not None
    alone = readers.forward.shares(ahead), readers.backward.shares(behind)
    forward, backward = readers.shares(ahead, behind, sentences)
    pieces = sentences[0]
    words = vocabulary.words(pieces)
    for entry, (first, last) in ((0, (5, 5)), (1, (2, 3))):  # a phrase is begun at either end
        at = 0, words[first].start, entry
        mirrored = 0, len(pieces) - words[last].stop, entry
        assert forward[at] == backward[mirrored]
        assert float(forward[at]) == pytest.approx(float(alone[0][at] + alone[1][mirrored]) / 2)
        assert alone[0][at] != alone[1][mirrored]
    assert torch.equal(forward[0, len(pieces)], alone[0][0, len(pieces)])  # the end is no word
    last = vocabulary.words(sentences[2])[-1]
    assert torch.equal(forward[2, last.start, 1:], alone[0][2, last.start, 1:])  # nor room for two

    paper = RevisionMemory(chinese(), preset="paper", active_from=1)
    paper.add("苹果", "apple")
    readers = paper.readers(source)
    assert readers is not None
    shares = readers.shares(ahead, behind, sentences)
    assert torch.equal(shares[0], readers.forward.shares(ahead))
    assert torch.equal(shares[1], readers.backward.shares(behind))


@pytest.mark.parametrize("phrase", ["a very good morning to all", "good morning all", "good"])
def test_a_phrase_may_be_longer_than_the_sentence(phrase: str) -> None:
    session = camit.Session(chinese(), learning=False)
    session.memory.add("早上好", phrase)
    draft = session.open("早上好。")
    draft.replace(0, "Hi")
    assert draft.text.startswith("Hi")


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
    assert list(_reader(readers).ids) == ids[-9:]  # eight captains and the other word


def test_of_many_fixes_of_a_source_word_only_so_many_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camit.memory.READ", 6)
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
    assert list(_reader(readers).ids) == [pinned, agreed, *latest, *by_hand]


def test_a_decoder_that_has_read_nothing_yet_does_not_talk_the_other_into_a_copy() -> None:
    memory, source = RevisionMemory(chinese()), "猫在火车站。"
    memory.add("猫", "Zyxq")
    weights = memory.weights(Sentence(chinese(), source, "Cats are at the train station."))
    assert weights.theta[0] > 0.3 and weights.theta[-1] == 0.0
    assert "Zyxq" in translate(chinese(), source, memory)
    session = camit.Session(chinese(), learning=False, beam=2)
    session.memory.add("猫", "Zyxq")
    assert not session.open("猫昨天没有回家。").text.endswith("Zyxq")


def test_where_nothing_may_be_copied_no_entry_has_a_part() -> None:
    memory, source = RevisionMemory(chinese()), "我住在纽约。"
    memory.add("纽约", "New York")
    memory.add("纽约", "York")
    other = tuple(chinese().target_vocabulary.encode("I live in the metropolis."))
    for sentence in range(2):  # refused twice
        memory.write(source, chinese().encode_source(source), other, [], sentence)
    weights = memory.weights(Sentence(chinese(), source, "I live in New York."))
    assert weights.theta[-2] == 0.0 and weights.r[-2] == (0.0, 0.0)


def test_a_phrase_and_its_words_are_not_copied_with_more_than_certainty() -> None:
    memory, source = RevisionMemory(chinese()), "罗伯特·雷德福来了。"
    draft = Sentence(chinese(), source, "Robert Redford is here.")
    words = chinese().target_vocabulary.words(draft.pieces)
    spans = [(words[0].start, words[1].stop), *((word.start, word.stop) for word in words[:2])]
    ids = chinese().encode_source(source)
    assert len(memory.write(source, ids, draft.pieces, spans, 1)) == 3
    for _ in range(3):  # and each is right again
        memory.write(source, ids, draft.pieces, [], 2)
    theta = memory.weights(draft).theta
    assert 0.9 < max(theta) <= 1.0 + 1e-6


@torch.inference_mode()
def test_a_word_that_was_copied_is_not_copied_again_with_another_first_letter() -> None:
    memory = eager(RevisionMemory(chinese()))
    memory.add("记得", "remember")
    memory.add("记得", "Remember")
    source = "我记得那座教堂。"
    readers, sources = memory.readers(source), chinese().read([chinese().encode_source(source)])
    assert readers is not None
    forward = chinese().directions.forward
    problem = Problem(0, sources.limit(0))
    [[written]] = search(forward, sources.forward, [problem], beam=4, reader=readers.forward)
    said = chinese().target_vocabulary.decode(written.pieces).lower()
    assert said.count("remember") == 1


def test_the_papers_memory_waits_for_twenty_revisions_and_reads_every_entry() -> None:
    memory = RevisionMemory(tiny_translator(), preset="paper")
    for _ in range(19):
        memory.add("猫", "cat")
    assert memory.readers("狗") is None
    memory.add("猫", "dog")
    readers = memory.readers("狗")
    assert readers is not None
    assert len(_reader(readers).ids) == 20


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
        for pieces in _searched(translator, memory, "大猫", backward):
            words = [word.text for word in translator.target_vocabulary.words(pieces)]
            assert not set(entry.pieces) & set(pieces) or {"zyxwv", "Zyxwv"} & set(words)


@pytest.mark.parametrize(
    ("term", "text", "source", "written"),
    [
        ("蓝鲸", "blue whale", "蓝鲸！", "Blue whale"),
        ("蓝鲸", "blue whale", "我看见了蓝鲸。", "blue whale"),
        ("灯塔", "beacon", "灯塔！", "Beacon"),
        ("灯塔", "beacon", "“灯塔和船！”", '"Beacon'),
        ("灯塔", "beacon", "我们看见了灯塔。", "beacon"),
        ("座头鲸", "humpbacks", "座头鲸和海豚。", "Humpbacks"),
        ("AI", "artificial intelligence", "他喜欢AI。", "artificial intelligence"),
        ("苹果手机", "iPhone", "苹果手机很贵。", "iPhone"),
        ("岛", "island", "长岛在纽约。", "Long Island"),
    ],
)
def test_a_term_has_a_capital_where_it_is_the_first_word(
    term: str, text: str, source: str, written: str
) -> None:
    memory = RevisionMemory(chinese())
    memory.add(term, text)
    assert written in translate(chinese(), source, memory)


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


def remember_phrase(memory: RevisionMemory, source: str, target: str, phrase: str) -> tuple[MemoryEntry, ...]:
    """Confirm a sentence in which one phrase was typed."""
    vocabulary = chinese().target_vocabulary
    pieces = tuple(vocabulary.encode(target))
    words = vocabulary.words(pieces)
    span = next(
        (first.start, last.stop)
        for n, first in enumerate(words)
        for last in words[n:]
        if vocabulary.decode(pieces[first.start : last.stop]) == phrase
    )
    return memory.write(source, chinese().encode_source(source), pieces, [span], 1)


def offered(memory: RevisionMemory, source: str) -> set[str]:
    """The entries that are read for a source."""
    readers = memory.readers(source)
    return {memory[entry].text for entry in _reader(readers).ids} if readers else set()


def test_a_phrase_is_offered_where_all_it_stands_for_stands(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    target = "He spotted a hound in the park."
    entries = remember_phrase(memory, "他在公园里看到了一只狗。", target, "spotted a hound")
    assert [(e.text, e.term) for e in entries] == [
        ("spotted a hound", "看到了一只狗"),
        ("spotted", "看到了"),
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
            for pieces in _searched(translator, memory, "猫" * times, backward):
                text = translator.target_vocabulary.decode(pieces)
                assert text.split().count("catalogue") <= times


@pytest.mark.parametrize(
    ("sentence", "fixed", "spellings"),
    [
        ('He said, "fish swim."', "fish", ["fish", "Fish"]),
        ("Fish swim.", "Fish", ["Fish", "fish"]),
        ('He said, "Fish swim."', "Fish", ["Fish", "fish"]),
        ("I know Bill well.", "Bill", ["Bill"]),
        ("NASA knows.", "NASA", ["NASA"]),
        ("He has (mitochondria).", "mitochondria", ["mitochondria", "Mitochondria"]),
    ],
)
def test_a_word_is_remembered_for_other_places_too(sentence: str, fixed: str, spellings: list[str]) -> None:
    # "Fish" may open a sentence or be a name; a capital in the middle of one is no accident.
    zh_en = chinese()
    vocabulary = zh_en.target_vocabulary
    pieces = tuple(vocabulary.encode(sentence))
    [span] = [(w.start, w.stop) for w in vocabulary.words(pieces) if w.text == fixed]
    memory = eager(RevisionMemory(zh_en))
    source = "鱼会游泳。"
    [entry] = memory.write(source, zh_en.encode_source(source), pieces, [span], 1)
    readers = memory.readers(source)
    assert readers is not None
    with torch.inference_mode():
        sources = zh_en.read([zh_en.encode_source(source)])
        features = follow(zh_en.directions.forward, sources.forward, [()])
        [[copy]] = _reader(readers).read(features)
    assert copy.spellings == tuple(tuple(vocabulary.encode(text)) for text in spellings)
    assert copy.attached == tuple(tuple(vocabulary.encode(text, attach=True)) for text in spellings)
    assert entry.text == fixed


@pytest.mark.parametrize(
    ("written", "follows"),
    [
        ("", "blue whale"),
        ("I saw a", "blue whale"),
        ("I saw a (", "blue whale"),
        ('He said, "', "blue whale"),
        ("It costs $", "blue whale"),
        ('He said "no"', "blue whale"),
        ("A Blue Whale is a whale, a", "blue whale"),
        ("I saw a blue", None),
        ("I saw a Blue", None),
        ('I saw "|Blue', None),
        ("I saw a blue whale", None),
        ("The (|Blue whale|) is a", None),
        ("The blue whaler is a", "blue whale"),
    ],
)
def test_a_copy_goes_on_with_what_is_written(written: str, follows: str | None) -> None:
    vocabulary = chinese().target_vocabulary
    direction = chinese().directions.forward
    texts = ("blue whale", "Blue whale")
    spellings = tuple(tuple(vocabulary.encode(text)) for text in texts)
    attached = tuple(tuple(vocabulary.encode(text, attach=True)) for text in texts)
    parts = enumerate(written.split("|"))  # behind a bar without a space
    pieces = tuple(piece for n, part in parts for piece in vocabulary.encode(part, attach=n > 0))
    fitting = fitting_spellings(direction, Copy(spellings, 0.9, 1, 1, attached), pieces)
    glued = written.endswith(("(", ', "', "$"))
    if follows is None:
        assert fitting == ()
    else:
        assert fitting == (attached if glued else spellings)
        text = vocabulary.decode((*pieces, *fitting[0]))
        assert text == (written + follows if glued else f"{written} {follows}".strip())


def remembered(memory: RevisionMemory, source: str, *fixes: tuple[str, str]) -> tuple[MemoryEntry, ...]:
    """Confirm sentences in which one word was fixed."""
    vocabulary = chinese().target_vocabulary
    entries: list[MemoryEntry] = []
    for sentence, fixed in fixes:
        pieces = tuple(vocabulary.encode(sentence))
        span = next((w.start, w.stop) for w in vocabulary.words(pieces) if w.text == fixed)
        entries += memory.write(source, chinese().encode_source(source), pieces, [span], 1)
    return tuple(entries)


@pytest.mark.parametrize(("sentence", "fixed"), [("It costs 2,000 yuan.", "000"), ("Come at 10:30.", "30")])
def test_a_part_of_a_number_stays_one(sentence: str, fixed: str) -> None:
    memory = eager(RevisionMemory(chinese()))
    source = "要两千块钱。"
    [entry] = remembered(memory, source, (sentence, fixed))
    memory.pin(entry.id)  # common words are read only if somebody insists
    readers = memory.readers(source)
    assert readers is not None
    with torch.inference_mode():
        sources = chinese().read([chinese().encode_source(source)])
        [[copy]] = _reader(readers).read(follow(chinese().directions.forward, sources.forward, [()]))
    assert copy.spellings == (entry.pieces,) and copy.attached == ()


def test_the_likeliest_entry_says_how_its_word_is_spelled() -> None:
    memory = eager(RevisionMemory(chinese()))
    source = "鱼会游泳。"
    old, new = remembered(memory, source, ("Fish swim.", "Fish"), ("All fish swim.", "fish"))
    readers = memory.readers(source)
    assert readers is not None
    reader = _reader(readers)
    assert isinstance(reader, MemoryReader)
    vocabulary = chinese().target_vocabulary
    with torch.inference_mode():
        sources = chinese().read([chinese().encode_source(source)])
        features = follow(chinese().directions.forward, sources.forward, [tuple(vocabulary.encode("All"))])
        for at in (0, 1):
            here = Features(*(x[:, at : at + 1] for x in features))
            [[copy]] = reader.read(here)
            best = reader.shares(here)[0, 0].argmax()
            assert copy.entry == (old, new)[best].id
            assert copy.spellings[0] == (old, new)[best].pieces and len(copy.spellings) == 2


@pytest.mark.parametrize("backward", [False, True])
def test_behind_an_opening_mark_the_attached_word_is_the_copy(backward: bool) -> None:
    memory = eager(RevisionMemory(chinese()))
    source = "他吃（鱼）。"
    remembered(memory, source, ("He eats fish.", "fish"))
    readers = memory.readers(source)
    assert readers is not None
    direction = chinese().directions.backward if backward else chinese().directions.forward
    vocabulary = chinese().target_vocabulary
    for before, attach, copied in (("He eats (", True, 1), ("He eats (", False, 0), ("He eats", False, 1)):
        pieces = (*vocabulary.encode(before), *vocabulary.encode("fish", attach=attach))
        with torch.inference_mode():
            sources = chinese().read([chinese().encode_source(source)])
            scored = score(direction, sources.start(direction), [0], [pieces])
            reader = _reader(readers, backward)
            mixed = reader.mix(
                direction,
                reader.shares(scored.features),
                scored.features,
                torch.full_like(scored.logp, -9.0),
                [direction.order(pieces)],
            )
        assert len(mixed.copied[0]) == copied


def test_a_word_counts_only_where_it_is_one() -> None:
    vocabulary = chinese().target_vocabulary
    fish = (tuple(vocabulary.encode("fish")), tuple(vocabulary.encode("fish", attach=True)))
    for direction in chinese().directions.both:
        ordered = tuple(map(direction.order, fish))
        for text, times in (
            ("goldfish", 0),
            ("fish", 1),
            ('"fish" and fish', 2),
            ("fishing for starfish", 0),
        ):
            pieces = direction.order(tuple(vocabulary.encode(text)))
            assert occurrences(direction, pieces, ordered) == times


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


# theta and r


def _reader(readers: Readers, backward: bool = False) -> MemoryReader:
    reader = readers.backward if backward else readers.forward
    assert isinstance(reader, MemoryReader)
    return reader


def _searched(translator: Translator, memory: RevisionMemory, source: str, backward: bool) -> list[Phrase]:
    from camit.search.grid import search
    from camit.search.problem import Problem

    readers = memory.readers(source)
    assert readers is not None
    direction = translator.directions.backward if backward else translator.directions.forward
    sources = translator.read([translator.encode_source(source)])
    with torch.inference_mode():
        found = search(
            direction,
            sources.start(direction),
            [Problem(0, 20)],
            beam=3,
            best=3,
            reader=_reader(readers, backward),
        )
    return [direction.order(written.pieces) for written in found[0]]


@pytest.mark.parametrize("backward", [False, True])
def test_shares_are_theta_times_r_of_the_equations(backward: bool) -> None:
    translator = tiny_translator(seed=2)
    direction = translator.directions.backward if backward else translator.directions.forward
    gates = Gates(16, 16)
    gate = gates.of(direction)
    with torch.no_grad():
        gate.bias.fill_(-3.0)
        gate.state.normal_()
        gate.context.normal_()
        written = gates.paper(direction)
        written.state.normal_()
        written.context.normal_()
        features = Features(
            torch.randn(2, 3, 16),
            torch.randn(2, 3, 16),
            torch.rand(2, 3, 4),
            torch.zeros(2, 3, 0),
            torch.zeros(2, 3, dtype=torch.long),
        )
        keys = Keys(torch.randn(5, 16), torch.randn(5, 16))
        match = Match(torch.rand(4, 5), torch.rand(5), torch.rand(5), (1,) * 5)
        reader = MemoryReader(direction, gate, keys, [Spellings(((9,),))] * 5, range(5), match=match, cut=0.0)
        e = evidence(features, keys, match) @ gate.evidence
        unit = torch.nn.functional.normalize
        opened = unit(features.s, dim=2) @ gate.state + unit(features.c, dim=2) @ gate.context + gate.bias
        theta = torch.sigmoid(opened + torch.logsumexp(e, dim=2))
        assert torch.allclose(
            reader.shares(features), theta.unsqueeze(2) * torch.softmax(e, dim=2), atol=1e-5
        )
        paper = MemoryReader(
            direction, written, keys, [Spellings(((9,),))] * 5, range(5), match=None, cut=0.0
        )
        s, c = features.s, features.c
        theta = torch.sigmoid(s @ written.state + c @ written.context + written.bias)
        products = (s @ keys.s.t()).abs() / 4, (c @ keys.c.t()).abs() / 4  # over sqrt(16)
        r = torch.softmax(written.similarity[0] * products[0] + written.similarity[1] * products[1], dim=2)
        assert torch.allclose(paper.shares(features), theta.unsqueeze(2) * r, atol=1e-5)


@torch.inference_mode()
def test_of_little_evidence_only_words_outside_a_word_list_are_offered() -> None:
    # Where the network can only say UNK, a faint memory is better than none.
    translator = tiny_translator(words=True)
    vocabulary = translator.target_vocabulary
    memory = RevisionMemory(translator)
    outside, listed = memory.add("猫", "zyzzyva"), memory.add("猫", "cat")
    assert outside.pieces[0] >= len(vocabulary) > listed.pieces[0]
    sources = translator.read([translator.encode_source("猫")])
    features = follow(translator.directions.forward, sources.forward, [listed.pieces])
    first_step = Features(*(x[:, :1] for x in features))
    for bias, offered in ((-28.0, {outside.pieces}), (20.0, {outside.pieces, listed.pieces}), (-40.0, set())):
        memory._gates.forward_gate.bias.fill_(bias)
        memory.rekey()
        readers = memory.readers("猫")
        assert readers is not None
        reader = _reader(readers)
        if bias == -28.0:
            assert float(reader.shares(first_step).min()) > 1e-4
            assert float(reader.shares(first_step).max()) < memory.settings.cut
        assert {copy.spellings[0] for copy in reader.read(first_step)[0]} == offered


def test_while_nothing_changes_the_memory_gives_the_same_answer_made_once() -> None:
    translator = tiny_translator()
    memory = RevisionMemory(translator)
    memory.add("猫", "cat")

    def other_entries() -> None:
        memory.add("猫", "dog")

    def other_weights() -> None:
        weight = translator.directions.backward.decoder.adaptable[0]
        weight.data = weight.data * 2.0

    def other_settings() -> None:
        memory.settings = replace(memory.settings, cut=0.2)

    for change in (other_entries, lambda: memory.pin(1), other_weights, other_settings, memory.rekey):
        answer = memory.readers("猫")
        assert answer is not None and memory.readers("猫") is answer
        change()
        assert memory.readers("猫") is not answer
    assert memory.readers("猫") is not memory.readers("猫 猫")


def test_the_probability_of_a_word_held_by_several_entries_is_summed() -> None:
    translator = tiny_translator()
    memory = eager(RevisionMemory(translator))
    first, second, other = memory.add("猫", "cat"), memory.add("猫", "cat"), memory.add("猫", "dog")
    readers = memory.readers("猫")
    assert readers is not None
    reader = _reader(readers)
    sources = translator.read([translator.encode_source("猫")])
    with torch.inference_mode():
        features = follow(translator.directions.forward, sources.forward, [first.pieces])
        first_step = Features(*(x[:, :1] for x in features))
        shares = reader.shares(first_step)[0, 0]
        (offered,) = reader.read(first_step)
    by_word = {copy.spellings[0]: copy for copy in offered}
    assert by_word[first.pieces].probability == pytest.approx(float(shares[0] + shares[1]), rel=1e-4)
    assert by_word[first.pieces].entry in (first.id, second.id)
    assert by_word[other.pieces].entry == other.id
    assert sum(copy.probability for copy in offered) == pytest.approx(float(shares.sum()), rel=1e-4)


def test_along_a_known_sentence_a_copied_word_has_the_mixed_probability() -> None:
    translator = tiny_translator(seed=4)
    memory = eager(RevisionMemory(translator))
    entry = memory.add("猫", "zyxwv")
    readers = memory.readers("猫")
    assert readers is not None
    pieces = (*translator.target_vocabulary.encode("the"), *entry.pieces)
    sources = translator.read([translator.encode_source("猫")])
    with torch.inference_mode():
        scored = score(translator.directions.forward, sources.forward, [0], [pieces])
        mixed = _reader(readers).mix(
            translator.directions.forward,
            _reader(readers).shares(scored.features),
            scored.features,
            scored.logp,
            [pieces],
        )
        there = Features(*(x[:, 1:2] for x in scored.features))
        direction = translator.directions.forward
        rivals = (direction.predict(there).exp() * direction.rivals(there.last)).sum()
    assert mixed.copied == [[(1, len(pieces), entry.id)]]
    theta = float(mixed.theta[0, 1])
    alone = float(scored.logp[0, 1 : len(pieces)].sum().exp())
    expected = (1 - theta) * alone + theta * float(rivals)
    assert float(mixed.logp[0, 1].exp()) == pytest.approx(expected, rel=1e-3)
    assert mixed.logp[0, 2 : len(pieces)].tolist() == [0.0] * (len(pieces) - 2)


def test_a_fix_that_no_decoder_expected_stands_for_its_source_word() -> None:
    with camit.Session(chinese(), learning=False) as session:
        draft = session.open("我们昨天在公园里看到了他。")
        draft.replace([token.text for token in draft.tokens].index("park"), "garden")
        session.confirm(draft)
        assert [word for word, _ in session.memory.entries[-1].anchor] == ["公园"]
        for later in ("我们昨天在公园里看到了他。", "她昨天在公园里。", "公园很大。"):
            assert "garden" in session.open(later).text


def test_a_search_and_a_reading_agree_also_where_sentences_are_recalled() -> None:
    with camit.Session(chinese()) as session:
        session.confirm(session.open("邻居在厨房里唱了一首歌。"))
        session.memory.add("邻居", "guest")
        source = "邻居在厨房里。"
        readers = session.memory.readers(source)
        assert readers is not None
        translator = session.translator
        with torch.inference_mode():
            sources = translator.read([translator.encode_source(source)])
            direction = sources.bind(translator.directions).forward
            assert direction.recall is not None
            [found] = search(
                direction, sources.forward, [Problem(0, 30)], beam=4, best=2, reader=readers.forward
            )
            for written in found:
                scored = score(direction, sources.forward, [0], [written.pieces])
                shares = readers.forward.shares(scored.features)
                mixed = readers.forward.mix(direction, shares, scored.features, scored.logp, [written.pieces])
                assert mixed.copied[0]
                assert float(mixed.logp.sum()) == pytest.approx(written.logp, abs=1e-3)


def test_the_papers_memory_takes_from_small_words_too() -> None:
    source, sentence = "邻居在公园里。", "The neighbor is in the park."
    logps = []
    for preset in ("paper", "default"):
        memory = RevisionMemory(chinese(), preset=preset, active_from=1)  # type: ignore[arg-type]
        for gate in (memory._gates.forward_gate, memory._gates.forward_paper):
            gate.bias.fill_(20.0)
        remembered(memory, source, ("The guest is in the park.", "guest"))
        readers = memory.readers(source)
        assert readers is not None
        pieces = tuple(chinese().target_vocabulary.encode(sentence))
        direction = chinese().directions.forward
        with torch.inference_mode():
            sources = chinese().read([chinese().encode_source(source)])
            scored = score(direction, sources.forward, [0], [pieces])
            shares = readers.forward.shares(scored.features)
            mixed = readers.forward.mix(direction, shares, scored.features, scored.logp, [pieces])
        logps.append(
            [round(float(new - old), 3) for new, old in zip(mixed.logp[0], scored.logp[0], strict=True)]
        )
    paper, default = logps
    assert paper[0] < -1.0 and paper[1] < -1.0  # "The" and "neighbor"
    assert default[0] == 0.0 and default[1] < -1.0


def test_a_word_that_begins_like_a_small_one_is_a_rival() -> None:
    vocabulary = chinese().target_vocabulary
    theology, the = (tuple(vocabulary.encode(text)) for text in ("theology", "the cat"))
    assert theology[0] == the[0]
    direction = chinese().directions.forward
    assert direction.rival_stands(theology, 0) and not direction.rival_stands(theology, 1)
    assert not direction.rival_stands(the, 0) and direction.rival_stands(the, 1)
    assert direction.rival_stands(the, len(the))  # the end


def test_weights_tell_for_each_word_how_much_is_copied_and_from_where() -> None:
    memory = RevisionMemory(chinese())
    memory.add("北京", "Beijing")
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel")
    draft = Sentence(chinese(), "他们在教堂里结婚。", "They got married in the chapel.")
    weights = memory.weights(draft)
    words = [word.text for word in chinese().target_vocabulary.words(draft.pieces)]
    assert len(weights.theta) == len(weights.r) == len(words)
    at = max(range(len(words)), key=lambda i: weights.theta[i])
    assert words[at] == "chapel"
    assert weights.theta[at] > 0.5
    assert weights.r[at] == pytest.approx((0.0, 1.0))
    assert weights.entries == tuple(entry.id for entry in memory.entries)
    silent = memory.weights(Sentence(chinese(), "今天的会议推迟了。", "No."))
    assert set(silent.theta) == {0.0}


def test_every_word_of_a_copied_phrase_is_marked_and_the_copy_counts_once() -> None:
    with camit.Session(chinese(), learning=False) as session:
        phrase, word = session.memory.add("面馆", "noodle shop"), session.memory.add("灯塔", "lighthouse")
        draft = session.open("我们在面馆等你。")
        copied = [token.text for token in draft.tokens if token.copied_from == phrase.id]
        assert copied == ["noodle", "shop"]
        session.confirm(draft)
        assert (session.memory[phrase.id].copies, session.memory[word.id].copies) == (1, 0)


def test_weights_say_of_a_draft_what_its_tokens_say() -> None:
    with camit.Session(chinese(), learning=False) as session:
        for source, text in (("面馆", "noodle shop"), ("面馆", "restaurant"), ("灯塔", "lighthouse")):
            session.memory.add(source, text)
        spoken = 0
        for source in ("灯塔旁边有一家面馆。", "我们在面馆等你。", "她把钥匙忘在了桌子上。"):
            draft = session.open(source)
            weights = session.memory.weights(draft)
            assert weights.theta == pytest.approx([token.theta for token in draft.tokens], abs=1e-6)
            for token, theta, r in zip(draft.tokens, weights.theta, weights.r, strict=True):
                assert sum(r) == pytest.approx(1.0 if theta else 0.0)
                assert token.copied_from is None or r[weights.entries.index(token.copied_from)] > 0.0
                spoken += theta > 0.0
        assert spoken


def test_a_term_added_by_hand_is_trusted_from_the_start_and_no_more_for_sentences_that_agree() -> None:
    memory = RevisionMemory(chinese())
    memory.add("渡船", "ferry")
    draft = Sentence(chinese(), "他说他会坐渡船回来。", "He said he'd come back on the ferry.")

    def theta() -> float:
        return max(memory.weights(draft).theta)

    def confirm(source: str, target: str) -> None:
        sentence = Sentence(chinese(), source, target)
        memory.write(source, sentence.ids, sentence.pieces, [], 0)

    start = theta()
    for _ in range(3):
        confirm("最后一班渡船已经开走了。", "The last ferry has already left.")
    assert theta() == pytest.approx(start)
    for _ in range(4):
        confirm("渡船来了。", "Here comes the boat.")
    assert theta() < start


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


# After learning


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


# Exact state, glossaries, files


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


def test_what_is_exported_stands_in_its_sentence_and_is_known_when_it_comes_back(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    remember(
        memory,
        "我们昨天在公园里看到了他。",
        "We saw him in the park yesterday.",
        "saw",
        "park",
        "yesterday",
        "We",
    )
    memory.add("#标签", "hashtag")
    memory.export_tsv(tmp_path / "terms.tsv")
    rows = [line.split("\t") for line in (tmp_path / "terms.tsv").read_text("utf-8").splitlines()]
    assert all(source in "我们昨天在公园里看到了他。#标签" for source, _ in rows)
    assert memory.import_tsv(tmp_path / "terms.tsv") == ()
    assert len(RevisionMemory(chinese()).import_tsv(tmp_path / "terms.tsv")) == len(rows)


def test_a_glossary_with_a_row_that_cannot_be_remembered_leaves_nothing(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator())
    (tmp_path / "terms.tsv").write_text(f"猫\tcat\n{'狗' * 500}\tdog\n", "utf-8")
    with pytest.raises(InputError, match=r"terms\.tsv, line 2"):
        memory.import_tsv(tmp_path / "terms.tsv")
    assert memory.entries == ()


def test_a_glossary_that_does_not_fit_beside_what_is_pinned_is_refused_whole(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator(), size=3)
    for text in ("cat", "dog"):
        memory.pin(memory.add("猫", text).id)
    (tmp_path / "terms.tsv").write_text("红\tred\n大\tbig\n", "utf-8")
    with pytest.raises(InputError, match="room for 1"):
        memory.import_tsv(tmp_path / "terms.tsv")
    for entry in memory.entries:
        memory.unpin(entry.id)  # they were added by hand, and stay
    with pytest.raises(InputError, match="room for 1"):
        memory.import_tsv(tmp_path / "terms.tsv")
    assert [entry.text for entry in memory.entries] == ["cat", "dog"]


def test_only_line_breaks_end_a_row_of_a_glossary(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_bytes("猫\u2028\tcat\r\n狗\tdog\r\n".encode())
    entries = RevisionMemory(tiny_translator()).import_tsv(tmp_path / "terms.tsv")
    assert [entry.text for entry in entries] == ["cat", "dog"]


def test_a_glossary_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator())
    for place in (tmp_path, tmp_path / "no" / "terms.tsv"):
        with pytest.raises(InputError, match="file"):
            memory.export_tsv(place)
    assert list(tmp_path.iterdir()) == []


def test_a_glossary_goes_out_and_in(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator())
    memory.add("猫", "cat")
    memory.add("红狗", "red dog")
    memory.export_tsv(tmp_path / "terms.tsv")
    other = RevisionMemory(tiny_translator())
    assert [(e.source, e.text) for e in other.import_tsv(tmp_path / "terms.tsv")] == [
        ("猫", "cat"),
        ("红狗", "red dog"),
    ]
    assert other.import_tsv(tmp_path / "terms.tsv") == ()  # nothing new in it
    assert len(other.entries) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("猫\tcat\n狗\n", "line 2"),
        ("猫\t \n", "line 1"),
        ("\n\n", "no rows"),
        ("".join(f"猫{i}\tcat{i}\n" for i in range(101)), "101 rows"),
    ],
)
def test_a_bad_glossary_is_refused_whole(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(text, "utf-8")
    memory = RevisionMemory(tiny_translator(), size=100)
    memory.add("猫", "cat")
    with pytest.raises(InputError, match=message):
        memory.import_tsv(path)
    assert [entry.text for entry in memory.entries] == ["cat"]


def test_duplicate_rows_of_a_glossary_count_once(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("猫\tcat\n# a remark\n\n猫\tcat\n", "utf-8")
    assert len(RevisionMemory(tiny_translator()).import_tsv(tmp_path / "terms.tsv")) == 1


@pytest.mark.parametrize("row", [("", "cat"), ("猫", "  ")])
def test_an_entry_needs_both_sides(row: Sequence[str]) -> None:
    with pytest.raises(InputError):
        RevisionMemory(tiny_translator()).add(*row)


def test_gates_are_stored_with_the_checkpoint_and_bad_ones_are_refused(tmp_path: Path) -> None:
    gates = Gates(8, 4)
    with torch.no_grad():
        gates.forward_gate.bias.fill_(-1.5)
    gates.save(tmp_path)
    assert float(Gates.load(tmp_path, 8, 4).forward_gate.bias) == -1.5
    with pytest.raises(CheckpointError, match=FILE):
        Gates.load(tmp_path, 9, 4)
