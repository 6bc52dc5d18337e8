"""The network as lessons see it: the weights that learn, and what it says along known sentences.

Weights are never changed in place: a snapshot is a reference, and restoring it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from camit.networks import State
from camit.search.direction import Direction
from camit.search.problem import Phrase
from camit.search.scoring import Directions, follow, read_sources
from camit.search.threads import threads_for
from camit.translator import Translator

Weights = Mapping[str, Tensor]  # the parameters that learn, by name


class Places(NamedTuple):
    """All places of some known sentences, one behind the other, as one decoder comes to them."""

    place: Tensor  # [places, d_p], see `Features`
    last: Tensor  # [places] the piece before it
    wanted: Tensor  # [places] the piece that stands there
    end: Tensor  # [places] bool: it is the end of a sentence
    attention: Tensor  # [places, source]

    def cut(self, start: int, stop: int) -> Places:
        return Places(*(x[start:stop] for x in self))

    def select(self, chosen: Sequence[int]) -> Places:
        return Places(*(x[list(chosen)] for x in self))


def places_along(direction: Direction, start: State, targets: Sequence[Phrase]) -> Places:
    features = follow(direction, start, targets)
    device = features.place.device
    lengths = torch.tensor([len(pieces) for pieces in targets], device=device)
    real = torch.arange(features.place.shape[1], device=device) <= lengths.unsqueeze(1)
    end = direction.decoder.last_piece
    said = [piece for pieces in targets for piece in (*direction.feed(direction.order(pieces)), end)]
    wanted = torch.tensor(said, device=device)
    return Places(features.place[real], features.last[real], wanted, wanted == end, features.attention[real])


class Pupil:
    """A network, and the parameters of it that lessons move."""

    def __init__(self, translator: Translator, parameters: Literal["all", "adaptable"]) -> None:
        self.network = translator.network
        # Lessons move what comes before `Features.place`, too: what was read has to be read anew.
        self.moves_all = parameters == "all"
        self.plain = Directions.of(self.network, translator.target_vocabulary)  # which recall nothing
        self.directions = self.plain.both
        moved = (
            list(self.network.parameters())
            if self.moves_all
            else [p for direction in self.directions for p in direction.decoder.adaptable]
        )
        chosen = set(map(id, moved))
        self.parameters: dict[str, nn.Parameter] = {
            name: p for name, p in self.network.named_parameters() if id(p) in chosen
        }
        self.base: dict[str, Tensor] = self.weights()

    def weights(self) -> dict[str, Tensor]:
        """As they are now."""
        return {name: p.data for name, p in self.parameters.items()}

    def wear(self, weights: Weights) -> None:
        for name, p in self.parameters.items():
            p.data = weights[name]

    def along(self, ids: Sequence[Sequence[int]], targets: Sequence[Phrase]) -> list[Places]:
        """The places of known sentences for each direction, with gradients if what comes before them
        learns."""
        # inference_mode(False): see `gradients`.
        with torch.inference_mode(False), nullcontext() if self.moves_all else torch.no_grad():
            sources = read_sources(self.network, self.plain, ids)
            return [places_along(d, sources.start(d), targets) for d in self.directions]

    def reader(
        self, ids: Sequence[Sequence[int]], targets: Sequence[Phrase]
    ) -> Callable[[], Sequence[Places]]:
        """`along` for sentences that are asked about again and again: read once, if nothing in it learns."""
        if self.moves_all:
            return lambda: self.along(ids, targets)
        known = self.along(ids, targets)
        return lambda: known

    def logits(self, places: Sequence[Places]) -> list[Tensor]:
        """Scores [places, vocabulary] by the weights of now, for each direction."""
        with threads_for(len(places[0].wanted)):
            decoders = [direction.decoder for direction in self.directions]
            return [d.logits(d.finish(p.place)) for d, p in zip(decoders, places, strict=True)]

    def predict(self, places: Sequence[Places]) -> list[Tensor]:
        return [torch.log_softmax(logits, dim=1) for logits in self.logits(places)]

    def losses(self, places: Sequence[Places]) -> list[Tensor]:
        """Of each piece [places], for each direction."""
        return [
            F.cross_entropy(logits, p.wanted, reduction="none")
            for logits, p in zip(self.logits(places), places, strict=True)
        ]

    def loss(self, places: Sequence[Places], *, ends: bool) -> Tensor:
        """Summed over the pieces of both directions, with or without the ends of sentences."""
        losses = [loss[p.end <= ends].sum() for loss, p in zip(self.losses(places), places, strict=True)]
        return losses[0] + losses[1]

    def mean_loss(self, places: Sequence[Places]) -> float:
        """Per piece, over both directions."""
        with torch.inference_mode():
            return float(self.loss(places, ends=True)) / sum(len(p.wanted) for p in places)

    def unlikelihood(self, places: Sequence[Places]) -> Tensor:
        """Summed over the pieces of both directions: the more, the more probable they are."""
        losses = []
        for logits, p in zip(self.logits(places), places, strict=True):
            others = torch.log_softmax(logits, dim=1).scatter(1, p.wanted.unsqueeze(1), -math.inf)
            losses.append(-torch.logsumexp(others, dim=1).sum())
        return losses[0] + losses[1]

    def gradients(self, loss: Callable[[], Tensor]) -> list[Tensor]:
        # inference_mode(False): a worker may run under it, and its tensors cannot learn.
        with torch.inference_mode(False), torch.enable_grad():
            parameters = list(self.parameters.values())
            found = torch.autograd.grad(loss(), parameters, allow_unused=True, materialize_grads=True)
        return [gradient.detach() for gradient in found]
