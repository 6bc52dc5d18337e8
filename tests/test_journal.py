"""The journal: everything comes back after any end; what is damaged or foreign is refused and left alone."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import camit
from camit import cli
from camit.errors import SessionError
from camit.learning import learner
from camit.session.events import Event
from camit.session.journal import FILE, VERSION, Header, Journal, JournalWarning
from camit.session.ledger import UNDO, UNDO_CONFIRM, Noted
from camit.session.session import STATES_KEPT
from camit.soak import chance
from camit.soak.state import differences, digest, everything
from tests.helpers import tiny_translator

CAT, DOG, WHY = chance.TOY_SOURCES[0], chance.TOY_SOURCES[1], chance.TOY_SOURCES[-1]


def toy(seed: int = 3) -> camit.Translator:
    """A new translator each time, as another process would have; the same seed gives the same weights."""
    return chance.toy(Random(seed))


def work(session: camit.Session) -> None:
    """A bit of everything."""
    session.configure(beam=2, stability=0.3)
    first = session.open(CAT).replace(0, "zebra crossing")
    session.memory.add("mat", "carpet")
    second = session.open(WHY)
    second.insert(0, "Zürich").keep(0)
    session.confirm(first)
    second.replace(0, "🐋").undo().undo()
    session.visit(second)
    session.confirm(session.open(DOG).delete(0) if len(session.open(DOG).tokens) > 1 else second)
    session.open(WHY).insert(0, "lion").undo()
    session.learning.enabled = False


@cache
def saved() -> tuple[Path, dict[str, object]]:
    """A directory with a session in it, and what that session was; to be copied, not used."""
    path = Path(os.environ["CAMIT_TEST_ROOT"]) / "saved"
    session = camit.Session(toy(), journal=path)
    work(session)
    state = everything(session)
    session.close()
    return path, state


@pytest.fixture(scope="session", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["CAMIT_TEST_ROOT"] = str(tmp_path_factory.mktemp("journals"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(saved()[0], tmp_path / "session")
    return tmp_path / "session"


def contents(path: Path) -> dict[str, str]:
    """Everything in a directory, to see whether it was touched."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in path.iterdir()}


def restored(path: Path, translator: camit.Translator | None = None) -> dict[str, object]:
    with camit.Session.restore(path, translator or toy()) as session:
        return everything(session)


def lines(path: Path) -> list[bytes]:
    return (path / FILE).read_bytes().splitlines(keepends=True)


def resealed(line: bytes, change: Callable[[dict[str, object]], None], n: int | None = None) -> bytes:
    """A line with another record in it, its checksum right."""
    parsed = json.loads(line)
    change(parsed["record"])
    record = json.dumps(parsed["record"]).encode()
    number = parsed["n"] if n is None else n
    return b'{"n":%d,"crc":%d,"record":%s}\n' % (number, zlib.crc32(record), record)


# Coming back


