"""Sessions: many drafts, confirmations taken back exactly, lessons that stand in nobody's way, threads."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import camit
from camit.errors import Cancelled, InputError, SessionError
from camit.learning import Lesson
from camit.search.threads import threads_for
from camit.session.events import Event, Result, Statistics, statistics
from camit.session.ledger import UNDO, UNDO_CONFIRM
from camit.session.worker import Steps
from camit.soak import chance
from camit.soak.command import soak
from camit.soak.oracle import Oracle
from camit.soak.state import differences, everything

CAT, DOG, WHY = chance.TOY_SOURCES[0], chance.TOY_SOURCES[1], chance.TOY_SOURCES[-1]
SOON = 60.0


@cache
def toy(seed: int = 3) -> camit.Translator:
    return chance.toy(Random(seed))


@pytest.fixture
def session() -> Iterator[camit.Session]:
    made = camit.Session(toy(), beam=2)
    yield made
    made.close()


def weights(translator: camit.Translator) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in translator.network.named_parameters()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


# Drafts of a document


def test_a_session_holds_many_drafts_in_order(session: camit.Session) -> None:
    drafts = [session.open(source) for source in (CAT, DOG, WHY)]
    assert session.drafts == tuple(drafts)
    assert [draft.id for draft in drafts] == [0, 1, 2]
    assert [draft.source for draft in drafts] == [CAT, DOG, WHY]
    assert [token.text for token in drafts[2].source_tokens] == ["why", "?"]


@pytest.mark.parametrize("text", ["", "  ", None, 5, "x" * 6000])
def test_what_is_no_sentence_cannot_be_opened(session: camit.Session, text: object) -> None:
    with pytest.raises(InputError):
        session.open(text)  # type: ignore[arg-type]
    assert session.drafts == () and session.events == ()


def test_what_cannot_be_a_session_says_so() -> None:
    with pytest.raises(SessionError, match="camit\\.load"):
        camit.Session("zh-en")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="beam"):
        camit.Session(toy(), beam=0)
    with pytest.raises(InputError, match="protocol"):
        camit.Session(toy(), protocol="sideways")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stability"):
        camit.Session(toy(), stability=2.0)
    with pytest.raises(TypeError, match="colour"):
        camit.Session(toy(), colour="red")  # type: ignore[call-arg]


def test_an_untouched_draft_can_be_translated_anew_and_no_other(session: camit.Session) -> None:
    first, second = session.open(CAT), session.open(DOG).keep(0)
    session.memory.add("cat", "tiger")
    assert session.refresh(first) is first
    with pytest.raises(SessionError, match="nobody has worked on"):
        session.refresh(second)


def test_a_draft_translated_anew_says_what_was_learned_since() -> None:
    with camit.Session(camit.load("zh-en"), learning=False) as session:
        draft = session.open("我们在面馆等你。")
        term = session.memory.add("面馆", "noodle shop")
        assert "noodle shop" in session.refresh(draft).text and session.events[-1].kind == "refresh"
        told = len(session.events)
        session.refresh(draft)
        assert len(session.events) == told  # nothing new
        session.memory.remove(term.id)
        assert all(token.copied_from is None for token in session.refresh(draft).tokens)


def test_an_entry_that_was_taken_back_leaves_its_number_to_no_other() -> None:
    with camit.Session(camit.load("zh-en"), learning=False) as session:
        session.confirm(session.open("那座教堂很旧。").replace(1, "chapel"))
        [chapel] = session.memory.entries
        waiting = session.open("我们在教堂等你。")
        session.undo_confirm()
        session.confirm(session.open("罗伯特昨天来了。").replace(0, "Robert"))
        [robert] = session.memory.entries
        assert robert.id != chapel.id
        session.confirm(waiting)
        assert session.memory[robert.id].copies == 0


def test_a_confirmation_that_waits_when_the_session_is_closed_has_its_lesson() -> None:
    session = camit.Session(toy())
    draft = session.open(CAT).replace(0, "zebra")
    confirmed = session.submit(lambda: session.confirm(draft))
    session.close()
    assert confirmed.result().before < 0.0 and draft.confirmed and len(session.learning.lessons) == 1


def test_settings_change_from_one_revision_to_the_next(session: camit.Session) -> None:
    assert session.settings.beam == 2
    assert session.configure(beam=1, stability=1.0, protocol="replace-only").protocol == "replace-only"
    draft = session.open(CAT)
    before = [token.text for token in draft.tokens]
    draft.replace(0, "zebra")
    assert [token.text for token in draft.tokens] == ["zebra", *before[1:]]
    with pytest.raises(InputError):
        session.configure(beam=99)
    with pytest.raises(InputError):
        session.configure(stability=-1.0)
    assert session.settings.beam == 1


# Confirming


def test_confirming_remembers_and_teaches(session: camit.Session) -> None:
    draft = session.open(CAT).replace(0, "zebra")
    before = weights(session.translator)
    lesson = session.confirm()
    assert lesson.accepted and lesson.after > lesson.before and lesson.seconds > 0
    assert draft.confirmed and session.learning.lessons == (lesson,)
    assert [(e.text, e.sentence) for e in session.memory.entries] == [("zebra", 0)]
    assert not same(before, weights(session.translator))


def test_the_latest_draft_is_confirmed_by_default(session: camit.Session) -> None:
    first, second = session.open(CAT), session.open(DOG)
    first.replace(0, "zebra")
    session.confirm()
    assert first.confirmed and not second.confirmed


def test_what_cannot_be_confirmed_says_so(session: camit.Session) -> None:
    with pytest.raises(SessionError, match="open a sentence first"):
        session.confirm()
    draft = session.open(CAT)
    session.confirm(draft)
    with pytest.raises(SessionError, match="already"):
        session.confirm(draft)
    with camit.Session(toy(), learning=False) as other, pytest.raises(SessionError, match="another session"):
        session.confirm(other.open(CAT))


def test_memory_and_learning_can_be_switched_off_and_on_at_any_time(session: camit.Session) -> None:
    session.memory.enabled = session.learning.enabled = False
    before = weights(session.translator)
    lesson = session.confirm(session.open(CAT).replace(0, "zebra"))
    assert not lesson.accepted and "off" in lesson.reason and session.memory.entries == ()
    assert same(before, weights(session.translator))
    session.configure(memory=True, learning=True)
    assert session.confirm(session.open(DOG).replace(0, "zebra")).accepted
    assert len(session.memory.entries) == 1


def test_only_what_the_person_wrote_is_remembered(session: camit.Session) -> None:
    draft = session.open(CAT).replace(0, "Grey Zebra")
    draft.keep(len(draft.tokens) - 1).insert(1, "Old")
    session.confirm(draft)
    # Which parts of it have an entry of their own depends on what this random network looks at.
    whole, *parts = (e.text for e in session.memory.entries)
    assert whole == "Grey Old Zebra" and {word for part in parts for word in part.split()} <= {*whole.split()}


def test_sessions_do_not_touch_each_other_or_the_translator() -> None:
    before = weights(toy())
    with camit.Session(toy()) as one, camit.Session(toy()) as two:
        one.confirm(one.open(CAT).replace(0, "zebra"))
        assert same(before, weights(toy())) and same(before, weights(two.translator))
        assert two.memory.entries == () and two.drafts == ()
        with camit.Session(one.translator) as three:  # from the checkpoint again, not from what was learned
            assert same(before, weights(three.translator))


# Taking it back


def test_undoing_a_confirmation_is_exact(session: camit.Session) -> None:
    session.confirm(session.open(WHY).replace(0, "zebra"))
    draft = session.open(CAT).replace(0, "tiger")
    before = everything(session)
    session.confirm(draft)
    assert session.undo_confirm() is draft
    after = everything(session)
    assert differences(before, after) == ["events", "numbers"]
    assert not draft.confirmed and draft.can_undo
    draft.insert(1, "lion")
    session.confirm(draft)
    assert draft.confirmed


def test_several_confirmations_can_be_undone_but_not_all(session: camit.Session) -> None:
    states = []
    for n in range(UNDO_CONFIRM + 2):
        draft = session.open(WHY).replace(0, f"zebra{n}")
        states.append(everything(session))
        session.confirm(draft)
    ahead = ("events", "drafts", "undo", "numbers")  # what goes on, whatever is undone
    for state in reversed(states[2:]):
        session.undo_confirm()
        now = everything(session)
        assert [name for name in differences(state, now) if name not in ahead] == []
    with pytest.raises(SessionError, match="no confirmation to undo"):
        session.undo_confirm()
    assert [draft.confirmed for draft in session.drafts] == [True, True] + [False] * UNDO_CONFIRM


def test_what_was_done_to_the_memory_by_hand_survives_undoing(session: camit.Session) -> None:
    old = session.memory.add("dog", "hound")
    doomed = session.memory.add("mat", "carpet")
    session.confirm(session.open(CAT).replace(0, "zebra"))
    session.memory.add("cat", "tiger")
    session.memory.pin(old.id)
    session.memory.remove(doomed.id)
    session.undo_confirm()
    assert [(e.text, e.pinned) for e in session.memory.entries] == [("hound", True), ("tiger", False)]


def test_what_made_room_comes_back_when_its_confirmation_is_undone(session: camit.Session) -> None:
    session.memory.settings = replace(session.memory.settings, size=3)
    for source, text in (("dog", "hound"), ("mat", "carpet")):
        session.confirm(session.open(CAT))
        session.memory.add(source, text)
    session.confirm(session.open(WHY).replace(0, "zebra"))
    assert [e.text for e in session.memory.entries] == ["hound", "carpet", "zebra"]
    session.memory.add("cat", "tiger")  # the word of a sentence makes room
    session.memory.add("red", "pink")  # and now a term does
    assert [e.text for e in session.memory.entries] == ["carpet", "tiger", "pink"]
    session.memory.remove(session.memory.entries[-1].id)
    session.undo_confirm()
    assert [e.text for e in session.memory.entries] == ["hound", "carpet", "tiger"]


def test_what_was_removed_and_put_back_goes_with_its_confirmation(session: camit.Session) -> None:
    session.confirm(session.open(CAT).replace(0, "zebra"))
    [mine] = session.memory.entries
    session.memory.remove(mine.id)
    session.memory.put_back(mine)
    session.undo_confirm()
    assert session.memory.entries == ()


def test_what_was_cleared_stays_so_when_a_confirmation_is_undone(session: camit.Session) -> None:
    session.memory.add("dog", "hound")
    session.confirm(session.open(CAT).replace(0, "zebra"))
    back = session.memory.entries[0]
    session.memory.clear()
    session.undo_confirm()
    assert session.memory.entries == ()
    session.memory.put_back(back)
    assert session.memory.entries == (back,)


def test_a_long_session_holds_on_to_a_few_old_weights_only(session: camit.Session) -> None:
    for n in range(UNDO_CONFIRM + 2):
        session.confirm(session.open(WHY).replace(0, f"zebra{n}"))
    assert len(session.ledger.undo) == len(session._undo) == UNDO_CONFIRM
    assert len(session.drafts[0].version.stages) == 0  # how an old sentence came about is let go
    assert session.drafts[0].confirmed and session.drafts[0].text


# Lessons stand in nobody's way


class SlowLesson:
    """A lesson of two steps that waits in the first until it is told to go on."""

    def __init__(self, session: camit.Session) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._real = session.learning.study

    def __call__(
        self, ids: list[int], pieces: tuple[int, ...], draft: int, drafted: tuple[int, ...]
    ) -> Steps[Lesson]:
        lesson = yield from self._real(ids, pieces, draft, drafted)  # the session has not learned yet
        self.begun.set()
        until = time.monotonic() + SOON
        while not self.go_on.wait(0.001) and time.monotonic() < until:
            yield
        return lesson


@pytest.fixture
def told(session: camit.Session, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What lessons are told that the machine had written."""
    told: list[tuple[int, ...]] = []
    real = session.learning.study

    def study(ids: list[int], pieces: tuple[int, ...], draft: int, drafted: tuple[int, ...]) -> Steps[Lesson]:
        told.append(drafted)
        return (yield from real(ids, pieces, draft, drafted))

    monkeypatch.setattr(session.learning, "study", study)
    return told


