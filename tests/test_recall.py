"""Confirmed sentences come back where a later one is much like them, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import safetensors.torch
import torch

import camit
from camit.bench.clock import recall_places
from camit.errors import InputError, SessionError
from camit.learning import LearningSettings, OnlineLearner
from camit.learning.recollection import PLACES, Asked, Kept, Reading, keep, recalls, with_sentence
from camit.search.problem import Phrase
from camit.search.recall import HERE, MOST, Here, Looks, Recall, Recalled, SourceSigns
from camit.search.scoring import Directions, follow, score
from camit.text import EOS, PAD, SPECIALS, UNK
from camit.translator import Translator
from tests.helpers import tiny_translator

SOURCE, TARGET = "他住在尖沙咀。", "He lives in Tsim Sha Tsui."
GUARD = [("猫 红", "the cat sat."), ("红 猫", "a dog ran.")]


@cache
def chinese() -> Translator:
    return camit.load("zh-en")


def pair(translator: Translator, source: str, target: str) -> tuple[list[int], Phrase]:
    return translator.encode_source(source), tuple(translator.target_vocabulary.encode(target))


def kept(translator: Translator, source: str, target: str) -> Kept:
    return keep(translator.network, translator.directions, *pair(translator, source, target))


def recalling(translator: Translator, *sentences: Kept) -> Translator:
    """A fork that recalls these, and has learned nothing else."""
    fork = translator.fork()
    fork.set_recalls(recalls(sentences, fork.source_vocabulary))
    return fork


def here_of(keys: torch.Tensor, pieces: torch.Tensor) -> Here:
    """Places that speak, none of which is inside a word."""
    every = pieces >= 0
    return Here(keys, pieces, every, pieces != PAD, torch.arange(len(keys)), every, torch.ones(1, len(keys)))


def recall_of(pieces: torch.Tensor, looks: Looks, inner: int | None = None) -> Recall:
    """Words of one piece each, but for the one that goes on with the word before it."""
    count = torch.arange(len(pieces))
    goes_on = count == (-1 if inner is None else inner)
    source = tiny_translator(words=True).source_vocabulary
    one = torch.zeros_like(count)  # sentence
    sources = SourceSigns(looks.sign, torch.zeros_like(looks.sign))
    keys = torch.eye(len(pieces))
    return Recall(keys, pieces, ~goes_on, goes_on, count, looks, one, sources, source)


def some_recall(count: int = 50, d: int = 8, size: int = 12) -> Here:
    torch.manual_seed(3)
    keys = torch.randn(count, d)
    return here_of(keys / keys.norm(dim=1, keepdim=True), torch.randint(4, size, (count,)))


def at(here: Here, place: torch.Tensor, begins: torch.Tensor | None = None) -> Recalled:
    """Where every piece is a token, if nothing else is said, and the decoder looks at the first piece of the
    source."""
    if begins is None:
        begins = torch.ones(*place.shape[:-1], 12, dtype=torch.bool)
    return here.at(place, begins, torch.eye(len(here.shared))[0].expand(*place.shape[:-1], -1))


# One decoder


def test_the_mixture_is_a_distribution_that_never_leaves_all_to_the_past() -> None:
    recall, logp = some_recall(), torch.log_softmax(torch.randn(3, 5, 12), dim=2)
    place = torch.cat((recall.keys[:3].view(3, 1, 8), torch.randn(3, 4, 8)), dim=1)
    mixed = at(recall, place).mix(logp)
    assert mixed.exp().sum(2) == pytest.approx(torch.ones(3, 5), abs=1e-5)
    assert bool((mixed.exp() >= (1 - MOST) * logp.exp() - 1e-6).all())


def test_a_known_piece_has_the_same_probability_alone_and_among_all() -> None:
    recall, logp = some_recall(), torch.log_softmax(torch.randn(6, 12), dim=1)
    place, pieces = torch.randn(6, 8), torch.tensor([4, 5, 6, 7, 0, 11])
    recalled = at(recall, place)
    among = recalled.mix(logp).gather(1, pieces.unsqueeze(1)).squeeze(1)
    alone = recalled.along(logp, pieces)
    assert alone == pytest.approx(among, abs=1e-5)


def test_what_stood_at_the_same_place_is_expected_there_and_hardly_anywhere_else() -> None:
    keys = torch.eye(8)
    recall = here_of(keys, torch.arange(4, 12))
    logp = torch.log_softmax(torch.zeros(12), dim=0)
    assert float(at(recall, 3 * keys[2]).mix(logp)[6].exp()) > 0.5  # however long the vector is
    elsewhere = at(recall, torch.full((8,), -1.0)).mix(logp)
    assert elsewhere == pytest.approx(logp, abs=1e-3)


def test_where_a_sentence_ended_it_is_left_to_the_network_whether_to_end() -> None:
    recall = here_of(torch.eye(8), torch.tensor([4, 5, PAD, 7, 8, 9, 10, 11]))
    logp = torch.log_softmax(torch.randn(12), dim=0)
    assert at(recall, torch.eye(8)[2]).mix(logp) == pytest.approx(logp, abs=1e-4)
    begins = torch.arange(12) % 2 == 0
    ended = at(recall, torch.eye(8)[2], begins).mix(logp)
    assert bool((ended[begins] > logp[begins]).all() and (ended[~begins] < logp[~begins]).all())
    translator = recalling(chinese(), kept(chinese(), SOURCE, TARGET))
    for recalled, direction in zip(
        translator.directions.recalls or (),
        translator.directions.both,
        strict=True,
    ):
        assert direction.decoder.last_piece not in recalled.pieces.tolist()


def test_a_place_speaks_for_sources_that_have_most_of_what_it_looked_at() -> None:
    looks = Looks(
        torch.tensor([0, 0, 1, 1, 2, 2]),
        torch.tensor([5, 6, 5, 6, 7, 8]),
        torch.tensor([0.9, 0.1, 0.5, 0.5, 0.2, 0.8]),
    )
    recall = recall_of(torch.tensor([10, 11, 12]), looks)
    for source, pieces in (
        ([5], [10]),
        ([6], []),
        ([5, 6], [10, 11]),
        ([9, 8], [12]),
        ([6, 8, 5], [10, 11, 12]),
    ):
        here = recall.for_source(source)
        assert (here.pieces[here.speaks].tolist() if here else []) == pieces


def test_inside_a_word_a_place_speaks_for_every_source_that_recalls_anything() -> None:
    looks = Looks(torch.tensor([0, 1, 2]), torch.tensor([5, 6, 7]), torch.ones(3))
    recall = recall_of(torch.tensor([10, 11, 12]), looks, inner=1)
    here = recall.for_source([7])
    assert here is not None and here.pieces[here.speaks].tolist() == [11, 12]
    assert recall.for_source([9]) is None  # what nothing of it begins needs no ends either


def test_of_many_places_the_latest_are_asked() -> None:
    count = HERE + 100
    looks = Looks(torch.arange(count), torch.full((count,), 5), torch.ones(count))
    here = recall_of(torch.arange(10, 10 + count), looks).for_source([5])
    assert here is not None and here.pieces.tolist() == list(range(110, 10 + count))


def test_two_unknown_words_of_a_source_are_not_the_same_word() -> None:
    looks = Looks(torch.tensor([0, 1]), torch.tensor([UNK, 6]), torch.ones(2))
    here = recall_of(torch.tensor([10, 11]), looks).for_source([UNK, 6])
    assert here is not None and here.pieces[here.speaks].tolist() == [11]


def test_letters_go_on_inside_a_word_in_both_directions_but_digits_do_not() -> None:
    translator = chinese()
    vocabulary = translator.target_vocabulary
    for text in (TARGET, "It was built in 1873 by Kowalczyk.", "She's forty-five."):
        sentence = kept(translator, SOURCE, text)
        words = vocabulary.words(sentence.target)
        for reading, direction in (
            (sentence.forward, translator.directions.forward),
            (sentence.backward, translator.directions.backward),
        ):
            ordered = direction.order(sentence.target)
            for word in words:
                pieces = sentence.target[word.start : word.stop]
                at = word.start if not direction.backward else len(ordered) - word.stop
                inner = reading.inner[at : at + len(pieces)].tolist()
                assert not inner[0]
                assert all(inner[1:]) == (word.text.isalpha() or len(pieces) == 1)
    assert any(len(vocabulary.encode(name)) > 2 for name in ("Tsim", "Kowalczyk"))


def test_a_piece_that_is_impossible_without_recall_is_possible_with_it() -> None:
    recalled = at(here_of(torch.eye(8), torch.arange(4, 12)), torch.eye(8)[2])
    logp = torch.zeros(12).index_fill(0, torch.tensor([6]), -torch.inf).log_softmax(0)
    assert float(recalled.mix(logp)[6].exp()) > 0.5
    assert float(recalled.along(logp, torch.tensor(6)).exp()) > 0.5


def test_behind_a_recalled_word_a_new_one_begins_even_if_it_may_not_be_said_which() -> None:
    looks = Looks(torch.tensor([0, 1]), torch.tensor([5, 6]), torch.ones(2))
    here = recall_of(torch.tensor([10, 11]), looks).for_source([5])
    assert here is not None and here.speaks.tolist() == [True, False]
    begins = torch.arange(12) >= 8
    logp = torch.log_softmax(torch.randn(12), dim=0)
    recalled = at(here, torch.eye(2)[1], begins)
    mixed = recalled.mix(logp).exp()
    assert float(mixed.sum()) == pytest.approx(1.0, abs=1e-5)
    assert float(mixed[~begins].sum()) < 0.5 * float(logp.exp()[~begins].sum())
    said = logp.exp()  # which word it is says the network
    assert float(mixed[9] / mixed[8]) == pytest.approx(float(said[9] / said[8]), rel=1e-4)
    alone = torch.stack([recalled.along(logp, torch.tensor(i)) for i in range(12)])
    assert alone.exp() == pytest.approx(mixed, abs=1e-5)


def test_a_place_speaks_only_while_the_decoder_looks_at_what_both_sources_have() -> None:
    looks = Looks(torch.tensor([0, 0]), torch.tensor([5, 6]), torch.tensor([0.9, 0.1]))
    here = recall_of(torch.tensor([10]), looks).for_source([5, 7])
    assert here is not None and here.shared.tolist() == [[1.0], [0.0]]
    logp = torch.log_softmax(torch.zeros(12), dim=0)
    begins = torch.ones(12, dtype=torch.bool)
    for attention, recalled in (([0.6, 0.4], True), ([0.4, 0.6], False)):
        mixed = here.at(torch.eye(1)[0], begins, torch.tensor(attention)).mix(logp)
        assert (float(mixed[10].exp()) > 0.5) == recalled


def test_who_asks_again_while_sentences_come_and_go_is_told_what_anybody_is_told() -> None:
    translator = chinese()
    said = [
        (SOURCE, TARGET),
        ("我喜欢猫。", "I like cats."),
        ("他喜欢尖沙咀。", "He likes Tsim Sha Tsui."),
        ("好。", "Good."),
    ]
    sources = [translator.encode_source(text) for text in ("他住在尖沙咀。", "猫喜欢他。", "坐船去。")]
    first, second, third, fourth = (kept(translator, *pair) for pair in said)
    asked = Asked(sources, translator.source_vocabulary)
    rounds = [
        [first],
        [first, second, third],
        [second, third, fourth],
        [first, third],
        [third, first, second],
    ]
    for sentences in rounds:
        made = recalls(sentences, translator.source_vocabulary)
        assert made
        for recall, commons in zip(made, asked.common(sentences), strict=True):
            for source, common in zip(sources, commons, strict=True):
                assert all(torch.equal(*both) for both in zip(common, recall.common(source), strict=True))
                here, there = recall.here(common), recall.for_source(source)
                assert (here is None) == (there is None)
                if here and there:
                    assert all(torch.equal(*both) for both in zip(here, there, strict=True))


def test_two_unknown_words_have_nothing_in_common() -> None:
    signs = SourceSigns(torch.tensor([UNK, 5, 6]), torch.tensor([0, 0, 1]))
    assert signs.shared([5, UNK, 6]).tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]


def test_what_began_a_word_is_not_recalled_inside_one() -> None:
    here = here_of(torch.eye(8), torch.arange(4, 12))
    logp = torch.log_softmax(torch.randn(12), dim=0)
    mixed = at(here, torch.eye(8)[2], torch.arange(12) != 6).mix(logp)
    assert float(mixed[6]) <= float(logp[6])


def test_pieces_begin_tokens_as_the_vocabulary_says() -> None:
    directions = chinese().directions
    vocabulary = chinese().target_vocabulary
    pieces = vocabulary.encode("It's the well-known 1873 (Tsim Sha Tsui) house.")
    for direction in directions.both:
        begins = direction.begins(torch.tensor([direction.decoder.first_piece, *pieces]))
        assert bool(begins[0].all())
        for last, row in zip(pieces, begins[1:], strict=True):
            expected = [direction.boundary(last, piece) for piece in range(SPECIALS, len(vocabulary), 37)]
            assert row[SPECIALS::37].tolist() == expected
            assert bool(row[direction.decoder.last_piece])


# Sentences


def test_the_same_sentence_is_kept_once_and_the_oldest_go_first() -> None:
    none = Reading(*(torch.zeros(0) for _ in Reading._fields))
    a, b, c = (Kept((i,), (i, i), 0, none, none) for i in (5, 6, 7))
    assert with_sentence((a, b), a) == (b, a)
    other = Kept((5,), (9,), 1, none, none)
    assert with_sentence((a, b), other) == (b, other)  # of a source the last translation counts
    assert with_sentence((a, b), c) == (a, b, c)
    long = Kept((8,), (8,) * (PLACES - b.places - 1), 2, none, none)
    assert with_sentence((a, b), long) == (b, long)
    longest = Kept((9,), (9,) * (PLACES + 5), 3, none, none)  # too long, but all there is
    assert with_sentence((a, b), longest) == (longest,)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_places_look_the_same_whatever_is_learned(arch: str) -> None:
    translator = tiny_translator(arch)
    pieces = pair(translator, "猫 红", "the red cat ran.")
    directions = Directions.of(translator.network, translator.target_vocabulary)

    def seen() -> list[torch.Tensor]:
        with torch.inference_mode():
            sources = translator.read([pieces[0]])
            ways = directions.both
            return [follow(d, sources.start(d), [pieces[1]]).place for d in ways]

    before = seen()
    settings = replace(LearningSettings(), guarded=False)
    assert OnlineLearner(translator, settings=settings).learn(*pieces).accepted
    assert all(torch.equal(now, then) for now, then in zip(seen(), before, strict=True))


def test_both_decoders_recall_a_sentence_and_its_like() -> None:
    translator = recalling(chinese(), kept(chinese(), SOURCE, TARGET))
    assert "Tsim" not in chinese().translate(SOURCE).text
    assert translator.translate(SOURCE).text == TARGET
    assert "Tsim Sha Tsui" in translator.translate("她住在尖沙咀。").text
    for other in ("你好。", "我昨天没有回家。", "这条河在我小时候还很干净。"):
        assert translator.translate(other).text == chinese().translate(other).text


@pytest.mark.parametrize(
    ("confirmed", "target", "source", "wrong"),
    [
        ("这种药每天吃两次，每次一片。", "Take one tablet of this medicine twice a day.",
         "这种药每天吃三次，每次两片。", "twice"),
        ("会议将于三月五日上午九点举行。", "The meeting is to take place on 5 March at 9 a.m.",
         "会议将于四月十二日下午三点举行。", "5"),
        ("会议定在三月五号。", "The meeting is set for March 5.", "会议定在六月一号。", "March"),
        ("会议定在三月五号。", "The meeting is set for March 5.", "会议定在十二月二十号。", "March"),
        ("他的生日是五月三号。", "His birthday is on May 3.", "她的生日是十月一号。", "May"),
        ("他在二十五号来。", "He arrives on the twenty-fifth.", "他在五十二号来。", "fifth"),
        ("他非常喜欢他的狗。", "He absolutely adores his dog.", "她非常讨厌他的狗。", "adores"),
        ("请不要打开这个盒子。", "Kindly leave this box closed.", "请打开这个盒子。", "closed"),
        ("王先生今年四十五岁。", "Mr Wong turned forty-five this year.", "王太太今年五十岁。", "Mr "),
        ("他今年四十五岁。", "He's forty-five.", "他今年四十二岁。", "five"),
    ],
)  # fmt: skip
def test_what_the_source_does_not_say_is_not_recalled(
    confirmed: str, target: str, source: str, wrong: str
) -> None:
    """A sentence that differs from a confirmed one in a number must not get a number it does not name."""
    translator = recalling(chinese(), kept(chinese(), confirmed, target))
    assert translator.translate(confirmed).text == target
    assert wrong not in translator.translate(source).text


@pytest.mark.parametrize(("one", "other"), ["昇昀", "玥玀", "翀翂", "😀😁"])
def test_characters_that_share_bytes_are_not_the_same(one: str, other: str) -> None:
    """What the vocabulary does not have is spelled in bytes, and neighbours in Unicode share most of them."""
    target = "I know Mr. Zhe."
    translator = recalling(chinese(), kept(chinese(), f"我认识{one}先生。", target))
    assert translator.translate(f"我认识{one}先生。").text == target
    assert "Zhe" not in translator.translate(f"我认识{other}先生。").text


def test_what_no_search_may_write_is_not_recalled() -> None:
    translator = chinese()
    never = translator.target_vocabulary.never_generated
    sentence = kept(translator, SOURCE, "His name is Żółć 王伟.")
    assert any(never[piece] for piece in sentence.target)
    for reading in (sentence.forward, sentence.backward):
        assert not any(never[piece] for piece in reading.pieces.tolist() if piece != PAD)


def test_one_step_and_a_whole_sentence_agree_on_what_is_recalled() -> None:
    """The search adds up steps, rescoring reads sentences: both must see the same."""
    translator = recalling(chinese(), kept(chinese(), SOURCE, TARGET))
    ids, pieces = pair(translator, "她住在尖沙咀。", "She lives in Tsim Sha Tsui.")
    with torch.inference_mode():
        sources = translator.read([ids])
        directions = sources.bind(translator.directions)
        for d in directions.both:
            assert d.recall is not None
            whole = score(d, sources.start(d), [0], [pieces]).logp[0]
            logp = d.predict(follow(d, sources.start(d), [pieces]))[0]
            wanted = torch.tensor([*d.order(pieces), d.decoder.last_piece])
            assert logp.gather(1, wanted.unsqueeze(1)).squeeze(1) == pytest.approx(whole, abs=1e-3)


def test_a_word_outside_a_word_list_is_not_recalled_as_unknown() -> None:
    translator = tiny_translator(words=True)
    ids, pieces = pair(translator, "the cat", "the zebra sat")
    fed = tuple(translator.target_vocabulary.feed(pieces))
    assert UNK in fed
    found = recalls([keep(translator.network, translator.directions, ids, fed)], translator.source_vocabulary)
    assert found is not None
    for recall in found:
        assert UNK not in recall.pieces.tolist()
        assert recall.pieces.tolist().count(PAD) == 2  # there and at the end it is left to the network


# The learner


def test_what_the_base_model_expects_is_found_out_once_for_all_forks() -> None:
    first, second = chinese().fork(), chinese().fork()
    one, two = pair(first, "你好。", "Hi there."), pair(first, "谢谢。", "Many thanks.")
    long = sum(1 for _ in OnlineLearner(first).study(*one))
    short = sum(1 for _ in OnlineLearner(second).study(*two))
    assert short <= long
    assert sum(1 for _ in OnlineLearner(chinese().fork()).study(*one)) == short
    # A translator that was taught is another base model.
    assert sum(1 for _ in OnlineLearner(first).study(*two)) > short


def test_a_lesson_recalls_its_sentence_until_it_is_taken_back() -> None:
    translator = chinese().fork()
    teacher = OnlineLearner(translator)
    before = teacher.snapshot()
    assert teacher.learn(*pair(translator, SOURCE, TARGET)).accepted
    assert translator.translate(SOURCE).text == TARGET
    teacher.restore(before)
    assert translator.directions.recalls is None
    assert translator.translate(SOURCE).text == chinese().translate(SOURCE).text


def test_the_papers_learner_recalls_nothing() -> None:
    translator = chinese().fork()
    lesson = OnlineLearner(translator, preset="paper").learn(*pair(translator, SOURCE, TARGET))
    assert lesson.accepted and lesson.reason == "learned"
    assert translator.directions.recalls is None


def test_what_the_guard_has_no_room_for_is_learned_but_not_recalled() -> None:
    translator = tiny_translator()  # random networks find all places alike
    settings = replace(LearningSettings(), margin=0.05)
    teacher = OnlineLearner(translator, settings=settings, guard=GUARD, replay=GUARD)
    lesson = teacher.learn(*pair(translator, "猫 红", "the red cat ran."))
    assert lesson.accepted
    assert "no room to recall" in lesson.reason
    assert lesson.guard <= settings.margin
    assert translator.directions.recalls is None


def test_without_a_guard_set_nothing_is_recalled() -> None:
    translator = tiny_translator()
    teacher = OnlineLearner(translator)
    assert teacher.learn(*pair(translator, "猫 红", "the red cat ran.")).accepted
    assert translator.directions.recalls is None


def test_where_the_guard_is_full_the_older_sentences_make_room() -> None:
    translator = tiny_translator()
    sources, marks = ("猫 红", "红 猫", "猫 红 猫", "红 红 猫"), (".", "!", ", not now.", " on.")
    pairs = [
        pair(translator, source, f"the red cat ran{mark}")
        for source, mark in zip(sources, marks, strict=True)
    ]

    def recalled(margin: float) -> list[Phrase]:
        taught = tiny_translator()
        settings = replace(LearningSettings(), margin=margin, rate=1e-4)
        teacher = OnlineLearner(taught, settings=settings, guard=GUARD, replay=GUARD)
        assert all(teacher.learn(*one).accepted for one in pairs)
        return [kept.target for kept in teacher.snapshot().sentences]

    targets = [target for _, target in pairs]
    assert recalled(9.0) == targets
    found = [recalled(margin / 1000) for margin in range(240, 361, 10)]
    assert found[0] == []
    # Where all together are too much, the last one is there and older ones are not.
    assert targets[-1:] in found


def test_all_parameters_cannot_learn_where_sentences_are_recalled() -> None:
    with pytest.raises(InputError, match="recall=False"):
        LearningSettings(parameters="all")


def test_the_guard_counts_what_is_recalled() -> None:
    guards = []
    for recall in (False, True):
        translator = tiny_translator()
        settings = replace(LearningSettings(), margin=9.0, recall=recall)
        teacher = OnlineLearner(translator, settings=settings, guard=GUARD, replay=GUARD)
        guards.append(teacher.learn(*pair(translator, "猫 红", "the red cat ran.")).guard)
    assert guards[1] > guards[0]


def test_recalled_sentences_are_stored_with_what_was_learned() -> None:
    translator, other = chinese().fork(), chinese().fork()
    teacher, pupil = OnlineLearner(translator), OnlineLearner(other)
    teacher.learn(*pair(translator, SOURCE, TARGET))
    teacher.learn(*pair(translator, "你好，老板。", "Hello, boss."))
    pupil.load_offset(teacher.offset())
    assert pupil.snapshot().sentences == teacher.snapshot().sentences
    assert pupil.offset() == teacher.offset()
    theirs, mine = translator.directions.recalls, other.directions.recalls
    assert theirs is not None and mine is not None
    for one, two in zip(theirs, mine, strict=True):
        assert torch.equal(one.pieces, two.pieces)
        assert torch.equal(one.keys, two.keys)
    assert other.translate(SOURCE).text == TARGET


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("recalled.targets", lambda t: t * 0 + EOS),
        ("recalled.targets", lambda t: t + 100_000),
        ("recalled.sources", lambda t: -t - 1),
        ("recalled.sources", lambda t: t * 0),
        ("recalled.targets", lambda t: t[:-1]),
        ("recalled.sources", lambda t: torch.cat((t, t))),
        ("recalled.sentences", lambda t: t * 0),
        ("recalled.sentences", lambda t: t.flatten()),
        ("recalled.sentences", lambda t: None),
        ("recalled.targets", lambda t: t.float() + 0.5),
    ],
)
def test_recalled_sentences_that_cannot_be_are_refused(name: str, change: object) -> None:
    translator = chinese().fork()
    teacher = OnlineLearner(translator)
    teacher.learn(*pair(translator, SOURCE, TARGET))
    stored = safetensors.torch.load(teacher.offset())
    damaged = change(stored.pop(name))  # type: ignore[operator]
    if damaged is not None:
        stored[name] = damaged
    pupil = OnlineLearner(chinese().fork())
    with pytest.raises(SessionError, match="learn anew"):
        pupil.load_offset(safetensors.torch.save(stored))
    assert pupil.snapshot().sentences == ()


# The session


def test_a_session_recalls_what_was_confirmed_and_forgets_it_with_the_confirmation(tmp_path: Path) -> None:
    with camit.Session(chinese(), memory=False, journal=tmp_path / "s") as session:
        draft = session.open(SOURCE)
        first = draft.text
        draft.replace((0, len(draft.tokens)), TARGET)
        session.confirm()
        assert session.open(SOURCE).text == TARGET
    with camit.Session.restore(tmp_path / "s", chinese()) as session:
        assert session.open(SOURCE).text == TARGET
        session.undo_confirm()
        assert session.open(SOURCE).text == first
    assert chinese().translate(SOURCE).text == first  # the translator it was given stays as it is


# What is shown of it


def test_a_recalled_word_says_from_which_draft_it_is() -> None:
    with camit.Session(chinese(), memory=False) as session:
        first = session.open("你好。")
        session.confirm(first)
        taught = session.open(SOURCE)
        taught.replace((0, len(taught.tokens)), TARGET)
        assert all(token.recalled_from is None for token in taught.tokens)
        session.confirm(taught)
        again = session.open("她住在尖沙咀。")
        said = {token.text: token for token in again.tokens}
        assert said["Tsim"].recalled > 0.5 and said["Tsim"].recalled_from == taught.id
        assert said["Tsim"].copied_from is None
        assert all(0.0 <= token.recalled <= 1.0 for token in again.tokens)
        session.undo_confirm()
        assert all(token.recalled == 0.0 for token in session.open(SOURCE).tokens)


def test_a_sentence_that_was_confirmed_comes_back_as_it_was() -> None:
    twin, wording = "我记得他的名字。", "His name I do recall."
    with camit.Session(chinese(), memory=False) as session:
        draft = session.open(twin)
        draft.replace((0, len(draft.tokens)), wording)
        session.confirm(draft)
        session.confirm(session.open("我不记得他的名字。"))
        again = session.open(twin)
        assert again.text == wording and not again.confirmed
        assert {token.recalled_from for token in again.tokens} == {draft.id}
        assert {token.recalled for token in again.tokens} == {1.0}
        again.replace((0, len(again.tokens)), "I remember his name.")
        session.confirm(again)
        assert session.open(twin).text == "I remember his name."  # as it was confirmed last
        session.undo_confirm()
        assert session.open(twin).text == wording
        session.learning.reset()
        assert session.open(twin).text == chinese().translate(twin).text


def test_what_another_session_learned_is_no_draft_of_this_one() -> None:
    with camit.Session(chinese()) as one, camit.Session(chinese()) as other:
        one.confirm(one.open(SOURCE))
        other.learning.load_offset(one.learning.offset())
        assert other.open(SOURCE).tokens


def test_without_learning_no_word_is_recalled() -> None:
    with camit.Session(chinese(), learning=False) as session:
        session.confirm(session.open(SOURCE))
        assert all(token.recalled == 0.0 for token in session.open(SOURCE).tokens)


def test_a_restored_session_knows_where_its_words_are_recalled_from(tmp_path: Path) -> None:
    with camit.Session(chinese(), journal=tmp_path / "session") as session:
        session.confirm(session.open(SOURCE))
        recalled = [(t.text, t.recalled, t.recalled_from) for t in session.open(SOURCE).tokens]
    assert any(draft == 0 for _, _, draft in recalled)
    with camit.Session.restore(tmp_path / "session", chinese()) as session:
        assert [(t.text, t.recalled, t.recalled_from) for t in session.drafts[1].tokens] == recalled
        assert [(t.text, t.recalled, t.recalled_from) for t in session.open(SOURCE).tokens] == recalled


def test_the_bench_of_recalled_places_reads_sentences_of_any_length() -> None:
    reading = recall_places(camit.load("zh-en"), 10, beam=1, rounds=1, done=lambda: None)
    assert reading.entries > 0 and reading.reading.median > 0.0