def test_a_session_comes_back_as_it_was(place: Path) -> None:
    state = saved()[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = restored(place)
    assert differences(state, back) == []


def test_a_restored_session_goes_on_and_comes_back_again(place: Path) -> None:
    with camit.Session.restore(place, toy()) as session:
        draft = next(d for d in session.drafts if d.can_redo)
        draft.redo()
        session.confirm(draft)
        state = everything(session)
    assert differences(state, restored(place)) == []


@pytest.mark.parametrize("act", ["add", "confirm", "during the lesson", "undo_confirm"])
def test_a_switch_that_is_moved_by_hand_costs_nothing(tmp_path: Path, act: str) -> None:
    """The record of the switch once tidied away the snapshot that the next record was about to name."""
    with camit.Session(toy(), journal=tmp_path / "session") as session:
        draft = session.open(CAT).replace(0, "zebra")
        if act == "undo_confirm":
            session.confirm(draft)
        if act == "during the lesson":
            session.on_change(lambda: setattr(session.memory, "enabled", False))
        else:
            session.learning.enabled = False
        if act == "add":
            session.memory.add("mat", "carpet")
        elif act == "undo_confirm":
            session.undo_confirm()
        else:
            session.confirm(draft)
        state = everything(session)
    assert differences(state, restored(tmp_path / "session")) == []


def test_undo_and_redo_go_on_after_coming_back(place: Path) -> None:
    with camit.Session.restore(place, toy()) as session:
        moved = 0
        for draft, (_, history, _) in zip(session.drafts, saved()[1]["drafts"], strict=True):  # type: ignore[call-overload]
            while not draft.confirmed and draft.can_undo:
                draft.undo()
            met = [draft.version]
            while not draft.confirmed and draft.can_redo:
                met.append(draft.redo().version)
            assert draft.confirmed or tuple(met) == history.versions
            moved += len(met) - 1
        assert moved > 1


def test_a_confirmation_can_be_undone_exactly_after_coming_back(tmp_path: Path) -> None:
    session = camit.Session(toy(), journal=tmp_path / "s")
    session.confirm(session.open(CAT).replace(0, "zebra"))
    draft = session.open(WHY).insert(0, "lion")
    before = everything(session)
    session.confirm(draft)
    session.close()
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        assert back.undo_confirm().source == WHY
        assert differences(before, everything(back)) == ["events", "numbers"]
        assert not back.drafts[1].confirmed
        back.undo_confirm()
        assert back.memory.entries == () and back.learning.lessons == ()
        with pytest.raises(SessionError, match="no confirmation"):
            back.undo_confirm()


def test_what_was_learned_can_be_forgotten_for_good(tmp_path: Path) -> None:
    fresh = everything(camit.Session(toy()))
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        for word in ("zebra", "lion"):
            session.confirm(session.open(CAT).replace(0, word))
        assert everything(session)["weights"] != fresh["weights"]
        session.learning.reset()
        state = everything(session)
        assert state["lessons"] == ((), ()) and state["recalled"] == []
        assert state["weights"] == fresh["weights"] and state["student"] == fresh["student"]
        assert len(session.memory.entries) == 2 and all(draft.confirmed for draft in session.drafts)
        with pytest.raises(SessionError, match="no confirmation"):  # which would bring back what was learned
            session.undo_confirm()
        session.save(tmp_path / "elsewhere")
        mind = session.ledger.mind
        assert (mind.learned, mind.lessons, mind.replayed) == (None, 0, 0)
    assert differences(state, restored(tmp_path / "s")) == []
    assert differences(state, restored(tmp_path / "elsewhere")) == []
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        back.confirm(back.open(CAT).replace(0, "tiger"))
        state = everything(back)
        back.undo_confirm()
        assert everything(back)["weights"] == fresh["weights"] != state["weights"]


def test_where_nothing_was_learned_nothing_is_forgotten() -> None:
    with camit.Session(toy(), learning=False) as session:
        draft = session.open(CAT).replace(0, "zebra")
        session.confirm(draft)
        session.learning.reset()
        assert session.undo_confirm() is draft
        assert session.memory.entries == ()


def test_a_confirmation_whose_snapshots_are_gone_cannot_be_undone_and_says_so(tmp_path: Path) -> None:
    """A damaged tail takes many records with it: what the journal goes back to may name states before it
    that were tidied away since."""
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        for n in range(UNDO_CONFIRM + STATES_KEPT + 2):
            session.confirm(session.open(CAT).insert(0, f"lion{n}"))
    path = tmp_path / "s" / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-11]))
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        undone = 0
        with pytest.raises(SessionError, match="no confirmation"):
            while True:
                back.undo_confirm()
                undone += 1
        assert 0 < undone < UNDO_CONFIRM


def test_a_session_can_be_saved_late_and_elsewhere(tmp_path: Path) -> None:
    session = camit.Session(toy())
    work(session)
    session.save(tmp_path / "one")
    state = everything(session)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "one", copy)
    session.save(tmp_path / "one")  # there already
    session.save(tmp_path / "deep" / "two")
    session.open(CAT).insert(0, "more")
    more = everything(session)
    session.close()
    assert differences(state, restored(copy)) == []
    assert differences(more, restored(tmp_path / "deep" / "two")) == []
    with camit.Session.restore(tmp_path / "one", toy()) as first:
        assert len(first.drafts) == len(state["drafts"])
        first.undo_confirm()


def test_words_outside_a_word_list_come_back_in_another_process(tmp_path: Path) -> None:
    seed = next(n for n in range(20) if chance.toy(Random(n)).target_vocabulary.kind == "words")
    with camit.Session(toy(seed), journal=tmp_path / "s") as session:
        session.open(CAT).replace(0, "Σωκράτης").insert(0, "Zürich")
        session.confirm()
        session.open(WHY).replace(0, "xyzzy")
        texts = [draft.text for draft in session.drafts]
    fresh = toy(seed)
    fresh.target_vocabulary.encode("other words first")  # so that ids outside the list differ
    with camit.Session.restore(tmp_path / "s", fresh) as back:
        assert [draft.text for draft in back.drafts] == texts
        back.drafts[1].insert(0, "the")
        assert "xyzzy" in back.drafts[1].text
        assert [e.text for e in back.memory.entries] == ["Zürich", "Σωκράτης"]


