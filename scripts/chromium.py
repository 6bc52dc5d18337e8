"""A Chromium for the real-browser tests: the one on PATH, else Debian's (as root), else playwright's own.

Also sees to a font with Chinese characters, without which screenshots show empty boxes.

    python -m scripts.chromium             # install what is missing, print the path
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Path of a Chromium that is ready to run, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None) or _playwright_own()


def ensure() -> str:
    """Path of a Chromium, installed first where that is possible."""
    wanted = [] if find() else ["chromium"]
    if not _has_chinese_font():
        wanted.append("fonts-noto-cjk")
    if wanted and _may_use_apt():
        apt = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        # No check here: whatever is still missing is tried another way, or named, below.
        subprocess.run([*apt, "update"], env=environment, stdout=subprocess.DEVNULL, check=False)
        subprocess.run(
            [*apt, "install", "--no-install-recommends", *wanted],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    if not find():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    if not _has_chinese_font():
        print("No font with Chinese characters found: screenshots will show boxes.", file=sys.stderr)
    path = find()
    if path is None:
        raise SystemExit("No Chromium: install one (Debian: apt install chromium) and have it on PATH.")
    return path


def _playwright_own() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.exists() else None


def _may_use_apt() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _has_chinese_font() -> bool:
    if not sys.platform.startswith("linux"):
        return True  # macOS and Windows bring their own
    if shutil.which("fc-list") is None:
        return False
    return bool(subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=False).stdout.strip())


if __name__ == "__main__":
    print(ensure())
