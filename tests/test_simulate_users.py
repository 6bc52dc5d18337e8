"""Simulated users: they tell reference words only, and the ideal one finds the critical mistake."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camit.corpus import Pair
from camit.errors import InputError
from camit.search.revise import Searcher, Settings
from camit.session.plan import Version
from camit.simulate.protocols import PROTOCOLS, protocol
from camit.simulate.rounds import Rules
from camit.simulate.screen import Edit, after, by_hand, opened, planned, text, words
from camit.simulate.users import USERS, Judge, Reference, blocks, candidates, distance, leftmost, user
from camit.text import SPECIALS
from camit.translator import Translator, load
from tests.helpers import tiny_translator, word_vocabulary

sentences = st.lists(st.sampled_from("abcd"), max_size=7)
LINES = (
    Pair(1, "a", "我们昨天在公园里看到了他。", ("Yesterday we met him in the park.",)),
    Pair(2, "a", "他不喜欢喝茶。", ("He does not like tea.", "Tea is not what he likes.")),
    Pair(3, "b", "你要去哪里?", ("Where do you want to go?",)),
)


@cache
def embedded() -> Translator:
    return load("zh-en")


def screen(sentence: str) -> Version:
    vocabulary = word_vocabulary()
    return opened(tuple(vocabulary.encode(sentence)), vocabulary)


def reference(sentence: str) -> Reference:
    return Reference.of(sentence, word_vocabulary())


def rules(name: str, who: str = "ideal", revisions: int = 1, **more: bool) -> Rules:
    chosen = PROTOCOLS[name]
    return Rules(user(who), chosen, Settings(protocol=chosen.search), Judge(), revisions, **more)


@given(sentences, sentences)
def test_blocks_say_how_one_sentence_becomes_the_other(mine: list[str], theirs: list[str]) -> None:
    rewritten = list(mine)
    for block in reversed(blocks(mine, theirs)):
        rewritten[block.start : block.stop] = theirs[block.first : block.last]
    assert rewritten == theirs


@given(sentences, sentences)
def test_distance_is_levenshteins(mine: list[str], theirs: list[str]) -> None:
    row = list(range(len(theirs) + 1))
    for i, a in enumerate(mine, start=1):
        row = _next_row(row, i, a, theirs)
    assert distance(mine, theirs) == row[-1]


def _next_row(row: list[int], i: int, a: str, theirs: list[str]) -> list[int]:
    new = [i]
    for j, b in enumerate(theirs, start=1):
        new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (a != b)))
    return new


@given(
    st.lists(st.sampled_from(["the", "a", "cat", "dog", "sat", "ran", "on", "mat"]), min_size=1, max_size=6)
)
def test_users_tell_reference_words_only_and_each_edit_brings_the_screen_nearer(told: list[str]) -> None:
    shown, wanted = screen("the big dog ran on a log."), reference(" ".join(told))
    before = distance(words(shown), wanted.words)
    for edit in candidates(shown, [wanted], Judge()):
        assert edit.text in ("", *wanted.words)
        made = words(screen(by_hand(shown, edit)))
        assert edit.kind == "replace" or distance(made, wanted.words) < before


def test_candidates_are_replacements_insertions_and_deletions_from_left_to_right() -> None:
    shown, wanted = screen("the dog sat the big mat."), reference("a dog sat on the mat.")
    assert candidates(shown, [wanted], Judge()) == [Edit(0, 1, "a"), Edit(3, 3, "on"), Edit(4, 5)]
    assert leftmost(shown, [wanted], Judge()) == [Edit(0, 1, "a")]


def test_of_several_missing_words_one_may_take_the_place_of_the_word_behind_them() -> None:
    shown, wanted = screen("the cat sat."), reference("the big red cat sat.")
    inserted = [Edit(1, 1, "big"), Edit(1, 1, "red")]
    assert candidates(shown, [wanted], Judge()) == [*inserted, Edit(1, 2, "big"), Edit(1, 2, "red")]
    assert leftmost(shown, [wanted], Judge()) == [Edit(1, 1, "big"), Edit(1, 2, "big")]
    assert candidates(shown, [reference("the big cat sat.")], Judge()) == [Edit(1, 1, "big")]


def test_every_reference_offers_candidates() -> None:
    found = candidates(
        screen("the cat sat."), [reference("the dog sat."), reference("the cat ran.")], Judge()
    )
    assert found == [Edit(1, 2, "dog"), Edit(2, 3, "ran")]


def test_without_case_a_capital_is_no_mistake() -> None:
    assert candidates(screen("The cat sat."), [reference("the cat sat.")], Judge(lowercase=True)) == []
    assert candidates(screen("The cat sat."), [reference("the cat sat.")], Judge()) == [Edit(0, 1, "the")]


def test_what_was_fixed_is_no_candidate_again() -> None:
    vocabulary = word_vocabulary()
    shown = screen("the cat sat.")
    plan = planned(shown, Edit(1, 2, "dog"), vocabulary, 0)
    translator = tiny_translator(words=True)
    sources = translator.read([[SPECIALS]])  # replace-only asks nobody
    searcher = Searcher(translator.directions, sources, Settings(protocol="replace-only"))
    [revision] = searcher.revise([plan.request])
    fixed = after(shown, plan, revision, vocabulary)
    assert text(fixed) == "the dog sat."
    # "log" may not take the place of "dog" any more; it may that of the word beside it.
    assert candidates(fixed, [reference("the log ran.")], Judge()) == [Edit(2, 3, "log"), Edit(2, 3, "ran")]
    # Between words that are right and one that is fixed: on either side of it.
    assert candidates(fixed, [reference("the log sat.")], Judge()) == [Edit(1, 1, "log"), Edit(2, 2, "log")]
    # Too much of everything but the fix.
    assert candidates(fixed, [reference("")], Judge()) == [Edit(0, 1), Edit(2, 4)]
    # Nothing else is wrong: then the fix itself is.
    assert candidates(fixed, [reference("the sat.")], Judge()) == [Edit(1, 2)]
    # Of two references the one that says what was told.
    wanted = [reference("the cat ran."), reference("a dog ran.")]
    assert candidates(fixed, wanted, Judge()) == [Edit(0, 1, "a"), Edit(2, 3, "ran")]
    assert leftmost(fixed, wanted, Judge()) == [Edit(0, 1, "a")]


def exhaustive(translator: Translator, line: Pair, name: str) -> tuple[float, set[str]]:
    """The best sentence BLEU any candidate leads to, each decoded by itself; the texts that have it."""
    vocabulary = translator.target_vocabulary
    sources = translator.read([translator.encode_source(line.source)])
    shown = opened(translator.best(sources, 4)[0][0], vocabulary)
    wanted = [Reference.of(one, vocabulary) for one in line.references]
    searcher = Searcher(translator.directions, sources, Settings(protocol=PROTOCOLS[name].search))
    found: dict[str, float] = {}
    for edit in candidates(shown, wanted, Judge()):
        plan = planned(shown, edit, vocabulary, 0)
        result = text(after(shown, plan, searcher.revise([plan.request])[0], vocabulary))
        found[result] = Judge().score(result, wanted)
    best = max(found.values())
    return best, {result for result, score in found.items() if score == best}


@pytest.mark.parametrize("name", ["replace-only", "bidirectional"])
def test_the_ideal_user_picks_what_exhaustive_search_picks(name: str) -> None:
    for played in rules(name).play(embedded(), LINES):
        best, texts = exhaustive(embedded(), played.line, name)
        assert text(played.screen) in texts
        assert Judge().score(text(played.screen), played.references) == best


def test_of_two_wrong_words_the_critical_one_is_that_which_breaks_the_longer_run() -> None:
    translator = tiny_translator(words=True)
    line = Pair(1, "a", "the cat sat", ("no",))
    draft = words(rules("replace-only", revisions=0).play(translator, [line])[0].draft)
    middle = len(draft) // 2
    assert middle >= 3  # the tiny network talks much
    wanted = list(draft)
    wanted[0], wanted[middle] = "first", "second"
    [played] = rules("replace-only").play(translator, [Pair(1, "a", "the cat sat", (" ".join(wanted),))])
    assert played.turns[0].edit == Edit(middle, middle + 1, "second")
    assert words(played.screen) == (draft[0], *wanted[1:])


def test_left_to_right_fixes_the_first_mistake_and_unidirectional_lets_nobody_do_else() -> None:
    for played in rules("bidirectional", "left-to-right").play(embedded(), LINES):
        nearest = Judge().nearest(words(played.draft), played.references)
        found = candidates(played.draft, [nearest], Judge())
        assert played.turns[0].edit == found[0]
        assert played.turns[0].proposals == 1
    for played in rules("unidirectional", "ideal").play(embedded(), LINES):
        edit = played.turns[0].edit
        assert edit in leftmost(played.draft, played.references, Judge())
        assert words(played.screen)[: edit.start] == words(played.draft)[: edit.start]


def test_the_fast_ideal_user_has_at_most_three_proposals_decoded_and_is_not_beyond_the_ideal_one() -> None:
    ideal = rules("bidirectional").play(embedded(), LINES)
    fast = rules("bidirectional", "ideal-fast").play(embedded(), LINES)
    for slow, quick in zip(ideal, fast, strict=True):
        assert quick.turns[0].proposals <= 3
        assert quick.turns[0].gain <= slow.turns[0].gain + 1e-9


def test_the_random_user_is_reproducible_by_seed() -> None:
    def played(seed: int) -> list[Edit]:
        chosen = PROTOCOLS["replace-only"]
        mine = Rules(USERS["random"], chosen, Settings(protocol="replace-only"), Judge(), 4, seed=seed)
        return [turn.edit for one in mine.play(embedded(), LINES) for turn in one.turns]

    assert played(1) == played(1)
    assert len({tuple(played(seed)) for seed in range(5)}) > 1


def test_a_right_sentence_is_left_alone() -> None:
    source = LINES[0].source
    said = embedded().translate(source).text
    [played] = rules("bidirectional", revisions=3).play(embedded(), [Pair(1, "a", source, ("no", said))])
    assert played.turns == []


def test_no_change_is_a_candidate_only_when_allowed() -> None:
    def gains(may_pass: bool) -> list[float]:
        mine = rules("unidirectional-free", "random", 3, may_pass=may_pass)
        return [turn.gain for one in mine.play(embedded(), LINES) for turn in one.turns]

    assert min(gains(may_pass=False)) < 0  # a random fix can make things worse, and then it does
    assert min(gains(may_pass=True)) > 0


def test_earlier_fixes_stand_after_every_later_one() -> None:
    for name in PROTOCOLS:
        for played in rules(name, "random", revisions=3).play(embedded(), LINES):
            told: list[str] = []
            for turn in played.turns:
                told += [turn.edit.text] if turn.edit.text else []
                assert all(word in words(turn.after) for word in told)


def test_unknown_names_are_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match="left-to-right"):
        user("perfect")
    with pytest.raises(InputError, match="unidirectional-grid"):
        protocol("bidi")
