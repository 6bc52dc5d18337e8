"""The widget's figures, measured where they count: in a real browser, with a real kernel.

`python -m camit_widget.bench` prints how long a click takes until the new sentence is painted, what blocks
the page meanwhile, and how large a saved notebook gets. Needs the development dependencies and a Chromium.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from camit_widget import browser as harness

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

_TWENTY_WORDS = "警察认为这个人在离开之前杀了他的妻子，因为有人昨天晚上在公园里看到了他们两个人。"
_SIXTY_WORDS = "我们昨天在公园里看到了他，" * 9 + "然后他走了。"
_LONG_DOCUMENT = [f"{number}号房间的客人昨天走了。" for number in range(1, 201)]


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds over a number of tries."""

    median: float
    p95: float
    tries: int

    @classmethod
    def of(cls, milliseconds: list[float]) -> Spread:
        ordered = sorted(milliseconds)
        return cls(
            round(statistics.median(ordered), 1),
            round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
            len(ordered),
        )


class Figures(msgspec.Struct, frozen=True):
    """Everything that is measured; times in milliseconds."""

    click_to_painted: Spread  # from the click on an alternative to the frame with the new sentence
    alternatives_shown: Spread  # from the click on a word to the list of alternatives
    longest_task_long_sentence: float  # while a sentence of sixty words is revised
    longest_task_long_document: (
        float  # while a document of two hundred sentences is opened and walked through
    )
    saved_state_bytes: int  # widget state in a saved notebook with one widget
    bundle_gzip_bytes: int
    import_seconds_beyond_torch: float


_WATCH_TASKS = """() => {
  window.camitTasks = [];
  window.camitObserver?.disconnect();
  window.camitObserver = new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.camitTasks.push(task.duration);
  });
  window.camitObserver.observe({ type: "longtask" });
}"""

# From the event to the first frame after which the words differ and nothing is pending.
_TIME_TO_PAINT = """(target) => new Promise((resolve) => {
  const root = document.querySelector(".camit");
  const before = root.querySelector(".camit-target").textContent;
  const start = performance.now();
  const painted = () => requestAnimationFrame(() => {
    const channel = new MessageChannel(); // a task after the frame: it has been painted
    channel.port1.onmessage = () => resolve(performance.now() - start);
    channel.port2.postMessage(null);
  });
  const observer = new MutationObserver(() => {
    const line = root.querySelector(".camit-target");
    if (!line || line.ariaBusy === "true" || line.querySelector("[data-pending]")) return;
    if (line.textContent === before) return;
    observer.disconnect();
    painted();
  });
  observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  target.click();
})"""

_TIME_TO_LIST = """(word) => new Promise((resolve) => {
  const root = document.querySelector(".camit");
  const start = performance.now();
  const observer = new MutationObserver(() => {
    if (!root.querySelector(".camit-suggestion")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
  });
  observer.observe(root, { subtree: true, childList: true });
  word.dispatchEvent(new PointerEvent("pointerdown", { button: 0, bubbles: true }));
  word.dispatchEvent(new PointerEvent("pointerup", { button: 0, bubbles: true }));
})"""


def measure(tries: int = 40, say: Callable[[str], None] = print) -> Figures:
    """Run JupyterLab and a browser, and measure."""
    with harness.lab() as lab, harness.browser() as running:
        page = running.new_page(viewport={"width": 1280, "height": 1000})
        name = lab.open(page)
        say("clicks on a sentence of twenty words")
        clicks, lists = _clicks(page, _show(lab, page, [_TWENTY_WORDS, "谢谢。"]), tries)
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
        saved = json.loads((lab.root / name).read_text(encoding="utf-8"))
        say("a sentence of sixty words")
        sixty = _longest_task(page, lambda: _clicks(page, _show(lab, page, [_SIXTY_WORDS]), 6))
        say("a document of two hundred sentences")
        document = _longest_task(page, lambda: _walk(page, _show(lab, page, _LONG_DOCUMENT)))
    return Figures(
        click_to_painted=Spread.of(clicks),
        alternatives_shown=Spread.of(lists),
        longest_task_long_sentence=sixty,
        longest_task_long_document=document,
        saved_state_bytes=len(json.dumps(saved["metadata"]["widgets"], ensure_ascii=False).encode()),
        bundle_gzip_bytes=_bundle_bytes(),
        import_seconds_beyond_torch=_import_seconds(),
    )


