"""One JupyterLab, one Chromium and one kernel for all browser tests: each test runs its own cells in it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from camit_widget import browser as harness
from tests.browser.steps import SENTENCES, Show, ran

_CLEAN = "import ipywidgets\nipywidgets.Widget.close_all()"
AXE = pathlib.Path(__file__).parents[2] / "js" / "node_modules" / "axe-core" / "axe.min.js"


# Nothing here measures time.
expect.set_options(timeout=harness.PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    os.environ["CAMIT_CHROMIUM"] = chromium_path
    with harness.browser() as running:
        yield running


@pytest.fixture(scope="session")
def lab() -> Iterator[harness.Lab]:
    with harness.lab() as running:
        yield running


@pytest.fixture(scope="session")
def shared_page(browser: Browser, lab: harness.Lab) -> Iterator[Page]:
    """A notebook whose kernel has the engine in memory already."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(harness.PATIENCE_MS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    lab.open(page)
    yield page
    context.close()


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    """The shared page; an error that a script throws on it fails the test."""
    thrown: list[str] = []

    def note(error: object) -> None:
        thrown.append(str(error))

    shared_page.on("pageerror", note)
    yield shared_page
    shared_page.remove_listener("pageerror", note)
    assert not thrown, thrown


@pytest.fixture
def show(page: Page, lab: harness.Lab) -> Show:
    """Run a cell that makes a widget `w`, and more after it; give the widget once its sentence is there.

    The first cell has then run; the others may be running.
    """

    def run(sentences: list[str] | None = None, *more: str, options: str = "") -> Locator:
        made = f"w = CamitWidget({sentences or SENTENCES!r}{options})"
        # Widgets of earlier tests would be saved with the notebook, and their sessions would go on.
        lab.run(page, f"{_CLEAN}\nfrom camit_widget import CamitWidget\n{made}\nw", *more)
        ran(page, 0)
        return lab.widget(page)

    return run


@pytest.fixture
def violations(page: Page) -> Callable[[], list[str]]:
    """What axe-core objects to in the widgets on the page."""

    def check() -> list[str]:
        if not page.evaluate("'axe' in window"):
            page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run('.camit').then((result) => result.violations)")
        return [f"{rule['id']}: {node['html'][:160]}" for rule in found for node in rule["nodes"]]

    return check
