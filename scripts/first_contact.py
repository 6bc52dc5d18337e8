"""Time from `git clone` to the first translation, following the README in a temporary folder.

python -m scripts.first_contact [--keep]
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = "我们明天见。"
TRANSLATE = f"import camit; print(camit.load('zh-en').translate({SENTENCE!r}).text)"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time from `git clone` to the first translation.")
    parser.add_argument("--source", default=str(ROOT), help="what to clone (default: this checkout)")
    parser.add_argument("--keep", action="store_true", help="leave the temporary clone behind")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="camit-first-contact-")
    try:
        follow_the_readme(arguments.source, Path(folder) / "camit-widget")
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


def follow_the_readme(source: str, clone: Path) -> None:
    translate = [str(clone / ".venv" / "bin" / "python"), "-c", TRANSLATE]
    start = time.perf_counter()
    step(start, "git clone", ["git", "clone", "--quiet", source, str(clone)])
    step(start, "make install, which is what `make lab` does first", ["make", "--silent", "install"], clone)
    step(start, "the first translation", translate, clone)
    step(start, "the same from a second start", translate, clone)


def step(start: float, name: str, command: list[str], cwd: Path | None = None) -> None:
    before, busy = time.perf_counter(), processor_seconds()
    subprocess.run(command, cwd=cwd, check=True)
    now = time.perf_counter()
    took = f"{now - before:.1f} s, of which the processor worked {processor_seconds() - busy:.1f} s"
    print(f"{now - start:7.1f} s  {name} ({took})", flush=True)


def processor_seconds() -> float:
    """What the commands so far cost, however busy the machine and however slow the network."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
