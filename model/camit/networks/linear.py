"""Matrix products for decoding, where a step multiplies a few rows with every weight of the network.

Such products wait for memory, not for arithmetic. In inference mode on a CPU, weights are therefore kept
packed: as fp16 where that changes no weight (a checkpoint stores fp16, and there is half as much to read),
else, after online learning, as fp32 blocks. Sums are fp32 either way. Training never sees any of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FEW = 64  # rows up to which reading fp32 weights, not arithmetic, is what takes the time


class Packed:
    """`F.linear` with a packed copy of its weights, made at the first use and whenever they have changed."""

    def __init__(self) -> None:
        self._stamp: tuple[int, ...] = ()
        self._kept: tuple[Tensor | None, ...] = ()  # no other tensor can take the address of what is kept
        self._product: Callable[[Tensor], Tensor]

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not torch.is_inference_mode_enabled() or weight.device.type != "cpu":
            return F.linear(x, weight, bias)
        stamp = _stamp(weight) if bias is None else _stamp(weight) + _stamp(bias)
        if stamp != self._stamp:
            self._kept = weight.detach(), None if bias is None else bias.detach()
            self._product = _pack(*self._kept)
            self._stamp = stamp
        return self._product(x)

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, ()  # a copied or stored network packs its own weights


def _stamp(tensor: Tensor) -> tuple[int, int]:
    """Changes when a tensor's values may have: written in place, or another tensor put in its place."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _pack(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    if torch.backends.quantized.engine in ("x86", "fbgemm") and _is_half(weight):
        half = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        return lambda x: torch.ops.quantized.linear_dynamic_fp16(x, half)
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        blocks = torch.ops.mkldnn._reorder_linear_weight(weight, FEW)

        def product(x: Tensor) -> Tensor:
            if x.numel() > FEW * x.shape[-1]:
                return F.linear(x, weight, bias)
            return torch.ops.mkldnn._linear_pointwise(x, blocks, bias, "none", [], "")  # type: ignore[no-any-return]

        return product
    return lambda x: F.linear(x, weight, bias)


def _is_half(weight: Tensor) -> bool:
    """Is every weight an fp16 number? One row tells most matrices that are not."""
    return all(part.half().float().equal(part) for part in (weight[0], weight))


class Linear(nn.Linear):
    """A linear layer that is quick for a few rows in inference mode."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self._packed = Packed()

    def forward(self, x: Tensor) -> Tensor:
        return self._packed(x, self.weight, self.bias)


class TiedEmbedding(nn.Embedding):
    """An embedding whose weights are the output layer too."""

    def __init__(self, size: int, d: int) -> None:
        super().__init__(size, d)
        self._packed = Packed()

    def scores(self, s: Tensor) -> Tensor:
        """Scores of every piece for decoding states s [..., d]."""
        return self._packed(s, self.weight, None)
