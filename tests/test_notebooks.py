"""The example notebooks run from top to bottom, in a kernel of this environment, as a stranger runs them."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "example_notebooks"


# The quickstart runs in a real JupyterLab, see browser/test_lab.py.
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.stem for path in NOTEBOOKS.glob("*.ipynb")} - {"quickstart"}))
def test_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    # In a copy: a notebook may write files beside itself, and the checkout stays clean.
    folder = tmp_path / "example_notebooks"
    shutil.copytree(NOTEBOOKS, folder)
    notebook = nbformat.read(folder / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        startup_timeout=300,  # of a kernel beside other busy processes
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def test_the_notebook_that_make_lab_opens_exists() -> None:
    assert (NOTEBOOKS / "quickstart.ipynb").is_file()
