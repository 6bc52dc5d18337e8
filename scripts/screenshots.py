"""Draws the README's pictures anew: the widget in light, dark and narrow, in a real JupyterLab.

    python -m scripts.screenshots             # writes docs/images/widget-*.png

A scene is played as a person would play it, so the pictures show what the widget really does.
"""

from __future__ import annotations

import pathlib
import sys
from typing import TYPE_CHECKING

from scripts.png import packed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

    from camit_widget.browser import Lab

IMAGES = pathlib.Path(__file__).parents[1] / "docs" / "images"
DOCUMENT = [
    "雷福昨天来参加会议了。",
    "她把钥匙忘在了桌子上。",
    "雷福说他不会来参加会议，因为他病了。",
    "你为什么不告诉我真相？",
    "我们需要更多的时间来完成这个项目。",
    "他是我最好的朋友。",
    "明天会下雨吗？",
    "谢谢你的帮助。",
]
# Alone on the page: the notebook's own bars and prompts are not what is to be seen.
_ALONE = """
.jp-Notebook { padding: 12px !important; }
.jp-Cell-inputWrapper, .jp-OutputPrompt, .jp-OutputArea-promptOverlay { display: none !important; }
.jp-Notebook-footer, .jp-Collapser { display: none !important; }
.jp-OutputArea-output { overflow: visible !important; }
.jp-Cell, .jp-Cell::before, .jp-Cell::after { border: 0 !important; box-shadow: none !important; }
"""


def main() -> None:
    from camit_widget import browser as harness  # a development tool: playwright is needed only here

    IMAGES.mkdir(parents=True, exist_ok=True)
    with harness.lab() as lab, harness.browser() as browser:
        for name, theme, width in (
            ("light", "JupyterLab Light", 960),
            ("dark", "JupyterLab Dark", 960),
            ("narrow", "JupyterLab Light", 480),
        ):
            path = IMAGES / f"widget-{name}.png"
            _picture(browser, lab, theme, width, path)
            print(
                f"{path.relative_to(IMAGES.parents[1])}: {path.stat().st_size / 1000:.0f} kB", file=sys.stderr
            )


def _picture(browser: Browser, lab: Lab, theme: str, width: int, path: pathlib.Path) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 1100}, device_scale_factor=1.25)
    page = context.new_page()
    lab.open(page)
    page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    lab.run(page, f"from camit_widget import CamitWidget\nCamitWidget({DOCUMENT!r})")
    widget = lab.widget(page)
    page.add_style_tag(content=_ALONE + f".camit {{ width: {width}px; max-width: {width}px; }}")
    _play(page, widget)
    if width > 680:  # narrower, the editor would cover most of what is to be seen
        _open_editor(page, widget)
    page.wait_for_timeout(600)
    box = widget.bounding_box()
    assert box is not None
    margin = 10
    clip = {"x": box["x"] - margin, "y": box["y"] - margin}
    clip |= {"width": box["width"] + 2 * margin, "height": box["height"] + 2 * margin}
    path.write_bytes(packed(page.screenshot(clip=clip)))  # type: ignore[arg-type]
    context.close()


def _play(page: Page, widget: Locator) -> None:
    """A name is corrected and confirmed; two sentences on it comes back; a word there is changed."""
    _fix(page, widget, 0, "Redford")
    _fix(page, widget, widget.locator(".camit-target .camit-word").count() - 3, "conference")
    page.keyboard.press("Control+Enter")
    widget.locator(".camit-place", has_text="Sentence 2").wait_for()
    _settled(widget)
    page.keyboard.press("Control+Enter")
    widget.locator(".camit-place", has_text="Sentence 3").wait_for()
    _settled(widget)
    widget.locator(".camit-badge").first.wait_for(timeout=60_000)
    _fix(page, widget, 3, "isn't")
    page.mouse.move(0, 0)


def _open_editor(page: Page, widget: Locator) -> None:
    words = widget.locator(".camit-target .camit-word")
    words.nth(max(2, (words.count() - 2) // 2)).click()
    widget.locator(".camit-suggestion").first.wait_for()
    page.mouse.move(0, 0)


def _fix(page: Page, widget: Locator, index: int, text: str) -> None:
    widget.locator(".camit-target .camit-word").nth(index).click()
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    widget.locator(".camit-word[data-origin=yours]").first.wait_for()
    _settled(widget)


def _settled(widget: Locator) -> None:
    widget.locator(".camit-target[aria-busy=false]:not(:has([data-pending]))").wait_for(timeout=60_000)


if __name__ == "__main__":
    main()
