"""The guard and replay sets of a checkpoint: sentences with the model's own translations.

They must be made anew whenever the weights or the search change:
`python -m camit.learning.guard_sets DIRECTORY`. A checkpoint without such files gets the sentences of an
embedded model with the same source language.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from camit.checkpoint import EMBEDDED, find, write_atomically
from camit.errors import CheckpointError
from camit.learning.guard import GUARD, REPLAY, load_pairs
from camit.translator import Translator, load

FILES = (GUARD, REPLAY)


def write_anchors(translator: Translator) -> bool:
    """Translate both sets with the checkpoint's own weights; False without sentences in its language.

    >>> write_anchors(camit.load("my-checkpoint"))  # doctest: +SKIP
    True
    """
    directory = translator.directory
    if directory is None:
        raise CheckpointError("this model has no directory to write its guard set to; save it first.")
    texts = {name: sentences(translator, name) for name in FILES}
    if not all(texts.values()):
        return False
    for name, sources in texts.items():
        said = translator.translate_batch(sources)
        lines = [f"{source}\t{t.text}\n" for source, t in zip(sources, said, strict=True) if t.text]
        write_atomically(directory / name, "".join(lines).encode())
    return True


def sentences(translator: Translator, name: str) -> list[str]:
    """The sentences of a set: the checkpoint's own, or those of an embedded model of its source language."""
    own = [source for source, _ in load_pairs(translator.directory, name)]
    if own:
        return own
    for config in sorted(EMBEDDED.glob(f"{translator.source_language}-*/config.json")):
        if found := [source for source, _ in load_pairs(config.parent, name)]:
            return found
    return []


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m camit.learning.guard_sets", description=__doc__)
    parser.add_argument("directory", help="a checkpoint directory, or the name of an embedded model")
    directory: Path = find(parser.parse_args(arguments).directory)
    translator = load(directory)
    if not write_anchors(translator):
        raise SystemExit(
            f"no sentences in {translator.source_language!r} to guard with; write {GUARD} and {REPLAY} into "
            f"{directory}, a sentence of the source language and any translation of it on each line."
        )
    print(f"{directory}: {GUARD} and {REPLAY} now hold what this model says")


if __name__ == "__main__":
    main()
