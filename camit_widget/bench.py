"""The widget's figures, measured where they count: in a real browser, with a real kernel.

`python -m camit_widget.bench` prints how long a click takes until the new sentence is painted, what blocks
the page meanwhile, and how large a saved notebook gets. Needs the development dependencies and a Chromium.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from camit.bench.clock import Timing
from camit_widget import browser as harness

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

_TWENTY_WORDS = "警察认为这个人在离开之前杀了他的妻子，因为有人昨天晚上在公园里看到了他们两个人。"
_SIXTY_WORDS = "我们昨天在公园里看到了他，" * 9 + "然后他走了。"
_LONG_DOCUMENT = [f"{number}号房间的客人昨天走了。" for number in range(1, 201)]


class Task(msgspec.Struct, frozen=True):
    """The longest task in a trace, in milliseconds by the clock, and the longest by processor time.

    On a busy machine the two differ: a task that waits for a processor is long without being heavy.
    """

    clock: float
    processor: float


class Figures(msgspec.Struct, frozen=True):
    """Everything that is measured; times in milliseconds."""

    click_to_painted: Timing  # from the click on an alternative to the frame with the new sentence
    engine: Timing  # of that, the revision itself, timed in the kernel
    around_engine: Timing  # of that, all the rest: browser, server, messages, painting
    alternatives_shown: Timing  # from the click on a word to the list of alternatives
    click_while_a_cell_sleeps: Timing  # the same click while a cell runs time.sleep(10)
    longest_task_long_sentence: Task  # while a sentence of sixty words is revised
    longest_task_long_document: Task  # while two hundred sentences are translated and walked through
    saved_state_bytes: int  # widget state in a saved notebook with one widget
    bundle_gzip_bytes: int
    import_seconds_beyond_torch: float


# From the click, which puts the new word in its place at once, to the frame with the whole new sentence.
_TIME_TO_PAINT = """(target) => new Promise((resolve) => {
  const root = document.querySelector(".camit");
  const start = performance.now();
  let waiting = false;
  const painted = () => requestAnimationFrame(() => {
    const channel = new MessageChannel(); // a task after the frame: it has been painted
    channel.port1.onmessage = () => resolve(performance.now() - start);
    channel.port2.postMessage(null);
  });
  const observer = new MutationObserver(() => {
    const line = root.querySelector(".camit-target");
    const pending = !line || line.ariaBusy === "true" || line.querySelector("[data-pending]") !== null;
    waiting ||= pending;
    if (pending || !waiting) return;
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


# In the kernel: how long each revision takes there.
_TIME_ENGINE = """
import time, camit
camit_bench_times = []
if not hasattr(camit.Draft, "camit_bench_plain"):
    camit.Draft.camit_bench_plain = camit.Draft.replace
def _timed(self, *given, **more):
    start = time.perf_counter()
    try:
        return self.camit_bench_plain(*given, **more)
    finally:
        camit_bench_times.append((time.perf_counter() - start) * 1000)
camit.Draft.replace = _timed
"""
_READ_ENGINE = "import json, pathlib; pathlib.Path({path!r}).write_text(json.dumps(camit_bench_times))"
_CELL = """import ipywidgets
ipywidgets.Widget.close_all()
from camit_widget import CamitWidget
CamitWidget(sentences)"""
_EXECUTE = """async ([code, wait]) => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const run = kernel.requestExecute({ code, store_history: false });
  if (wait) await run.done;
}"""


def measure(tries: int = 40, say: Callable[[str], None] = print) -> Figures:
    """Run JupyterLab and a browser, and measure."""
    with harness.lab() as lab, harness.browser() as running:
        page = running.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(harness.PATIENCE_MS)
        name = lab.open(page)
        say("clicks on a sentence of twenty words")
        page.evaluate(_EXECUTE, [f"sentences = {[_TWENTY_WORDS, '谢谢。']!r}", True])
        widget = _show(lab, page)
        page.evaluate(_EXECUTE, [_TIME_ENGINE, True])
        clicks, lists = _clicks(page, widget, tries)
        engine = _engine_times(lab, page)[-tries:]
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
        saved = json.loads((lab.root / name).read_text(encoding="utf-8"))
        say("clicks while a cell sleeps for ten seconds")
        asleep = _clicks_while_asleep(page, widget)
        say("a sentence of sixty words")
        widget = _show_again(lab, page, [_SIXTY_WORDS])
        sixty = _longest_task(page, partial(_clicks, page, widget, 6))
        say("a document of two hundred sentences")
        document = _longest_task(page, lambda: _walk(page, _show_again(lab, page, _LONG_DOCUMENT)))
    return Figures(
        click_to_painted=Timing.of(clicks),
        engine=Timing.of(engine),
        around_engine=Timing.of([whole - part for whole, part in zip(clicks, engine, strict=True)]),
        alternatives_shown=Timing.of(lists),
        click_while_a_cell_sleeps=Timing.of(asleep),
        longest_task_long_sentence=sixty,
        longest_task_long_document=document,
        saved_state_bytes=len(json.dumps(saved["metadata"]["widgets"], ensure_ascii=False).encode()),
        bundle_gzip_bytes=_bundle_bytes(),
        import_seconds_beyond_torch=_import_seconds(),
    )


def _show(lab: harness.Lab, page: Page) -> Locator:
    lab.run(page, _CELL)
    return _shown(lab, page)


def _show_again(lab: harness.Lab, page: Page, sentences: list[str]) -> Locator:
    """Run the same cell on other sentences: what JupyterLab does with new cells is not to be measured."""
    page.evaluate(_EXECUTE, [f"sentences = {sentences!r}", True])
    page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")
    page.locator(".camit-row-text, .camit-source", has_text=sentences[-1][:6]).first.wait_for()
    return _shown(lab, page)


def _shown(lab: harness.Lab, page: Page) -> Locator:
    page.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).wait_for()
    return lab.widget(page)


def _engine_times(lab: harness.Lab, page: Page) -> list[float]:
    path = lab.root / "engine.json"
    page.evaluate(_EXECUTE, [_READ_ENGINE.format(path=str(path)), True])
    times: list[float] = json.loads(path.read_text())
    return times


def _clicks(page: Page, widget: Locator, tries: int) -> tuple[list[float], list[float]]:
    """Click a word, take an alternative, undo; word after word."""
    turns = [_click(page, widget, turn) for turn in range(tries + 2)]
    clicks, lists = zip(*turns[2:], strict=True)  # the first ones warm the caches
    return list(clicks), list(lists)


def _click(page: Page, widget: Locator, turn: int) -> tuple[float, float]:
    words = widget.locator(".camit-target .camit-word")
    word = words.nth(1 + turn % (words.count() - 2)).element_handle()
    shown: float = page.evaluate(_TIME_TO_LIST, word)
    option = widget.locator(".camit-suggestion").first.element_handle()
    painted: float = page.evaluate(_TIME_TO_PAINT, option)
    widget.get_by_role("button", name="Undo").click()
    page.wait_for_function("!document.querySelector('.camit-word[data-origin=yours]')")
    return painted, shown


def _clicks_while_asleep(page: Page, widget: Locator) -> list[float]:
    """Clicks for as long as a cell runs `time.sleep(10)`."""
    page.evaluate(_EXECUTE, ["import time; time.sleep(10)", False])
    asleep = "jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
    page.wait_for_function(asleep)
    end = time.monotonic() + 8
    clicks: list[float] = []
    while time.monotonic() < end:
        clicks.append(_click(page, widget, len(clicks))[0])
    return clicks


def _walk(page: Page, widget: Locator) -> None:
    """Go here and there while the document is being translated, until all of it is."""
    for row in (20, 100, 199, 3):
        widget.locator(".camit-row").nth(row).click()
        page.wait_for_function(
            "(row) => document.querySelectorAll('.camit-row')[row].ariaCurrent"
            " && document.querySelector('.camit-target .camit-word')",
            arg=row,
        )
    page.wait_for_function("!document.querySelector('.camit-row[data-status=waiting]')")


def _longest_task(page: Page, work: Callable[[], object]) -> Task:
    """The longest task of the page in a trace while `work` is done."""
    running = page.context.browser
    assert running is not None
    running.start_tracing(page=page, categories=["toplevel", "__metadata"])
    try:
        work()
    finally:
        trace = json.loads(running.stop_tracing())["traceEvents"]
    pages = {
        (event["pid"], event["tid"])
        for event in trace
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event
        for event in trace
        if event["name"].endswith("RunTask") and "dur" in event and (event["pid"], event["tid"]) in pages
    ]
    return Task(
        round(max(event["dur"] for event in tasks) / 1000, 1),
        round(max(event.get("tdur", event["dur"]) for event in tasks) / 1000, 1),
    )


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
    lines = [
        ("", "median", "p95", "goal"),
        ("click to new sentence painted, ms", *_timing(figures.click_to_painted), "150, 300"),
        ("  of that the engine", *_timing(figures.engine), "60, 150"),
        ("  of that all around it", *_timing(figures.around_engine), ""),
        ("click to alternatives shown, ms", *_timing(figures.alternatives_shown), ""),
        ("click while a cell sleeps 10 s, ms", *_timing(figures.click_while_a_cell_sleeps), "150, 300"),
        ("longest task, 60 words, ms", *_task(figures.longest_task_long_sentence), "100"),
        ("longest task, 200 sentences, ms", *_task(figures.longest_task_long_document), "100"),
        ("saved widget state, kB", f"{figures.saved_state_bytes / 1000:.0f}", "", "400"),
        ("bundle, gzip, kB", f"{figures.bundle_gzip_bytes / 1000:.1f}", "", "60"),
        ("import beyond torch, s", f"{figures.import_seconds_beyond_torch:.2f}", "", "0.5"),
    ]
    table = [f"{what:36}{median:>8}{high:>8}{goal:>12}" for what, median, high, goal in lines]
    return "\n".join([*table, "Tasks: by the clock, and the processor time of the heaviest."])


def _task(task: Task) -> tuple[str, str]:
    return f"{task.clock:.0f}", f"({task.processor:.0f})"


def _timing(timing: Timing) -> tuple[str, str]:
    return f"{timing.median:.0f}", f"{timing.p95:.0f}"


if __name__ == "__main__":
    main()
