"""The kernel side of the widget, through its messages and traits, on the embedded model."""

from __future__ import annotations

import concurrent.futures
import pathlib
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets
import pytest
from comm.base_comm import BaseComm

import camit
from camit.errors import InputError
from camit_widget import CamitWidget
from camit_widget.desk import Desk

SENTENCES = ["雷福昨天来了。", "他是我最好的朋友。", "雷福是我的朋友。"]
Make = Callable[..., CamitWidget]
EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


class Wire(BaseComm):
    """A comm that keeps what the kernel sends and brings what a browser would."""

    def __init__(self, **keys: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.arrived = threading.Condition()
        super().__init__(**keys)

    def publish_msg(self, msg_type: str, data: Any = None, *_: Any, **__: Any) -> None:
        with self.arrived:
            self.sent.append(data or {})
            self.arrived.notify_all()

    def wait(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 20) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        with self.arrived:
            while True:
                for data in self.sent:
                    content = data.get("content")
                    if data.get("method") == "custom" and wanted(content):
                        return content
                assert self.arrived.wait(deadline - time.monotonic()), f"no such answer in {seconds} s"


@pytest.fixture(scope="module")
def translator() -> camit.Translator:
    return camit.load("zh-en")


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, translator: camit.Translator) -> Iterator[Make]:
    """Widgets on one shared model; learning is off unless a test is about it, so that tests stay apart."""
    monkeypatch.setattr(ipywidgets.comm, "create_comm", Wire)
    made: list[CamitWidget] = []

    def build(sentences: Any = SENTENCES, *, learning: bool = False) -> CamitWidget:
        made.append(CamitWidget(sentences, session=camit.Session(translator, learning=learning)))
        return made[-1]

    yield build
    for widget in made:
        widget.close()
        widget.session.close()


_numbers = iter(range(1, 1_000_000))


def send(widget: CamitWidget, **request: Any) -> int:
    number = next(_numbers)
    content = {"view": "test", "id": number, **request}
    widget.comm.handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
    return number


def ask(widget: CamitWidget, **request: Any) -> dict[str, Any]:
    """Send a request as a browser would, and wait for its answer."""
    number = send(widget, **request)
    return widget.comm.wait(lambda content: content.get("id") == number)


def change(widget: CamitWidget, **request: Any) -> dict[str, Any]:
    now = widget._sentence
    effort = {"keystrokes": 1, "mouse": 1}
    return ask(widget, row=now["row"], version=now["version"], effort=effort, **request)


def about(widget: CamitWidget, kind: str, **more: Any) -> dict[str, Any]:
    now = widget._sentence
    return ask(widget, type=kind, row=now["row"], version=now["version"], **more)


def texts(widget: CamitWidget) -> list[str]:
    return [word["text"] for word in widget._sentence["words"]]


def opened(widget: CamitWidget) -> CamitWidget:
    _ = widget.drafts
    widget.session.submit(lambda: None).result()
    assert widget._sentence["words"]
    return widget


# --- making one ---------------------------------------------------------------------------------------------


def test_an_unknown_keyword_argument_is_named() -> None:
    with pytest.raises(TypeError, match="memroy"):
        CamitWidget(SENTENCES, memroy=False)  # type: ignore[call-arg]


@pytest.mark.parametrize("given", ["", "  \n ", [], [" "]])
def test_nothing_to_translate_is_an_error_that_says_so(given: Any) -> None:
    with pytest.raises(InputError, match="nothing to translate"):
        CamitWidget(given)


def test_a_sentence_that_is_no_string_is_named() -> None:
    with pytest.raises(InputError, match="Sentence 2 is of type int"):
        CamitWidget(["你好。", 3])  # type: ignore[list-item]


def test_a_session_brings_its_own_model(translator: camit.Translator) -> None:
    with pytest.raises(InputError, match="not both"):
        CamitWidget(SENTENCES, session=camit.Session(translator), model="zh-en")


