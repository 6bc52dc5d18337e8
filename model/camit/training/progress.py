"""The live display of a training run: loss, speed, time left. Plain lines when nobody watches a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from camit.training.trainer import Tick

PLAIN_SECONDS = 60.0


class Display:
    """Shows ticks; use it with `with`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[text]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("training", total=1.0, text="")
        self._last_line = 0.0
        self._first: Tick | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, tick: Tick) -> None:
        self._first = self._first or tick
        text = (
            f"step {tick.position.step:,}  loss {tick.loss:.3f}  {tick.pieces_per_second:,.0f} pieces/s  "
            f"{tick.position.pieces / 1e6:.2f} M pieces  {self._time_left(tick)}"
        )
        if self._console.is_terminal:
            self._progress.update(self._task, completed=tick.used, text=text)
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(f"{100 * tick.used:5.1f} %  {text}", highlight=False)

    def _time_left(self, tick: Tick) -> str:
        """From how fast the budget went down since this sitting began."""
        assert self._first is not None
        used = tick.used - self._first.used
        if used <= 0.0:
            return ""
        seconds = (tick.position.seconds - self._first.position.seconds) * (1.0 - tick.used) / used
        hours, minutes = divmod(int(seconds / 60), 60)
        return f"{hours}:{minutes:02d} left"
