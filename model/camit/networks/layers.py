"""The layers both networks are made of, for decoding: many small calls, each with a few rows.

Such products wait for memory, not for arithmetic. In inference mode on a CPU, weights are therefore kept a
second time as packed fp16, which halves what there is to read. Nothing is rounded by that: a checkpoint
stores fp16, and what online learning adds to it is kept as a second fp16 matrix of its own scale. Sums are
fp32. Training sees nothing of all this.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FEW = 32  # rows up to which a layer waits for memory
LARGE = 2**20  # weights from which a second thread pays even for few rows
_FBGEMM = torch.backends.quantized.engine in (
    "x86",
    "fbgemm",
)  # the engine of fp16 products; x86 processors only

Product = Callable[[Tensor, Tensor | None], Tensor]


class Packed:
    """`F.linear` with packed weights, made at the first use and again when the weights have changed."""

    def __init__(self) -> None:
        self._stamp = (0, 0)
        self._weight: Tensor | None = None  # kept, so that no other tensor can take its address
        self._base: Tensor | None = None  # fp16 numbers close to the weights
        self._product: Product
        self._rest: tuple[Product, float] | None = (
            None  # what the weights have beyond the base, and its scale
        )

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not _FBGEMM or not torch.is_inference_mode_enabled() or weight.device.type != "cpu":
            return F.linear(x, weight, bias)
        if weight.numel() < LARGE and x.numel() > FEW * x.shape[-1]:
            return F.linear(x, weight, bias)
        # Changes when the weights may have: written in place, or another tensor put in their place.
        stamp = weight.data_ptr(), 0 if weight.is_inference() else weight._version
        if stamp != self._stamp:
            self._pack(weight.detach())
            self._stamp = stamp
        y = self._product(x, bias)
        if self._rest is None:
            return y
        product, scale = self._rest
        return torch.add(y, product(x, None), alpha=scale)

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, ()  # a copied or stored network packs its own weights

    def _pack(self, weight: Tensor) -> None:
        self._weight = weight
        if self._base is None or bool((weight - self._base).abs().max() > weight.abs().max() / 256):
            self._base = weight.half().float()
            self._product = _product(self._base)
        rest = weight - self._base
        largest = float(rest.abs().max())
        # Scaled into the middle of what fp16 can say, the rest is exact to eleven bits of its own.
        self._rest = (_product(rest * (1024 / largest)), largest / 1024) if largest else None


def _product(weight: Tensor) -> Product:
    """`F.linear` with these weights as packed fp16."""
    if weight.numel() >= LARGE or not hasattr(torch, "fbgemm_linear_fp16_weight_fp32_activation"):
        packed = torch.ops.quantized.linear_prepack_fp16(weight, None)
        threaded = torch.ops.quantized.linear_dynamic_fp16.default
        return lambda x, bias: threaded(x, packed) if bias is None else threaded(x, packed) + bias
    # An older call of the same kernel, on one thread: 8 microseconds instead of 28 for the smallest layers.
    # torch deprecates it; without it the branch above is taken for all sizes.
    nothing = torch.zeros(len(weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = torch.fbgemm_pack_gemm_matrix_fp16(weight)
        light = torch.fbgemm_linear_fp16_weight_fp32_activation
        light(weight[:1], layer, nothing)  # torch warns once, here
    return lambda x, bias: light(x, layer, nothing if bias is None else bias)


class Direct:
    """A module that is called at once. Torch looks for hooks first, which takes as long as a small layer."""

    def __call__(self, *inputs: Any) -> Any:
        return self.forward(*inputs)  # type: ignore[attr-defined]


class Module(Direct, nn.Module):
    """A module whose parts are found at once: torch finds them by way of a failed lookup and its message."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module):
            self.__dict__[name] = value


class Linear(Direct, nn.Linear):
    """A linear layer that is quick for a few rows in inference mode."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self._packed = Packed()

    def forward(self, x: Tensor) -> Tensor:
        own = self._parameters
        return self._packed(x, own["weight"], own["bias"])  # type: ignore[arg-type]


class LayerNorm(Direct, nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        own = self._parameters
        return torch.layer_norm(x, self.normalized_shape, own["weight"], own["bias"], self.eps)


class TiedEmbedding(nn.Embedding):
    """An embedding whose weights are the output layer too."""

    def __init__(self, size: int, d: int) -> None:
        super().__init__(size, d)
        self._packed = Packed()

    def scores(self, s: Tensor) -> Tensor:
        """Scores of every piece for decoding states s [..., d]."""
        return self._packed(s, self.weight, None)


def dropout(p: float) -> Callable[[Tensor], Tensor]:
    return nn.Dropout(p) if p else _same


def _same(x: Tensor) -> Tensor:
    return x