def test_an_unknown_model_is_an_error_in_the_cell() -> None:
    with pytest.raises(camit.CamitError):
        CamitWidget("你好。", model="no-such-model")


def test_one_text_is_cut_into_sentences(make: Make) -> None:
    assert [row["source"] for row in make("你好。\n他来了。她走了。")._overview["rows"]] == [
        "你好。",
        "他来了。",
        "她走了。",
    ]


def test_drafts_are_the_sentences_in_their_order(make: Make) -> None:
    widget = make()
    send(widget, type="go", row=2)
    assert [draft.source for draft in widget.drafts] == SENTENCES
    assert all(draft.text for draft in widget.drafts)


def test_drafts_of_a_given_session_come_first(translator: camit.Translator) -> None:
    session = camit.Session(translator, learning=False)
    session.open("你好。")
    widget = CamitWidget(["再见。"], session=session)
    assert [draft.source for draft in widget.drafts] == ["你好。", "再见。"]
    widget.close()
    assert session.open("谢谢。").text, "a session that was given is not closed with the widget"
    session.close()


def test_the_sentence_on_the_desk_is_opened_first_and_the_others_in_order(
    make: Make,
) -> None:
    widget = make([f"{n}号来了。" for n in range(6)])
    answer = ask(widget, type="go", row=4)
    assert answer["type"] == "done"
    assert widget._sentence["row"] == 4
    assert widget._sentence["words"]
    _ = widget.drafts
    order = [event.draft for event in widget.session.events if event.kind == "open"]
    sources = {draft.id: draft.source for draft in widget.session.drafts}
    after = [sources[draft] for draft in order]
    assert after.index("4号来了。") <= after.index("3号来了。")


def test_a_sentence_that_cannot_be_translated_says_why_and_stops_nobody(
    make: Make,
) -> None:
    widget = make(["你好。", "长" * 5000, "再见。"])
    deadline = time.monotonic() + 20
    while [row["status"] for row in widget._overview["rows"]] != ["draft", "failed", "draft"]:
        assert time.monotonic() < deadline, widget._overview["rows"]
        time.sleep(0.05)
    assert ask(widget, type="go", row=1)["type"] == "failed"
    assert widget._sentence["status"] == "failed"
    assert "pieces" in widget._sentence["problem"]["detail"]


# --- requests and answers -----------------------------------------------------------------------------------


def test_a_replaced_word_stands_and_the_rest_follows(make: Make) -> None:
    widget = opened(make())
    assert change(widget, type="replace", start=0, stop=1, text="Redford")["type"] == "done"
    mine = [word for word in widget._sentence["words"] if word["origin"] == "yours"]
    assert [word["text"] for word in mine] == ["Redford"]
    assert widget._overview["rows"][0]["status"] == "revised"
    assert widget._overview["rows"][0]["revisions"] == 1
    before, *passes = widget._sentence["stages"]
    assert before["name"] == "draft"
    assert [stage["name"] for stage in passes] == ["forward", "backward", "result"]
    for stage in passes:
        mine = [word["text"] for word in stage["words"] if word["origin"] == "yours"]
        assert mine == ["Redford"], f"the word stands in {stage['name']} and is the person's there"
    event = widget.session.events[-1]
    assert (event.kind, event.keystrokes, event.mouse) == ("replace", 1, 1)


def test_every_operation_reaches_the_engine(make: Make) -> None:
    widget = opened(make())
    draft = widget.drafts[0]
    assert change(widget, type="insert", at=len(texts(widget)) - 1, text="again")["type"] == "done"
    assert "again" in texts(widget)
    assert change(widget, type="delete", start=0, stop=1)["type"] == "done"
    assert about(widget, "keep", start=0, stop=1)["type"] == "done"
    assert widget._sentence["words"][0]["locked"]
    assert about(widget, "release", start=0, stop=1)["type"] == "done"
    assert not widget._sentence["words"][0]["locked"]
    assert ask(widget, type="undo", row=0)["type"] == "done"
    assert ask(widget, type="redo", row=0)["type"] == "done"
    ask(widget, type="undo", row=0)
    ask(widget, type="undo", row=0)
    ask(widget, type="undo", row=0)
    assert change(widget, type="blank", start=0, stop=1)["type"] == "done"
    assert texts(widget) == [token.text for token in draft.tokens]