def _show(lab: harness.Lab, page: Page, sentences: list[str]) -> Locator:
    clean = "import ipywidgets\nipywidgets.Widget.close_all()"
    lab.run(page, f"{clean}\nfrom camit_widget import CamitWidget\nCamitWidget({sentences!r})")
    page.locator(".jp-OutputArea .camit").first.wait_for(timeout=120_000)
    widget = lab.widget(page)
    page.wait_for_function("jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    return widget


def _clicks(page: Page, widget: Locator, tries: int) -> tuple[list[float], list[float]]:
    """Click a word, take an alternative, undo; word after word."""
    clicks: list[float] = []
    lists: list[float] = []
    for turn in range(tries + 2):
        words = widget.locator(".camit-target .camit-word")
        word = words.nth(1 + turn % (words.count() - 2)).element_handle()
        lists.append(page.evaluate(_TIME_TO_LIST, word))
        option = widget.locator(".camit-suggestion").first.element_handle()
        clicks.append(page.evaluate(_TIME_TO_PAINT, option))
        widget.get_by_role("button", name="Undo").click()
        page.wait_for_function("!document.querySelector('.camit-word[data-origin=yours]')")
    return clicks[2:], lists[2:]  # the first ones warm the caches


def _walk(page: Page, widget: Locator) -> None:
    for row in (20, 100, 199, 3):
        widget.locator(".camit-row").nth(row).click()
        page.wait_for_function(
            "(row) => document.querySelectorAll('.camit-row')[row].ariaCurrent"
            " && document.querySelector('.camit-target .camit-word')",
            arg=row,
        )
        time.sleep(0.3)


def _longest_task(page: Page, work: Callable[[], object]) -> float:
    """The longest task of the page, in milliseconds, while `work` is done; 0 if none was over 50."""
    page.evaluate(_WATCH_TASKS)
    work()
    return round(max(page.evaluate("window.camitTasks"), default=0.0), 1)


def _bundle_bytes() -> int:
    import gzip

    static = pathlib.Path(__file__).parent / "static"
    return sum(len(gzip.compress((static / name).read_bytes())) for name in ("widget.js", "widget.css"))


def _import_seconds() -> float:
    """What `import camit_widget` costs a kernel that has torch and IPython already, best of three."""
    code = (
        "import torch, IPython, time; start = time.perf_counter(); "
        "import camit_widget; print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
    return round(min(float(run.stdout) for run in runs), 3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m camit_widget.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=40, help="clicks to measure")
    parser.add_argument("--json", type=pathlib.Path, metavar="PATH", help="write the figures there too")
    arguments = parser.parse_args()
    figures = measure(arguments.tries, lambda line: print(f"… {line}", file=sys.stderr))
    print(report(figures))
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))


def report(figures: Figures) -> str:
    """The figures for people, each with what it is meant to stay under."""
    click, shown = figures.click_to_painted, figures.alternatives_shown
    return "\n".join(
        [
            f"click to new sentence painted   median {click.median} ms, p95 {click.p95} ms   (150, 300)",
            f"click to alternatives shown     median {shown.median} ms, p95 {shown.p95} ms",
            f"longest task, 60 words          {figures.longest_task_long_sentence} ms   (100)",
            f"longest task, 200 sentences     {figures.longest_task_long_document} ms   (100)",
            f"saved widget state              {figures.saved_state_bytes / 1000:.0f} kB   (400)",
            f"bundle, gzip                    {figures.bundle_gzip_bytes / 1000:.1f} kB   (60)",
            f"import beyond torch             {figures.import_seconds_beyond_torch} s   (0.5)",
        ]
    )


if __name__ == "__main__":
    main()
