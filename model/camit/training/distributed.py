"""One process or many: what `torchrun` sets up, and the few sums the trainer needs across processes."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, nn
from torch import distributed as dist

# The others wait while the first trains vocabularies and encodes corpora, which takes longer than the
# 10 (nccl) or 30 (gloo) minutes they would give it.
PATIENCE = timedelta(hours=24)


@dataclass(frozen=True)
class Processes:
    """This process among all that train together."""

    rank: int
    count: int
    device: torch.device

    @classmethod
    def join(cls) -> Processes:
        """Join the group that torchrun describes in the environment; alone without one."""
        local = int(os.environ.get("LOCAL_RANK", "0"))
        gpu = torch.cuda.is_available() and torch.cuda.device_count() > local
        device = torch.device("cuda", local) if gpu else torch.device("cpu")
        if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
            return cls(0, 1, device)
        if gpu:
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if gpu else "gloo", timeout=PATIENCE)
        return cls(dist.get_rank(), dist.get_world_size(), device)

    @property
    def first(self) -> bool:
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        if not dist.is_initialized():
            return module
        return nn.parallel.DistributedDataParallel(module)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a small CPU tensor over all processes."""
        if self.count == 1:
            return values
        moved = values.to(self.device)
        dist.all_reduce(moved)
        return moved.cpu()

    def agree(self, value: float) -> float:
        """The first process's value, so that clocks cannot disagree."""
        if self.count == 1:
            return value
        moved = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(moved, src=0)
        return float(moved)

    def barrier(self) -> None:
        if self.count > 1:
            dist.barrier()

    def leave(self) -> None:
        """Let the group go. Nothing that trained with it may be held any more: its threads must have ended
        when the process does, or that aborts."""
        if dist.is_initialized():
            gc.collect()
            dist.destroy_process_group()
