"""Online learning: a lesson teaches, the guard holds, everything can be taken back exactly."""

from __future__ import annotations

import ctypes
import gc
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import sacrebleu
import torch
from torch import Tensor

import camit
from camit.checkpoint import EMBEDDED
from camit.errors import CheckpointError, InputError, SessionError
from camit.learning import PRESETS, LearningSettings, OnlineLearner
from camit.learning.guard import GUARD, REPLAY, expected, load_pairs
from camit.learning.guard_sets import write_anchors
from camit.learning.mistakes import departures, mistakes
from camit.search.problem import Phrase
from camit.search.scoring import read_sources, score
from camit.translator import Translator
from tests.helpers import tiny_translator

SETS = [("猫", "the cat sat."), ("狗", "a dog ran."), ("大", "the big red dog."), ("红", "not now.")]


@cache
def chinese() -> Translator:
    return camit.load("zh-en")


def learner(translator: Translator, **settings: object) -> OnlineLearner:
    chosen = replace(LearningSettings(), **settings)  # type: ignore[arg-type]
    return OnlineLearner(translator, settings=chosen, guard=SETS[:2], replay=SETS[2:])


def lesson_of(translator: Translator, source: str, target: str) -> tuple[list[int], Phrase]:
    return translator.encode_source(source), tuple(translator.target_vocabulary.encode(target))


def weights(translator: Translator) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in translator.network.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_a_lesson_makes_the_confirmed_sentence_more_probable_in_both_directions(arch: str) -> None:
    translator = tiny_translator(arch)
    pair = lesson_of(translator, "猫 红", "the red cat ran.")
    teacher, base = learner(translator, margin=1.0), weights(translator)
    lesson = teacher.learn(*pair)
    assert lesson.accepted
    assert lesson.reason == "learned"
    assert lesson.after > lesson.before
    assert lesson.seconds > 0.0
    assert teacher.learn(*pair).before == pytest.approx(lesson.after, abs=1e-5)
    assert not any(module.training for module in translator.network.modules())
    moved = {name.split(".")[0] for name, w in weights(translator).items() if not torch.equal(w, base[name])}
    assert moved == {"forward_decoder", "backward_decoder"}


def test_a_lesson_leaves_it_to_the_model_where_a_sentence_ends() -> None:
    """Every sentence has an end: learned with every lesson, it comes sooner and sooner in the next drafts."""
    translator = chinese()
    source, cut = lesson_of(translator, "他昨天晚上没有回家。", "He did not")
    directions = translator.directions.both

    def ends() -> list[float]:
        with torch.inference_mode():
            sources = read_sources(translator.network, translator.directions, [source])
            return [float(score(d, sources.start(d), [0], [cut]).logp[0, -1]) for d in directions]

    learned = {}
    for setting in (False, True):
        teacher = OnlineLearner(translator, settings=replace(LearningSettings(), ends=setting))
        before = ends()
        lesson = teacher.learn(source, cut)
        assert lesson.accepted and lesson.after > lesson.before
        learned[setting] = [now - then for then, now in zip(before, ends(), strict=True)]
        teacher.reset()
    assert min(learned[True]) > 0.0
    assert all(abs(no) < yes / 2 for no, yes in zip(learned[False], learned[True], strict=True)), learned
    assert OnlineLearner(translator).settings.ends is False
    assert OnlineLearner(translator, preset="paper").settings.ends is True


@cache
def parked() -> tuple[Sequence[int], Phrase, Phrase]:
    """A source, what is right, and what is wrong."""
    source, right = lesson_of(chinese(), "他把车停在教堂后面。", "He left the car behind the chapel.")
    return source, right, tuple(chinese().target_vocabulary.encode("He parked the car behind the church."))


def changes_of(
    teacher: OnlineLearner, translator: Translator, text: Phrase, drafted: Phrase
) -> dict[str, list[float]]:
    """By how much a lesson changes the log-probability of each piece of a text, for both decoders in its
    order."""
    source, right, _ = parked()

    def along() -> list[list[float]]:
        with torch.inference_mode():
            sources = read_sources(translator.network, translator.directions, [source])
            both = translator.directions.both
            found = [score(d, sources.start(d), [0], [text]).logp[0, :-1].tolist() for d in both]
        return [found[0], found[1][::-1]]

    before = along()
    assert teacher.learn(source, right, drafted=drafted).accepted
    changed = [
        [now - then for then, now in zip(*two, strict=True)] for two in zip(before, along(), strict=True)
    ]
    return dict(zip(("forward", "backward"), changed, strict=True))


