"""What a training run is told: data, network, optimiser, budget; and the named presets.

The settings are stored in the run's folder, so that `--resume` needs nothing else.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import msgspec

from camit.errors import TrainingError
from camit.networks import NetworkConfig
from camit.training.batches import Mixture
from camit.training.examples import Cleaning
from camit.training.precision import PRECISIONS


@dataclass(frozen=True)
class Preset:
    """The shape of a network and its vocabularies; sizes of 0 are filled in when these are known."""

    network: NetworkConfig
    words: bool  # the paper's word list with UNK, instead of pieces
    vocabulary: int  # entries per side
    batch: int  # target pieces


PRESETS: dict[tuple[str, str], Preset] = {
    ("transformer", "tiny"): Preset(  # learns a toy corpus in seconds
        NetworkConfig(
            arch="transformer",
            source_size=0,
            target_size=0,
            d=64,
            heads=2,
            ff=128,
            encoder_layers=1,
            decoder_layers=1,
        ),
        words=False,
        vocabulary=500,
        batch=600,
    ),
    ("rnnsearch", "tiny"): Preset(
        NetworkConfig(
            arch="rnnsearch", source_size=0, target_size=0, d=48, ff=48, encoder_layers=1, decoder_layers=1
        ),
        words=True,
        vocabulary=500,
        batch=600,
    ),
    ("transformer", "small"): Preset(
        NetworkConfig(arch="transformer", source_size=0, target_size=0, d=256, heads=4, ff=1024),
        words=False,
        vocabulary=8_000,
        batch=3_500,
    ),
    ("transformer", "paper"): Preset(  # Transformer base
        NetworkConfig(
            arch="transformer",
            source_size=0,
            target_size=0,
            d=512,
            heads=8,
            ff=2048,
            encoder_layers=6,
            decoder_layers=6,
            dropout=0.1,
        ),
        words=False,
        vocabulary=30_000,
        batch=25_000,
    ),
    ("rnnsearch", "small"): Preset(  # learns to translate short sentences within an hour on two cores
        NetworkConfig(
            arch="rnnsearch", source_size=0, target_size=0, d=128, ff=192, encoder_layers=1, decoder_layers=1
        ),
        words=True,
        vocabulary=8_000,
        batch=1_000,
    ),
    ("rnnsearch", "paper"): Preset(
        NetworkConfig(
            arch="rnnsearch",
            source_size=0,
            target_size=0,
            d=512,
            ff=1024,
            encoder_layers=1,
            decoder_layers=1,
            dropout=0.2,
        ),
        words=True,
        vocabulary=30_000,
        batch=8_000,
    ),
}


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("minutes", 1e-3, 1e7),
    ("steps", 1, 1e12),
    ("pieces", 1, 1e15),
    ("vocabulary", 10, 1e7),
    ("batch", 10, 1e8),
    ("rate", 1e-9, 1.0),
    ("warmup", 0, 1e10),
    ("smoothing", 0.0, 1.0),
    ("clip", 1e-6, 1e9),
    ("dropout", 0.0, 1.0),
    ("average", 0.0, 1.0),
    ("keep_start", 0.0, 1.0),
    ("checkpoint_minutes", 0.0, 1e7),
    ("validate_minutes", 0.0, 1e7),
    ("memory_lines", 0, 1e9),
    ("seed", 0, 2**31),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One training run."""

    train: tuple[Mixture, ...]
    dev: tuple[str, ...] = ()
    source: str = "zh"
    target: str = "en"
    arch: str = "transformer"
    preset: str = "small"
    init: str | None = None  # a checkpoint to start from: its vocabularies, shape and weights
    vocabulary: int | None = None  # entries per side; None: as the preset says
    cleaning: Cleaning = Cleaning()
    batch: int | None = None  # target pieces; None: as the preset says
    rate: float = 1e-3  # learning rate after warm-up
    warmup: int = 500  # steps
    hold: int = 4_000  # steps at the full rate, which then falls with 1 / sqrt(step)
    cooldown: float = 0.25  # share of the budget, at its end, in which the rate falls to nearly nothing
    smoothing: float = 0.1
    sampled: float = 1.0  # share of the vocabulary, beside the answers of a batch, that is scored in a step
    clip: float = 1.0
    dropout: float | None = None  # None: as the preset says
    precision: str = "auto"  # of products: fp32, bf16, or auto: bf16 on a GPU, else fp32
    average: float = 0.9995  # decay of the moving average of the weights, which is the model that is saved
    keep_start: float = 0.0  # share of the weights of `init` in the model that is saved at the end
    minutes: float | None = None  # budget of training time, all sittings together
    steps: int | None = None  # budget of steps
    pieces: float | None = None  # budget of target pieces
    checkpoint_minutes: float = 5.0
    validate_minutes: float = 15.0
    seed: int = 1
    memory_lines: int = 2_500  # lines of documents on which the revision memory is trained afterwards; 0: not

    def preset_or_error(self) -> Preset:
        try:
            return PRESETS[self.arch, self.preset]
        except KeyError:
            known = ", ".join(f"--arch {arch} --preset {name}" for arch, name in PRESETS)
            raise TrainingError(
                f"there is no preset {self.preset!r} for {self.arch!r}; known: {known}."
            ) from None

    def check(self) -> None:
        """Raise `TrainingError` for a number that makes no sense."""
        if all(budget is None for budget in (self.minutes, self.steps, self.pieces)):
            raise TrainingError("how long shall it train? Give --minutes, --steps or --pieces.")
        for name in ("source", "target"):
            if not re.fullmatch("[a-z]{2,3}", language := getattr(self, name)):
                raise TrainingError(
                    f"--{name} is a language of two or three small letters, like zh (not zh-CN), not "
                    f"{language!r}."
                )
        if self.precision not in PRECISIONS:
            raise TrainingError(f"--precision is {', '.join(PRECISIONS)}, not {self.precision!r}.")
        if self.keep_start and self.init is None:
            raise TrainingError("--keep-start is about the weights of --init, which this run does not have.")
        if not 0.0 < self.sampled <= 1.0:
            raise TrainingError(f"--sampled is a share, more than 0 and at most 1, not {self.sampled:g}.")
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value < high:
                option = name.replace("_", "-")
                raise TrainingError(f"--{option} must be from {low:g} to below {high:g}, not {value:g}.")
        for mixture in self.train:
            if not 0.0 < mixture.weight < 1000.0 or not 0.0 <= mixture.join <= 1.0:
                raise TrainingError(
                    f"{mixture.path}: a weight is more than 0 and below 1000, not {mixture.weight:g}; "
                    f"a share of joined lines is from 0 to 1, not {mixture.join:g}."
                )

    def budget_used(self, steps: int, minutes: float, pieces: float) -> float:
        """From 0 at the start to 1 at the end of the budget, whichever end comes first."""
        spent = ((steps, self.steps), (minutes, self.minutes), (pieces, self.pieces))
        return min(1.0, max(used / budget for used, budget in spent if budget is not None))

    def rate_at(self, step: int, used: float) -> float:
        """Learning rate of a step: warm-up, a plateau, 1 / sqrt(step), a straight cool-down to 1/20."""
        rate = self.rate * min(1.0, (step + 1) / max(1, self.warmup))
        rate *= math.sqrt(self.hold / max(self.hold, step))
        if self.cooldown > 0.0 and used > 1.0 - self.cooldown:
            rate *= max(0.05, (1.0 - used) / self.cooldown)
        return rate
