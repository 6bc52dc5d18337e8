"""Execute the example notebooks and store their outputs small and clean, so that a change can be read.

python -m scripts.notebooks [name ...]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "example_notebooks"
SECONDS = 300  # a notebook that takes longer is broken
LARGEST = 400_000  # bytes of one stored notebook
# Of a rich output only what a web page shows without a kernel is kept; a widget needs one.
KEPT = ("text/markdown", "text/html", "image/svg+xml", "image/png", "text/plain")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_TEMPORARY = re.compile(rf"{re.escape(tempfile.gettempdir())}/([a-z-]+-)\w{{8}}\b")


def main() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser = argparse.ArgumentParser(description="Execute the example notebooks and store clean outputs.")
    parser.add_argument("name", nargs="*", metavar="name", help=f"one of {', '.join(names)} (default: all)")
    chosen = parser.parse_args().name or names
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"no notebook {', '.join(unknown)}; there are {', '.join(names)}")
    for name in chosen:
        started = time.perf_counter()
        path = FOLDER / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        execute(notebook, FOLDER)
        clean(notebook)
        text = nbformat.writes(notebook, indent=1) + "\n"  # type: ignore[no-untyped-call]
        if len(text.encode()) > LARGEST:
            raise SystemExit(
                f"{name}: {len(text.encode()):,} bytes; at most {LARGEST:,} are stored. Show less."
            )
        path.write_text(text, encoding="utf-8")
        print(
            f"{name}: {time.perf_counter() - started:.0f} s, {len(text.encode()) / 1000:.0f} kB", flush=True
        )


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in a kernel of this environment, with `folder` as its working directory."""
    nbclient.NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()


def clean(notebook: nbformat.NotebookNode) -> None:
    """Take out what differs from run to run or from machine to machine, and what needs a running kernel."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    count = 0
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = _joined([output for output in cell.outputs if _worth_keeping(output)])
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if "data" in output:
                output.data = _kept(output.data)
                output.metadata = {}
            if "text" in output:
                output.text = _stable(output.text)


def _worth_keeping(output: Any) -> bool:
    if output.output_type == "stream":
        return bool(output.name == "stdout")
    return "data" not in output or "application/vnd.jupyter.widget-view+json" not in output.data


def _kept(data: Any) -> dict[str, Any]:
    # A picture that is there as HTML too would be stored twice; as SVG alone it needs a trusted notebook.
    twice = "image/svg+xml" if "text/html" in data else ""
    return {kind: _stable(value) for kind, value in data.items() if kind in KEPT and kind != twice}


def _joined(outputs: list[Any]) -> list[Any]:
    """What was printed in several portions, which depend on time, as one."""
    joined: list[Any] = []
    for output in outputs:
        if joined and output.output_type == joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _stable(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    return _TEMPORARY.sub(r"(temporary folder)/\1…", _ADDRESS.sub("", text))


if __name__ == "__main__":
    main()