def test_what_lessons_led_the_machine_to_write_wrongly_is_unlearned() -> None:
    source, _, wrong = parked()
    words = chinese().target_vocabulary.words(wrong)
    [(start, stop)] = [(word.start, word.stop) for word in words if word.text == "parked"]

    def learned(drafted: Phrase, **settings: float) -> list[float]:
        translator = chinese().fork()
        settings = {"recall": False, **settings}
        teacher = OnlineLearner(translator, settings=replace(LearningSettings(), **settings))  # type: ignore[arg-type]
        for _ in range(2):
            assert teacher.learn(source, wrong).accepted
        changed = changes_of(teacher, translator, wrong, drafted)
        return [changed["forward"][start], changed["backward"][stop - 1]]

    unlearned, without = learned(wrong), learned(())
    assert all(less < 2 * other < 0.0 for less, other in zip(unlearned, without, strict=True)), (
        unlearned,
        without,
    )
    assert learned(wrong, mistakes=0.0) == without
    assert learned(parked()[1]) == without  # a draft that was right has nothing to unlearn
    assert LearningSettings().mistakes and PRESETS["paper"].mistakes == 0.0


def test_what_the_machine_would_have_written_anyway_is_not_unlearned() -> None:
    """What stands in a draft instead of other words may be right as well: pushed down in every lesson, such
    words made sentences short and clumsy."""
    _, right, wrong = parked()
    found = []
    for drafted in (wrong, ()):
        translator = chinese().fork()
        found.append(changes_of(OnlineLearner(translator), translator, right, drafted))
    assert found[0] == found[1]


def test_mistakes_are_words_that_were_not_confirmed() -> None:
    vocabulary = tiny_translator().target_vocabulary

    def wrong(drafted: str, confirmed: str) -> list[str]:
        pieces = tuple(vocabulary.encode(drafted))
        found = mistakes(vocabulary, pieces, tuple(vocabulary.encode(confirmed)))
        return [vocabulary.decode(pieces[start:stop]) for start, stop in found]

    assert wrong("the cat sat.", "the cat sat.") == []
    assert wrong("the cat sat.", "the dog sat!") == ["cat", "."]
    assert wrong("cats ran, dogs sat.", "Dogs sat, cats ran.") == []  # moved, and a capital
    assert wrong("the cat sat on the mat.", "the cat sat.") == ["on", "the", "mat"]
    assert wrong("the the cat.", "the cat.") == ["the"]  # said once too often
    assert wrong("the cat.", "a big dog ran.") == ["the", "cat"]
    assert mistakes(vocabulary, (), tuple(vocabulary.encode("the cat."))) == []


def test_a_draft_goes_wrong_where_it_departs_from_the_confirmed_sentence() -> None:
    assert departures((5, 6, 7), (5, 8, 7), [(1, 2)]) == [1]
    assert departures((5, 6, 7), (5, 6, 8), [(1, 3)]) == [2]  # the word began as it should
    assert departures((5, 6), (5, 6, 7), [(1, 2)]) == []  # it only ended too early
    assert departures((5, 6, 7, 8), (4, 6, 9), [(0, 1), (2, 4)]) == [0, 2]
    assert departures((4, 6, 7, 8), (5, 6, 7, 9), [(0, 1), (1, 4)]) == [0, 3]  # "hives" and "hive"


def test_what_was_confirmed_is_not_unlearned_with_the_word_it_begins() -> None:
    """The machine's "I'm" and the confirmed "I am" begin with the same piece at the same place."""
    source, right = lesson_of(chinese(), "我在等最后一班火车。", "I am waiting for the last train.")
    wrong = tuple(chinese().target_vocabulary.encode("I'm waiting for the last train."))
    assert wrong[0] == right[0]

    def learned(drafted: Phrase) -> float:
        translator = chinese().fork()
        teacher = OnlineLearner(translator)
        for text in ("I'm here.", "I'm waiting for him."):  # by which "I" gets likelier
            assert teacher.learn(*lesson_of(translator, "我在这里等他。", text)).accepted
        direction = translator.directions.forward

        def chance() -> float:
            with torch.inference_mode():
                sources = read_sources(translator.network, translator.directions, [source])
                return float(score(direction, sources.start(direction), [0], [right]).logp[0, 0])

        before = chance()
        assert teacher.learn(source, right, drafted=drafted).accepted
        return chance() - before

    assert learned(wrong) >= 0.9 * learned(()) > 0.0


def test_a_word_the_model_does_not_know_is_no_mistake() -> None:
    vocabulary = tiny_translator(words=True).target_vocabulary
    drafted = tuple(vocabulary.encode("the zebra ran."))
    assert mistakes(vocabulary, drafted, tuple(vocabulary.encode("a cat ran."))) == [(0, 1)]