def test_suggestions_carry_probabilities_and_completions_begin_with_what_was_typed(
    make: Make,
) -> None:
    widget = opened(make())
    found = about(widget, "alternatives", start=1, stop=2)["result"]["items"]
    assert found
    assert all(0 <= item["probability"] <= 1 for item in found)
    completed = about(widget, "complete", start=1, stop=2, typed="m")["result"]["items"]
    assert all(item["text"].lower().startswith("m") for item in completed)
    end = len(texts(widget))
    inserted = about(widget, "complete", start=end, stop=end, typed="")["result"]["items"]
    assert texts(widget)[-1] not in [item["text"] for item in inserted]


def test_a_request_about_another_wording_is_refused_and_changes_nothing(
    make: Make,
) -> None:
    widget = opened(make())
    stale = widget._sentence["version"]
    change(widget, type="replace", start=1, stop=2, text="met")
    before = texts(widget)
    effort = {"keystrokes": 0, "mouse": 0}
    answer = ask(widget, type="delete", row=0, version=stale, start=0, stop=1, effort=effort)
    assert answer["type"] == "failed"
    assert answer["outdated"]
    assert answer["problem"]["title"] == "The sentence changed meanwhile"
    assert texts(widget) == before


def test_a_fast_second_change_never_takes_the_place_of_the_first(make: Make) -> None:
    widget = opened(make())
    version, effort = widget._sentence["version"], {"keystrokes": 0, "mouse": 1}
    hold = threading.Event()
    widget.session.submit(hold.wait)  # so that all of them are queued
    numbers = [
        send(widget, type="replace", row=0, version=version, start=at, stop=at + 1, text=text, effort=effort)
        for at, text in enumerate(("Redford", "arrived"))
    ]
    hold.set()
    first, second = (widget.comm.wait(lambda content, n=n: content.get("id") == n) for n in numbers)
    assert first["type"] == "done"
    assert "Redford" in texts(widget)
    assert (second["type"], second["outdated"]) == ("failed", True), "to be asked again about the new wording"


def test_only_the_newest_of_many_fast_questions_is_answered(make: Make) -> None:
    widget = opened(make())
    hold = threading.Event()
    widget.session.submit(hold.wait)
    where = {"row": 0, "version": widget._sentence["version"], "start": 1, "stop": 2}
    numbers = [send(widget, type="complete", typed=typed, **where) for typed in ("c", "ca", "cam")]
    hold.set()
    answers = [widget.comm.wait(lambda content, n=n: content.get("id") == n)["type"] for n in numbers]
    assert answers == ["cancelled", "cancelled", "done"]


def test_a_suggestion_request_never_overtakes_a_change(make: Make) -> None:
    widget = opened(make())
    version, effort = widget._sentence["version"], {"keystrokes": 0, "mouse": 1}
    number = send(widget, type="replace", row=0, version=version, start=1, stop=2, text="met", effort=effort)
    send(widget, type="alternatives", row=0, version=version, start=0, stop=1)
    assert widget.comm.wait(lambda content: content.get("id") == number)["type"] == "done"


def test_a_running_change_can_be_stopped(make: Make) -> None:
    widget = opened(make())
    before, effort = texts(widget), {"keystrokes": 0, "mouse": 1}
    hold = threading.Event()
    widget.session.submit(hold.wait)
    version = widget._sentence["version"]
    number = send(widget, type="replace", row=0, version=version, start=1, stop=2, text="met", effort=effort)
    later = send(widget, type="keep", row=0, version=version, start=0, stop=1)
    send(widget, type="cancel", request=number)
    hold.set()
    assert widget.comm.wait(lambda content: content.get("id") == number)["type"] == "cancelled"
    assert widget.comm.wait(lambda content: content.get("id") == later)["type"] == "done"
    assert texts(widget) == before


