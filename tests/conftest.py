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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Share the tests out to the processes of `pytest -n` so that what is costly to set up is set up once.

    All browser tests go to one process (one JupyterLab, one Chromium), so does each file; notebooks go alone.
    """
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
        elif item.path.stem != "test_notebooks":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of the Chromium to drive. None is a failure, never a skip: an unseen widget is an untested one."""
    path = chromium.find()
    assert path, "No Chromium found: `python -m scripts.chromium` installs one."
    return path