def test_a_lesson_knows_what_the_machine_had_written_by_itself(
    session: camit.Session, told: list[tuple[int, ...]]
) -> None:
    draft = session.open(CAT)
    first = draft.pieces
    draft.replace(0, "zebra").insert(1, "tiger")
    draft.undo()
    session.confirm(draft)
    assert told == [first] != [draft.pieces]


def test_after_very_many_operations_nobody_says_that_the_machine_wrote_what_a_person_did(
    session: camit.Session, told: list[tuple[int, ...]]
) -> None:
    kept, written = session.open(CAT), session.open(CAT)
    machines = kept.pieces
    written.replace(0, "zebra").release(0)
    for _ in range(UNDO // 2 + 1):
        for draft in (kept, written):
            draft.keep(0).release(0)
    for draft in (kept, written):
        session.confirm(draft)
    assert told == [machines, ()]


def test_clicks_are_answered_while_a_lesson_is_given(
    session: camit.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = SlowLesson(session)
    monkeypatch.setattr(session.learning, "study", lesson)
    first, second = session.open(CAT).replace(0, "zebra"), session.open(DOG)
    before = weights(session.translator)
    future = session.confirm_soon(first)
    assert first.confirmed and [e.text for e in session.memory.entries] == ["zebra"]  # safe at once
    assert lesson.begun.wait(SOON)
    second.replace(0, "tiger")
    assert second.alternatives(0) is not None
    session.memory.add("mat", "carpet")
    assert "tiger" in second.text and not future.done()
    assert same(before, weights(session.translator))  # a click meets the old weights, all of them
    lesson.go_on.set()
    assert future.result(SOON).accepted
    assert not same(before, weights(session.translator))
    assert same(weights(session.translator), weights(session.student))
    assert len(session.memory.entries) == 2


def test_a_session_that_is_closed_on_its_worker_finishes_the_lesson(tmp_path: Path) -> None:
    session = camit.Session(toy(), journal=tmp_path / "s")
    draft = session.open(CAT).replace(0, "zebra")
    lessons: list[Future[Lesson]] = []

    def confirm_and_go() -> None:
        lessons.append(session.confirm_soon(draft))
        session.close()

    session.submit(confirm_and_go).result(SOON)
    assert lessons[0].result(SOON).accepted
    session.close()
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        assert len(back.learning.lessons) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_forked_process_a_session_says_that_it_is_not_there(session: camit.Session) -> None:
    session.open(CAT)
    child = os.fork()
    if child == 0:  # of all threads only this one lives on
        try:
            session.open(DOG)
        except SessionError as error:
            session.close()
            os._exit(7 if "another process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.open(DOG)


def test_the_memory_is_never_read_with_keys_of_other_weights(session: camit.Session) -> None:
    session.memory.add("cat", "tiger")
    old, seen = weights(session.translator), set()
    keys = session.memory.keys()

    def look() -> None:
        as_it_is = session.memory.keys()
        session.memory.rekey()
        assert torch.allclose(as_it_is.s, session.memory.keys().s, atol=1e-6)
        unmoved = same(old, weights(session.translator))
        assert unmoved == bool(torch.allclose(as_it_is.s[:1], keys.s, atol=1e-6))
        seen.add(unmoved)

    done = session.confirm_soon(session.open(CAT).replace(0, "zebra"))
    while not done.done():
        session.submit(look).result(SOON)
    session.submit(look).result(SOON)
    assert seen == {True, False}  # it was looked at before and after the lesson


def test_a_click_knows_what_the_memory_says_now() -> None:
    with camit.Session(camit.load("zh-en")) as session:
        draft = session.open("他是我的老板。")
        place = len(draft.tokens) - 2

        def offered() -> dict[str, float]:
            words = draft.alternatives(place)
            return {word.text: word.probability for word in words if word.from_memory is not None}

        assert not offered()
        entry = session.memory.add("老板", "captain")
        assert set(offered()) == {"captain"}
        session.memory.enabled = False
        assert not offered()
        session.memory.enabled = True
        before = offered()
        assert session.confirm(session.open("请把门关上！")).accepted
        after = offered()
        session.memory.rekey()  # now all is found out anew
        assert after == offered() != before
        session.memory.remove(entry.id)
        assert not offered()


def test_a_lesson_that_fails_changes_nothing_and_the_sentence_stays_confirmed(
    session: camit.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Steps[Lesson]:
        yield
        raise MemoryError("no room to learn")

    draft = session.open(CAT).replace(0, "zebra")
    before = weights(session.translator)
    monkeypatch.setattr(session.learning, "study", broken)
    with pytest.raises(MemoryError):
        session.confirm(draft)
    assert draft.confirmed and same(before, weights(session.translator))
    monkeypatch.undo()
    assert session.confirm(session.open(DOG)).accepted


def test_confirming_on_the_worker_itself_gives_the_lesson(session: camit.Session) -> None:
    draft = session.open(CAT).replace(0, "zebra")
    assert session.submit(lambda: session.confirm(draft)).result(SOON).accepted
    assert session.submit(session.undo_confirm).result(SOON) is draft


# Requests and listeners


def test_a_newer_revision_of_the_same_draft_replaces_an_older_one(session: camit.Session) -> None:
    draft = session.open(CAT)
    gate = threading.Event()
    session.submit(lambda: gate.wait(SOON))
    old = session.submit(lambda: draft.replace(0, "zebra"), key=draft.id)
    new = session.submit(lambda: draft.replace(0, "tiger"), key=draft.id)
    gate.set()
    assert "tiger" in new.result(SOON).text
    with pytest.raises((Cancelled, CancelledError)):
        old.result(SOON)
    assert draft.revisions == 1


def test_listeners_hear_every_change_and_cannot_break_it(session: camit.Session) -> None:
    heard: list[int] = []
    session.on_change(lambda: heard.append(len(session.events)))
    session.on_change(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    draft = session.open(CAT)
    draft.replace(0, "zebra").undo().redo().release(0)
    session.memory.add("mat", "carpet")
    session.configure(beam=1)
    session.visit(draft)
    assert len(heard) == 8
    session.confirm(draft)  # once for the sentence, once for the lesson
    assert len(heard) == 10


def test_a_listener_can_be_taken_off(session: camit.Session) -> None:
    heard: list[str] = []
    stop = session.on_change(lambda: heard.append("one"))
    session.on_change(lambda: heard.append("two"))
    session.open(CAT)
    stop()
    stop()
    session.open(DOG)
    assert heard == ["one", "two", "two"]


def test_a_confirmation_can_be_taken_back_by_who_is_told_of_it(session: camit.Session) -> None:
    def take_back() -> None:
        if session.ledger.undo:
            session.undo_confirm()

    draft = session.open(CAT).insert(0, "zebra")
    before = everything(session)
    session.on_change(take_back)
    session.confirm_soon(draft).result(SOON)
    assert differences(before, everything(session)) == ["events", "numbers"]


def test_what_nobody_waits_for_fails_in_the_log(
    session: camit.Session, caplog: pytest.LogCaptureFixture
) -> None:
    session.post(lambda: 1 // 0)
    session.post(lambda: session.open(CAT))
    session.visit(session.drafts[0] if session.drafts else session.open(DOG))
    assert "division" in caplog.text


def test_a_closed_session_is_asked_for_nothing_by_its_listeners(caplog: pytest.LogCaptureFixture) -> None:
    session = camit.Session(toy(), beam=2)
    session.on_change(lambda: session.post(lambda: None))
    session.confirm_soon(session.open(CAT).insert(0, "zebra"))
    session.close()
    assert session.learning.lessons and caplog.text == ""


def test_a_session_has_all_threads_whatever_another_one_is_at() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with camit.Session(toy()) as busy, camit.Session(toy()) as other:
            begun, go_on = threading.Event(), threading.Event()

            def small_step() -> None:
                with threads_for(1):
                    begun.set()
                    assert go_on.wait(SOON)

            step = busy.submit(small_step)
            assert begun.wait(SOON)
            assert other.submit(torch.get_num_threads).result(SOON) == 2
            go_on.set()
            step.result(SOON)
    finally:
        torch.set_num_threads(before)


def test_a_closed_session_refuses_politely() -> None:
    session = camit.Session(toy())
    draft = session.open(CAT)
    session.close()
    session.close()
    with pytest.raises(SessionError, match="closed"):
        draft.replace(0, "zebra")
    assert draft.text  # what is there can still be read


def test_a_session_nobody_holds_goes_away(tmp_path: Path) -> None:
    session = camit.Session(toy(), journal=tmp_path / "one")
    session.open(CAT)
    thread, gone = session.worker._thread, weakref.ref(session)
    del session
    gc.collect()
    thread.join(SOON)
    assert gone() is None and not thread.is_alive()
    camit.Session.restore(tmp_path / "one", toy()).close()  # and nobody holds its journal


def test_a_closed_session_goes_away_too() -> None:
    gone = []
    for _ in range(2):
        with camit.Session(toy()) as session:
            session.confirm(session.open(CAT))
        session.close()
        gone.append(weakref.ref(session))
    del session
    gc.collect()
    assert [session() for session in gone] == [None, None]


# Effort


def test_events_say_what_was_done_and_what_it_took(session: camit.Session) -> None:
    draft = session.open(CAT)
    draft.replace(0, "zebra").insert(0, "big", keystrokes=4, mouse=2).undo()
    session.visit(draft)
    session.confirm(draft)
    kinds = [(e.kind, e.draft, e.typed, e.keystrokes, e.mouse) for e in session.events]
    assert kinds == [
        ("open", 0, "", 0, 0),
        ("replace", 0, "zebra", 6, 1),
        ("insert", 0, "big", 4, 2),
        ("undo", 0, "", 0, 1),
        ("visit", 0, "", 0, 0),
        ("confirm", 0, "", 0, 1),
    ]
    times = [e.time for e in session.events]
    assert times == sorted(times)


def test_statistics_by_hand() -> None:
    events = [
        Event(100.0, "open", 0),
        Event(110.0, "replace", 0, "two words", 10, 1),
        Event(115.0, "open", 1),  # ahead of time: the person is still at draft 0
        Event(120.0, "visit", 0),
        Event(125.0, "confirm", 0, "", 0, 1),
        Event(130.0, "replace", 1, "never counted", 14, 1),
        Event(5000.0, "visit", 2),
        Event(9000.0, "confirm", 2, "", 0, 1),  # a pause, cut at five minutes
    ]
    results = [Result(0, words=5, characters=20, revisions=1), Result(2, words=5, characters=30, revisions=0)]
    found = statistics(results, events, "en")
    assert found.confirmed == 2
    assert found.revisions_per_sentence == 0.5
    assert found.seconds_per_sentence == (10.0 + 10.0 + 5.0 + 300.0) / 2
    assert found.wsr == pytest.approx(2 / 10)
    assert found.mar == pytest.approx(3 / 50)
    assert found.ksmr == pytest.approx((10 + 3) / 50)


def test_a_document_may_be_opened_first_and_worked_on_then() -> None:
    opened = [Event(float(n), "open", n) for n in range(3)]
    worked = [Event(30.0, "replace", 0, "我们昨天", 4, 1), Event(31.0, "confirm", 0, "", 0, 1)]
    after = [Event(40.0, "open", 3), Event(60.0, "confirm", 3, "", 0, 1)]
    results = [Result(0, words=5, characters=20, revisions=1), Result(3, words=5, characters=20, revisions=0)]
    found = statistics(results, [*opened, *worked, *after], "zh")
    assert found.seconds_per_sentence == ((28.0 + 1.0) + 20.0) / 2
    assert found.wsr == pytest.approx(2 / 10)  # two words, though no space says so


def test_statistics_of_a_session(session: camit.Session) -> None:
    assert session.statistics() == Statistics()
    draft = session.open(CAT).replace(0, "zebra")
    session.open(DOG).replace(0, "tiger")  # not confirmed, so not counted
    session.confirm(draft)
    found = session.statistics()
    assert (found.confirmed, found.revisions_per_sentence) == (1, 1.0)
    assert found.ksmr == pytest.approx((6 + 1 + 1) / len(draft.text))
    assert found.seconds_per_sentence >= 0.0


# Memory by hand, from any thread


def test_the_memory_is_changed_on_the_worker(session: camit.Session, tmp_path: Path) -> None:
    glossary = tmp_path / "glossary.tsv"
    glossary.write_text("cat\ttiger\ndog\thound\n", encoding="utf-8")
    entries = session.memory.import_tsv(glossary)
    assert [e.text for e in session.memory.entries] == ["tiger", "hound"]
    session.memory.pin(entries[0].id)
    session.memory.unpin(entries[0].id)
    session.memory.remove(entries[0].id)
    assert [e.text for e in session.memory.entries] == ["hound"]
    draft = session.open(DOG)
    found = session.memory.weights(draft)
    assert len(found.theta) == len(found.r) == len(draft.tokens) and found.entries == (entries[1].id,)
    session.memory.clear()
    assert session.memory.entries == ()


def test_a_bad_glossary_changes_nothing(session: camit.Session, tmp_path: Path) -> None:
    glossary = tmp_path / "glossary.tsv"
    glossary.write_text("cat\ttiger\ndog\t\n", encoding="utf-8")
    session.memory.add("mat", "carpet")
    with pytest.raises(InputError, match="line 2"):
        session.memory.import_tsv(glossary)
    assert [e.text for e in session.memory.entries] == ["carpet"]


def test_threads_do_not_get_into_each_others_way(session: camit.Session) -> None:
    problems: list[BaseException] = []

    def hammer(n: int) -> None:
        rng = Random(n)
        try:
            for _ in range(2):
                draft = session.open(rng.choice((WHY, CAT)))
                oracle = Oracle(draft, session.translator.target_vocabulary)
                for _ in range(3):
                    oracle.play(chance.action(rng, session.translator.target_vocabulary, draft))
                session.memory.add(f"cat {n}", "tiger")
                session.confirm(draft)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=hammer, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [draft.id for draft in session.drafts] == list(range(6))
    assert all(draft.confirmed for draft in session.drafts) and len(session.learning.lessons) == 6


# What must not be


def test_a_draft_of_another_session_is_refused(session: camit.Session) -> None:
    mine = session.open(CAT)
    session.confirm(mine)
    with camit.Session(toy(), beam=2) as other:
        foreign = other.open(WHY)
        for ask in (session.refresh, session.visit, session.confirm):
            with pytest.raises(SessionError, match="another session"):
                ask(foreign)
    assert mine.confirmed and mine.source == CAT


@pytest.mark.parametrize("stability", [np.float64(0.5), True, "x", float("nan"), 1.5])
def test_a_stability_that_could_not_be_saved_is_refused(session: camit.Session, stability: object) -> None:
    before = session.settings
    with pytest.raises(InputError, match="stability"):
        session.configure(stability=stability)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stability"):
        camit.Session(toy(), stability=stability)  # type: ignore[arg-type]
    assert session.settings == before


def test_switches_are_true_or_false(session: camit.Session) -> None:
    with pytest.raises(InputError, match="memory must be True or False, not 'paper'"):
        camit.Session(toy(), memory="paper")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="learning"):
        session.configure(learning=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("effort", [{"keystrokes": 2.5}, {"keystrokes": True}, {"mouse": -1}], ids=str)
def test_effort_is_counted_in_whole_numbers(session: camit.Session, effort: dict[str, int]) -> None:
    draft = session.open(CAT)
    before = draft.text
    with pytest.raises(InputError, match="whole number"):
        draft.replace(0, "zebra", **effort)
    assert draft.text == before


def test_a_listener_that_saves_elsewhere_in_a_lesson_breaks_nothing(tmp_path: Path) -> None:
    with camit.Session(toy(), beam=2) as session:
        session.on_change(lambda: session.save(tmp_path / "autosaved"))
        draft = session.open(CAT).replace(0, "zebra")
        assert session.confirm(draft).accepted
        assert session.confirm(session.open(WHY)) is not None
        state = everything(session)
    assert differences(state, everything(camit.Session.restore(tmp_path / "autosaved", toy()))) == []


def test_undoing_a_confirmation_keeps_what_was_pinned(session: camit.Session) -> None:
    session.memory.settings = replace(session.memory.settings, size=2)
    session.memory.pin(session.memory.add("cat", "Felix").id)
    session.memory.add("dog", "Rex")
    session.confirm(session.open(CAT).replace(0, "zebra"))
    session.memory.add("log", "trunk")
    session.undo_confirm()
    assert [entry.text for entry in session.memory.entries] == ["Felix", "trunk"]


# camit soak confirms


def test_somebody_who_knows_the_translation_gets_it(session: camit.Session) -> None:
    draft = session.open(CAT)
    wanted = ["a", "big", "red", "dog", "sat", "."]
    for _ in range(6):
        action = chance.correction(draft, wanted)
        if action is not None:
            action.do(draft)
    assert [token.text for token in draft.tokens] == wanted
    assert chance.correction(draft, wanted) is None


def test_a_long_document_shows_memory_and_latency(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    asked = ["confirms", "--confirms", "12", "--model", "toy", "--seed", "3", "--json", str(figures)]
    done = CliRunner().invoke(soak, asked)
    assert done.exit_code == 0, done.output
    said = json.loads(figures.read_text())
    assert said["confirms"] == 12 and said["mb_end"] > 0.0
    for timed in ("open_ms", "alternatives_ms", "click_ms", "confirm_ms"):
        assert len(said[timed]) == 10 and min(said[timed]) > 0.0
    assert len(said["clicks_needed"]) == 10 and max(said["clicks_needed"]) > 0.0
