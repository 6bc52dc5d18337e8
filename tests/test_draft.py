"""Drafts: what a person does to a sentence, and what the sentence promises in return.

The promise itself is checked by `camit.soak.oracle` after random operations; the tests below it are the
operations one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import camit
from camit.errors import CamitError, InputError, SessionError
from camit.search.problem import Copy, Readers
from camit.search.revise import Protocol
from camit.session import plan as planning
from camit.soak import chance
from camit.soak.oracle import Action, Oracle, Violation
from camit.text import fold
from tests.helpers import Offering

PARK = "我们昨天在公园里看到了他。"  # We saw him in the park yesterday.
BOSS = "你好，老板。"  # Hello, boss.


@cache
def model() -> camit.Translator:
    return camit.load("zh-en")


@pytest.fixture
def session() -> Iterator[camit.Session]:
    made = camit.Session(model(), learning=False)
    yield made
    made.close()


def texts(draft: camit.Draft) -> list[str]:
    return [token.text for token in draft.tokens]


def origins(draft: camit.Draft) -> dict[str, str]:
    return {token.text: token.origin for token in draft.tokens}


def locked(draft: camit.Draft) -> list[str]:
    return [token.text for token in draft.tokens if token.locked]


# The promise, after any operations


@given(
    rng=st.randoms(use_true_random=False),
    protocol=st.sampled_from(get_args(Protocol)),
    beam=st.sampled_from([1, 2, 4]),
)
@settings(max_examples=12)
def test_every_fixed_word_stands_after_any_operations(rng: Random, protocol: Protocol, beam: int) -> None:
    translator = chance.toy(Random(rng.randrange(1000)))
    with camit.Session(translator, learning=False, protocol=protocol, beam=beam) as session:
        draft = session.open(rng.choice(chance.TOY_SOURCES))
        oracle = Oracle(draft, translator.target_vocabulary)
        for _ in range(5):
            oracle.play(chance.action(rng, translator.target_vocabulary, draft))


@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=5)
def test_every_fixed_word_stands_after_any_operations_on_the_embedded_model(rng: Random) -> None:
    with camit.Session(model(), learning=False) as session:
        draft = session.open(rng.choice(chance.SOURCES))
        oracle = Oracle(draft, model().target_vocabulary)
        for _ in range(4):
            oracle.play(chance.action(rng, model().target_vocabulary, draft))


def test_the_oracle_sees_a_broken_promise(session: camit.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = session.open(PARK)
    oracle = Oracle(draft, model().target_vocabulary)
    oracle.play(Action("replace", 1, 2, "met"))
    real = planning.replacing
    monkeypatch.setattr(planning, "replacing", lambda v, *rest: real(replace(v, fixed=()), *rest))
    with pytest.raises(Violation, match="met"):
        oracle.play(Action("replace", 5, 6, "zoo"))


# Replace


def test_replacing_a_word_regenerates_around_it(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert draft.text == "We saw him in the park yesterday."
    assert draft.replace(1, "met") is draft
    assert draft.text == "We met him in the park yesterday."
    assert origins(draft) == {
        "We": "kept", "met": "yours", "him": "kept", "in": "kept", "the": "kept", "park": "kept",
        "yesterday": "kept", ".": "kept",
    }  # fmt: skip
    assert locked(draft) == ["met"] and draft.revisions == 1


def test_a_first_draft_is_nobodys(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert set(origins(draft).values()) == {"draft"} and locked(draft) == []
    assert draft.trace == () and draft.revisions == 0 and not draft.can_undo and not draft.can_redo


def test_what_the_revision_changed_says_so(session: camit.Session) -> None:
    draft = session.open(PARK)
    before = texts(draft)
    draft.replace(0, "Yesterday")
    new = {text for text in texts(draft) if text not in before} - {"Yesterday"}
    assert origins(draft)["Yesterday"] == "yours"
    assert all(origins(draft)[text] == "changed" for text in new)


def test_a_phrase_stays_one_phrase_through_later_revisions(session: camit.Session) -> None:
    draft = session.open(PARK).replace((1, 3), "ran into my old boss")
    draft.replace(len(draft.tokens) - 2, "today")
    assert "ran into my old boss" in draft.text and "today" in draft.text
    assert locked(draft) == ["ran", "into", "my", "old", "boss", "today"]


def test_replacing_inside_an_earlier_fix_leaves_the_rest_of_it(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met my old boss and")
    draft.replace(texts(draft).index("old"), "new")
    assert "met my new boss and" in draft.text
    assert [token.origin for token in draft.tokens if token.locked] == ["yours"] * 5
    draft.replace((texts(draft).index("boss"), texts(draft).index("boss") + 3), "friend")
    assert "met my new friend" in draft.text


def test_who_writes_over_the_whole_sentence_has_written_the_sentence(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met")
    draft.replace((0, len(draft.tokens)), "Yesterday I saw a dog")
    assert draft.text == "Yesterday I saw a dog"
    assert {token.origin for token in draft.tokens} == {"yours"}
    assert draft.replace(1, "we").text == "Yesterday we saw a dog"
    draft.undo().undo()
    assert draft.text == "We met him in the park yesterday."


def test_replacing_a_fixed_word_again_forgets_the_first(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met").replace(1, "recognised")
    assert "recognised" in texts(draft) and "met" not in texts(draft)


@pytest.mark.parametrize(
    "word", ["Zürich", "鲸鱼", "🐋🐋", "Σωκράτης", "xyzzyqq", "\u2581", "O'Neill's", "a--b", "ﬁlm"]
)
def test_words_outside_the_vocabulary_come_out_verbatim(session: camit.Session, word: str) -> None:
    draft = session.open(PARK).replace(5, word)
    assert fold(word) in draft.text
    draft.replace(0, "Yesterday")
    assert fold(word) in draft.text.replace("Yesterday", "")


def test_punctuation_attaches_to_the_word_before_it(session: camit.Session) -> None:
    draft = session.open(BOSS)
    assert draft.text == "Hello, boss."
    assert draft.replace(3, "!").text == "Hello, boss!"
    assert draft.replace(3, "?!").text.endswith("boss?!")
    assert draft.replace(1, ";").text.startswith("Hello; ")
    assert "Hello, dear" in session.open(BOSS).replace(1, ", dear").text


def test_an_apostrophe_does_not_stick_to_the_word_before_it(session: camit.Session) -> None:
    draft = session.open(BOSS).insert(1, "\u2019s")
    assert "\u2019s" in texts(draft)


def test_words_in_quotation_marks_need_no_space(session: camit.Session) -> None:
    draft = session.open(PARK).replace(5, '"park"')
    draft.replace(texts(draft).index("park"), "zoo")
    assert '"zoo"' in draft.text


# Insert


def test_an_inserted_word_stands_between_its_neighbours(session: camit.Session) -> None:
    draft = session.open(PARK).insert(5, "old")
    assert "the old park" in draft.text
    assert locked(draft) == ["old"]  # the neighbours only said where


def test_inserting_at_the_edges(session: camit.Session) -> None:
    draft = session.open(PARK).insert(0, "Well")
    assert texts(draft)[:2] == ["Well", "We"]
    draft.insert(len(draft.tokens), "Really")
    assert texts(draft)[-2:] == [".", "Really"]
    assert locked(draft) == ["Well", "Really"]


def test_inserting_into_a_fixed_phrase_makes_it_longer(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met my boss and").insert(3, "dear")
    assert "met my dear boss and" in draft.text
    assert draft.replace(0, "They").text.count("met my dear boss and") == 1


def test_inserting_between_two_fixes_keeps_them_apart(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met").replace(2, "Peter").insert(2, "young")
    assert "met young Peter" in draft.text
    assert len(draft.version.fixed) == 3


# Delete


def test_a_deleted_word_does_not_come_back(session: camit.Session) -> None:
    draft = session.open(PARK).delete((3, 6))
    assert draft.text == "We saw him yesterday."
    assert locked(draft) == ["him", "yesterday"]
    assert [token.origin for token in draft.tokens if token.locked] == ["kept", "kept"]
    assert "him yesterday" in draft.replace(1, "met").text


@pytest.mark.parametrize(
    "source", ["她把钥匙忘在桌子上了。", "你为什么不告诉我真相？", "如果你明天有时间，就来我家吃饭吧。"]
)
def test_a_deleted_word_does_not_come_back_elsewhere(session: camit.Session, source: str) -> None:
    draft = session.open(source)
    for index, token in enumerate(draft.tokens):
        words = [t.text.lower() for t in draft.tokens]
        if not token.text.isalnum() or words.count(token.text.lower()) > 1:
            continue
        draft.delete(index)
        assert token.text.lower() not in [t.text.lower() for t in draft.tokens]
        draft.undo()


def test_deleting_the_first_and_the_last_word_holds(session: camit.Session) -> None:
    draft = session.open(BOSS).delete((0, 2))
    assert texts(draft)[0] == "boss"
    draft.delete(len(draft.tokens) - 1)
    assert texts(draft)[-1] == "boss"
    draft.insert(0, "my")
    assert texts(draft) == ["my", "boss"]


def test_deleting_inside_a_fixed_phrase_makes_it_shorter(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met my old boss and").delete(3)
    assert "met my boss and" in draft.replace(0, "They").text


# Blank


def test_blanking_redoes_the_middle_and_keeps_both_ends(session: camit.Session) -> None:
    draft = session.open(PARK)
    before = texts(draft)
    draft.blank((3, 6))
    after = texts(draft)
    assert after[:3] == before[:3] and after[-2:] == before[-2:]
    assert after != before
    assert [token.origin for token in draft.tokens[:3]] == ["kept"] * 3
    assert [stage.name for stage in draft.trace] == ["draft", "result"]


def test_blanking_between_fixes_leaves_them(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met").replace(6, "today")
    draft.blank((2, 6))
    assert locked(draft) == ["met", "today"]


@pytest.mark.parametrize("words", [1, 2])
def test_blanking_does_not_write_a_fixed_word_again(session: camit.Session, words: int) -> None:
    draft = session.open("我们昨天在电影院看了一部很好看的电影。")
    for place, word in enumerate(texts(draft)):
        if len(word) > 5:  # of the common ones some may well stand there twice
            first = max(0, place + 1 - words)
            draft.keep((first, place + 1))
            for gap in ((place + 1, len(draft.tokens)), (0, first)):
                if gap[0] < gap[1]:
                    assert texts(draft.blank(gap)).count(word) == 1
                    draft.undo()
            draft.undo()


# Keep and release


def test_kept_words_are_locked_and_stay(session: camit.Session) -> None:
    draft = session.open(PARK).keep(5)
    assert [(t.text, t.origin, t.locked) for t in draft.tokens if t.origin != "draft"] == [
        ("park", "kept", True)
    ]
    assert draft.revisions == 0
    draft.replace(1, "visited")
    assert "park" in locked(draft)


def test_keeping_a_phrase_keeps_it_together(session: camit.Session) -> None:
    draft = session.open(PARK).keep((3, 6))
    assert len(draft.version.fixed) == 1
    assert "in the park" in draft.replace(0, "Yesterday").text


def test_keeping_what_is_kept_changes_nothing(session: camit.Session) -> None:
    draft = session.open(PARK).keep((3, 6))
    version = draft.version
    assert draft.keep(4).version is version
    assert draft.keep((3, 6)).version is version
    assert draft.undo().version.fixed == ()


def test_keeping_your_own_word_leaves_it_yours(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met").keep((0, 3))
    assert origins(draft)["met"] == "yours" and locked(draft) == ["We", "met", "him"]


def test_released_words_may_change_again(session: camit.Session) -> None:
    draft = session.open(PARK).keep(5).release(5)
    assert origins(draft)["park"] == "draft" and locked(draft) == []
    draft.replace(1, "met my boss").release(2)
    assert locked(draft) == ["met", "boss"]
    assert origins(draft)["my"] == "kept"


def test_releasing_the_edge_lets_the_sentence_begin_anew(session: camit.Session) -> None:
    draft = session.open(BOSS).delete((0, 2))
    assert draft.version.starts
    assert not draft.release(0).version.starts


# Undo and redo


def test_undo_and_redo_show_the_very_same_versions(session: camit.Session) -> None:
    draft = session.open(PARK)
    seen = [draft.version]
    for change in (
        lambda: draft.replace(1, "met"),
        lambda: draft.keep(0),
        lambda: draft.insert(5, "old"),
        lambda: draft.blank((2, 3)),
        lambda: draft.release(0),
        lambda: draft.delete(0),
    ):
        change()
        seen.append(draft.version)
    for version in reversed(seen[:-1]):
        assert draft.undo().version is version
    assert not draft.can_undo
    for version in seen[1:]:
        assert draft.redo().version is version
    assert not draft.can_redo


def test_a_new_operation_forgets_what_was_undone(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met").undo().replace(1, "visited")
    assert not draft.can_redo
    assert draft.undo().text == "We saw him in the park yesterday."


# The trace


def test_the_trace_tells_the_revision_stage_by_stage(session: camit.Session) -> None:
    draft = session.open(PARK).replace(1, "met")
    assert [stage.name for stage in draft.trace] == ["draft", "forward", "backward", "result"]
    first, *_, last = draft.trace
    assert [t.text for t in first.tokens][1] == "saw" and last.tokens == draft.tokens
    assert all(stage.caption for stage in draft.trace)
    assert "met" in [t.text for t in draft.trace[1].tokens]


def test_a_fix_is_the_persons_in_every_pass_also_where_the_words_around_it_moved(
    session: camit.Session,
) -> None:
    draft = session.open("这条河在我小时候还很干净。")
    draft.replace(len(draft.tokens) - 2, "child")
    draft.replace(1, "stream")
    for fixes, trace in ((["child"], draft.undo().trace), (["stream", "child"], draft.redo().trace)):
        assert [stage.name for stage in trace] == ["draft", "forward", "backward", "result"]
        for stage in trace[1:]:
            assert [t.text for t in stage.tokens if t.origin == "yours"] == fixes, stage.caption


def test_playback_shows_the_left_part_that_was_written_also_when_the_old_one_won() -> None:
    with camit.Session(model(), learning=False, stability=1.0) as session:
        draft = session.open("虽然昨天下了一整天的雨，我们还是按计划去了山里。")
        lost = 0
        for place in range(4, len(draft.tokens) - 1):
            draft.replace(place, "mountain")
            backward, result = ([t.text for t in stage.tokens] for stage in draft.trace[2:])
            fix = result.index("mountain")
            behind = len(result) - fix  # with it
            assert backward[-behind:] == result[-behind:], "the right part that won stands in both"
            kept = result[:fix] == [t.text for t in draft.trace[0].tokens][:place]
            lost += kept and backward != result
            draft.undo()
    assert lost, "no old left part won here: choose another sentence"


@pytest.mark.parametrize(
    ("protocol", "passes"),
    [("replace-only", []), ("unidirectional", ["forward"]), ("unidirectional-grid", ["forward"])],
)
def test_the_trace_has_the_passes_its_protocol_has(protocol: Protocol, passes: list[str]) -> None:
    with camit.Session(model(), learning=False, protocol=protocol) as session:
        draft = session.open(PARK).replace(1, "met")
    assert [stage.name for stage in draft.trace] == ["draft", *passes, "result"]
    for stage in draft.trace[1:]:
        assert [t.text for t in stage.tokens if t.origin == "yours"] == ["met"]
        assert "decoders" not in stage.caption, "there was one at most"


# What cannot be done

BAD: dict[str, Callable[[camit.Draft], object]] = {
    "index behind the end": lambda d: d.replace(99, "x"),
    "negative index": lambda d: d.replace(-1, "x"),
    "empty range": lambda d: d.replace((2, 2), "x"),
    "backward range": lambda d: d.delete((3, 1)),
    "range behind the end": lambda d: d.blank((5, 99)),
    "a word as index": lambda d: d.replace("saw", "x"),  # type: ignore[arg-type]
    "true as index": lambda d: d.replace(True, "x"),
    "three numbers": lambda d: d.replace((1, 2, 3), "x"),  # type: ignore[arg-type]
    "half an index": lambda d: d.keep(1.5),  # type: ignore[arg-type]
    "insert behind the end": lambda d: d.insert(99, "x"),
    "insert before the start": lambda d: d.insert(-1, "x"),
    "insert at a range": lambda d: d.insert((1, 2), "x"),  # type: ignore[arg-type]
    "empty replacement": lambda d: d.replace(1, ""),
    "blank replacement": lambda d: d.replace(1, " \t\u3000"),
    "control characters": lambda d: d.replace(1, "\x00\x07"),
    "no string": lambda d: d.replace(1, None),  # type: ignore[arg-type]
    "a page": lambda d: d.replace(1, "word " * 1000),
    "empty insertion": lambda d: d.insert(1, ""),
    "blanking the whole sentence": lambda d: d.blank((0, len(d.tokens))),
    "deleting the whole sentence": lambda d: d.delete((0, len(d.tokens))),
    "blanking what is kept": lambda d: d.blank((4, 7)),
    "blanking one's own word": lambda d: d.blank((1, 3)),
    "releasing what is free": lambda d: d.release(0),
    "releasing nothing": lambda d: d.release((3, 3)),
    "no alternatives": lambda d: d.alternatives(1, k=0),
    "alternatives behind the end": lambda d: d.alternatives(len(d.tokens)),
    "completing nothing": lambda d: d.complete(1, 5),  # type: ignore[arg-type]
    "completing behind the end": lambda d: d.complete(99, "a"),
    "redo": lambda d: d.redo(),
}


@pytest.fixture(scope="module")
def revised() -> Iterator[camit.Draft]:
    with camit.Session(model(), learning=False) as session:
        yield session.open(PARK).replace(1, "met").keep(5)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_clear_error_and_changes_nothing(revised: camit.Draft, case: str) -> None:
    version, events = revised.version, revised._session.events
    with pytest.raises(CamitError) as raised:
        BAD[case](revised)
    assert isinstance(raised.value, InputError | SessionError)
    assert len(str(raised.value)) > 20
    assert revised.version is version and revised._session.events == events


def test_a_sentence_does_not_grow_without_end(
    session: camit.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camit.session.plan.MAX_PIECES", 20)
    draft = session.open(PARK)
    with pytest.raises(InputError, match="split"):
        draft.insert(3, "a b c d e f g h i j k l m n o p")


@pytest.mark.parametrize("name", ["replace", "insert", "delete", "blank", "keep", "release", "undo", "redo"])
def test_a_confirmed_draft_cannot_be_changed(session: camit.Session, name: str) -> None:
    draft = session.open(PARK).replace(1, "met")
    session.confirm(draft)
    version = draft.version
    arguments = {"replace": (1, "x"), "insert": (1, "x"), "undo": (), "redo": ()}.get(name, (1,))
    with pytest.raises(SessionError, match="confirmed"):
        getattr(draft, name)(*arguments)
    assert draft.version is version and not draft.can_undo


# Alternatives and completions


def test_alternatives_are_other_whole_words_best_first(session: camit.Session) -> None:
    draft = session.open(PARK)
    for index, token in enumerate(draft.tokens):
        found = draft.alternatives(index, k=10)
        words = [a.text for a in found]
        assert len(words) == len(set(words)) <= 10
        assert token.text not in words
        assert all(a.probability >= 0.001 for a in found)
        assert [a.probability for a in found] == sorted((a.probability for a in found), reverse=True)
        for word in words:
            assert len(model().target_vocabulary.words(model().target_vocabulary.encode(word))) == 1
    assert "met" in [a.text for a in draft.alternatives(1, k=10)]


def test_alternatives_know_both_sides(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert draft.alternatives(3)[0].text == "at"  # We saw him ... the park
    assert draft.alternatives((3, 6), k=3)  # one word for a phrase


def test_a_word_of_several_pieces_holds_together(session: camit.Session) -> None:
    draft = session.open(BOSS)
    found = [a.text for index in range(4) for a in draft.alternatives(index, k=20)]
    assert not {"bosss", "Helloo", "bossboss"} & set(found)


def test_what_the_memory_offers_is_among_the_alternatives(
    session: camit.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = session.open(BOSS)
    pieces = tuple(model().target_vocabulary.encode("chief engineer"))
    readers = Readers(*(Offering(Copy((way,), 0.5, 7)) for way in (pieces, pieces[::-1])))
    monkeypatch.setattr(session.memory, "readers", lambda source: readers)
    offered = [a for a in draft.alternatives(2, k=10) if a.from_memory is not None]
    assert [(a.text, a.from_memory) for a in offered] == [("chief engineer", 7)]
    assert offered[0].probability > 0.01
    assert [a.from_memory for a in draft.complete(2, "chi") if a.text == "chief engineer"] == [7]


def test_completions_begin_with_what_was_typed(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert draft.complete(1, "m")[0].text == "met"
    assert draft.complete(6, "yest")[0].text == "yesterday"
    for typed in ("m", "M", "ME", "sa", "wal"):
        assert all(a.text.startswith(typed) for a in draft.complete(1, typed, k=10))
    assert len(draft.complete(1, "s", k=3)) == 3


def test_completions_follow_the_casing_of_the_person(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert "Yesterday" in [a.text for a in draft.complete(0, "Yes", k=10)]
    assert "YESTERDAY" in [a.text for a in draft.complete(6, "YES", k=10)]


def test_completions_behind_the_last_word_and_after_other_words(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert draft.complete(len(draft.tokens), "Th")
    assert draft.complete(5, "old pa")[0].text == "old park"
    assert draft.complete(5, "old ")[0].text == "old park"
    assert draft.complete(5, "(may")[0].text == "(maybe"


def test_words_for_a_gap_stand_between_its_neighbours_and_repeat_neither(session: camit.Session) -> None:
    draft = session.open(PARK)
    end = len(draft.tokens)
    for at in range(end + 1):
        beside = {token.text for token in draft.tokens[max(at - 1, 0) : at + 1]}
        found = [a.text for a in draft.complete((at, at), "", k=6)]
        assert not beside & set(found), at
        if beside & {"."}:
            assert all(any(map(str.isalnum, text)) for text in found), "a second mark beside a mark"
    assert "morning" in [a.text for a in draft.complete((end - 1, end - 1), "")]  # yesterday morning.
    assert draft.complete((end, end), "") == draft.complete(end, "")
    assert all(a.text.startswith("mo") for a in draft.complete((end - 1, end - 1), "mo"))


def test_completions_of_nothing_but_space_are_alternatives(session: camit.Session) -> None:
    draft = session.open(PARK)
    for typed in ("", " ", "\t", "\x00", "\ud800"):
        assert draft.complete(1, typed) == draft.alternatives(1)


def test_completions_pass_over_what_is_no_text(session: camit.Session) -> None:
    draft = session.open(PARK)
    assert draft.complete(1, "vis\ud800") == draft.complete(1, "vis ")


def test_completions_of_letters_the_model_does_not_have_are_none(session: camit.Session) -> None:
    assert session.open(PARK).complete(1, "Zür鲸") == []
