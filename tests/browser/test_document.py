"""Confirming, remembering, learning; several views, reloads, restarts: what a session goes through."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re

from playwright.sync_api import Browser, Locator, Page, TimeoutError, expect

from camit_widget import browser as harness
from tests.browser.steps import NAMED, SENTENCES, Show, confirm, ran, settled, type_over, words


def test_confirming_shows_the_lesson_and_goes_on_and_can_be_taken_back(page: Page, show: Show) -> None:
    widget = show()
    type_over(page, widget, 1, "met")
    confirm(page, widget)
    expect(widget.locator(".camit-place")).to_have_text("Sentence 2 of 4")
    expect(widget.locator(".camit-note")).to_contain_text(re.compile(r"(Learned|Not learned): "))
    widget.get_by_role("tab", name="Learning").click()
    expect(widget.locator(".camit-lead")).to_contain_text("of 1 lesson")
    expect(widget.locator(".camit-curve-after")).to_have_count(1)
    widget.get_by_role("button", name="Take back", exact=True).click()
    expect(widget.locator(".camit-place")).to_have_text("Sentence 1 of 4")
    expect(widget.locator(".camit-row[data-status=confirmed]")).to_have_count(0)
    expect(widget.locator(".camit-lead")).to_contain_text("No lesson yet")


def test_a_remembered_word_comes_back_with_its_weight_badge_and_heat_map(page: Page, show: Show) -> None:
    widget = show(NAMED)
    type_over(page, widget, 0, "Redford")
    confirm(page, widget)
    widget.locator(".camit-row").nth(2).click()
    badge = widget.locator(".camit-word .camit-badge")
    expect(badge).to_have_count(1)
    expect(badge).to_have_attribute("title", re.compile("“Redford”, sentence 1"))
    theta = badge.locator("..").evaluate("(word) => Number(word.style.getPropertyValue('--theta'))")
    assert theta > 0.3
    badge.locator("..").click()
    page.keyboard.press("Escape")
    widget.get_by_role("tab", name="Memory").click()
    rows = widget.locator(".camit-heat-row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("Redford · sentence 1")
    shades = (
        rows.nth(1)
        .locator("i")
        .evaluate_all("(all) => all.map((cell) => Number(cell.style.getPropertyValue('--shade')))")
    )
    assert max(shades) > 0.3
    rows.nth(1).locator(".camit-entry").click()
    expect(widget.locator(".camit-provenance")).to_contain_text("Redford")
    widget.get_by_role("button", name="Pin Redford").click()
    expect(rows.nth(1)).to_contain_text("pinned")
    before = rows.nth(1).inner_text()
    widget.get_by_role("button", name="Forget Redford").click()
    expect(widget.locator(".camit-heat-row")).to_have_count(0)
    done = widget.locator(".camit-done")
    expect(done).to_contain_text("Forgot “Redford”.")
    done.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_have_text(before.replace("\n", " "), use_inner_text=True)
    expect(done.get_by_role("button", name="Undo")).to_be_focused()


def test_a_term_can_be_remembered_by_hand(page: Page, show: Show) -> None:
    widget = show()
    widget.get_by_label("Source to remember").fill("蓝鲸")
    widget.get_by_label("Translation to remember").fill("blue whale")
    page.keyboard.press("Enter")
    expect(widget.locator(".camit-entry")).to_contain_text("blue whale · added by hand")
    expect(widget.locator(".camit-done")).to_contain_text("Remembered “blue whale”.")
    widget.get_by_label("Source to remember").fill("蓝鲸")
    widget.get_by_label("Translation to remember").fill("blue whale")
    page.keyboard.press("Enter")
    expect(widget.locator(".camit-done")).to_contain_text("remembered for that already")
    expect(widget.locator(".camit-entry")).to_have_count(1)


def test_two_views_of_one_widget_stay_in_step(page: Page, lab: harness.Lab, show: Show) -> None:
    first = show(None, "w")
    second = lab.widget(page, 1)
    type_over(page, first, 1, "met")
    expect(second.locator(".camit-word[data-origin=yours]")).to_have_text("met")
    assert words(first) == words(second)
    second.locator(".camit-row").nth(1).click()
    expect(first.locator(".camit-place")).to_have_text("Sentence 2 of 4")
    settled(first)
    assert words(first) == words(second)


def test_a_reloaded_page_shows_the_same_state_and_works_on(page: Page, lab: harness.Lab, show: Show) -> None:
    widget = show()
    type_over(page, widget, 1, "met")
    before = words(widget)
    page.keyboard.press("Control+s")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    page.reload()
    lab.wait_for_kernel(page)
    widget = lab.widget(page)
    assert words(widget) == before
    expect(widget.locator(".camit-connection")).to_have_count(0)
    widget.get_by_role("button", name="Undo").click()
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(0)


def test_a_saved_notebook_carries_less_than_400_kb_of_widget_state(
    page: Page, lab: harness.Lab, show: Show
) -> None:
    widget = show()
    type_over(page, widget, 1, "met")
    confirm(page, widget)
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    path = page.evaluate("jupyterapp.shell.currentWidget.context.path")
    saved = json.loads((lab.root / path).read_text(encoding="utf-8"))
    state = json.dumps(saved["metadata"]["widgets"])
    assert '"_sentence"' in state
    assert len(state) <= 400_000


def test_a_second_run_of_the_cell_works(page: Page, show: Show) -> None:
    type_over(page, show(), 1, "met")
    page.evaluate(
        "() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 0; "
        "jupyterapp.commands.execute('notebook:run-cell'); }"
    )
    expect(page.locator(".camit-word[data-origin=yours]")).to_have_count(0)
    type_over(page, harness.Lab.widget(page), 1, "met")


def test_an_exception_in_the_engine_is_shown_in_place(page: Page, show: Show) -> None:
    widget = show(None, "w.drafts[0].replace = lambda *_, **__: 1 / 0")
    before = words(widget)
    ran(page, 1)
    widget.locator(".camit-word").nth(1).click()
    page.keyboard.type("met")
    page.keyboard.press("Enter")
    alert = widget.get_by_role("alert")
    expect(alert).to_contain_text("ZeroDivisionError")
    expect(alert).to_contain_text("The sentence stands as it was")
    assert words(widget) == before
    alert.get_by_role("button", name="Dismiss").click()
    expect(alert).to_have_count(0)


def test_a_running_cell_does_not_freeze_the_widget(page: Page, show: Show) -> None:
    # Far longer than a change takes on any machine; interrupted once it is made.
    widget = show(None, "import time\nfor _ in range(3000):\n    time.sleep(0.1)")
    prompt = page.locator(".jp-Cell").nth(1).locator(".jp-InputPrompt")
    expect(prompt).to_have_text("[*]:")
    try:
        type_over(page, widget, 1, "met")
        expect(prompt).to_have_text("[*]:")
        expect(widget.locator(".camit-connection")).to_have_count(0)
    finally:
        page.evaluate("jupyterapp.commands.execute('notebook:interrupt-kernel')")
        ran(page, 1)


def test_two_hundred_sentences_can_be_entered_anywhere(page: Page, show: Show) -> None:
    widget = show([f"{number}号房间的客人昨天走了。" for number in range(1, 201)])
    expect(widget.locator(".camit-row")).to_have_count(200)
    widget.locator(".camit-row").nth(149).click()
    expect(widget.locator(".camit-source")).to_contain_text("150")
    widget.locator(".camit-target .camit-word").first.wait_for()
    settled(widget)
    type_over(page, widget, 1, "visitor")
    expect(widget.locator(".camit-row").nth(149)).to_have_attribute("data-status", "revised")


def test_a_sentence_of_sixty_words_fits(page: Page, show: Show) -> None:
    widget = show(["我们昨天在公园里看到了他，" * 11 + "他走了。"])
    box = widget.locator(".camit-target").bounding_box()
    assert box is not None
    right = widget.locator(".camit-target .camit-word").evaluate_all(
        "(all) => Math.max(...all.map((word) => word.getBoundingClientRect().right))"
    )
    assert right <= box["x"] + box["width"] + 4


EVIL = '<img src=x onerror="window.hacked=1"> </script><script>window.hacked=1</script>'


def test_markup_in_sentences_is_text_everywhere(
    page: Page, show: Show, lab: harness.Lab, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "offline.html"
    widget = show([EVIL, "你好。"], f"_ = w.to_html({str(path)!r})")
    ran(page, 1)
    type_over(page, widget, 0, "<img src=x onerror=window.hacked=2>")
    confirm(page, widget)
    widget.locator(".camit-row").nth(0).click()
    for tab in ("Attention", "Learning", "Steps", "Memory"):
        widget.get_by_role("tab", name=tab).click()
    expect(widget.locator(".camit-source")).to_contain_text("onerror")
    assert widget.locator("img, script").count() == 0
    assert page.evaluate("window.hacked") is None
    other = page.context.new_page()
    other.goto(path.as_uri())
    expect(other.locator(".camit-source")).to_contain_text("onerror")
    assert other.locator(".camit img, .camit script").count() == 0
    assert other.evaluate("window.hacked") is None
    other.close()


def test_the_offline_page_shows_the_same_view_read_only(
    page: Page, show: Show, lab: harness.Lab, tmp_path: pathlib.Path
) -> None:
    widget = show(NAMED)
    type_over(page, widget, 0, "Redford")
    confirm(page, widget)
    widget.locator(".camit-row").nth(2).click()
    expect(widget.locator(".camit-badge")).to_have_count(1)
    widget.locator(".camit-row").nth(1).click()
    with page.expect_download() as download:
        widget.get_by_role("button", name="Copy, export, settings").click()
        widget.get_by_role("menuitem", name="Offline page").click()
    path = tmp_path / "page.html"
    download.value.save_as(path)
    other = page.context.new_page()
    asked: list[str] = []
    other.on("request", lambda request: asked.append(request.url))
    other.goto(path.as_uri())
    still = harness.Lab.widget(other)
    assert (
        still.locator(".camit-row-text").all_inner_texts()
        == widget.locator(".camit-row-text").all_inner_texts()
    )
    still.locator(".camit-row").nth(2).click()
    expect(still.locator(".camit-badge")).to_have_count(1)
    expect(still.locator(".camit-heat-row")).to_have_count(2)
    still.locator(".camit-word").nth(1).click()
    expect(still.locator(".camit-editor")).to_have_count(0)
    expect(still.get_by_role("button", name="Confirm", exact=True)).to_have_count(0)
    for line, language in ((".camit-source", "zh"), (".camit-target", "en")):
        expect(still.locator(line)).to_have_attribute("lang", language)
        expect(still.locator(line)).to_have_attribute("dir", "auto")
    assert all(url.startswith(("file:", "blob:", "data:")) for url in asked), asked
    other.close()


def test_the_translation_is_copied(page: Page, show: Show) -> None:
    widget = show()
    widget.get_by_role("button", name="Copy, export, settings").click()
    widget.get_by_role("menuitem", name="Copy this sentence").click()
    expect(widget.locator(".camit-note")).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.replace(" ", "") == "".join(words(widget))


def test_settings_reach_the_session(page: Page, show: Show) -> None:
    widget = show(None, "")
    widget.get_by_role("button", name="Copy, export, settings").click()
    widget.get_by_role("menuitem", name="Settings").click()
    panel = widget.get_by_role("dialog", name="Settings")
    panel.get_by_label("Beam").fill("2")
    panel.get_by_label("Beam").press("Tab")
    panel.get_by_label("Revision").select_option("unidirectional")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    widget.get_by_role("switch", name="Learning").click()
    expect(widget.get_by_role("switch", name="Learning")).to_have_attribute("aria-checked", "false")
    page.evaluate(
        """() => { const notebook = jupyterapp.shell.currentWidget.content;
        notebook.widgets[1].model.sharedModel.setSource(
          "print(w.session.settings.beam, w.session.settings.protocol, w.session.learning.enabled)");
        notebook.activeCellIndex = 1; jupyterapp.commands.execute('notebook:run-cell'); }"""
    )
    expect(page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")).to_have_text(
        "2 unidirectional False"
    )


def test_a_restarted_kernel_is_said_clearly_and_running_the_cell_again_helps(
    page: Page, lab: harness.Lab, show: Show
) -> None:
    widget = show()
    before = words(widget)
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    notice = widget.locator(".camit-connection[data-connection=lost]")
    expect(notice).to_contain_text("run the cell again")
    assert words(widget) == before
    widget.locator(".camit-word").nth(1).click()
    expect(widget.locator(".camit-editor")).to_have_count(0)
    lab.wait_for_kernel(page)
    widget = show()
    expect(widget.locator(".camit-connection")).to_have_count(0)


def reopened(page: Page, lab: harness.Lab, name: str) -> Locator:
    """The widget of a saved notebook that is opened with a fresh kernel.

    On a slow machine JupyterLab's widget manager may say "restored" on hearing the kernel, before it has
    read the notebook's saved models; then it shows no widget of any kind until the page is loaded again.
    """
    word = page.locator(".camit-word").first
    for _ in range(4):
        page.goto(f"{lab.address}/lab/tree/{name}?reset")  # alone, whatever other pages have open
        lab.wait_for_kernel(page)
        with contextlib.suppress(TimeoutError):
            word.wait_for(timeout=harness.PATIENCE_MS / 6)
            break
    return lab.widget(page)


def test_a_kernel_that_is_shut_down_is_said_at_once_and_a_reopened_notebook_says_it_was_saved(
    browser: Browser, lab: harness.Lab
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(harness.PATIENCE_MS)
    page = context.new_page()
    name = lab.open(page)
    lab.run(page, f"from camit_widget import CamitWidget\nCamitWidget({SENTENCES!r})")
    ran(page, 0)
    widget = lab.widget(page)
    settled(widget)
    before = words(widget)
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    notice = widget.locator(".camit-connection")
    expect(notice).to_contain_text("restarted or shut down")
    widget = reopened(page, lab, name)
    expect(notice).to_contain_text("Run the cell to go on working")
    expect(notice).to_have_attribute("data-connection", "saved")
    assert words(widget) == before
    widget.locator(".camit-word").nth(1).click()
    expect(widget.locator(".camit-editor")).to_have_count(0)
    widget.locator(".camit-row").nth(1).click()
    expect(widget.get_by_role("alert")).to_contain_text("Run the cell to go on working")
    context.close()
