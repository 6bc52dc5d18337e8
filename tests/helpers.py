"""Small networks and vocabularies for tests: real code, toy sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from camit.checkpoint import Checkpoint
from camit.networks import Decoder, Encoded, Features, Network, NetworkConfig, State, build
from camit.search.direction import Direction
from camit.search.problem import Copy, Mixed, Phrase, Span
from camit.soak.chance import few_pieces
from camit.text import BOS, EOS, PieceVocabulary, WordVocabulary
from camit.translator import Translator

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "log", "big", "red", "is", "not"]
MARKS = [",", ".", "!"]


def tiny_network(
    arch: str, *, source: int = 20, target: int = 24, seed: int = 0, scale: float = 3.0, d: int = 16
) -> Network:
    """A random network whose distributions are far from flat, so that mistakes show."""
    torch.manual_seed(seed)
    network = build(
        NetworkConfig(
            arch=arch,
            source_size=source,
            target_size=target,
            d=d,
            heads=2,
            ff=24,
            encoder_layers=2,
            decoder_layers=2,
        )
    )
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    return network.eval()


def word_vocabulary(words: Sequence[str] = (*WORDS, *MARKS), language: str = "en") -> WordVocabulary:
    """Every word with and without a space before it, punctuation without."""
    spaced = [f"\u2581{word}" for word in words if word not in MARKS]
    return WordVocabulary([*spaced, *[word for word in words if word in MARKS]], language)


@cache
def piece_vocabulary(language: str = "en") -> PieceVocabulary:
    lines = [
        "the cat sat on the mat.",
        "the dog ran, the cat sat!",
        "a catalogue of dogs and cats, mats and logs.",
        "the cat's dog isn't red; it is a big red dog.",
        "not now, not then, not ever.",
    ]
    return few_pieces(lines, 320, language)


def tiny_translator(arch: str = "transformer", seed: int = 0, words: bool = False) -> Translator:
    """A translator with random weights, over pieces or over words."""
    source, target = (
        (word_vocabulary(), word_vocabulary()) if words else (piece_vocabulary("zh"), piece_vocabulary())
    )
    network = tiny_network(arch, source=len(source), target=len(target), seed=seed)
    return Translator(Checkpoint("tiny", network, source, target))


class Scripted(Decoder):
    """A decoder that says what a test wants: from what was written to the chances of what follows."""

    def __init__(
        self, size: int, script: Callable[[tuple[int, ...]], dict[int, float]], *, backward: bool = False
    ) -> None:
        super().__init__()
        self.first_piece, self.last_piece = (EOS, BOS) if backward else (BOS, EOS)
        self.size, self.script = size, script
        self.anything = torch.nn.Parameter(torch.zeros(()))

    def start(self, encoded: Encoded) -> ScriptedState:
        return ScriptedState(((),) * len(encoded.real))

    def advance(
        self, state: State, tokens: Tensor, *, attention: bool = True
    ) -> tuple[ScriptedState, Features]:
        assert isinstance(state, ScriptedState)
        written = list(state.written)
        logits = torch.full((*tokens.shape, self.size), -12.0)
        for row, pieces in enumerate(tokens.tolist()):
            for at, piece in enumerate(pieces):
                written[row] = (*written[row], piece)
                for following, chance in self.script(written[row][1:]).items():
                    logits[row, at, following] = math.log(chance)
        return ScriptedState(tuple(written)), Features(
            logits, logits[..., :1], logits[..., :1].exp(), logits, tokens
        )

    @property
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        return torch.eye(self.size), None

    @property
    def adaptable(self) -> list[torch.nn.Parameter]:
        return [self.anything]

    def finish(self, place: Tensor) -> Tensor:
        return place

    def logits(self, s: Tensor) -> Tensor:
        return s


@dataclass(frozen=True)
class ScriptedState(State):
    written: tuple[tuple[int, ...], ...]

    def select(self, rows: Tensor) -> ScriptedState:
        return ScriptedState(tuple(self.written[row] for row in rows.tolist()))

    def behind(self, lengths: Sequence[int]) -> ScriptedState:
        return ScriptedState(tuple(w[:n] for w, n in zip(self.written, lengths, strict=True)))


class Offering:
    """A memory that offers the same word at every step, and competes with everything the network may say."""

    looks = False

    def __init__(self, copy: Copy) -> None:
        self.copy = copy

    def read(self, features: Features) -> list[list[Copy]]:
        return [[self.copy]] * len(features.s)

    def rivals(self, last: Tensor, offered: Sequence[Iterable[Copy]]) -> Tensor:
        return torch.ones(len(last), 1, dtype=torch.bool)

    def offers(self, features: Features, pieces: Phrase) -> list[tuple[Span, Copy]]:
        raise NotImplementedError

    def shares(self, features: Features) -> Tensor:
        raise NotImplementedError

    def mix(
        self,
        direction: Direction,
        shares: Tensor,
        features: Features,
        logp: Tensor,
        sentences: Sequence[Phrase],
    ) -> Mixed:
        raise NotImplementedError
