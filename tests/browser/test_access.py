"""Keyboard only, screen readers, contrast, and living beside JupyterLab's own shortcuts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import NAMED, Show, confirm, edit, ran, settled, type_over, words


def test_a_sentence_is_revised_and_confirmed_without_a_mouse(page: Page, show: Show) -> None:
    widget = show()
    before = words(widget)
    widget.locator(".camit-target [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.type("met")
    expect(widget.get_by_role("combobox")).to_have_value("met")
    page.keyboard.press("Enter")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_be_focused()
    settled(widget)
    assert words(widget)[0] == before[0]
    expect(widget.locator("[aria-live=polite]").last).to_contain_text("changed for you")
    page.keyboard.press("Control+Enter")
    expect(widget.locator(".camit-place")).to_have_text("Sentence 2 of 4")
    settled(widget)
    page.keyboard.press("PageUp")
    expect(widget.locator(".camit-place")).to_have_text("Sentence 1 of 4")


def test_the_source_is_read_by_keyboard_and_its_translation_lights_up(page: Page, show: Show) -> None:
    widget = show()
    widget.locator(".camit-row[aria-current]").focus()
    page.keyboard.press("Tab")
    source = widget.locator(".camit-sourceword")
    expect(source.first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(source.nth(1)).to_be_focused()
    expect(widget.locator(".camit-message")).to_contain_text("Read while writing")
    lit = widget.locator(".camit-target .camit-word").evaluate_all(
        "(all) => Math.max(...all.map((word) => Number(word.style.getPropertyValue('--lit'))))"
    )
    assert lit > 0.2
    page.keyboard.press("Tab")
    expect(widget.locator(".camit-target .camit-word").first).to_be_focused()


def test_arrows_follow_the_lines_as_they_are_broken(page: Page, show: Show) -> None:
    widget = show(["我们昨天在公园里看到了他，" * 5 + "他走了。"])
    first = widget.locator(".camit-target [role=option]").first
    first.focus()
    page.keyboard.press("ArrowDown")
    top = first.bounding_box()
    now = widget.locator("[role=option]:focus").bounding_box()
    assert top is not None and now is not None
    assert now["y"] > top["y"] + 10
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()


def test_jupyterlabs_shortcuts_do_not_fire_in_the_widget(page: Page, show: Show) -> None:
    widget = show(None, "1 + 1")
    ran(page, 1)
    prompt = page.locator(".jp-Cell").first.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    widget.locator(".camit-word").first.focus()
    page.keyboard.press("Control+Enter")
    expect(widget.locator(".camit-place")).to_have_text("Sentence 2 of 4")
    settled(widget)
    widget.locator(".camit-row").nth(1).focus()
    for key in ("d", "d", "a", "b", "x", "m", "0", "0"):
        page.keyboard.press(key)
    widget.locator(".camit-word").first.click()
    for key in ("d", "d", "Shift+Enter"):
        page.keyboard.press(key)
    settled(widget)
    widget.locator(".camit-word").first.focus()
    page.keyboard.press("Alt+Enter")
    cell = page.locator(".jp-Cell .cm-content").last
    cell.click()
    page.keyboard.type(" + 2")
    written = cell.inner_text()
    widget.locator(".camit-word").first.click()
    page.keyboard.type("ab")
    page.keyboard.press("Control+z")
    assert cell.inner_text() == written
    page.keyboard.press("Escape")
    page.wait_for_timeout(200)
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    assert prompt.inner_text() == before
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def test_no_click_in_the_widget_gives_the_keyboard_to_the_notebook(page: Page, show: Show) -> None:
    widget = show(None, "1 + 1")
    ran(page, 1)
    cells = page.locator(".jp-Notebook .jp-Cell")
    expect(cells).to_have_count(2)

    def click(selector: str, x: float, y: float) -> None:
        """On a spot of an element, in shares of its size."""
        box = widget.locator(selector).bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])

    edit(widget, 1)
    page.keyboard.type("me")
    for spot in (
        (".camit-editor", 0.5, 0.01),
        (".camit-operations", 0.98, 0.5),
        (".camit-suggestions", 0.5, 0.97),
    ):
        click(*spot)
        expect(widget.locator(".camit-editor input")).to_be_focused()
    page.keyboard.type("t")
    expect(widget.locator(".camit-editor input")).to_have_value("met")
    page.keyboard.press("Escape")
    inside = "() => document.activeElement.closest('.camit') !== null"
    for spot in (
        (".camit-header", 0.55, 0.9),
        (".camit-rail", 0.5, 0.95),
        (".camit-message", 0.9, 0.5),
        (".camit-tabs", 0.9, 0.5),
        (".camit-panel", 0.9, 0.95),
    ):
        click(*spot)
        assert page.evaluate(inside), spot
        for key in ("x", "d", "d", "a", "b"):
            page.keyboard.press(key)
    page.keyboard.press("?")
    click(".camit-help p", 0.5, 0.5)
    assert page.evaluate("() => document.activeElement.closest('.camit-help') !== null")
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    page.wait_for_timeout(200)
    expect(cells).to_have_count(2)


def test_help_lists_the_keys_keeps_the_focus_and_gives_it_back(page: Page, show: Show) -> None:
    widget = show()
    widget.locator(".camit-word").first.focus()
    page.keyboard.press("?")
    dialog = widget.get_by_role("dialog", name="Keys and help")
    expect(dialog).to_contain_text("confirm the sentence")
    for key in ("Tab", "Tab", "Shift+Tab", "PageDown", "Control+Enter", "Delete"):
        page.keyboard.press(key)
        expect(dialog.locator(":focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(widget.locator(".camit-word").first).to_be_focused()
    expect(widget.locator(".camit-place")).to_have_text("Sentence 1 of 4")
    expect(widget.locator(".camit-row[data-status=draft]")).to_have_count(4)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_in_either_theme(
    page: Page, show: Show, violations: Callable[[], list[str]], theme: str
) -> None:
    page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    try:
        widget = show(NAMED)
        wanted = "dark" if "Dark" in theme else "light"
        expect(page.locator(f".camit[data-camit-theme={wanted}]")).to_have_count(1)
        assert violations() == []
        type_over(page, widget, 0, "Redford")
        confirm(page, widget)
        widget.locator(".camit-row").nth(2).click()
        settled(widget)
        expect(widget.locator(".camit-badge")).to_have_count(1)
        for tab in ("Memory", "Attention", "Learning", "Steps"):
            widget.get_by_role("tab", name=tab).click()
            assert violations() == [], tab
        widget.locator(".camit-word").nth(0).click()
        widget.locator(".camit-editor").get_by_role("option").first.wait_for()
        assert violations() == [], "editor"
        page.keyboard.press("Escape")
        for name in ("Keys and help", "Copy, export, settings"):
            widget.get_by_role("button", name=name).click()
            assert violations() == [], name
            if name == "Keys and help":
                page.keyboard.press("Escape")
        widget.get_by_role("menuitem", name="Settings…").click()
        assert violations() == [], "settings"
        page.keyboard.press("Escape")
        expect(widget.get_by_role("button", name="Copy, export, settings")).to_be_focused()
    finally:
        page.evaluate("jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' })")


def test_reduced_motion_is_honoured(page: Page, show: Show) -> None:
    widget = show()
    type_over(page, widget, 1, "met")
    page.emulate_media(reduced_motion="reduce")
    try:
        widget.get_by_role("button", name="Replay").click()
        expect(widget.get_by_role("button", name="Play", exact=True)).to_be_visible()
        page.wait_for_timeout(2500)
        expect(widget.locator(".camit-caption")).to_contain_text("Before")
        running = widget.locator(".camit-word").evaluate_all(
            "(all) => all.flatMap((word) => word.getAnimations()).length"
        )
        assert running == 0
    finally:
        page.emulate_media(reduced_motion="no-preference")


def test_nothing_below_the_words_moves_while_a_change_is_on_its_way(page: Page, show: Show) -> None:
    widget = show()
    actions = widget.locator(".camit-actions")
    heights = widget.evaluate("(root) => root.getBoundingClientRect().height")
    before = actions.bounding_box()
    widget.locator(".camit-word").nth(1).click()
    assert actions.bounding_box() == before
    page.keyboard.type("met")
    page.keyboard.press("Enter")
    assert actions.bounding_box() == before
    settled(widget)
    assert actions.bounding_box() == before
    widget.get_by_role("button", name="Replay").click()
    assert actions.bounding_box() == before
    page.keyboard.press("Escape")
    assert widget.evaluate("(root) => root.getBoundingClientRect().height") == heights


def test_a_narrow_widget_holds_still_and_nothing_of_it_is_cut_off(page: Page, show: Show) -> None:
    widget = show(NAMED)
    style = page.add_style_tag(content=".camit { width: var(--wide, 360px); }")
    try:
        page.set_viewport_size({"width": 480, "height": 700})
        type_over(page, widget, 0, "Redford")
        confirm(page, widget)
        widget.locator(".camit-row").nth(2).click()
        expect(widget.locator(".camit-badge")).to_have_count(1)
        # The word in focus is explained on several lines, until the mouse goes down somewhere else.
        widget.locator(".camit-word").first.focus()
        stood = _top_of_the_tabs(widget)
        widget.get_by_role("button", name="Forget Redford").click(delay=100)
        expect(widget.locator(".camit-entry")).to_have_count(0)
        expect(widget.get_by_label("Source to remember")).to_be_focused()
        assert _top_of_the_tabs(widget) == stood
        widget.locator(".camit-word").first.focus()
        for key in ("Home", "Shift+End", "Delete"):
            page.keyboard.press(key)
        expect(widget.get_by_role("alert")).to_contain_text("Deleting every word would leave no sentence")
        assert _top_of_the_tabs(widget) == stood
        for name in ("Keys and help", "Copy, export, settings", "Settings…"):
            widget.get_by_role("menuitem" if name[-1] == "…" else "button", name=name).click()
            box = widget.locator(".camit-popup").bounding_box()
            assert box is not None
            assert box["x"] >= 0 and box["x"] + box["width"] <= 480, name
            assert box["y"] >= 0 and box["y"] + box["height"] <= 700, name
            if name[0] != "C":
                page.keyboard.press("Escape")
        widget.evaluate("(root) => root.style.setProperty('--wide', '110px')")
        assert widget.evaluate("(root) => root.scrollWidth - root.clientWidth") == 0
    finally:
        page.set_viewport_size({"width": 1280, "height": 1000})
        style.evaluate("(element) => element.remove()")


def _top_of_the_tabs(widget: Locator) -> float:
    top: float = widget.evaluate(
        "(root) => root.querySelector('[role=tablist]').getBoundingClientRect().top"
        " - root.getBoundingClientRect().top"
    )
    return top