def test_a_step_that_would_harm_the_guard_set_is_taken_back() -> None:
    translator = tiny_translator()
    before = weights(translator)
    teacher = learner(translator, margin=0.0001, rate=2.0)
    lesson = teacher.learn(*lesson_of(translator, "猫 红", "the red cat ran."))
    assert not lesson.accepted
    assert "guard set would get worse" in lesson.reason
    assert lesson.after == lesson.before
    assert lesson.guard == 0.0
    assert same(weights(translator), before)


def test_many_lessons_stay_within_the_guard_and_go_on_teaching() -> None:
    """A long session must not come to a point from which nothing is learned any more."""
    translator = tiny_translator()
    teacher = learner(translator, margin=0.05)
    lessons = [
        teacher.learn(*lesson_of(translator, source, target))
        for source, target in [("猫 红", "the red cat ran."), ("狗 大", "a big dog, not red!")] * 20
    ]
    assert max(lesson.guard for lesson in lessons) <= 0.05
    faded = [n for n, lesson in enumerate(lessons) if "fades by" in lesson.reason]
    assert faded and all(lessons[n].accepted and lessons[n].after > lessons[n].before for n in faded)
    later = lessons[faded[0] :]
    assert sum(lesson.accepted for lesson in later) > len(later) / 2
    assert teacher.lessons == tuple(lessons)


def test_the_guard_is_least_for_the_base_model() -> None:
    """Growing more sure of its own translations must not look like an improvement."""
    logp = torch.log_softmax(torch.randn(6, 40), dim=1)
    wanted = expected(logp, most=8)
    best = wanted.loss(logp)
    for sharpness in (0.5, 0.9, 1.1, 2.0):
        assert wanted.loss(torch.log_softmax(logp * sharpness, dim=1)) > best


def test_without_a_guard_set_a_lesson_says_so() -> None:
    translator = tiny_translator()
    lesson = OnlineLearner(translator).learn(*lesson_of(translator, "猫", "the cat ran."))
    assert lesson.accepted
    assert "no guard set" in lesson.reason


def test_switched_off_nothing_is_learned() -> None:
    translator = tiny_translator()
    before = weights(translator)
    teacher = learner(translator)
    teacher.enabled = False
    lesson = teacher.learn(*lesson_of(translator, "猫", "the cat ran."))
    assert not lesson.accepted
    assert "switched off" in lesson.reason
    assert lesson.skipped
    assert same(weights(translator), before)


def test_a_snapshot_brings_back_the_exact_weights() -> None:
    translator = tiny_translator()
    teacher = learner(translator, margin=1.0)
    pair = lesson_of(translator, "猫 红", "the red cat ran.")
    teacher.learn(*pair)
    snapshot, before = teacher.snapshot(), weights(translator)
    first = teacher.learn(*pair)
    learned = weights(translator)
    teacher.restore(snapshot)
    assert same(weights(translator), before)
    assert len(teacher.lessons) == 1
    again = teacher.learn(*pair)
    assert (again.before, again.after, again.guard) == (first.before, first.after, first.guard)
    assert same(weights(translator), learned)


def test_what_was_learned_is_data_that_another_translator_takes_up() -> None:
    translator = tiny_translator()
    teacher = learner(translator, margin=1.0, replay=0)
    teacher.learn(*lesson_of(translator, "猫 红", "the red cat ran."))
    other = tiny_translator()
    pupil = learner(other, margin=1.0, replay=0)
    pupil.load_offset(teacher.offset())
    assert same(weights(other), weights(translator))
    told = teacher.snapshot()
    pupil.restore(
        replace(pupil.snapshot(), lessons=told.lessons, replayed=told.replayed)
    )  # as a session does
    # Guard and size of gradients are the base model's, also when the first lesson comes after a restore.
    pair = lesson_of(translator, "狗", "a dog sat.")
    assert pupil.learn(*pair).guard == pytest.approx(teacher.learn(*pair).guard, abs=1e-6)
    assert same(weights(other), weights(translator))
    pupil.reset()
    assert same(weights(other), weights(tiny_translator()))


def test_storing_what_was_learned_leaves_nothing_in_the_process() -> None:
    """For each new length of a tensor there once was a ctypes type more, for ever."""

    def kinds() -> int:
        gc.collect()
        return sum(isinstance(x, type) and issubclass(x, ctypes.Array) for x in gc.get_objects())

    translator = tiny_translator()
    teacher = learner(translator, margin=9.0)
    teacher.offset()
    before = kinds()
    for text in ("the cat ran.", "the red cat ran.", "a big red dog ran, not a cat."):
        assert teacher.learn(*lesson_of(translator, "猫 红" + " 红" * len(text.split()), text)).accepted
        assert teacher.offset()
    assert kinds() == before


