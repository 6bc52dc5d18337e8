"""The training loss: cross-entropy with label smoothing over both decoders (the paper's L_L + L_R).

The scores over the vocabulary are most of the memory of a step, so they are made and used up a few hundred
rows at a time: gradients are computed in the forward pass, and only one block of scores exists at once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from camit.networks import Decoder, Network
from camit.text import PAD

BLOCK = 512  # rows of scores at a time: with 8,000 pieces 16 MB, which stays in a CPU's cache
GPU_BLOCK = 8192


class _BlockwiseCrossEntropy(torch.autograd.Function):
    """Smoothed cross-entropy of `s @ weight.T + bias`, and the plain one beside it for the log."""

    @staticmethod
    def forward(
        ctx: Any, s: Tensor, weight: Tensor, bias: Tensor | None, gold: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        needs_gradient = any(ctx.needs_input_grad[:3])
        grad_s = torch.empty_like(s) if needs_gradient else None
        # Sums over blocks are float32, also where autocast made the factors smaller.
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if needs_gradient else None
        grad_bias = weight.new_zeros(len(weight), dtype=torch.float32) if needs_gradient else None
        loss = s.new_zeros((), dtype=torch.float32)
        plain = s.new_zeros((), dtype=torch.float32)
        scores = None
        block = BLOCK if s.device.type == "cpu" else GPU_BLOCK
        for start in range(0, len(s), block):
            rows, answer = s[start : start + block], gold[start : start + block].unsqueeze(1)
            if scores is None or len(scores) != len(rows):
                scores = s.new_empty(len(rows), len(weight))
            torch.mm(rows, weight.t(), out=scores)
            if bias is not None:
                scores.add_(bias)
            log_p = torch.log_softmax(scores.float(), dim=1)
            nll = -log_p.gather(1, answer).sum()
            plain += nll
            loss += (1.0 - smoothing) * nll
            if smoothing:
                loss -= smoothing * log_p.mean(dim=1).sum()
            if grad_s is None or grad_weight is None or grad_bias is None:
                continue
            slope = log_p.exp_()  # d loss / d scores = p - smoothed answer
            if smoothing:
                slope.sub_(smoothing / len(weight))
            slope.scatter_add_(1, answer, slope.new_full(answer.shape, smoothing - 1.0))
            slope = slope.to(s.dtype)
            torch.mm(slope, weight, out=grad_s[start : start + block])
            if s.dtype == torch.float32:
                grad_weight.addmm_(slope.t(), rows)
            else:
                grad_weight += slope.t() @ rows
            if bias is not None:
                grad_bias += slope.sum(0)
        ctx.save_for_backward(grad_s, grad_weight, None if bias is None else grad_bias)
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*(None if g is None else g.mul_(scale.to(g.dtype)) for g in ctx.saved_tensors), None, None)


class BothDirections(torch.nn.Module):
    """The network with its loss, as one module that DistributedDataParallel can wrap."""

    def __init__(self, network: Network, smoothing: float) -> None:
        super().__init__()
        self.network = network
        self.smoothing = smoothing

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sums over the target pieces: smoothed loss of both decoders, plain loss of forward and of backward.

        `source` and `target` are piece ids [sentences, length], padded at the end.
        """
        encoded = self.network.encode(source)
        total = source.new_zeros((), dtype=torch.float32)
        plain = []
        for decoder, read, gold in (
            (self.network.forward_decoder, *shifted(target, self.network.forward_decoder)),
            (self.network.backward_decoder, *shifted(reversed_rows(target), self.network.backward_decoder)),
        ):
            s = decoder.read(encoded, read)
            real = gold != PAD
            if bool(real.all()):
                s, gold = s.flatten(0, 1), gold.flatten()
            else:
                s, gold = s[real], gold[real]
            weight, bias = decoder.output_layer
            smoothed, nll = blockwise_cross_entropy(s, weight, bias, gold, self.smoothing)
            total = total + smoothed
            plain.append(nll)
        return total, plain[0], plain[1]


def blockwise_cross_entropy(
    s: Tensor, weight: Tensor, bias: Tensor | None, gold: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Summed cross-entropy with and without label smoothing of the output layer's scores for s [rows, d]."""
    if torch.is_autocast_enabled(s.device.type):
        dtype = torch.get_autocast_dtype(s.device.type)
        s, weight, bias = s.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    with torch.autocast(s.device.type, enabled=False):
        loss, plain = _BlockwiseCrossEntropy.apply(s, weight, bias, gold, smoothing)  # type: ignore[no-untyped-call]
    return loss, plain


def shifted(target: Tensor, decoder: Decoder) -> tuple[Tensor, Tensor]:
    """What a decoder reads (first piece, y1 .. yn) and what it is to predict (y1 .. yn, last piece)."""
    sentences = len(target)
    first = target.new_full((sentences, 1), decoder.first_piece)
    read = torch.cat((first, target), dim=1)
    gold = F.pad(target, (0, 1), value=PAD)
    ends = (target != PAD).sum(1, keepdim=True)
    return read, gold.scatter(1, ends, decoder.last_piece)


def reversed_rows(target: Tensor) -> Tensor:
    """Each row's pieces from last to first; padding stays at the end."""
    length = (target != PAD).sum(1, keepdim=True)
    index = length - 1 - torch.arange(target.shape[1], device=target.device)
    return target.gather(1, index.clamp(min=0)).masked_fill(index < 0, PAD)
