"""What every test shares: repeatable random examples, and the browser that the Makefile saw to."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from scripts import chromium

# No deadline: the time of one example says nothing on a busy machine. In CI the same examples every time.
hypothesis.settings.register_profile("camit", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("camit")

BROWSER = Path(__file__).parent / "browser"
# What takes longest begins first, so that no process is left alone with it in the end.
LONGEST = ("browser", "test_notebooks", "test_wheel", "test_search", "test_training")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Share the tests out to the processes of `pytest -n` so that what is costly to set up is set up once.

    All browser tests go to one process (one JupyterLab, one Chromium), so does each file; notebooks go alone.
    """
    for item in items:
        if group(item) != "test_notebooks":
            item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=lambda item: LONGEST.index(group(item)) if group(item) in LONGEST else len(LONGEST))


def group(item: pytest.Item) -> str:
    return "browser" if BROWSER in item.path.parents else item.path.stem


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of the Chromium to drive. None is a failure, never a skip: an unseen widget is an untested one."""
    path = chromium.find()
    assert path, "No Chromium found: `python -m scripts.chromium` installs one."
    return path