def test_snapshots_do_not_pile_up(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        for n in range(UNDO_CONFIRM + 3):
            session.confirm(session.open(WHY).replace(0, f"zebra{n}"))
            session.memory.add("mat", f"carpet {n}")
        files = [p.name for p in (tmp_path / "s").iterdir()]
    # Those that can be undone, the last, and what the records before the last one needed.
    assert len(files) <= 1 + 2 * (UNDO_CONFIRM + 1 + STATES_KEPT)
    assert all(
        re.fullmatch(r"journal\.jsonl|memory-\d{6}\.json|learned-\d{6}\.safetensors", name) for name in files
    )


def test_the_files_are_data(place: Path) -> None:
    for n, line in enumerate(lines(place)):
        parsed = json.loads(line)
        assert parsed["n"] == n and set(parsed) == {"n", "crc", "record"}
    for path in place.glob("*.json"):
        json.loads(path.read_bytes())
    for path in place.glob("*.safetensors"):
        header = int.from_bytes(path.read_bytes()[:8], "little")
        json.loads(path.read_bytes()[8 : 8 + header])


def test_a_session_stays_where_it_is_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    states = {}
    sessions = {}
    for name in ("x", "y"):
        monkeypatch.chdir(tmp_path / name)
        sessions[name] = camit.Session(toy(), beam=1, journal="mine", learning=False)
        sessions[name].confirm(sessions[name].open(CAT).replace(0, "zebra"))
    for session in sessions.values():  # both in the directory of the second
        session.memory.add("mat", "carpet")
    for name, session in sessions.items():
        states[name] = everything(session)
        session.close()
    for name in ("x", "y"):
        assert differences(states[name], restored(tmp_path / name / "mine")) == []


def test_what_the_journal_cannot_hold_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with camit.Session(toy(), beam=1, journal=tmp_path / "s") as session:
        session.open(CAT)
        with pytest.raises(SessionError, match="nothing was changed"):
            session._record(Noted(event=Event(float("nan"), "visit", 0)))
        state = everything(session)
    assert differences(state, restored(tmp_path / "s")) == []


def test_a_directory_that_is_moved_meanwhile_breaks_no_confirmation(tmp_path: Path) -> None:
    with camit.Session(toy(), beam=1, journal=tmp_path / "s", memory=False, learning=False) as session:
        draft = session.open(CAT)
        (tmp_path / "s").rename(tmp_path / "t")
        session.confirm(draft)
        assert session.undo_confirm() is draft and not draft.confirmed
        session.save(tmp_path / "u")
        state = everything(session)
    assert differences(state, restored(tmp_path / "u")) == []


def test_words_a_word_list_does_not_know_stay_the_same_when_a_later_sentence_is_taken_back(
    tmp_path: Path,
) -> None:
    translator = tiny_translator("rnnsearch", words=True)
    with camit.Session(translator, beam=1, journal=tmp_path / "s", learning=False) as session:
        session.confirm(session.open("the cat").replace(0, "Zürich"))
        session.confirm(session.open("a dog").replace(0, "Łódź"))
        session.undo_confirm()
        vocabulary = session.translator.target_vocabulary
        assert [vocabulary.decode(e.pieces) for e in session.memory.entries] == ["Zürich"]
        state = digest(session)
    again = tiny_translator("rnnsearch", words=True)
    with camit.Session.restore(tmp_path / "s", again) as session:
        vocabulary = session.translator.target_vocabulary
        assert [vocabulary.decode(e.pieces) for e in session.memory.entries] == ["Zürich"]
        assert digest(session) == state


def test_an_edited_memory_is_refused_with_its_file(place: Path) -> None:
    name = max(path.name for path in place.glob("memory-*.json"))
    stored = json.loads((place / name).read_bytes())
    old = hashlib.sha256((place / name).read_bytes()).hexdigest()
    stored["entries"][0]["start"] = 99
    (place / name).write_bytes(json.dumps(stored).encode())
    new = hashlib.sha256((place / name).read_bytes()).hexdigest()
    changed = [line.replace(old.encode(), new.encode()) for line in lines(place)]
    (place / FILE).write_bytes(b"".join(resealed(line, lambda record: None) for line in changed))
    refuse(place, name)


# A damaged end


def test_half_a_line_is_dropped_with_a_warning_that_says_what(place: Path) -> None:
    *whole, switched = lines(place)
    assert b"configured" in switched  # learning was switched off in the end
    (place / FILE).write_bytes(b"".join(whole[:-1]) + whole[-1][:-20])
    with pytest.warns(JournalWarning, match=r"dropped \(they began: moved\)"):
        state = restored(place)
    assert len(state["events"]) == len(saved()[1]["events"]) - 1  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert differences(state, restored(place)) == []


def test_a_damaged_last_line_about_the_memory_leaves_the_memory_before_it(tmp_path: Path) -> None:
    with camit.Session(toy(), beam=1, journal=tmp_path / "s") as session:
        session.memory.add("mat", "carpet")
        session.memory.add("cat", "Felix")
    whole = lines(tmp_path / "s")
    (tmp_path / "s" / FILE).write_bytes(b"".join(whole[:-1]) + whole[-1][:-20])
    with pytest.warns(JournalWarning), camit.Session.restore(tmp_path / "s", toy()) as session:
        assert [entry.text for entry in session.memory.entries] == ["carpet"]


def test_several_lines_about_the_memory_may_be_lost(tmp_path: Path) -> None:
    with camit.Session(toy(), beam=1, journal=tmp_path / "s") as session:
        session.confirm(session.open(CAT).replace(0, "zebra"))
        for n in range(STATES_KEPT):
            session.memory.add("mat", f"carpet {n}")
            session.open(WHY)  # changes neither memory nor weights
    whole = lines(tmp_path / "s")
    (tmp_path / "s" / FILE).write_bytes(b"".join(whole[: -2 * STATES_KEPT]))
    with camit.Session.restore(tmp_path / "s", toy()) as session:
        assert [entry.text for entry in session.memory.entries] == ["zebra"]


def test_lines_about_the_memory_may_be_lost_after_a_restore_too(tmp_path: Path) -> None:
    with camit.Session(toy(), beam=1, journal=tmp_path / "s") as session:
        session.confirm(session.open(CAT).replace(0, "zebra"))
        session.memory.add("mat", "carpet")
        before = len(lines(tmp_path / "s")) - 1
    with camit.Session.restore(tmp_path / "s", toy()) as session:
        session.open(WHY)
    (tmp_path / "s" / FILE).write_bytes(b"".join(lines(tmp_path / "s")[:before]))
    with camit.Session.restore(tmp_path / "s", toy()) as session:
        assert [entry.text for entry in session.memory.entries] == ["zebra"]


def test_a_last_line_that_lacks_nothing_but_its_end_is_kept(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.memory.add("mat", "carpet")
        session.memory.add("cat", "Felix")
        state = everything(session)
    whole = (tmp_path / "s" / FILE).read_bytes()
    (tmp_path / "s" / FILE).write_bytes(whole[:-1])
    assert differences(state, restored(tmp_path / "s")) == []
    assert (tmp_path / "s" / FILE).read_bytes().startswith(whole)
    with camit.Session.restore(tmp_path / "s", toy()) as session:
        session.memory.add("dog", "Rex")
        state = everything(session)
    assert differences(state, restored(tmp_path / "s")) == []


def test_a_draft_of_many_versions_keeps_its_steps_when_it_is_saved(tmp_path: Path) -> None:
    with camit.Session(toy()) as session:
        draft = session.open(DOG).replace(0, "zebra")
        for _ in range(UNDO // 2 + 1):
            draft.keep(1).release(1)
        steps = draft.trace
        session.save(tmp_path / "s")
        state = everything(session)
    assert steps and differences(state, restored(tmp_path / "s")) == []


@pytest.mark.parametrize("tail", [b"\x00" * 600, b"{}\n", b'{"n":1', b"garbage\nand more\n", b"\xff\xfe\n"])
def test_rubbish_behind_the_last_line_is_dropped(place: Path, tail: bytes) -> None:
    with (place / FILE).open("ab") as file:
        file.write(tail)
    with pytest.warns(JournalWarning, match="dropped"):
        state = restored(place)
    assert len(state["drafts"]) == len(saved()[1]["drafts"])  # type: ignore[arg-type]


@given(share=st.floats(0.0, 1.0))
@example(share=0.9999999999999999)
@settings(max_examples=25)
def test_a_journal_cut_anywhere_gives_what_stands_before_the_cut(share: float) -> None:
    source = saved()[0]
    translator = toy()
    path = Path(os.environ["CAMIT_TEST_ROOT"]) / "cut"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, path)
    data = (path / FILE).read_bytes()
    cut = int(share * len(data))
    (path / FILE).write_bytes(data[:cut])
    good = data[: cut + 1].count(b"\n")  # a last line that lacks only its end is whole
    if good < 2:
        with pytest.raises(SessionError, match=r"empty or damaged|ends after"):
            Journal.open(path, translator.name, translator.digest)
        return
    journal, records = Journal.open(path, translator.name, translator.digest)
    journal.close()
    assert len(records) == good - 1


def test_a_save_that_was_cut_short_restores_what_it_can(tmp_path: Path) -> None:
    session = camit.Session(toy())
    work(session)
    session.save(tmp_path / "s")
    session.close()
    whole = lines(tmp_path / "s")
    drafts = [n for n, line in enumerate(whole) if b'"is":"drafted"' in line]
    (tmp_path / "s" / FILE).write_bytes(b"".join(whole[: drafts[1]]) + whole[drafts[1]][:100])
    with pytest.warns(JournalWarning, match="drafted"):
        state = restored(tmp_path / "s")
    assert len(state["drafts"]) == 1  # type: ignore[arg-type]


# What is refused, and left alone


def refuse(path: Path, match: str, translator: camit.Translator | None = None) -> None:
    before = contents(path)
    with pytest.raises(SessionError, match=match) as raised:
        camit.Session.restore(path, translator or toy())
    assert len(str(raised.value)) > 40
    assert contents(path) == before


def test_a_damaged_middle_is_refused(place: Path) -> None:
    data = bytearray((place / FILE).read_bytes())
    middle = data.index(b"zebra")
    data[middle] ^= 1
    (place / FILE).write_bytes(bytes(data))
    refuse(place, "is damaged or missing, and .* good lines")


@pytest.mark.parametrize("change", ["missing", "doubled", "swapped"])
def test_missing_doubled_and_swapped_lines_are_refused(place: Path, change: str) -> None:
    whole = lines(place)
    changed = {
        "missing": [*whole[:4], *whole[5:]],
        "doubled": [*whole[:4], whole[3], *whole[4:]],
        "swapped": [*whole[:4], whole[5], whole[4], *whole[6:]],
    }[change]
    (place / FILE).write_bytes(b"".join(changed))
    refuse(place, "line 5 is damaged or missing")


def test_another_version_is_refused(place: Path) -> None:
    first, *rest = lines(place)
    (place / FILE).write_bytes(
        first.replace(f'"version":{VERSION}'.encode(), b'"version":99') + b"".join(rest)
    )
    refuse(place, "version 99")


def test_another_model_is_refused(place: Path) -> None:
    refuse(place, "another model", toy(4))


def test_a_missing_snapshot_is_refused(place: Path) -> None:
    max(place.glob("learned-*")).unlink()
    refuse(place, "learned-.* is missing")


def test_a_damaged_snapshot_is_refused(place: Path) -> None:
    snapshot = max(place.glob("memory-*"))
    data = bytearray(snapshot.read_bytes())
    data[-1] ^= 1
    snapshot.write_bytes(bytes(data))
    refuse(place, "memory-.* is damaged")


def test_records_that_do_not_fit_are_refused(place: Path) -> None:
    whole = lines(place)

    def write(n: int, change: Callable[[dict[str, object]], None]) -> None:
        (place / FILE).write_bytes(b"".join([*whole[:n], resealed(whole[n], change), *whole[n + 1 :]]))

    opened = next(n for n, line in enumerate(whole) if b'"is":"opened"' in line)
    write(opened, lambda record: record.update(draft=7))
    refuse(place, "draft 7")
    write(opened, lambda record: record["version"].update(pieces=[999999]))  # type: ignore[attr-defined]
    refuse(place, "pieces this model does not know")
    write(opened, lambda record: record["version"].update(pieces=[5, 5]))  # type: ignore[attr-defined]
    refuse(place, "do not say the same")
    write(opened, lambda record: record.update({"is": "exploded"}))
    refuse(place, "no record this camit knows")
    write(opened, lambda record: record.update(surplus=1))
    refuse(place, "no record this camit knows")
    moved = next(n for n, line in enumerate(whole) if b'"is":"moved"' in line)
    write(moved, lambda record: record.update(draft=0))
    refuse(place, "which is confirmed|not there")


@pytest.mark.parametrize(("name", "value"), [("beam", 10**6), ("stability", -7)])
def test_settings_that_cannot_be_are_refused_with_their_line(place: Path, name: str, value: float) -> None:
    with camit.Session.restore(place, toy()) as session:
        session.configure(beam=2)
    *before, last = lines(place)

    def change(line: dict[str, object]) -> None:
        settings = line["settings"]
        assert isinstance(settings, dict)
        settings[name] = value

    (place / FILE).write_bytes(b"".join([*before, resealed(last, change)]))
    refuse(place, rf"line {len(before) + 1} .*{name}")


# What cannot be restored can be read


def rescued(path: Path, *options: str) -> list[tuple[str, str]]:
    """What `camit rescue` prints of a session."""
    done = CliRunner().invoke(cli.app, ["rescue", str(path), *options], catch_exceptions=False)
    assert done.exit_code == 0
    rows = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    return [(source, text) for source, text in rows]


@pytest.mark.parametrize("late", [False, True])
def test_confirmed_sentences_of_a_damaged_session_can_be_read(tmp_path: Path, late: bool) -> None:
    with camit.Session(toy(), journal=None if late else tmp_path / "s") as session:
        kept = session.open(CAT).insert(0, "zebra")
        session.confirm(kept)
        session.confirm(session.open(DOG))
        session.undo_confirm()
        last = session.open(WHY).replace(0, "lion").insert(0, "tiger").undo()
        if late:
            session.save(tmp_path / "s")
        session.confirm(last)
        confirmed = [(d.source, d.text) for d in session.drafts if d.confirmed]
        every = [(d.source, d.text) for d in session.drafts]
    assert len(confirmed) == 2
    assert rescued(tmp_path / "s") == confirmed and rescued(tmp_path / "s", "--all") == every
    path = tmp_path / "s" / FILE
    all_lines = lines(tmp_path / "s")
    for snapshot in (tmp_path / "s").glob("*-*"):
        snapshot.unlink()
    gone = next(n for n, line in enumerate(all_lines) if DOG.encode() in line)
    path.write_bytes(b"".join([*all_lines[:gone], b"rubbish\n", *all_lines[gone + 1 :]]))
    refuse(tmp_path / "s", "camit rescue")
    before = contents(tmp_path / "s")
    assert rescued(tmp_path / "s") == confirmed
    assert contents(tmp_path / "s") == before


def test_what_was_taken_back_is_not_rescued_whatever_is_lost(tmp_path: Path) -> None:
    with camit.Session(toy()) as session:
        first, second = session.open(CAT), session.open(DOG)
        session.confirm(second)
        session.confirm(first)
        session.save(tmp_path / "s")
        session.undo_confirm()
        assert rescued(tmp_path / "s") == [(DOG, second.text)]
        session.confirm(first)
        session.undo_confirm()
    every = lines(tmp_path / "s")
    gone = next(n for n, line in enumerate(every) if b'"is":"confirmed"' in line)
    (tmp_path / "s" / FILE).write_bytes(b"".join([*every[:gone], *every[gone + 1 :]]))
    assert rescued(tmp_path / "s") == [(DOG, second.text)]
    (tmp_path / "s" / FILE).write_bytes(b"".join(every[2:]))  # without its head: all that is left is read
    assert rescued(tmp_path / "s") == [(DOG, second.text)]


def test_where_nothing_can_be_rescued_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.open(CAT)
    for path, says in ((tmp_path / "s", "no confirmed sentence"), (tmp_path, "holds no session")):
        with pytest.raises(SessionError, match=says):
            CliRunner().invoke(cli.app, ["rescue", str(path)], catch_exceptions=False)


def test_a_snapshot_outside_the_directory_is_refused(place: Path) -> None:
    whole = lines(place)
    last = max(n for n, line in enumerate(whole) if b'"is":"learned"' in line)
    changed = resealed(whole[last], lambda r: r["learned"].update(name="../../etc/passwd"))  # type: ignore[attr-defined]
    (place / FILE).write_bytes(b"".join([*whole[:last], changed, *whole[last + 1 :]]))
    refuse(place, "no snapshot")


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="holds no session"):
        camit.Session.restore(tmp_path / "nowhere", toy())
    (tmp_path / FILE).write_bytes(b"")
    refuse(tmp_path, "empty or damaged")
    (tmp_path / FILE).write_bytes(b"not a journal\n")
    refuse(tmp_path, "damaged")
    (tmp_path / FILE).write_bytes(b'{"n":0,"crc":0}\n{"n":1}\n')
    refuse(tmp_path, "damaged")


@pytest.mark.parametrize("name", ["x" * 300, "nul\0byte"])
def test_a_name_no_directory_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SessionError, match="no name for a directory"):
        camit.Session(toy(), journal=tmp_path / name)
    with pytest.raises(SessionError, match="no name for a directory"):
        camit.Session.restore(tmp_path / name, toy())


