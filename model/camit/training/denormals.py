"""Numbers too tiny for full precision count as zero meanwhile: products of them are a hundred times slower.

The processor keeps this as a state of the thread, so it is put back: who calls from a notebook computes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def tiny_is_zero() -> Iterator[None]:
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
