"""Makes a finished training run the embedded model: weights, memory, guard and replay sets, reference, card.

    python -m scripts.embed RUN [scores.json ...]      scores of `camit evaluate --json`, for the card

Everything is made in a temporary folder first: a run that cannot be embedded leaves the model as it is.
The reference is what CTranslate2 makes of the same weights: the log-probabilities our networks must give.
After it come `make notebooks`, `make screenshots` and the figures in README.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from camit.bench.peers import specification
from camit.checkpoint import EMBEDDED, load_checkpoint, save_checkpoint, write_atomically
from camit.errors import CamitError, InputError
from camit.learning.guard_sets import write_anchors
from camit.memory.gate import FILE as MEMORY
from camit.session import Session
from camit.training.card import card
from camit.translator import Translator, load

TARGET = EMBEDDED / "zh-en"
LANGUAGES = ("zh", "en")
LIMITS = "\n## Limits\n"
TERMS = """
Research and teaching use only: the terms and the sources of the training text are in `LICENSE-WEIGHTS.md`.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.embed", description=__doc__)
    parser.add_argument("run", type=Path, help="the --out folder of camit train, its memory trained")
    parser.add_argument("scores", type=Path, nargs="*", help="written by camit evaluate --json")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        built = Path(directory) / TARGET.name
        try:
            make(chosen.run, chosen.scores, built)
        except CamitError as error:
            parser.error(str(error))
        # All of them beside the old files first: a disk that is full now leaves these whole. config.json
        # comes last: it names the digest of the weights.
        files = sorted(built.iterdir(), key=lambda file: file.name == "config.json")
        parts = [TARGET / f"{file.name}.part" for file in files]
        try:
            for file, part in zip(files, parts, strict=True):
                shutil.copyfile(file, part)
            for part in parts:
                part.replace(part.with_suffix(""))
        finally:
            for part in parts:
                part.unlink(missing_ok=True)
    print(f"{TARGET} now holds the model of {chosen.run.name}")


def make(run: Path, scores: Sequence[Path], built: Path) -> None:
    """All files of the embedded model, made from a run."""
    checkpoint = load_checkpoint(run)
    languages = (checkpoint.source.language, checkpoint.target.language)
    if languages != LANGUAGES:
        raise InputError(
            f"{run} translates {languages[0]} to {languages[1]}; {TARGET.name} is a model from "
            f"{LANGUAGES[0]} to {LANGUAGES[1]}, give a run that is too."
        )
    if not (run / MEMORY).is_file():
        raise InputError(
            f"{run} has no {MEMORY}: its revision memory is not trained. Finish the run: "
            f"camit train --out {run} --resume"
        )
    text = card(run, scores)
    save_checkpoint(replace(checkpoint, name=TARGET.name), built)
    shutil.copyfile(run / MEMORY, built / MEMORY)
    translator = load(built)
    Session(translator).close()  # reads the memory's gates, and refuses those of another network
    write_anchors(translator)
    write_reference(translator, built)
    # What no run can know, its limits, stays as it is written there.
    _, limits, kept = (TARGET / "README.md").read_text("utf-8").partition(LIMITS)
    if not limits:
        raise InputError(f"{TARGET / 'README.md'} has no section {LIMITS.strip()!r}; write one.")
    write_atomically(built / "README.md", (text + TERMS + limits + kept).encode())


def write_reference(translator: Translator, built: Path) -> None:
    """Log-probabilities of the reference sentences, piece by piece, by CTranslate2."""
    import ctranslate2

    sides = (("source", translator.source_vocabulary), ("target", translator.target_vocabulary))
    pairs = json.loads((TARGET / "reference.json").read_text("utf-8"))
    for pair in pairs:
        for side, vocabulary in sides:  # the sentences stay, their pieces are those of this model
            pair[f"{side}_ids"] = vocabulary.encode(pair[side])
    for name, backward in (("forward", False), ("backward", True)):
        with tempfile.TemporaryDirectory() as directory:
            specification(translator, backward=backward).save(directory)
            engine = ctranslate2.Translator(directory, device="cpu", compute_type="float32")
            for pair in pairs:
                source, target = ([v.piece(i) for i in pair[f"{side}_ids"]] for side, v in sides)
                [scored] = engine.score_batch([source], [target[::-1] if backward else target])
                pair[name] = [round(value, 5) for value in scored.log_probs]
    content = json.dumps(pairs, ensure_ascii=False, indent=1) + "\n"
    write_atomically(built / "reference.json", content.encode())


if __name__ == "__main__":
    main()
