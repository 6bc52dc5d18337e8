"""A person revises sentences in JupyterLab: real kernel, embedded model, mouse and keyboard."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import SENTENCES, Show, edit, ran, settled, type_over, word, words


def test_a_document_opens_with_its_sentences_and_the_first_translation(show: Show) -> None:
    widget = show()
    assert widget.locator(".camit-row-text").all_inner_texts() == SENTENCES
    expect(widget.locator(".camit-place")).to_have_text("Sentence 1 of 4")
    assert len(words(widget)) > 4
    expect(widget.locator(".camit-row[data-status=draft]")).to_have_count(4)


def test_choosing_alternatives_changes_what_stands_left_and_right_of_them(page: Page, show: Show) -> None:
    widget = show(["我不知道他什么时候会回来。"])
    first = words(widget)
    changed: set[str] = set()
    for index in range(1, len(first) - 1):
        option = edit(widget, index).get_by_role("option").first
        option.wait_for()
        chosen = option.locator(".camit-suggestion-text").inner_text()
        option.click()
        settled(widget)
        origins = widget.locator(".camit-target .camit-word").evaluate_all(
            "(all) => all.map((word) => word.dataset.origin)"
        )
        at = origins.index("yours")
        assert chosen.startswith(words(widget)[at])
        changed |= {"left"} if "changed" in origins[:at] else set()
        changed |= {"right"} if "changed" in origins[at:] else set()
        if changed == {"left", "right"}:
            return
        page.keyboard.press("Control+z")
        expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(0)
        assert words(widget) == first
    raise AssertionError(f"only {changed or 'nothing'} changed, whichever word was replaced")


def test_typing_a_new_word_fixes_it(page: Page, show: Show) -> None:
    widget = show()
    type_over(page, widget, 1, "met")
    mine = widget.locator(".camit-word[data-origin=yours]")
    expect(mine).to_have_text("met")
    expect(mine).to_be_focused()
    expect(widget.locator(".camit-row[data-status=revised]")).to_have_count(1)
    expect(widget.locator(".camit-effort")).to_contain_text("1 revision")


def test_enter_takes_what_was_typed_never_a_suggestion(page: Page, show: Show) -> None:
    widget = show()
    editor = edit(widget, 1)
    page.keyboard.type("me")
    editor.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    settled(widget)
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text("me")


def test_suggestions_are_reached_with_the_arrows_and_shown_in_the_input(page: Page, show: Show) -> None:
    widget = show()
    editor = edit(widget, 1)
    editor.get_by_role("option").first.wait_for()
    page.keyboard.press("ArrowDown")
    chosen = editor.locator("[aria-selected=true] .camit-suggestion-text").inner_text()
    expect(editor.get_by_role("combobox")).to_have_value(chosen)
    page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    expect(word(widget, 1)).to_be_focused()


def test_a_word_is_inserted_at_a_gap_and_by_key(page: Page, show: Show) -> None:
    widget = show()
    widget.locator("[data-gap='3']").click(force=True)
    page.keyboard.type("again")
    page.keyboard.press("Enter")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text("again")
    settled(widget)
    page.keyboard.press("Home")
    page.keyboard.press("Insert")
    page.keyboard.type("Well")
    page.keyboard.press("Enter")
    settled(widget)
    assert words(widget)[0] == "Well"
    assert "again" in words(widget), "what was fixed before is still there"


LONG = (
    "他昨天说他不会来参加会议，因为他病了，但是我们都知道他去了公园，在那里他看到了一只狗，还看到了他的朋友。"
)

# Words that a click on the left, in the middle or on the right of what is drawn would miss; for every gap, a
# point where a click hits it; and the marks that end a line.
_AIM = """(line) => {
  const at = (x, y) => document.elementFromPoint(x, y);
  const words = [...line.querySelectorAll('.camit-word')];
  const drawn = words.map((word) => {
    const range = document.createRange();
    range.selectNode(word.firstChild);
    return range.getBoundingClientRect();
  });
  const missed = words.flatMap((word, index) => {
    const { left, width, top, height } = drawn[index];
    const hit = [0.3, 0.5, 0.7].every((part) => at(left + part * width, top + height / 2) === word);
    return hit ? [] : [`${index} ${word.textContent}`];
  });
  const gaps = [...line.querySelectorAll('.camit-gap')].map((gap, index) => {
    const { left, top, height } = gap.getBoundingClientRect();
    for (let by = -16; by <= 16; by += 1)
      if (at(left + by, top + height / 2) === gap) return [left + by + 1, top + height / 2];
    return null;
  });
  const ending = words.flatMap((word, index) => {
    const ends = index + 1 < words.length && drawn[index + 1].top > drawn[index].top + 5;
    return ends && /^[,.]$/.test(word.firstChild.textContent) ? [index] : [];
  });
  return { missed, gaps, ending };
}"""


def test_every_word_and_every_mark_can_be_hit_and_so_can_every_gap(page: Page, show: Show) -> None:
    widget = show([LONG])
    line = widget.locator(".camit-target")
    try:
        for width in range(1280, 700, -20):
            page.set_viewport_size({"width": width, "height": 1000})
            aim = line.evaluate(_AIM)
            assert aim["missed"] == [], width
            assert None not in aim["gaps"], width
            if aim["ending"]:
                break
        assert aim["ending"], "no mark at the end of a line, however wide the window is"
        mark = aim["ending"][0]
        editor = edit(widget, mark)
        expect(editor).to_have_attribute("aria-label", f"Change “{words(widget)[mark]}”")
        page.keyboard.press("Escape")
        # Before the first word, between two, before a mark, at the end of a line, behind the last word.
        for gap in (0, 2, mark, mark + 1, len(words(widget))):
            page.mouse.click(*aim["gaps"][gap])
            expect(widget.locator("[data-open]")).to_have_attribute("data-gap", str(gap))
            page.keyboard.press("Escape")
    finally:
        page.set_viewport_size({"width": 1280, "height": 1000})


def test_a_click_elsewhere_takes_what_is_typed_and_lands_where_it_was_aimed(page: Page, show: Show) -> None:
    widget = show()
    edit(widget, 1)
    page.keyboard.type("encountered")
    word(widget, 5).click(delay=80)
    expect(widget.locator(".camit-editor")).to_have_attribute("aria-label", "Change “park”")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text("encountered")
    page.keyboard.type("garden")
    widget.locator("[data-gap='2']").click(force=True, delay=80)
    expect(widget.locator(".camit-editor")).to_have_attribute("aria-label", "Insert a word")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text(["encountered", "garden"])
    page.keyboard.type("only")
    page.keyboard.press("Enter")
    settled(widget)
    mine = widget.locator(".camit-word[data-origin=yours]")
    expect(mine).to_have_text(["encountered", "only", "garden"])


def test_the_ring_of_a_word_stays_clear_of_the_mark_behind_it(show: Show) -> None:
    widget = show()
    last = len(words(widget)) - 2
    word(widget, last).focus()
    room = widget.locator(".camit-target").evaluate(
        """(line, last) => {
          const words = line.querySelectorAll('.camit-word');
          const style = getComputedStyle(words[last]);
          const ring = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
          const range = document.createRange();
          range.selectNode(words[last + 1].firstChild);
          return range.getBoundingClientRect().left - words[last].getBoundingClientRect().right - ring;
        }""",
        last,
    )
    assert room >= -1.5, "what is drawn of a full stop begins 2 pixels in"


def test_the_editor_stays_in_the_window_whatever_scrolls(page: Page, show: Show) -> None:
    widget = show(None, "print('line\\n' * 120)")
    ran(page, 1)
    editor = edit(widget, 1)
    notebook = page.locator(".jp-WindowedPanel-outer")
    for by in (200, 300, 500):
        notebook.evaluate("(element, by) => element.scrollBy(0, by)", by)
        page.wait_for_timeout(300)
        box = editor.bounding_box()
        assert box is not None
        assert box["y"] >= 0 and box["y"] + box["height"] <= 1000, by
    assert widget.locator(".camit-target").evaluate("(line) => line.getBoundingClientRect().bottom") < 0
    page.keyboard.press("Escape")


def test_an_input_method_writes_into_the_editor_from_its_first_key_on(page: Page, show: Show) -> None:
    widget = show()
    word(widget, 1).focus()
    keyboard = page.context.new_cdp_session(page)
    taken = {"type": "rawKeyDown", "key": "Process", "code": "KeyN", "windowsVirtualKeyCode": 229}
    keyboard.send("Input.dispatchKeyEvent", taken)
    keyboard.send("Input.imeSetComposition", {"text": "n", "selectionStart": 1, "selectionEnd": 1})
    keyboard.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    keyboard.send("Input.insertText", {"text": "你"})
    expect(widget.locator(".camit-editor input")).to_have_value("你")
    page.keyboard.press("Enter")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text("你")
    settled(widget)
    keyboard.detach()


def test_writing_over_the_whole_sentence_takes_what_was_written(page: Page, show: Show) -> None:
    widget = show()
    word(widget, 2).focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("I met a dog today.")
    page.keyboard.press("Enter")
    settled(widget)
    expect(widget.get_by_role("alert")).to_have_count(0)
    assert words(widget) == ["I", "met", "a", "dog", "today", "."]
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(6)


def test_a_word_is_deleted(page: Page, show: Show) -> None:
    widget = show()
    last = words(widget)[-2]
    word(widget, len(words(widget)) - 2).focus()
    page.keyboard.press("Delete")
    expect(widget.locator(".camit-row[data-status=revised]")).to_have_count(1)
    settled(widget)
    assert words(widget)[-2] != last


def test_a_span_is_written_anew_between_its_ends(page: Page, show: Show) -> None:
    widget = show()
    before = words(widget)
    word(widget, 2).focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    expect(widget.locator(".camit-word[aria-selected=true]")).to_have_count(3)
    page.keyboard.press("Control+Delete")
    expect(widget.locator(".camit-row[data-status=revised]")).to_have_count(1)
    settled(widget)
    assert words(widget)[:2] == before[:2]
    assert words(widget)[-1] == before[-1]
    expect(word(widget, 2)).to_be_focused()


def test_dragging_over_words_selects_a_phrase_to_replace(page: Page, show: Show) -> None:
    widget = show()
    before = words(widget)
    word(widget, 3).hover()
    page.mouse.down()
    word(widget, 4).hover()
    word(widget, 5).hover()
    page.mouse.up()
    editor = widget.locator(".camit-editor")
    expect(editor.get_by_role("combobox")).to_have_value(" ".join(before[3:6]))
    expect(editor.get_by_role("button", name="rewrite")).to_be_visible()
    page.keyboard.type("at school")
    page.keyboard.press("Enter")
    settled(widget)
    assert words(widget)[3:5] == ["at", "school"] or "at school" in " ".join(words(widget))


def test_undo_and_redo_by_key_and_by_button(page: Page, show: Show) -> None:
    widget = show()
    first = words(widget)
    type_over(page, widget, 1, "met")
    second = words(widget)
    page.keyboard.press("Control+z")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(0)
    assert words(widget) == first
    page.keyboard.press("Control+Shift+z")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(1)
    assert words(widget) == second
    widget.get_by_role("button", name="Undo").click()
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(0)
    widget.get_by_role("button", name="Redo").click()
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(1)


def test_a_locked_word_shows_its_lock_and_survives_a_revision(page: Page, show: Show) -> None:
    widget = show()
    last = words(widget)[-2]
    word(widget, len(words(widget)) - 2).focus()
    page.keyboard.press("Space")
    expect(widget.locator(".camit-word > [data-icon=lock]")).to_have_count(1)
    type_over(page, widget, 1, "met")
    assert last in words(widget)


def test_looking_at_a_word_lights_up_what_it_read_and_the_other_way_round(page: Page, show: Show) -> None:
    widget = show()
    page.mouse.move(0, 0)
    lit = widget.locator(".camit-sourceword[data-lit]")
    word(widget, 1).hover()
    expect(lit.first).to_be_visible()
    expect(widget.locator(".camit-message")).to_contain_text("probability")
    widget.locator(".camit-sourceword").nth(1).hover()
    expect(widget.locator(".camit-message")).to_contain_text(re.compile("Read"))
    strongest = widget.locator(".camit-target .camit-word").evaluate_all(
        "(all) => Math.max(...all.map((word) => Number(word.style.getPropertyValue('--lit'))))"
    )
    assert strongest > 0.2


def test_the_last_revision_is_played_back_step_by_step(page: Page, show: Show) -> None:
    widget = show()
    type_over(page, widget, 1, "met")
    result = words(widget)
    widget.get_by_role("button", name="Replay").click()
    caption = widget.locator(".camit-caption")
    expect(caption).to_contain_text("Before")
    widget.get_by_role("button", name="Step forward").click()
    expect(caption).to_contain_text("Forward")
    widget.get_by_role("button", name="Step forward").click()
    expect(caption).to_contain_text("Backward")
    widget.get_by_role("button", name="Step forward").click()
    expect(caption).to_contain_text("Result")
    assert words(widget) == result
    page.keyboard.press("Escape")
    expect(caption).to_have_count(0)


def tap(widget: Locator, index: int) -> None:
    """A click quicker than any person's."""
    word(widget, index).dispatch_event("pointerdown", {"button": 0})
    word(widget, index).dispatch_event("pointerup", {"button": 0})


