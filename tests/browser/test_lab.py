"""`make lab`, as a newcomer types it: the browser that it opens shows the quickstart, and its cells run."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from camit_widget import browser as harness

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
QUICKSTART = CHECKOUT / "example_notebooks" / "quickstart.ipynb"


@pytest.fixture
def opened(tmp_path: pathlib.Path) -> Iterator[str]:
    """The address that `make lab` opens in the person's browser."""
    note = tmp_path / "opened"
    stand_in = tmp_path / "browser"
    stand_in.write_text(f'#!/bin/sh\necho "$1" > {note}.part && mv {note}.part {note}\n')
    stand_in.chmod(0o755)
    environment = {
        **os.environ,
        "BROWSER": f"{stand_in} %s",
        "JUPYTERLAB_SETTINGS_DIR": f"{tmp_path}/settings",
    }
    for name in (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
    ):
        environment[name] = str(tmp_path / name)
    log = tmp_path / "log"
    with log.open("w") as stream:
        made = subprocess.Popen(
            [*make(), "lab"],
            cwd=CHECKOUT,
            env=environment,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + harness.PATIENCE_MS / 1000
        while not note.exists():
            assert made.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield address(note.read_text().strip())
    finally:
        os.killpg(made.pid, signal.SIGTERM)  # JupyterLab ends its kernels, then itself
        made.wait(60)


def make() -> list[str]:
    """`make` with the environment that runs this test: the Makefile's own, or else one in its place."""
    here = pathlib.Path(sys.prefix)
    if here == CHECKOUT / ".venv":
        return ["make"]
    pins = subprocess.run(
        "cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1",
        shell=True, cwd=CHECKOUT, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    return ["make", f"BIN={here}/bin", "--assume-old", f".venv/lab-{pins}"]


def address(handed: str) -> str:
    """Jupyter hands the browser a file that leads on to the address with the token in it."""
    page = pathlib.Path(handed.removeprefix("file://")).read_text()
    found = re.search(r'href="(http[^"]+)"', page)
    assert found, page
    return found[1].replace("&amp;", "&")


def test_make_lab_opens_the_quickstart_and_its_cells_run(opened: str, browser: Browser) -> None:
    before = QUICKSTART.read_bytes()
    context = browser.new_context(viewport={"width": 1280, "height": 4000})  # all cells are on the screen
    page = context.new_page()
    page.goto(opened, timeout=harness.PATIENCE_MS)
    harness.Lab.wait_for_kernel(page)
    expect(page.locator(".lm-TabBar-tab.jp-mod-current")).to_contain_text("quickstart.ipynb")

    code = page.locator(".jp-Notebook .jp-CodeCell")
    first = code.first.locator(".jp-OutputArea-output")
    page.get_by_role(
        "menuitem", name="Edit", exact=True
    ).click()  # the outputs that the notebook comes with go
    page.get_by_role("menuitem", name="Clear Outputs of All Cells", exact=True).click()
    expect(first).to_have_count(0)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    for n in range(code.count()):
        expect(code.nth(n).locator(".jp-InputPrompt")).to_have_text(
            f"[{n + 1}]:", timeout=harness.PATIENCE_MS
        )
    assert first.inner_text().count("→") == 3  # three sentences, translated
    harness.Lab.widget(page)
    assert page.locator(".jp-OutputArea [data-mime-type$='stderr']").count() == 0
    context.close()
    assert QUICKSTART.read_bytes() == before
