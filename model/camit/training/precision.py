"""How exact the products of a training step are: float32, or bfloat16 by autocast.

Weights and their updates are float32 either way; so are sums and normalisation in the Transformer, while the
recurrent states of RNNSearch are of the precision of its products.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import torch

from camit.errors import TrainingError

PRECISIONS = ("auto", "fp32", "bf16")
_PROBE = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"


def products(precision: str, device: torch.device) -> torch.autocast | nullcontext[None]:
    """The context of a step; `auto` is bf16 on a GPU, and on a CPU fp32, which is right on all of them."""
    if precision == "fp32" or (precision == "auto" and device.type == "cpu"):
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def check_precision(precision: str, device: torch.device) -> None:
    """Some virtual machines offer AMX instructions and do not let them be set up; a process that tries dies
    without a word (oneDNN asks for CPUID leaf 0x1D, which they hide). So a child tries first."""
    if precision != "bf16" or device.type != "cpu":
        return
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True)
    if probe.returncode:
        said = probe.stderr.strip().rpartition("\n")[2]
        raise TrainingError(
            f"--precision bf16: a product of bfloat16 fails here ({said or f'exit {probe.returncode}'}). Say "
            "--precision fp32; with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment bf16 may work, "
            "but without AMX it is slower than fp32."
        )
