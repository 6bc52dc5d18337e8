"""The same widget in the other hosts: Notebook 7, Voila, marimo."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from playwright.sync_api import Browser, Page, TimeoutError, expect

from camit_widget import browser as harness
from tests.browser.steps import type_over, words

CODE = "from camit_widget import CamitWidget\nw = CamitWidget(['我们昨天在公园里看到了他。', '谢谢。'])\n"
MARIMO = """import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    from camit_widget import CamitWidget

    w = mo.ui.anywidget(CamitWidget(["我们昨天在公园里看到了他。", "谢谢。"]))
    w
    return


if __name__ == "__main__":
    app.run()
"""


def notebook7(root: pathlib.Path, port: int) -> tuple[list[str], str, str]:
    (root / "n.ipynb").write_text(harness.notebook([CODE + "w"]), encoding="utf-8")
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--IdentityProvider.token="]
    options += ["--JupyterNotebookApp.expose_app_in_browser=True"]
    command = ["-m", "notebook", f"--port={port}", *options, f"--ServerApp.root_dir={root}"]
    return command, f"http://127.0.0.1:{port}/api", f"http://127.0.0.1:{port}/notebooks/n.ipynb"


def voila(root: pathlib.Path, port: int) -> tuple[list[str], str, str]:
    (root / "n.ipynb").write_text(harness.notebook([CODE + "w"]), encoding="utf-8")
    command = ["-m", "voila", str(root / "n.ipynb"), "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    return command, f"http://127.0.0.1:{port}/static/", f"http://127.0.0.1:{port}/"


def marimo(root: pathlib.Path, port: int) -> tuple[list[str], str, str]:
    (root / "m.py").write_text(MARIMO, encoding="utf-8")
    options = ["--headless", "--host", "127.0.0.1", "-p", str(port), "--no-token"]
    command = ["-m", "marimo", "run", str(root / "m.py"), *options]
    return command, f"http://127.0.0.1:{port}/health", f"http://127.0.0.1:{port}/"


Host = Callable[[pathlib.Path, int], tuple[list[str], str, str]]


@pytest.fixture
def visit(browser: Browser, tmp_path: pathlib.Path) -> Iterator[Callable[[Host], Page]]:
    with ExitStack() as stack:

        def run(host: Host) -> Page:
            command, ready, address = host(tmp_path, harness.free_port())
            stack.enter_context(harness.serving([sys.executable, *command], tmp_path, ready))
            context = browser.new_context(viewport={"width": 1200, "height": 1000})
            context.set_default_timeout(harness.PATIENCE_MS)
            stack.callback(context.close)
            page = context.new_page()
            # Not until it has loaded: Voila's page goes on loading while the notebook runs.
            page.goto(address, wait_until="commit")
            return page

        yield run


def revise_and_confirm(page: Page) -> None:
    widget = harness.Lab.widget(page)
    type_over(page, widget, 1, "met")
    assert "met" in words(widget)
    page.keyboard.press("Control+z")
    expect(widget.locator(".camit-word[data-origin=yours]")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(widget.locator(".camit-row[data-status=confirmed]")).to_have_count(1)
    expect(widget.locator(".camit-place")).to_have_text("Sentence 2 of 2")
    expect(widget.locator(".camit-connection")).to_have_count(0)


def test_notebook_7(visit: Callable[[Host], Page]) -> None:
    page = visit(notebook7)
    page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext")
    harness.Lab.run(page, CODE + "w")
    revise_and_confirm(page)
    page.locator(".camit-row").first.focus()
    for key in ("d", "d", "x", "a", "b"):
        page.keyboard.press(key)
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(1)


def test_voila(visit: Callable[[Host], Page]) -> None:
    page = visit(voila)
    # On a busy machine ipywidgets' manager gives up on any widget: it waits 2 s for its description. A
    # page may also be left waiting for good. Loaded again, it has a kernel of its own.
    gave_up = page.get_by_text("Error displaying widget: model not found")
    for _ in range(4):
        with suppress(TimeoutError):
            page.locator(".camit-word").first.or_(gave_up.first).first.wait_for(
                timeout=harness.PATIENCE_MS / 4
            )
            if gave_up.count() == 0:
                break
        page.reload(wait_until="commit")
    revise_and_confirm(page)


def test_marimo(visit: Callable[[Host], Page]) -> None:
    revise_and_confirm(visit(marimo))
