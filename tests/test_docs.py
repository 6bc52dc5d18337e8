"""What the README and the documents say is so: links lead somewhere, code runs, pictures are pictures."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import nbformat
import pytest

from scripts import notebooks

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "example_notebooks").glob("*.ipynb"))
# [text](target) and ![text](target "title"); the text may run over lines and hold brackets of an image.
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
SOURCE = re.compile(r"""(?:src|srcset|href)\s*=\s*["']([^"']+)["']""")
FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1`*\s*$", re.DOTALL | re.MULTILINE)
# Paths of whoever wrote a page have no business on it.
PRIVATE = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|Users)/|\.\./shared")


def written(path: Path) -> str:
    """The prose of a page or of a notebook's text cells, code blocks taken out."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = path.read_text(encoding="utf-8")
    return FENCE.sub("", text)


def anchors(page: Path) -> set[str]:
    """Names of a page's headings as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", written(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower()
        kept = (c for c in plain if c in " -_" or unicodedata.category(c)[0] in "LN")
        found.add("".join(kept).replace(" ", "-"))
    return found


def links(page: Path) -> list[str]:
    text = written(page)
    return [*LINK.findall(text), *SOURCE.findall(text)]


def test_there_are_pages_with_links() -> None:
    assert ROOT / "README.md" in PAGES
    assert sum(len(links(page)) for page in PAGES) > 30


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            schemes = ("https://", "data:image/", "http://www.casmacat.eu", "mailto:")
            assert link.startswith(schemes), f"{page.name}: {link[:80]}"
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        known = target.exists() and target.is_relative_to(ROOT)
        if not known or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            missing.append(link)
    assert not missing, f"{page.relative_to(ROOT)} links to what is not there: {missing}"


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.name)
def test_pages_hold_no_private_paths(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not PRIVATE.search(text), f"{page.name}: {PRIVATE.search(text)}"


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.name)
def test_drawings_stand_alone_and_say_what_they_show(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert "<script" not in text
    assert not re.findall(r"(?:href|url\()\s*=?\s*[\"']?https?:", text)


@pytest.mark.parametrize("page", ["README.md", "docs/interchange.md"])
def test_code_in_a_page_runs_in_order(page: str, tmp_path: Path) -> None:
    blocks = [code for _, kind, code in FENCE.findall((ROOT / page).read_text("utf-8")) if kind == "python"]
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_the_architecture_page_names_every_module_of_the_engine() -> None:
    page, engine = (ROOT / "docs" / "architecture.md").read_text("utf-8"), ROOT / "model" / "camit"
    modules = [path for path in engine.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    unnamed = sorted(path.name for path in modules if f"(../model/camit/{path.name})" not in page)
    assert unnamed == ["__init__.py"]


def test_commands_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        code = [
            *re.findall(r"`([^`\n]+)`", text),
            *(line for _, _, body in FENCE.findall(text) for line in body.split("\n")),
        ]
        for line in code:
            for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", line):
                assert target in targets, f"{page.name} names `make {target}`, which is not in the Makefile"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_as_the_script_stores_them(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    again = copy.deepcopy(notebook)
    notebooks.clean(again)
    assert again == notebook, f"run: python -m scripts.notebooks {path.stem}"
    assert any(cell.get("outputs") for cell in notebook.cells), f"{path.name} was never executed"


def test_pictures_inside_notebooks_are_small_and_drawings_those_of_the_documents() -> None:
    drawings = {path.read_bytes() for path in (ROOT / "docs" / "images").glob("*.svg")}
    found = set()
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            # JupyterLab shows no SVG that is attached to a cell; as an address it does.
            assert not cell.get("attachments"), path.name
            if cell.cell_type == "markdown":
                for kind, data in re.findall(r"\]\(data:image/([^;]+);base64,([^)]+)\)", cell.source):
                    picture = base64.b64decode(data)
                    assert len(picture) <= 60_000, f"{path.name}: {cell.source[:60]}"
                    assert kind != "svg+xml" or picture in drawings, f"{path.name}: {cell.source[:60]}"
                    found.add(kind)
    assert found == {"svg+xml", "png"}


def test_pictures_show_in_a_notebook_that_is_not_trusted() -> None:
    found = 0
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            for data in (output.get("data", {}) for output in cell.get("outputs", [])):
                assert "image/svg+xml" not in data, f"{path.name}: JupyterLab shows SVG only once trusted"
                found += "<img alt=" in data.get("text/html", "")
    assert found > 20


def test_notebooks_are_stored_small_with_clean_outputs() -> None:
    assert len(NOTEBOOKS) >= 6
    for path in NOTEBOOKS:
        assert path.stat().st_size < 400_000, f"{path.name} is too large"
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                assert output["output_type"] != "error", f"{path.name} was stored with an error"
                assert "application/vnd.jupyter.widget-view+json" not in output.get("data", {}), path.name
