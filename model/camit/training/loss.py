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
    """Smoothed cross-entropy of `s @ weight.T + bias`, and the plain one beside it for the log.

    Products and probabilities are of the type of s. Weights come as float32: then blocks of their gradients
    are rounded to it, and the sum is not. A row of weights counts for as many pieces as `counts` says.
    """

    @staticmethod
    def forward(
        ctx: Any, s: Tensor, weight: Tensor, bias: Tensor, counts: Tensor, gold: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        needs_gradient = any(ctx.needs_input_grad[:3])
        full, weight = weight, weight.to(s.dtype)
        grad_s = torch.empty_like(s) if needs_gradient else None
        # Sums over blocks are float32, also where the factors are smaller.
        # The weight's is summed up transposed: what is turned over for it is then small.
        grad_weight = weight.new_zeros(weight.shape[::-1], dtype=torch.float32) if needs_gradient else None
        grad_bias = weight.new_zeros(len(weight), dtype=torch.float32) if needs_gradient else None
        loss = s.new_zeros((), dtype=torch.float32)
        plain = s.new_zeros((), dtype=torch.float32)
        # Smoothing gives every piece the same share, so its part of loss and gradients is a mean over the
        # vocabulary: one row instead of a pass over all scores.
        share = counts / counts.sum()
        middle, middle_bias = share @ full.float(), share @ bias.float()
        offset = (bias + counts.log()).to(s.dtype)
        block = BLOCK if s.device.type == "cpu" else GPU_BLOCK
        for start in range(0, len(s), block):
            rows, answer = s[start : start + block], gold[start : start + block]
            each = torch.arange(len(rows), device=s.device)
            scores = torch.addmm(offset, rows, weight.t())
            p = torch.softmax(scores, dim=1)
            # log sum exp, by way of the likeliest piece: its probability is never too small for a logarithm.
            norm = scores.amax(1).float() - p.amax(1).float().log()
            nll = (norm - scores[each, answer].float()).sum()
            plain += nll
            loss += (1.0 - smoothing) * nll
            if smoothing:
                mean = rows.float() @ middle + middle_bias
                loss += smoothing * (norm - mean).sum()
            if grad_s is None or grad_weight is None or grad_bias is None:
                continue
            # d loss / d scores = p - smoothed answer, here without the part that all pieces share
            slope = p
            slope[each, answer] -= 1.0 - smoothing
            grad_s[start : start + block] = slope @ weight
            if s.dtype == torch.float32:
                grad_weight.addmm_(rows.t(), slope)
            else:
                grad_weight += rows.t() @ slope
            grad_bias += slope.sum(0, dtype=torch.float32)
        if smoothing and grad_s is not None and grad_weight is not None and grad_bias is not None:
            grad_s -= (smoothing * middle).to(grad_s.dtype)
            grad_weight -= torch.outer(s.sum(0, dtype=torch.float32), smoothing * share)
            grad_bias -= smoothing * len(s) * share
        ctx.save_for_backward(grad_s, None if grad_weight is None else grad_weight.t(), grad_bias)
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*(None if g is None else g.mul_(scale) for g in ctx.saved_tensors), None, None, None)


class BothDirections(torch.nn.Module):
    """The network with its loss, as one module that DistributedDataParallel can wrap."""

    def __init__(self, network: Network, smoothing: float, sampled: float = 1.0) -> None:
        super().__init__()
        self.network = network
        self.smoothing = smoothing
        self.sampled = sampled

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
            smoothed, nll = blockwise_cross_entropy(s, weight, bias, gold, self.smoothing, self.sampled)
            total = total + smoothed
            plain.append(nll)
        return total, plain[0], plain[1]


def blockwise_cross_entropy(
    s: Tensor, weight: Tensor, bias: Tensor | None, gold: Tensor, smoothing: float, sampled: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Summed cross-entropy with and without label smoothing of the output layer's scores for s [rows, d].

    `sampled`: of the pieces that are no answer in these rows, only this share is scored, drawn by lot, and
    stands for the others. Loss and gradients are then estimates, and a step on a CPU a third quicker.
    """
    if torch.is_autocast_enabled(s.device.type):
        s = s.to(torch.get_autocast_dtype(s.device.type))
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    counts = weight.new_ones(len(weight))
    if sampled < 1.0:
        answers = torch.zeros(len(weight), dtype=torch.bool, device=s.device).index_fill_(0, gold, True)
        counts = torch.where(answers, 1.0, 1.0 / sampled)
        chosen = answers | (torch.rand(len(weight), device=s.device) < sampled)
        weight, bias, counts = weight[chosen], bias[chosen], counts[chosen]
        gold = (chosen.cumsum(0) - 1)[gold]
    with torch.autocast(s.device.type, enabled=False):
        loss, plain = _BlockwiseCrossEntropy.apply(s, weight, bias, counts, gold, smoothing)  # type: ignore[no-untyped-call]
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
