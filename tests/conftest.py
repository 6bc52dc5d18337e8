"""What every test shares: repeatable random examples, and the browser that the Makefile saw to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from scripts import chromium

# Before torch is imported. Some virtual machines say that they have AMX and end a process that uses it; see
# camit/training/precision.py.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# No deadline: the time of one example says nothing on a busy machine. In CI the same examples every time.
hypothesis.settings.register_profile("camit", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("camit")

# What takes longest begins first, so that no process is left alone with it in the end.
LONGEST = ("browser", "test_notebooks", "test_wheel", "test_search", "test_training")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(
        key=lambda item: LONGEST.index(group(item.nodeid)) if group(item.nodeid) in LONGEST else len(LONGEST)
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Share the tests out to the processes of `pytest -n` so that what is costly to set up is set up once.

    All browser tests go to one process (one JupyterLab, one Chromium), so does each file; notebooks go alone.
    (xdist's own marks for this, `xdist_group`, do nothing with pytest 9.2.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if group(nodeid) == "test_notebooks" else group(nodeid)

    return ByGroup(config, log)


def group(nodeid: str) -> str:
    path = Path(nodeid.partition("::")[0])
    return "browser" if path.parent.name == "browser" else path.stem


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of the Chromium to drive. None is a failure, never a skip: an unseen widget is an untested one."""
    path = chromium.find()
    assert path, "No Chromium found: `python -m scripts.chromium` installs one."
    return path