def test_an_exception_in_the_engine_becomes_an_answer(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = opened(make())
    monkeypatch.setattr(widget.session.engine, "revise", lambda *_: 1 / 0)
    before = texts(widget)
    answer = change(widget, type="replace", start=0, stop=1, text="They")
    assert answer["type"] == "failed"
    assert answer["problem"]["detail"] == "ZeroDivisionError: division by zero."
    assert texts(widget) == before


def test_a_mistake_of_the_person_is_answered_with_what_is_allowed(make: Make) -> None:
    widget = opened(make())
    answer = change(widget, type="delete", start=0, stop=len(texts(widget)))
    assert answer["type"] == "failed"
    assert "no sentence" in answer["problem"]["detail"]
    assert ask(widget, type="go", row=99)["problem"]["detail"].startswith("There is no sentence 100")


@pytest.mark.parametrize("content", ["hello", None, {"id": 5}, {"type": "replace", "view": "v", "id": 5}])
def test_a_message_that_is_no_request_is_answered_too(make: Make, content: Any) -> None:
    widget = make()
    widget.comm.handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
    answer = widget.comm.wait(lambda found: found["type"] == "failed")
    assert "do not match" in answer["problem"]["title"]


def test_requests_from_many_threads_leave_one_consistent_state(make: Make) -> None:
    widget = opened(make())

    def click(n: int) -> str:
        kind = ("undo", "redo", "replace", "alternatives", "go")[n % 5]
        if kind == "replace":
            return str(change(widget, type="replace", start=1, stop=2, text=f"met{n}")["type"])
        if kind == "alternatives":
            return str(about(widget, "alternatives", start=0, stop=1)["type"])
        return str(ask(widget, type=kind, row=n % 2)["type"])

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(click, range(50)))
    assert set(answers) <= {"done", "failed", "cancelled"}
    widget.session.submit(lambda: None).result()
    row = widget._sentence["row"]
    assert texts(widget) == [token.text for token in widget.drafts[row].tokens]
    assert [row["text"] for row in widget._overview["rows"]] == [draft.text for draft in widget.drafts]


# --- memory, learning, settings -----------------------------------------------------------------------------


def confirmed(widget: CamitWidget) -> CamitWidget:
    """The name in the first sentence corrected, and the sentence confirmed."""
    change(opened(widget), type="replace", start=0, stop=1, text="Redford")
    assert about(widget, "confirm")["type"] == "done"
    return widget


def test_confirming_goes_on_to_the_next_sentence_and_remembers(make: Make) -> None:
    widget = confirmed(make())
    assert widget._overview["rows"][0]["status"] == "confirmed"
    assert widget._sentence["row"] == 1
    (entry,) = widget._memory["entries"]
    assert (entry["text"], entry["row"], entry["source"]) == ("Redford", 0, SENTENCES[0])


def test_a_remembered_word_comes_back_in_a_sentence_that_was_translated_before(
    make: Make,
) -> None:
    widget = opened(make())
    assert "Redford" not in widget.drafts[2].text
    confirmed(widget)
    assert ask(widget, type="go", row=2)["type"] == "done"
    copied = [word for word in widget._sentence["words"] if word["memory"] is not None]
    assert [word["text"] for word in copied] == ["Redford"]
    assert copied[0]["theta"] > 0.5
    widget.session.submit(lambda: None).result()
    assert widget._looks["row"] == 2
    assert any(cell["weight"] > 50 for cell in widget._looks["cells"])


def test_switching_the_memory_off_takes_effect_on_untouched_sentences(
    make: Make,
) -> None:
    widget = confirmed(make())
    ask(widget, type="go", row=2)
    assert "Redford" in texts(widget)
    ask(widget, type="configure", memory=False)
    assert not widget._memory["enabled"]
    assert "Redford" not in texts(widget)


