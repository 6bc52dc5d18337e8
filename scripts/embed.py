"""Makes a finished training run the embedded model: weights, memory, guard and replay sets, reference, card.

    python -m scripts.embed RUN [scores.json ...]      scores of `camit evaluate --json`, for the card

The reference is what CTranslate2 makes of the same weights: the log-probabilities our networks must give.
After it come `make notebooks`, `make screenshots` and the figures in README.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import ctranslate2

from camit.anchors import write_anchors
from camit.bench.peers import specification
from camit.checkpoint import EMBEDDED, load_checkpoint, save_checkpoint, write_atomically
from camit.training.card import card
from camit.translator import Translator, load

TARGET = EMBEDDED / "zh-en"
WEIGHTS, MEMORY = "model.safetensors", "memory.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.embed", description=__doc__)
    parser.add_argument("run", type=Path, help="the --out folder of camit train, its memory trained")
    parser.add_argument("scores", type=Path, nargs="*", help="written by camit evaluate --json")
    chosen = parser.parse_args()
    checkpoint = load_checkpoint(chosen.run)  # a broken run is refused before anything is touched
    for name in ("config.json", WEIGHTS, "source.model", "target.model"):
        (TARGET / name).unlink(missing_ok=True)
    save_checkpoint(replace(checkpoint, name=TARGET.name), TARGET)
    shutil.copyfile(chosen.run / MEMORY, TARGET / MEMORY)
    translator = load(TARGET)
    write_anchors(translator)
    write_reference(translator)
    readme = TARGET / "README.md"
    # What no run can know, its limits and terms, stays as it is written there.
    _, limits, kept = readme.read_text("utf-8").partition("\n## Limits\n")
    write_atomically(readme, (card(chosen.run, chosen.scores) + limits + kept).encode())
    print(f"{TARGET} now holds the model of {chosen.run.name}")


def write_reference(translator: Translator) -> None:
    """Log-probabilities of the reference sentences, piece by piece, by CTranslate2."""
    path = TARGET / "reference.json"
    pairs = json.loads(path.read_text("utf-8"))
    for name, backward in (("forward", False), ("backward", True)):
        with tempfile.TemporaryDirectory() as directory:
            specification(translator, backward=backward).save(directory)
            engine = ctranslate2.Translator(directory, device="cpu", compute_type="float32")
            for pair in pairs:
                ids = pair["target_ids"][::-1] if backward else pair["target_ids"]
                source = [translator.source_vocabulary.piece(i) for i in pair["source_ids"]]
                target = [translator.target_vocabulary.piece(i) for i in ids]
                [scored] = engine.score_batch([source], [target])
                pair[name] = [round(value, 5) for value in scored.log_probs]
    write_atomically(path, (json.dumps(pairs, ensure_ascii=False, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