def test_nothing_is_overwritten_by_saving(place: Path, tmp_path: Path) -> None:
    with camit.Session(toy()) as session:
        session.open(CAT)
        before = contents(place)
        with pytest.raises(SessionError, match="holds a session already"):
            session.save(place)
        assert contents(place) == before
        (tmp_path / "file").write_text("mine")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_text("mine")
        for name in ("file", "full"):
            with pytest.raises(SessionError, match="no empty directory"):
                session.save(tmp_path / name)
        assert (tmp_path / "file").read_text() == (tmp_path / "full" / "mine").read_text() == "mine"
        (tmp_path / "empty").mkdir()
        session.save(tmp_path / "empty")
        session.open(DOG)  # still at work, and now on the disk
    assert len(restored(tmp_path / "empty")["drafts"]) == 2  # type: ignore[arg-type]


def test_a_session_is_open_only_once(place: Path) -> None:
    with camit.Session.restore(place, toy()), pytest.raises(SessionError, match="in use"):
        camit.Session.restore(place, toy())
    camit.Session.restore(place, toy()).close()


# A disk that fails


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        draft = session.open(CAT)
        other = session.open(WHY).insert(0, "zebra")
        state = everything(session)
        real = os.write

        def full(descriptor: int, data: bytes) -> int:
            real(descriptor, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        for attempt in (
            lambda: draft.replace(0, "tiger"),
            lambda: session.open(DOG),
            lambda: session.confirm(other),
            lambda: session.memory.add("mat", "carpet"),
            lambda: session.configure(beam=1),
        ):
            with pytest.raises(SessionError, match="No space left"):
                attempt()
        monkeypatch.undo()
        assert differences(state, everything(session)) == []
        draft.insert(0, "tiger")
        session.confirm(other)
        state = everything(session)
    assert differences(state, restored(tmp_path / "s")) == []


def test_a_lesson_that_cannot_be_stored_is_not_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        draft = session.open(CAT).replace(0, "zebra")
        before = everything(session)["weights"]
        real = Journal.store

        def store(self: Journal, kind: str, data: bytes) -> object:
            if kind == "learned":
                raise SessionError("cannot be written (No space left on device)")
            return real(self, kind, data)

        monkeypatch.setattr(Journal, "store", store)
        with pytest.raises(SessionError, match="No space left"):
            session.confirm(draft)
        monkeypatch.undo()
        state = everything(session)
        assert draft.confirmed
        assert state["weights"] == before | state["student"] == before  # the student has those that learn
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        back.worker.call(back.worker.settle)  # the lesson is given now that there is room for it
        now = everything(back)
    assert now["drafts"] == state["drafts"] and now["weights"] != before
    assert [lesson.accepted for lesson in now["lessons"][0]] == [True]


def test_a_disk_that_knows_no_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def answer(number: int) -> None:
        def flock(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", flock)

    answer(errno.EACCES)
    with pytest.raises(SessionError, match="cannot be locked"):
        camit.Session(toy(), journal=tmp_path / "held")
    answer(errno.ENOLCK)
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.open(CAT)
        state = everything(session)
    assert differences(state, restored(tmp_path / "s")) == []


def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with camit.Session(toy()) as session:
        session.open(CAT)

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("camit.session.journal.write_atomically", full)
        with pytest.raises(SessionError, match="cannot be saved"):
            session.save(tmp_path / "s")
        monkeypatch.undo()
        assert list(tmp_path.iterdir()) == []
        session.open(DOG)
        session.save(tmp_path / "s")


# kill -9


def test_nothing_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "camit.cli", "soak", "kills", "--kills", "5", "--seed", "7"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "figures.json")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["kills"] == sum(figures["killed_in"].values()) == 5
    assert figures["drafts"] >= figures["confirmed"] > 0


def test_what_is_recalled_counts_when_sessions_are_compared(tmp_path: Path) -> None:
    translator = camit.load("zh-en")
    with camit.Session(translator, journal=tmp_path / "s") as session:
        session.open("她把钥匙忘在了桌子上。")
        nothing_recalled = digest(session)
        assert session.confirm().accepted
        here = digest(session)
    with camit.Session.restore(tmp_path / "s", translator) as back:
        assert digest(back) == here != nothing_recalled


def test_a_lesson_that_was_not_over_is_given_after_the_restore(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.confirm(session.open(CAT).replace(0, "zebra"))
        state = everything(session)
    *before, last = lines(tmp_path / "s")
    assert json.loads(last)["record"]["is"] == "learned"
    (tmp_path / "s" / FILE).write_bytes(b"".join(before))
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        back.worker.call(back.worker.settle)
        now = everything(back)
        assert differences(now, state) == ["lessons"]  # which took other seconds
        assert [lesson.accepted for lesson in back.learning.lessons] == [True]
        back.undo_confirm()
        assert back.learning.lessons == ()
    again = restored(tmp_path / "s")
    assert again["weights"] != state["weights"] and again["lessons"] == ((), ())


def test_a_restored_session_gives_no_lesson_twice(place: Path) -> None:
    lessons = len(saved()[1]["lessons"][0])  # type: ignore[index]
    with camit.Session.restore(place, toy()) as session:
        session.worker.call(session.worker.settle)
        assert len(session.learning.lessons) == lessons > 0


@pytest.mark.parametrize("end", ["", "del session, draft", "sys.exit(3)"])
def test_a_process_that_ends_during_a_lesson_finishes_it(tmp_path: Path, end: str) -> None:
    script = f"""
import sys, camit
session = camit.Session(camit.load("zh-en"), journal=sys.argv[1])
draft = session.open("好。")
session.confirm_soon(draft)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "s")], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (3 if "exit" in end else 0, "")
    assert json.loads(lines(tmp_path / "s")[-1])["record"]["is"] == "learned"


def test_switches_that_were_moved_by_hand_come_back(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.open(CAT)
        session.memory.enabled = session.learning.enabled = False
        session.save(tmp_path / "s")
        with_save = lines(tmp_path / "s")[-1]
        session.memory.enabled = True
    assert json.loads(with_save)["record"]["is"] == "configured"
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        assert (back.memory.enabled, back.learning.enabled) == (True, False)


def test_who_works_on_a_journal_that_was_removed_is_told(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        draft = session.open(CAT)
        text = draft.text
        shutil.rmtree(tmp_path / "s")
        with pytest.raises(SessionError, match="was removed"):
            draft.replace(0, "zebra")
        assert draft.text == text
        session.save(tmp_path / "s")
        draft.replace(0, "zebra")
        state = everything(session)
    assert differences(restored(tmp_path / "s"), state) == []


@pytest.mark.parametrize("move", ["remove", "rename"])
def test_a_session_does_not_write_where_another_one_lives_now(tmp_path: Path, move: str) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as old:
        draft = old.open(CAT).replace(0, "zebra")
        if move == "remove":
            shutil.rmtree(tmp_path / "s")
        else:
            (tmp_path / "s").rename(tmp_path / "moved")
        with camit.Session(toy(), journal=tmp_path / "s") as new:
            new.confirm(new.open(DOG).replace(0, "lion"))
            state, there = everything(new), contents(tmp_path / "s")
            for change in (lambda: old.confirm(draft), lambda: old.memory.add("mat", "carpet")):
                with pytest.raises(SessionError, match="removed or replaced"):
                    change()
            assert not draft.confirmed and contents(tmp_path / "s") == there
    assert differences(restored(tmp_path / "s"), state) == []


def test_a_restored_session_whose_directory_is_gone_can_be_saved_elsewhere(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        for source in (CAT, DOG):
            session.confirm(session.open(source).replace(0, "zebra"))
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        shutil.rmtree(tmp_path / "s")
        with pytest.raises(SessionError, match="removed or replaced"):
            back.open(WHY)
        back.save(tmp_path / "new")
        back.confirm(back.open(WHY))
        back.undo_confirm()
        state = everything(back)
    assert differences(restored(tmp_path / "new"), state) == []


def older_state(session: camit.Session) -> Path:
    """The file of what was learned before the last confirmation."""
    assert session._journal is not None
    learned = session.ledger.undo[-1].before.learned
    assert learned is not None
    return session._journal.directory / learned.name


def test_an_undo_that_fails_changes_nothing(tmp_path: Path) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        for source in (CAT, DOG, WHY):
            session.confirm(session.open(source).insert(0, "zebra"))
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        state, file = everything(back), older_state(back)
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        with pytest.raises(SessionError, match="damaged"):
            back.undo_confirm()
        assert differences(state, everything(back)) == []
        assert back.confirm(back.open(CAT).insert(0, "lion")).accepted
        state = everything(back)
        file.write_bytes(whole)
    assert differences(restored(tmp_path / "s"), state) == []


@pytest.mark.parametrize("harm", ["moved", "damaged"])
def test_a_session_can_be_saved_elsewhere_without_what_it_could_go_back_to(tmp_path: Path, harm: str) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        for source in (CAT, DOG, WHY):
            session.confirm(session.open(source).insert(0, "zebra"))
    with camit.Session.restore(tmp_path / "s", toy()) as back:
        if harm == "moved":
            (tmp_path / "s").rename(tmp_path / "t")
            with pytest.raises(SessionError, match=r"[Ss]ave the session"):
                back.memory.add("cat", "tiger")
        else:
            older_state(back).write_bytes(b"")
        undo = len(back.ledger.undo)
        with pytest.warns(JournalWarning, match=f"of {undo} confirmations .*, 0 still can"):
            back.save(tmp_path / "new")
        back.memory.add("cat", "tiger")
        state = everything(back)
    assert state["undo"] == ()
    assert differences(restored(tmp_path / "new"), state) == []


def test_a_session_on_a_full_disk_can_be_saved_elsewhere_when_a_switch_was_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.open(CAT)
        session.learning.enabled = False
        assert session._journal is not None
        with monkeypatch.context() as patch:
            full = session._journal

            def refuse(record: object) -> None:
                raise SessionError("No space left")

            patch.setattr(full, "append", refuse)
            session.save(tmp_path / "t")
        state = everything(session)
        assert not session.ledger.learning
    assert differences(restored(tmp_path / "t"), state) == []


def test_a_change_that_did_not_reach_the_disk_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        draft = session.open(WHY)
        assert session._journal is not None
        descriptor, real = session._journal._descriptor, os.fsync

        def failing(asked: int) -> None:
            if asked == descriptor:
                raise OSError(errno.EIO, "Input/output error")
            real(asked)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            with pytest.raises(SessionError, match="nothing was changed"):
                draft.replace(0, "zebra")
        state = everything(session)
    assert differences(restored(tmp_path / "s"), state) == []


def test_going_back_does_not_read_every_recalled_sentence_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = camit.load("zh-en")
    with camit.Session(translator, journal=tmp_path / "s") as session:
        for source in ("她把钥匙忘在了桌子上。", "我们明天见。"):
            session.confirm(session.open(source))
        assert len(session.learning.snapshot().sentences) == 2
    with camit.Session.restore(tmp_path / "s", translator) as back:
        read: list[object] = []
        real = learner.keep
        monkeypatch.setattr(learner, "keep", lambda *asked: (read.append(asked), real(*asked))[1])
        back.undo_confirm()
        assert len(back.learning.snapshot().sentences) == 1 and read == []


def test_a_lesson_that_fails_after_a_restore_is_told_to_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with camit.Session(toy(), journal=tmp_path / "s") as session:
        session.confirm(session.open(CAT).insert(0, "zebra"))
    path = tmp_path / "s" / FILE
    kept = path.read_bytes().splitlines(keepends=True)
    assert b'"learned"' in kept[-1]
    path.write_bytes(b"".join(kept[:-1]))

    def broken(*asked: object) -> object:
        raise MemoryError("no memory left")

    monkeypatch.setattr(learner.OnlineLearner, "study", broken)
    camit.Session.restore(tmp_path / "s", toy()).close()
    assert "no memory left" in caplog.text


def test_a_foreign_snapshot_with_a_high_number_does_no_harm(place: Path) -> None:
    (place / "memory-999999.json").write_text("{}", "utf-8")
    with camit.Session.restore(place, toy()) as session:
        session.configure(memory=True, learning=True)
        session.confirm(session.open(CAT).replace(0, "zebra"))
        state = everything(session)
    assert differences(restored(place), state) == []


# The journal by itself


def test_records_are_on_the_disk_when_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    header = Header(version=1, model="m", digest="d", created=0.0)
    journal = Journal.create(tmp_path / "s", header, {}, [])
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), real(descriptor))[1])
    journal.append(Noted(event=camit.Event(1.0, "visit", 0)))
    assert len(synced) == 1
    assert b"visit" in (tmp_path / "s" / FILE).read_bytes()
    journal.close()