def test_a_sentence_somebody_worked_on_is_never_translated_anew(make: Make) -> None:
    widget = opened(make())
    ask(widget, type="go", row=2)
    change(widget, type="replace", start=0, stop=1, text="Someone")
    worked = texts(widget)
    ask(widget, type="go", row=0)
    confirmed(widget)
    ask(widget, type="go", row=2)
    assert texts(widget) == worked


def test_memory_entries_can_be_pinned_forgotten_and_added(make: Make) -> None:
    widget = confirmed(make())
    entry = widget._memory["entries"][0]["id"]
    ask(widget, type="pin", entry=entry, pinned=True)
    assert widget._memory["entries"][0]["pinned"]
    ask(widget, type="forget", entry=entry)
    assert not widget._memory["entries"]
    ask(widget, type="remember", source="蓝鲸", text="blue whale")
    assert [(e["text"], e["row"]) for e in widget._memory["entries"]] == [("blue whale", None)]
    assert ask(widget, type="forget", entry=999)["type"] == "failed"


def test_a_forgotten_entry_comes_back_as_it_was(make: Make) -> None:
    widget = confirmed(make())
    ask(widget, type="remember", source="蓝鲸", text="blue whale")
    for entry in widget._memory["entries"]:
        ask(widget, type="pin", entry=entry["id"], pinned=True)
        before = widget._memory["entries"]
        assert ask(widget, type="forget", entry=entry["id"])["type"] == "done"
        assert len(widget._memory["entries"]) == len(before) - 1
        assert ask(widget, type="recall", entry=entry["id"])["type"] == "done"
        assert widget._memory["entries"] == before
        assert ask(widget, type="recall", entry=entry["id"])["type"] == "failed"
    ask(widget, type="forget", entry=before[0]["id"])
    ask(widget, type="unconfirm")
    assert ask(widget, type="recall", entry=before[0]["id"])["type"] == "failed"
    assert [entry["text"] for entry in widget._memory["entries"]] == ["blue whale"]


def test_a_term_is_remembered_once(make: Make) -> None:
    widget = opened(make())
    first = ask(widget, type="remember", source="蓝鲸", text="blue whale")["result"]
    again = ask(widget, type="remember", source=" 蓝鲸", text="blue  whale ")["result"]
    assert (first["new"], again["new"]) == (True, False)
    assert first["entry"] == again["entry"]
    assert [entry["text"] for entry in widget._memory["entries"]] == ["blue whale"]
    other = ask(widget, type="remember", source="蓝鲸", text="Balaenoptera")["result"]
    assert other["new"]
    assert len(widget._memory["entries"]) == 2


def learned(widget: CamitWidget) -> None:
    deadline = time.monotonic() + 30
    while widget._learning["studying"] is not None or not widget._learning["lessons"]:
        assert time.monotonic() < deadline, widget._learning
        time.sleep(0.02)


def test_a_lesson_is_shown_with_its_sentence_and_taken_back_exactly(make: Make) -> None:
    widget = confirmed(make(learning=True))
    learned(widget)
    (lesson,) = widget._learning["lessons"]
    assert lesson["row"] == 0
    assert ask(widget, type="unconfirm")["type"] == "done"
    assert not widget._learning["lessons"]
    assert not widget._memory["entries"]
    assert widget._sentence["row"] == 0
    assert widget._sentence["status"] == "revised"


