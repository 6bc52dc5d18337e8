"""Write the versions installed in this environment to ``constraints.txt``.

A pin names a release, not a build: ``torch==2.13.0+cpu`` becomes ``torch==2.13.0``, which the CPU build
satisfies and other platforms can satisfy too.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
HEADER = """\
# The versions the tests ran with (`make pins` writes this file). Used as `pip install -c constraints.txt`:
# without the pin on torch, an install may bring gigabytes of CUDA packages.
"""


def main() -> None:
    freeze = [sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable"]
    frozen = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.splitlines()
    pins = [re.sub(r"\+\S+", "", line) for line in frozen if "==" in line]
    CONSTRAINTS.write_text(HEADER + "\n".join(sorted(pins, key=str.lower)) + "\n", encoding="utf-8")
    print(f"{CONSTRAINTS.name}: {len(pins)} pins")


if __name__ == "__main__":
    main()
