"""The command line: `camit translate | train | evaluate | simulate | bench | soak | rescue`.

Each room brings its own command module, imported only when its command is called, so starting is quick.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from camit.errors import CamitError

# name: (module, function)
COMMANDS = {
    "translate": ("camit.translator_command", "translate"),
    "train": ("camit.training.command", "train"),
    "evaluate": ("camit.training.evaluate", "evaluate"),
    "simulate": ("camit.simulate.command", "simulate"),
    "bench": ("camit.bench.command", "bench"),
    "soak": ("camit.soak.command", "soak"),
    "rescue": ("camit.session.rescue", "rescue"),
}


class _Rooms(TyperGroup):
    # typer brings its own copy of click, whose types have no public name
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name]
        room = getattr(import_module(module), function)
        if not isinstance(room, typer.Typer):  # a command of its own, not a group of them
            alone, room = room, typer.Typer()
            room.command(cmd_name)(alone)
        command = typer.main.get_command(room)
        command.name = cmd_name  # a group does not know what it is called
        return command


app = typer.Typer(cls=_Rooms, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def camit() -> None:
    """Interactive machine translation that corrects and memorises."""


def main() -> None:
    """Run the command line; errors a person can act on are one line, without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a figure must not be lost to a Δ the terminal cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if sys.argv[1:2] == ["train"]:
            import_module("camit.training.command").restart_with_environment()
        app()
    except BrokenPipeError:  # whoever read the output, say `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (CamitError, OSError) as error:
        Console(stderr=True, soft_wrap=True).print(
            f"[bold red]error:[/] {escape(str(error))}", markup=True, highlight=False
        )
        sys.exit(2)


if __name__ == "__main__":
    main()