def has_keyboard(widget: Locator) -> bool:
    """Nobody types before the editor is there; a second is more than it takes."""
    try:
        expect(widget.locator(".camit-editor input")).to_be_focused(timeout=1000)
    except AssertionError:
        return False
    return True


def test_fifty_rapid_clicks_leave_what_the_kernel_has(page: Page, show: Show) -> None:
    widget = show(None, "print('ready')")
    ran(page, 1)
    for turn in range(50):
        tap(widget, 1 + turn % 5)
        if turn % 3 == 2:
            for _ in range(60):
                if has_keyboard(widget):
                    break
                tap(widget, 1 + turn % 5)  # the answer to an earlier fix took the word, and its editor, away
            page.keyboard.type(f"w{turn}")
            page.keyboard.press("Enter")
    settled(widget)
    page.keyboard.press("Escape")  # not before: without an editor it would stop what is on its way
    expect(widget.get_by_role("alert")).to_have_count(0)
    expect(widget.locator(".camit-effort")).to_contain_text("16 revisions")
    shown = words(widget)
    page.evaluate(
        """() => { const cells = jupyterapp.shell.currentWidget.content.widgets;
        cells[1].model.sharedModel.setSource("print('|'.join(t.text for t in w.drafts[0].tokens))");
        jupyterapp.shell.currentWidget.content.activeCellIndex = 1;
        jupyterapp.commands.execute('notebook:run-cell'); }"""
    )
    expect(page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")).to_have_text("|".join(shown))
    assert "w47" in shown


def test_what_is_done_in_a_hurry_is_all_done(page: Page, show: Show) -> None:
    widget = show()
    place, rows = widget.locator(".camit-place"), widget.locator(".camit-row[data-status=confirmed]")
    # Two words at two places, without waiting for the first.
    word(widget, 0).focus()
    for keys in ("They", "met"):
        page.keyboard.type(keys)
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowRight")
    settled(widget)
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text(["They", "met"])
    # Another one, locked, confirmed at once and impatiently: it is confirmed once, with all of it.
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    expect(place).to_have_text("Sentence 2 of 4")
    expect(rows).to_have_count(1)
    expect(widget.get_by_role("alert")).to_have_count(0)
    # What is in the editor is confirmed with the rest; a key that is held down confirms no more than that.
    settled(widget)
    edit(widget, 0)
    page.keyboard.type("She")
    page.keyboard.down("Control")
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.keyboard.up("Control")
    expect(place).to_have_text("Sentence 3 of 4")
    expect(rows).to_have_count(2)
    expect(widget.locator(".camit-note")).to_contain_text("Sentence 2 confirmed.")
    # The sentence is left only after the change that was made in it.
    settled(widget)
    word(widget, 0).focus()
    page.keyboard.type("He")
    page.keyboard.press("Enter")
    page.keyboard.press("PageDown")
    expect(place).to_have_text("Sentence 4 of 4")
    settled(widget)
    page.keyboard.press("PageUp")
    expect(place).to_have_text("Sentence 3 of 4")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_text(["He"])
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    expect(place).to_have_text("Sentence 1 of 4")
    settled(widget)
    assert {"They", "met", "Ann"} <= set(words(widget))
