"""How many threads a piece of work is worth: a small step is done before a second thread has woken up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

FEW = (
    256  # rows that one thread reads through the network as quickly as two, which have to wait for each other
)


def begin_with(threads: int) -> None:
    """Say in a new thread how many threads there are. Torch would give it, at its first question, as many as
    were last set anywhere, by somebody else's small step perhaps: so the first question is asked now."""
    torch.get_num_threads()
    torch.set_num_threads(threads)


@contextmanager
def threads_kept() -> Iterator[int]:
    """What happens inside with `use_threads_for` is over at the end; gives how many threads there are."""
    before = torch.get_num_threads()
    try:
        yield before
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def use_threads_for(rows: int, all_of_them: int) -> None:
    """Run torch with one thread for few rows, and with all there are for more."""
    wanted = 1 if rows <= FEW else all_of_them
    # Asking costs nothing, setting takes as long as a layer.
    if torch.get_num_threads() != wanted:
        torch.set_num_threads(wanted)


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """The same for one piece of work."""
    with threads_kept() as all_of_them:
        use_threads_for(rows, all_of_them)
        yield