@pytest.mark.parametrize("data", [b"", b"no safetensors", b"\x00" * 64])
def test_learned_weights_that_cannot_be_read_are_refused(data: bytes) -> None:
    translator = tiny_translator()
    with pytest.raises(SessionError):
        learner(translator).load_offset(data)
    assert same(weights(translator), weights(tiny_translator()))


def test_learned_weights_of_another_model_are_refused() -> None:
    translator = tiny_translator("rnnsearch")
    teacher = learner(translator, margin=1.0)
    teacher.learn(*lesson_of(translator, "猫", "the cat ran."))
    with pytest.raises(SessionError, match="do not fit"):
        learner(tiny_translator()).load_offset(teacher.offset())


def test_a_lesson_that_is_broken_off_leaves_nothing_behind() -> None:
    before, pair = weights(tiny_translator()), lesson_of(tiny_translator(), "猫 红", "the red cat ran.")
    moved = []
    for after in range(1, sum(1 for _ in learner(tiny_translator(), margin=1.0).study(*pair)) + 1):
        translator = tiny_translator()
        teacher = learner(translator, margin=1.0)
        steps = teacher.study(*pair)
        for _ in range(after):
            next(steps)
        moved.append(not same(weights(translator), before))
        steps.close()
        assert same(weights(translator), before)
        assert teacher.lessons == ()
        assert teacher.snapshot().replayed == 0  # the replay set begins anew too
        assert translator.directions.recalls is None
    assert any(moved)


def test_lessons_work_where_everything_else_runs_without_gradients() -> None:
    translator = tiny_translator()
    teacher = learner(translator, margin=1.0)
    with torch.inference_mode():
        lessons = [teacher.learn(*lesson_of(translator, "猫", "the cat ran.")) for _ in range(3)]
    assert all(lesson.accepted and lesson.after > lesson.before for lesson in lessons)


def test_a_lesson_that_fading_undoes_says_that_the_guard_left_no_room() -> None:
    translator = tiny_translator()
    teacher = learner(translator, margin=0.001, rate=0.05)
    pair = lesson_of(translator, "猫 红", "the red cat ran.")
    lessons = [teacher.learn(*pair) for _ in range(12)]
    refused = [lesson.reason for lesson in lessons if not lesson.accepted]
    assert refused and set(refused) == {"the guard leaves no room for it beside what was learned before"}


def test_a_weight_moves_by_its_gradient_over_its_usual_size() -> None:
    """Weights that every sentence pulls at would drown what is special about this one."""
    teach = {"margin": 9.0, "clip": 1e9, "rate": 1e-3, "weight": 0.0}
    pair = ("猫 红", "the red cat ran.")

    def step(replay: list[tuple[str, str]]) -> dict[str, Tensor]:
        translator = tiny_translator()
        before = weights(translator)
        settings = replace(LearningSettings(), **teach)  # type: ignore[arg-type]
        OnlineLearner(translator, settings=settings, guard=[], replay=replay).learn(
            *lesson_of(translator, *pair)
        )
        return {name: w - before[name] for name, w in weights(translator).items()}

    plain, scaled = step([]), step([pair])
    moved = [name for name in plain if plain[name].any()]
    assert moved
    assert all((plain[name] * scaled[name] >= 0).all() for name in moved)
    # Measured on this very sentence every gradient is of its usual size: all large ones move about as far.
    before, after = (torch.cat([step[name].abs().flatten() for name in moved]) for step in (plain, scaled))
    large = before > before.median()
    assert after[large].std() / after[large].mean() < 0.5 * before[large].std() / before[large].mean()


def test_without_sentences_to_measure_gradients_on_a_lesson_is_a_small_step() -> None:
    def moved(guard: list[tuple[str, str]], replay: list[tuple[str, str]]) -> float:
        translator = tiny_translator()
        before = weights(translator)
        teacher = OnlineLearner(translator, settings=LearningSettings(margin=9.0), guard=guard, replay=replay)
        assert teacher.learn(*lesson_of(translator, "猫 红", "the red cat ran.")).accepted
        return float(torch.cat([(w - before[n]).flatten() for n, w in weights(translator).items()]).norm())

    alone = moved([], [])
    assert alone < moved([], SETS)
    assert alone < moved(SETS, [])  # measured on the guard set, if there is no other


