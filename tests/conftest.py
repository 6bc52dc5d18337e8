"""What every test shares: repeatable random examples, and the browser that the Makefile saw to."""

from __future__ import annotations

import os

import hypothesis
import pytest

from scripts import chromium

# No deadline: the time of one example says nothing on a busy machine. In CI the same examples every time.
hypothesis.settings.register_profile("camit", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("camit")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of the Chromium to drive. None is a failure, never a skip: an unseen widget is an untested one."""
    path = chromium.find()
    assert path, "No Chromium found: `python -m scripts.chromium` installs one."
    return path
