"""What people install: built without Node on PATH, imported far from the checkout, with the model inside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``dist/`` of a copy of the checkout: the sdist, and the wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("source")
    path = path_without_node(tmp_path_factory.mktemp("path") / "bin")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=CHECKOUT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in names:
        if name and (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / name)
    run(sys.executable, "-m", "build", "--no-isolation", cwd=folder, path=path)
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (wheel,) = distributions.glob("camit_widget-*.whl")
    return wheel


@pytest.fixture(scope="module")
def fresh_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that has the wheel and what the wheel says it needs, nothing else.

    The dependencies are links into this environment: installing PyTorch again would take a minute.
    """
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (metadata,) = site.glob("camit_widget-*.dist-info")
    for distribution in needed(Distribution.at(metadata)):
        for file in distribution.files or ():
            top = site / file.parts[0]
            if file.parts[0] != ".." and not top.exists():
                top.symlink_to(Path(str(distribution.locate_file(file.parts[0]))))
    return python


# Weights and vocabularies, the memory's gates, and the sets that guard and anchor what is learned.
MODEL = (
    "config.json",
    "model.safetensors",
    "source.model",
    "target.model",
    "memory.safetensors",
    "guard.tsv",
    "replay.tsv",
)


def needed(distribution: Distribution) -> list[Distribution]:
    """What a distribution declares that it needs, and what that needs in its turn, as installed here."""
    found: dict[str, Distribution] = {}
    asked = [(distribution, "")]
    for asking, extra in asked:
        for line in asking.requires or ():
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(requirement.name)
            new = [(name, part) for part in ("", *requirement.extras) if f"{name}[{part}]" not in found]
            for _, part in new:
                found[f"{name}[{part}]"] = Distribution.from_name(name)
                asked.append((found[f"{name}[{part}]"], part))
    return list(found.values())


def test_the_wheel_carries_bundle_model_types_and_licences(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        *(f"camit/checkpoints/zh-en/{name}" for name in MODEL),
        "camit/py.typed",
        "camit_widget/py.typed",
        "camit_widget/static/widget.css",
        "camit_widget/static/widget.js",
    } <= names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"camit", "camit_widget"}
    assert any(name.endswith("licenses/LICENSE-WEIGHTS.md") for name in names)


def test_the_source_distribution_carries_bundle_and_sources_but_no_packages_of_others(
    distributions: Path,
) -> None:
    (sdist,) = distributions.glob("camit_widget-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "camit_widget/static/widget.js",
        "js/src/index.ts",
        "js/package-lock.json",
        "constraints.txt",
    } <= names
    assert not any("node_modules" in name for name in names)


def test_what_the_wheel_declares_is_what_it_needs(fresh_python: Path, tmp_path: Path) -> None:
    assert "No broken requirements" in run(
        sys.executable, "-m", "pip", "--python", str(fresh_python), "check"
    )
    everything = (
        "import importlib, pkgutil, camit, camit_widget\n"
        "for package in (camit, camit_widget):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "import pytest"
    )
    with pytest.raises(AssertionError, match="No module named 'pytest'"):  # the last line, and no other
        run(str(fresh_python), "-c", everything, cwd=tmp_path)


def test_the_wheel_translates_outside_the_checkout(fresh_python: Path, tmp_path: Path) -> None:
    answer = run(
        str(fresh_python),
        "-c",
        "import camit, camit_widget\n"
        "print(camit.__file__, camit_widget.__file__)\n"
        "print(camit.load('zh-en').translate('我们明天见。').text)",
        cwd=tmp_path,
        path=path_without_node(tmp_path / "bin"),
    )
    files, text = answer.strip().splitlines()
    assert all(str(fresh_python.parent.parent) in file for file in files.split())
    assert "tomorrow" in text.lower()


def test_the_command_line_translates_outside_the_checkout(fresh_python: Path, tmp_path: Path) -> None:
    command = fresh_python.with_name("camit")
    answer = run(str(command), "translate", "--model", "zh-en", cwd=tmp_path, stdin="我们明天见。\n")
    assert "tomorrow" in answer.lower()


def path_without_node(folder: Path) -> str:
    """A PATH that holds a shell, which npm needs, and nothing else."""
    folder.mkdir()
    shell = shutil.which("sh")
    assert shell
    (folder / "sh").symlink_to(shell)
    return str(folder)


def run(*command: str, cwd: Path | None = None, path: str | None = None, stdin: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PATH": path} if path else {}
    done = subprocess.run(
        command, cwd=cwd, env=environment, input=stdin, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
