"""Write the versions installed in this environment to ``constraints.txt``.

A pin names a release, not a build: ``torch==2.13.0+cpu`` becomes ``torch==2.13.0``, which the CPU build
satisfies and other platforms can satisfy too. A release that the oldest Python we support cannot install
is refused by name.
"""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

from packaging.specifiers import SpecifierSet

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
OLDEST_PYTHON = "3.11.2"  # Debian 12
NOT_PINNED = {"camit-widget", "pip", "setuptools", "wheel"}  # ourselves, and what the environment came with
HEADER = f"""\
# The versions the tests ran with, all installable on Python {OLDEST_PYTHON}; `make pins` writes this file.
# Used as `pip install -c constraints.txt`: a looser pin on torch may bring another build.
"""


def main() -> None:
    pins = {}
    for distribution in distributions():
        name, version = distribution.name, distribution.version
        if OLDEST_PYTHON not in SpecifierSet(distribution.metadata["Requires-Python"] or ""):
            raise SystemExit(
                f"{name} {version} cannot be installed on Python {OLDEST_PYTHON}.\n"
                f"Take an older one: .venv/bin/python -m pip install '{name}<{version}'"
            )
        pins[name.lower()] = f"{name}=={version.split('+')[0]}"
    lines = [pin for name, pin in sorted(pins.items()) if name not in NOT_PINNED]
    CONSTRAINTS.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{CONSTRAINTS.name}: {len(lines)} pins")


if __name__ == "__main__":
    main()