def test_later_lessons_are_smaller_steps() -> None:
    translator = tiny_translator()
    teacher = learner(translator, margin=9.0, slows=1.0, weight=0.0)
    pair = lesson_of(translator, "猫 红", "the red cat ran.")
    gains = [lesson.after - lesson.before for lesson in (teacher.learn(*pair) for _ in range(2))]
    steady = learner(tiny_translator(), margin=9.0, slows=math.inf, weight=0.0)
    [_, second] = [lesson.after - lesson.before for lesson in (steady.learn(*pair) for _ in range(2))]
    assert 0.0 < gains[1] < 0.9 * second


def test_a_short_sentence_moves_less_than_a_long_one() -> None:
    def moved(text: str) -> float:
        translator = tiny_translator()
        before = weights(translator)
        learner(translator, margin=9.0, weight=0.0).learn(*lesson_of(translator, "猫 红", text))
        return float(torch.cat([(w - before[n]).flatten() for n, w in weights(translator).items()]).norm())

    assert moved("the cat ran.") < moved("the cat ran, the cat sat, not a big red dog.")


def test_the_papers_step_moves_every_weight_a_little() -> None:
    translator = tiny_translator()
    before = weights(translator)
    lesson = OnlineLearner(translator, preset="paper").learn(
        *lesson_of(translator, "猫 红", "the red cat ran.")
    )
    assert lesson.accepted
    moved = [(w - before[name]).abs().max() for name, w in weights(translator).items()]
    assert float(max(moved)) == pytest.approx(1e-5, rel=0.1)
    assert sum(float(m) > 0 for m in moved) > 0.9 * len(moved)


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(InputError, match="bold"):
        OnlineLearner(tiny_translator(), preset="bold")  # type: ignore[arg-type]


def test_a_damaged_guard_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / GUARD).write_text("猫\tcat\n狗\n", "utf-8")
    with pytest.raises(CheckpointError, match="line 2"):
        load_pairs(tmp_path, GUARD)
    assert load_pairs(tmp_path, REPLAY) == []


# The embedded model


def test_the_embedded_model_learns_under_guard_and_forgets_nothing_when_asked() -> None:
    translator = chinese().fork()
    teacher = OnlineLearner(translator)
    lesson = teacher.learn(*lesson_of(translator, "我记得那座教堂。", "I remember being in that chapel."))
    assert lesson.accepted
    assert lesson.after > lesson.before
    assert lesson.guard < LearningSettings().margin
    teacher.reset()
    assert same(weights(translator), weights(chinese()))
    assert len(teacher.offset()) < 200  # nothing learned, nothing stored


def test_nonsense_repeated_does_not_ruin_the_embedded_model() -> None:
    translator = chinese().fork()
    teacher = OnlineLearner(translator)
    for _ in range(6):
        lesson = teacher.learn(*lesson_of(translator, "我很高兴。", "purple purple purple seven of the of."))
    assert lesson.guard <= LearningSettings().margin
    sources = [source for source, _ in load_pairs(EMBEDDED / "zh-en", GUARD)]
    before, after = ([t.text for t in model.translate_batch(sources)] for model in (chinese(), translator))
    assert not any("purple" in text for text in after)
    assert sacrebleu.corpus_chrf(after, [before]).score > 70  # here and there it says it in another way


@pytest.mark.parametrize("name", [GUARD, REPLAY])
def test_the_sets_of_the_embedded_model_hold_what_it_says_itself(name: str) -> None:
    pairs = load_pairs(EMBEDDED / "zh-en", name)
    assert len(pairs) >= 30
    said = [t.text for t in chinese().translate_batch([source for source, _ in pairs])]
    assert said == [target for _, target in pairs], "run python -m camit.learning.guard_sets zh-en"


def test_guard_and_replay_have_no_sentence_in_common() -> None:
    guard, replay = (load_pairs(EMBEDDED / "zh-en", name) for name in (GUARD, REPLAY))
    assert not {source for source, _ in guard} & {source for source, _ in replay}


def test_a_new_checkpoint_gets_sets_of_its_own(tmp_path: Path) -> None:
    for file in (EMBEDDED / "zh-en").iterdir():
        if file.suffix != ".tsv":
            shutil.copy(file, tmp_path / file.name)
    translator = camit.load(tmp_path)
    assert load_pairs(tmp_path, GUARD) == []
    assert write_anchors(translator)
    assert load_pairs(tmp_path, GUARD) == load_pairs(EMBEDDED / "zh-en", GUARD)
    assert load_pairs(tmp_path, REPLAY) == load_pairs(EMBEDDED / "zh-en", REPLAY)
