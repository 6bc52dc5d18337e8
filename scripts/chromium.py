"""A Chromium for the real-browser tests: the one on PATH, else Debian's (as root), else playwright's own.

Also sees to a font with Chinese characters, without which screenshots show empty boxes.

    python -m scripts.chromium             # install what is missing, print the path
"""

from __future__ import annotations

import ctypes
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
    if _may_use_apt():
        _apt_install(
            *([] if _driver_can_start() else ["libatomic1"]),
            *([] if find() else ["chromium"]),
            *([] if _has_chinese_font() else ["fonts-noto-cjk"]),
        )
    if not find():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    path = find()
    if path is None:
        raise SystemExit("No Chromium: install one (Debian: apt install chromium) and have it on PATH.")
    if not _has_chinese_font():
        print("No font with Chinese characters found: screenshots will show boxes.", file=sys.stderr)
    return path


def _playwright_own() -> str | None:
    if not _driver_can_start():
        return None
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = Path(playwright.chromium.executable_path)
    except Exception:  # not installed, or not working here: then it has no browser for us either
        return None
    return str(path) if path.exists() else None


def _apt_install(*packages: str) -> None:
    """Install through apt; whatever fails is tried another way, or named, by the caller."""
    if not packages:
        return
    print(f"Installing {' '.join(packages)} through apt")
    apt = ["apt-get", "-qq", "-y", "-o", "Dpkg::Use-Pty=0"]
    for command in ([*apt, "update"], [*apt, "install", "--no-install-recommends", *packages]):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def _driver_can_start() -> bool:
    """Playwright's driver is a Node that needs a library which a minimal Debian lacks."""
    try:
        ctypes.CDLL("libatomic.so.1")
    except OSError:
        return not sys.platform.startswith("linux")
    return True


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
