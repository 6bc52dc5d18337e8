"""What a person does in the widget, in words the browser tests share."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

SENTENCES = [
    "我们昨天在公园里看到了他。",
    "他是我最好的朋友。",
    "她在公园里看到了一只狗。",
    "你为什么不告诉我真相？",
]

# A name that the model does not know, in two sentences of three.
NAMED = ["雷福昨天来了。", "他是我最好的朋友。", "雷福是我的朋友。"]

Show = Callable[..., Locator]


def words(widget: Locator) -> list[str]:
    """The words of the translation as they are shown, without badges and locks."""
    texts: list[str] = widget.locator(".camit-target .camit-word").evaluate_all(
        "(all) => all.map((word) => word.firstChild.textContent)"
    )
    return texts


def ran(page: Page, cell: int) -> None:
    """Wait until a cell of the notebook has run."""
    prompt = page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-InputPrompt")
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"))


def settled(widget: Locator) -> None:
    """Wait until nothing is on its way any more."""
    widget.locator(".camit-target[aria-busy=false]:not(:has([data-pending]))").wait_for()


def word(widget: Locator, index: int) -> Locator:
    return widget.locator(".camit-target .camit-word").nth(index)


def edit(widget: Locator, index: int) -> Locator:
    """Click a word and give the editor."""
    word(widget, index).click()
    return widget.locator(".camit-editor")


def type_over(page: Page, widget: Locator, index: int, text: str) -> None:
    edit(widget, index)
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(widget.locator(".camit-word[data-origin=yours]").first).to_be_visible()
    settled(widget)


def confirm(page: Page, widget: Locator) -> None:
    row = widget.locator(".camit-row[data-status=confirmed]")
    before = row.count()
    page.keyboard.press("Control+Enter")
    expect(row).to_have_count(before + 1)
    expect(widget.locator(".camit-note")).to_contain_text("confirmed")
    settled(widget)
