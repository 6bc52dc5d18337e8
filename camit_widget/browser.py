"""A real JupyterLab in a real, headless Chromium: for browser tests, measurements and the README's pictures.

Needs the development dependencies (playwright, jupyterlab) and a Chromium or Chrome on the machine;
nothing here is imported by the widget itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from camit.errors import CamitError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_MS = 240_000  # what is waited for always comes, on a busy machine later


class BrowserError(CamitError):
    """No browser, or a server that did not come up."""


def chromium() -> str:
    """The path of a Chromium: `CAMIT_CHROMIUM` if set, else the first one on the PATH."""
    wanted = os.environ.get("CAMIT_CHROMIUM")
    found = wanted or next((path for name in _CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        raise BrowserError(
            f"No browser: none of {', '.join(_CHROMIUM)} is on the PATH. Install one, or set CAMIT_CHROMIUM."
        )
    return found


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright  # a development dependency

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield running
        finally:
            running.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(command: Sequence[str], root: pathlib.Path, ready: str) -> Iterator[None]:
    """Run a server until the block ends; `ready` is an address that answers once it is up."""
    private = {
        name: str(root / f".{name.lower()}")
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    }
    private |= {
        name: str(root / f".{name.lower()}")
        for name in ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    }
    private |= {name: str(root / f".{name.lower()}") for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    log = root / "server.log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            command, env={**os.environ, **private}, cwd=root, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(ready, server, log)
        yield
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=2)
            return
        except urllib.error.HTTPError:
            return  # it answers, if only to refuse
        except OSError:
            time.sleep(0.2)
    raise BrowserError(
        f"The server did not come up in {PATIENCE_MS / 1000:.0f} s. Its log ends: {log.read_text()[-800:]}"
    )


def notebook(cells: Sequence[str]) -> str:
    """The text of a notebook with these code cells."""
    code: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "id": f"cell-{n}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for n, source in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


class Lab:
    """A running JupyterLab and how to work with notebooks in it."""

    def __init__(self, root: pathlib.Path, address: str) -> None:
        self.root = root
        self.address = address
        self._notebooks = 0

    def open(self, page: Page, cells: Sequence[str] = ("",)) -> str:
        """Open a new notebook with these cells, wait for its kernel, return the notebook's name."""
        self._notebooks += 1
        name = f"notebook-{self._notebooks}.ipynb"
        (self.root / name).write_text(notebook(cells), encoding="utf-8")
        page.goto(f"{self.address}/lab/tree/{name}?reset", timeout=PATIENCE_MS)
        self.wait_for_kernel(page)
        return name

    @staticmethod
    def wait_for_kernel(page: Page) -> None:
        # The toolbar's indicator says idle before there is a session, and a cell run then is lost.
        page.locator(".jp-StatusBar-TextItem", has_text="| Idle").wait_for(timeout=PATIENCE_MS)

    @staticmethod
    def run(page: Page, *sources: str) -> None:
        """Make these the cells of the notebook and run them; does not wait for them to finish."""
        page.evaluate(_RUN_CELLS, list(sources))

    @staticmethod
    def widget(page: Page, number: int = 0) -> Locator:
        """A widget on the page, once it shows a translation."""
        widget = page.locator(".camit").nth(number)
        widget.locator(".camit-word").first.wait_for(timeout=PATIENCE_MS)
        return widget


_RUN_CELLS = """async (sources) => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
  const cells = panel.content.model.sharedModel;
  cells.transact(() => {
    cells.deleteCellRange(0, cells.cells.length);
    cells.insertCells(0, sources.map((source) => ({ cell_type: "code", source })));
  });
  panel.content.activeCellIndex = 0;
  void window.jupyterapp.commands.execute("notebook:run-all-cells");
}"""


@contextlib.contextmanager
def lab(theme: str = "JupyterLab Light") -> Iterator[Lab]:
    """A JupyterLab of its own: no user settings, no news, no network."""
    with tempfile.TemporaryDirectory(prefix="camit-lab-", ignore_cleanup_errors=True) as folder:
        root = pathlib.Path(folder)
        settings = root / ".jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        quiet = {"fetchNews": "false", "checkForUpdates": False}
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
        (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
        widgets = settings.parents[1] / "@jupyter-widgets" / "jupyterlab-manager"
        widgets.mkdir(parents=True)
        (widgets / "plugin.jupyterlab-settings").write_text(json.dumps({"saveState": True}))
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            "--ip=127.0.0.1",
            f"--port={port}",
        ]
        command += [
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=",
            "--ServerApp.disable_check_xsrf=True",
        ]
        command += [f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True"]
        with serving(command, root, f"http://127.0.0.1:{port}/api"):
            yield Lab(root, f"http://127.0.0.1:{port}")
