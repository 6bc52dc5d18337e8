"""RESULTS.md: every table and plot, with the command, commit and time behind each number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from camit.checkpoint import write_atomically
from camit.simulate.plot import plot
from camit.simulate.protocols import PROTOCOLS
from camit.simulate.run import Experiment, Run
from camit.simulate.store import Store
from camit.simulate.tables import Table, effort, history, ideal, multi, unk

_HEAD = """# Results

Written by the command below; every number on this page was printed by one of the runs listed at its end.
Change nothing by hand: run the command again.

```
{command}
```

**How it was measured.** A simulated user knows the reference. The *ideal* user makes the revision that
leads to the best sentence BLEU after regeneration: every candidate from the alignment of screen and
reference is really decoded. Only reference words are ever told, one word (or one deletion) at a time, and
{change}. `unidirectional` may only fix the first mistake, as in the paper; all other protocols choose
freely. `replace only` regenerates nothing: it is the control that tells what regeneration adds. Earlier
fixes always stand. BLEU, chrF and TER are sacrebleu's ({signature}).
"""

_DIFFERENCES = """## What differs from the paper, and why

- **Data and size.** The paper trains RNNSearch and a Transformer of 6 layers on 1.6 million NIST pairs
  and tests with four references. Here a Transformer of about 11 million parameters, small enough for two
  CPU cores, is tested on dialogue and talks with fewer references. Absolute BLEU does not compare; gains,
  and the order of the protocols, do.
- **Units.** Fixes are words on the screen, the model writes pieces of words.
- **The third stage.** The paper always takes the new left part. Here old and new parts compete, and both
  decoders judge whole sentences; without it bidirectional decoding loses to unidirectional decoding at a
  free position.
- **Stronger baselines.** `replace only` and `unidirectional, free position` are not in the paper. The
  ideal user gains much of its BLEU simply by telling words, which `replace only` shows; the rest is what
  a protocol adds.
- **The ideal user is optimistic.** It tries every fix before it makes one, as in the paper; people do
  not.
- **Seconds** are of single revisions on one thread while the simulation runs; a busy machine makes them
  longer.
"""


@dataclass(frozen=True)
class Page:
    """What goes on the page: corpora for the tables, and models."""

    corpora: tuple[Experiment, ...]  # they differ in nothing but the corpus and its lines
    word_model: str | None
    command: str


def write_results(path: Path, page: Page, store: Store) -> list[Table]:
    """Run everything, and write the page, its plots and the figures as JSON beside it."""
    folder = path.parent / "results"
    folder.mkdir(parents=True, exist_ok=True)
    tables: list[Table] = []
    sections: list[str] = []
    for base in page.corpora:
        name = Path(base.corpus).name.split(".")[0]
        found = [
            multi(base, store.get),
            ideal(base, store.get),
            effort(base, store.get),
            history(base, store.get),
        ]
        if page.word_model is not None:
            found.append(unk(msgspec.structs.replace(base, model=page.word_model), store.get))
        image = folder / f"{name}.svg"
        write_atomically(image, curves(name, store.runs, base).encode())
        sections.append(f"## {name}\n\n![BLEU against revisions]({_relative(image, path)})\n")
        sections += [table.as_markdown() for table in found]
        tables += found
    change = (
        "leaving a sentence as it is counts as a candidate"
        if page.corpora[0].no_change_is_a_candidate
        else '"no change" is not a candidate: the user revises as long as a word is wrong, also for the worse'
    )
    signature = store.runs[0].figures.signatures["bleu"]
    text = "\n".join(
        [
            _HEAD.format(command=page.command, change=change, signature=f"`{signature}`"),
            *sections,
            _DIFFERENCES,
            _runs(store.runs),
        ]
    )
    summary = [_without_text(run) for run in store.runs]
    write_atomically(
        folder / "results.json", msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"
    )
    write_atomically(path, text.encode())
    return tables


def curves(title: str, runs: Sequence[Run], base: Experiment) -> str:
    """BLEU against revisions, one line per protocol without memory and learning."""
    lines = {
        PROTOCOLS[run.settings.protocol].label: [quality.bleu for quality in run.figures.revisions]
        for run in runs
        if (run.settings.corpus, run.settings.model) == (base.corpus, base.model)
        and not (run.settings.memory or run.settings.learning)
    }
    return plot(f"{title}: BLEU after each revision", lines)


def _runs(runs: Sequence[Run]) -> str:
    lines = [
        "## The runs behind the numbers",
        "",
        "| corpus | protocol | memory | learning | revisions | sentences | model | commit | UTC | minutes |",
        "|---|---|---|---|---:|---:|---|---|---|---:|",
    ]
    for run in runs:
        s, p = run.settings, run.provenance
        yes = {True: "yes", False: ""}
        cells = [
            f"{Path(s.corpus).name}, lines {run.sentences[0].line}-{run.sentences[-1].line} ({p.corpus})",
            s.protocol,
            yes[s.memory],
            yes[s.learning],
            str(s.revisions),
            str(len(run.sentences)),
            f"{Path(s.model).name} ({p.model})",
            p.commit,
            p.time,
            f"{p.seconds / 60:.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _without_text(run: Run) -> dict[str, object]:
    """Figures without a word of the corpus, which may not be ours to pass on."""
    settings = msgspec.structs.replace(run.settings, corpus=Path(run.settings.corpus).name)
    return {
        "settings": msgspec.to_builtins(settings),
        "provenance": msgspec.to_builtins(run.provenance),
        **msgspec.to_builtins(run.figures),
    }


def _relative(image: Path, page: Path) -> str:
    return Path(os.path.relpath(image, page.parent)).as_posix()
