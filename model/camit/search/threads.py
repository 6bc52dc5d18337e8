"""How many threads a piece of work is worth: a small step is done before a second thread has woken up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

FEW = 48  # rows that one thread reads through the network as quickly as two


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Run torch with one thread for few rows, and with as many as it has for more."""
    before = torch.get_num_threads()
    if rows <= FEW:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
