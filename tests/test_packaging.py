"""The declarations that an installation relies on: dependencies, pins, and a lock file free of addresses."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = {"camit", "camit_widget"}


def canonical(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name.group()).lower()


def imports(tree: ast.AST, *, nested: bool) -> Iterator[str]:
    """Top-level names that a module imports; with ``nested`` also those inside functions and conditions."""
    for node in ast.walk(tree) if nested else ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def undeclared(allowed: set[str], *, nested: bool) -> list[str]:
    providers = importlib.metadata.packages_distributions()
    modules = [*(CHECKOUT / "model" / "camit").rglob("*.py"), *(CHECKOUT / "camit_widget").rglob("*.py")]
    return [
        f"{path.relative_to(CHECKOUT)} imports {name}"
        for path in modules
        for name in imports(ast.parse(path.read_text(encoding="utf-8")), nested=nested)
        if name not in sys.stdlib_module_names | OURS
        and not {canonical(provider) for provider in providers.get(name, [name])} & allowed
    ]


def test_what_a_module_imports_when_loaded_is_a_runtime_dependency() -> None:
    assert undeclared(set(map(canonical, PROJECT["dependencies"])), nested=False) == []


def test_what_a_function_imports_is_a_dependency_or_in_an_extra() -> None:
    extras = [requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra]
    assert undeclared(set(map(canonical, PROJECT["dependencies"] + extras)), nested=True) == []


def test_every_dependency_is_pinned() -> None:
    lines = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonical(line) for line in lines if re.fullmatch(r"[\w.-]+==[\w.]+", line)}
    extras = [requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra]
    assert set(map(canonical, PROJECT["dependencies"] + extras)) <= pinned


def test_the_lock_file_names_versions_and_checksums_but_no_address() -> None:
    text = (CHECKOUT / "js" / "package-lock.json").read_text(encoding="utf-8")
    packages = {name: package for name, package in json.loads(text)["packages"].items() if name}
    assert all("resolved" not in package for package in packages.values())
    assert all(package["version"] and package["integrity"] for package in packages.values())
