"""How a lesson is given, and how each number was chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from camit.errors import InputError

Preset = Literal["default", "paper"]


@dataclass(frozen=True)
class LearningSettings:
    """How a lesson is given; the comments say how the numbers were chosen."""

    parameters: Literal["all", "adaptable"] = "adaptable"
    # How far each weight moves: by its gradient over the usual size of it, or all as far.
    #
    # `step`, `rate` and `weight` were chosen by how much more probable each next sentence was before it was
    # learned from (log-probability per piece), and by how much the guard set's loss rose. On 349 lines of
    # talks and 519 of dialogue, with a constant rate:
    #   plain gradients, rate 0.2, weight 0.5        0.057, 0.064    2.1, 2.7 %
    #   scaled, rate 0.8, weight 2                   0.089, 0.064    2.7, 1.5 %
    #     the same with rate 1.6                     0.056 on talks
    #     the same with weight 0.5                   as much         3.3, 2.0 %
    #     the same without the replay set            0.033 on dialogue
    #     and three earlier sentences in each step   0.022, 0.019
    #   divided by covariances (K-FAC)               0.085, 0.059    0.8, 0.6 %
    step: Literal["scaled", "sign"] = "scaled"
    # On four beginnings of documents (80, 60 and 70 lines of talks, 170 of dialogue) 0.7 gains 0.065, 0.052,
    # 0.054, 0.052 per piece and the loss on the other kind of text changes by +0.37, +0.24, +0.16, -0.10 %;
    # with 1.0 it is 0.057, 0.047, 0.057, 0.057 and +1.17, +0.71, +0.79, +0.09 %: as much, for three times the
    # harm elsewhere. A larger `weight` does not help there (4 and 8 after the first talk: +1.07, +1.05 %).
    rate: float = 0.7
    # The rate falls as 1 / sqrt(1 + lessons / slows). On a document of 767 lines of dialogue its later half
    # gains 0.060 with 1 that falls, 0.040 with 0.8 that does not; on talks it makes no difference.
    slows: float = 50.0
    pieces: int = 20  # of a sentence that moves weights by the rate; a shorter one says less
    # The longest gradient, when scaled; nineteen of twenty are shorter. A sentence that makes no sense must
    # not turn everything over.
    clip: float = 3.0
    replay: int = 2  # sentences of the replay set in each step
    weight: float = 2.0  # of the replay set beside the confirmed sentence
    # By how much the guard set's loss may rise above the base model's: documents of some hundred lines stay
    # below it.
    margin: float = 0.05
    guarded: bool = True
    # Whether the end of a sentence (for the backward decoder, its beginning) is learned like its pieces. Each
    # sentence has one: learned each time, it comes ever sooner. On 1,086 lines of dialogue drafts have 6,309
    # words without memory and learning, with both 6,143 if ends are learned (21.8 BLEU) and 6,279 if not
    # (22.2); with plain gradients. On 715 lines of talks it made no difference to BLEU.
    ends: bool = False
    # What words of the machine's draft count that were wrong and that lessons had made more probable: each
    # adds -log(1 - p), so that it gets less probable (Welleck et al. 2020, "Neural Text Generation with
    # Unlikelihood Training"). Without them a rare word that was learned is soon said everywhere. What drafts
    # gain with learning and a memory that trusted its entries wherever attention is, in BLEU, on 1,086 lines
    # of dialogue and 887 of talks; in brackets later halves, where chance is about 0.5:
    #   nothing is unlearned                      0.91 (0.32), 0.36 (0.18)
    #   these words count twice                   0.80 (0.04), 0.56 (0.72)
    #     four times                              0.68 (0.17) on dialogue
    #   all that was not confirmed, twice         0.87 (0.92), -0.04 (-0.41), and talks get 5 % shorter
    #   of that, what each decoder writes first   0.70 (0.29) on dialogue
    # After 80 lines of a talk the loss on dialogue is up by 0.42 % without them, and by 0.65, 0.71 and 1.01 %
    # if they count once, 1.5 times and twice.
    mistakes: float = 1.5
    recall: bool = True  # confirmed sentences are recalled while later ones are written

    def __post_init__(self) -> None:
        if self.recall and self.parameters == "all":
            raise InputError(
                'sentences cannot be recalled where all parameters learn: give recall=False, or "adaptable".'
            )


PRESETS: dict[str, LearningSettings] = {
    "default": LearningSettings(),
    # One step on everything, as long for every weight as Adam's first: the paper names Adam and this rate.
    "paper": LearningSettings(
        parameters="all",
        step="sign",
        rate=1e-5,
        slows=math.inf,
        replay=0,
        guarded=False,
        ends=True,
        mistakes=0.0,
        recall=False,
    ),
}