def test_a_recalled_word_names_the_row_of_its_sentence_while_that_is_confirmed(
    translator: camit.Translator,
) -> None:
    with camit.Session(translator, memory=False) as session:
        desk = Desk(session, ["她住在尖沙咀。", "他住在尖沙咀。"])
        draft = desk.open(1)
        assert draft.id != 1
        draft.replace((0, len(draft.tokens)), "He lives in Tsim Sha Tsui.")
        session.confirm(draft)
        desk.open(0)
        (word,) = (word for word in desk.sentence(0).words if word.text == "Tsim")
        assert word.like == 1 and word.recalled > 0.5
        desk.open(0).keep(0)  # what somebody has touched is not translated anew
        session.undo_confirm()
        assert all(word.like is None for word in desk.sentence(0).words)
        session.confirm(draft.replace((0, len(draft.tokens)), "Nobody knows where"))
        assert all(word.like is None for word in desk.sentence(0).words)


def test_a_lesson_that_comes_later_does_not_change_the_sentence_on_the_desk(make: Make) -> None:
    widget = confirmed(make(learning=True))
    shown = widget._sentence["version"]
    learned(widget)
    assert (widget._sentence["row"], widget._sentence["version"]) == (1, shown)


def test_a_confirmed_sentence_says_so_when_somebody_tries_to_change_it(
    make: Make,
) -> None:
    widget = confirmed(make())
    ask(widget, type="go", row=0)
    assert widget._sentence["can_unconfirm"]
    for answer in (change(widget, type="delete", start=0, stop=1), about(widget, "confirm")):
        assert answer["type"] == "failed"
        assert answer["problem"]["detail"] == "Sentence 1 is confirmed already: take that back to change it."


def test_what_is_said_in_the_browser_is_a_sentence_and_never_speaks_of_code(make: Make) -> None:
    widget = confirmed(make())
    ask(widget, type="go", row=0)
    refused = [
        (about(widget, "confirm"), "The sentence stands as it was."),
        (ask(widget, type="undo", row=0), "The sentence stands as it was."),
        (ask(widget, type="forget", entry=999), "The memory stays as it was."),
        (ask(widget, type="remember", source="狗", text="\u200b"), "The memory stays as it was."),
        (ask(widget, type="configure", beam=65), "The setting stays as it was."),
        (ask(widget, type="configure", protocol="none"), "The setting stays as it was."),
        (ask(widget, type="go", row=99), ""),
    ]
    for answer, stands in refused:
        problem = answer["problem"]
        assert problem["advice"] == stands
        assert problem["detail"][0].isupper()
        assert problem["detail"][-1] == "."
        assert "()" not in problem["detail"]
        assert "session." not in problem["detail"]
        assert "memory." not in problem["detail"]


def test_a_sentence_confirmed_with_learning_off_is_no_rejected_lesson(make: Make) -> None:
    widget = confirmed(make(learning=False))
    deadline = time.monotonic() + 20
    while not widget._learning["lessons"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert [lesson["outcome"] for lesson in widget._learning["lessons"]] == ["off"]
    assert widget._learning["studying"] is None


def test_settings_reach_the_session_and_nonsense_is_refused(make: Make) -> None:
    widget = make()
    ask(widget, type="configure", beam=2, stability=0.5, protocol="unidirectional", learning=True)
    assert (widget.session.settings.beam, widget.session.settings.stability) == (2, 0.5)
    assert widget._settings["protocol"] == "unidirectional"
    assert widget._learning["enabled"]
    assert widget._settings["beam"] == 2
    widest = widget._settings["widest_beam"]
    assert ask(widget, type="configure", beam=widest)["type"] == "done"
    for beam in (0, widest + 1):
        assert ask(widget, type="configure", beam=beam)["type"] == "failed"
    assert widget._settings["beam"] == widest


def test_what_code_in_another_cell_does_shows_in_the_widget(make: Make) -> None:
    widget = opened(make())
    widget.drafts[0].replace(1, "met")
    extra = widget.session.open("谢谢。")
    widget.session.submit(lambda: None).result()
    widget.session.submit(lambda: None).result()
    assert "met" in texts(widget)
    assert widget._overview["rows"][-1]["source"] == extra.source


# --- out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["text", "tsv", "tmx", "xliff", "html"])
def test_the_menu_exports_what_the_method_exports(make: Make, file_format: Any) -> None:
    widget = opened(make())
    exported = ask(widget, type="export", format=file_format)["result"]
    again = widget.export(file_format)
    if file_format in ("tmx", "xliff"):
        assert ET.fromstring(exported["text"].encode()).tag
    assert widget.drafts[0].text in again
    assert exported["filename"].startswith("translation.")


@pytest.mark.parametrize("file_format", ["tsv", "tmx", "xliff"])
def test_an_exported_file_carries_the_source_as_it_was_given(make: Make, file_format: Any) -> None:
    widget = opened(make(["你为什么不来？", "ＡＢＣ来了！"]))
    assert "？" not in widget.drafts[0].source, "what the engine reads is folded"
    for text in (
        widget.export(file_format),
        ask(widget, type="export", format=file_format)["result"]["text"],
    ):
        assert "你为什么不来？" in text
        assert "ＡＢＣ来了！" in text


def test_an_unknown_export_format_is_an_error_that_lists_the_known_ones(
    make: Make,
) -> None:
    with pytest.raises(InputError, match="tmx"):
        make().export("docx")  # type: ignore[arg-type]


def test_the_offline_page_is_one_file_that_loads_nothing_and_runs_no_sentence(
    make: Make, tmp_path: pathlib.Path
) -> None:
    widget = opened(make(["你好。", EVIL]))
    page = widget.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert page.count("</script>") == 3
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


@pytest.mark.parametrize("kind", ["memory", "attention", "revision"])
def test_figures_are_well_formed_and_savable(make: Make, tmp_path: pathlib.Path, kind: Any) -> None:
    widget = confirmed(make([*SENTENCES, EVIL]))
    ask(widget, type="go", row=3 if kind == "attention" else 0)
    figure = widget.figure(kind)
    drawing = ET.parse(figure.save(tmp_path / "figure.svg")).getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert figure._repr_svg_() == figure.svg
    written = "".join(drawing.itertext())
    assert all(word["text"] in written for word in widget._sentence["words"])


def test_the_figure_of_a_revision_shows_the_source_as_it_is_written(make: Make) -> None:
    widget = confirmed(make(SENTENCES))
    ask(widget, type="go", row=0)
    assert widget.drafts[0].source in widget.figure("revision").svg


def test_an_unknown_figure_is_an_error(make: Make) -> None:
    with pytest.raises(InputError, match="attention"):
        make().figure("pie")  # type: ignore[arg-type]


# --- size and speed of the parts ----------------------------------------------------------------------------


def test_the_bundle_and_the_saved_state_stay_small(make: Make) -> None:
    import gzip

    import msgspec

    widget = opened(make([f"{sentence}{n}" for n in range(60) for sentence in SENTENCES][:60]))
    bundle = sum(len(gzip.compress(getattr(widget, name).encode())) for name in ("_esm", "_css"))
    assert bundle <= 60_000
    assert len(msgspec.json.encode(widget.get_state())) <= 400_000


def test_a_view_that_says_hello_gets_the_whole_state_before_its_answer(make: Make) -> None:
    widget = opened(make())
    widget.comm.sent.clear()
    ask(widget, type="hello")
    state, answer = widget.comm.sent
    assert state["method"] == "update"
    assert state["state"]["_sentence"] == widget._sentence
    assert {"_overview", "_looks", "_memory", "_learning", "_settings"} < set(state["state"])
    assert "_esm" not in state["state"], "the bundle is there already"
    assert answer["content"]["type"] == "done"


def test_unchanged_state_is_not_sent_again(make: Make) -> None:
    widget = opened(make())
    widget.session.submit(lambda: None).result()
    sent = len(widget.comm.sent)
    widget.session.submit(widget._publish).result()
    assert len(widget.comm.sent) == sent
    change(widget, type="replace", start=1, stop=2, text="met")
    names = {name for data in widget.comm.sent[sent:] for name in data.get("state", {})}
    assert names == {"_overview", "_sentence"}
