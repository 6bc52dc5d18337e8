"""RESULTS.md: every table and plot, with the command, commit and time behind each number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import msgspec

from camit.checkpoint import check_writable, languages, write_atomically
from camit.errors import InputError
from camit.learning import OnlineLearner
from camit.memory import RevisionMemory
from camit.simulate.plot import plot
from camit.simulate.protocols import PROTOCOLS
from camit.simulate.run import Experiment, Run, check_sources, prepare
from camit.simulate.store import Store
from camit.simulate.tables import HISTORY, Table, effort, history, ideal, multi, unk
from camit.simulate.users import FAST_PROPOSALS
from camit.translator import load

_HEAD = """# Results

Written by the command below; every number on this page was printed by one of the runs listed at its end.
Change nothing by hand: run the command again.

```
{command}
```

**How it was measured.** A simulated user knows the reference. {user} Only reference words are ever told, one
word (or one deletion) at a time, and {change}. `unidirectional` may only fix the first mistake, as in the
paper; all other protocols choose freely. `replace only` regenerates nothing: it is the control that tells
what regeneration adds. Earlier fixes stand; the user takes one back only when nothing else is wrong. BLEU,
chrF and TER are sacrebleu's.
"""

_USERS: dict[str, str] = {
    "ideal": "The *ideal* user makes the revision that leads to the best sentence BLEU after regeneration: "
    "every candidate from the alignment of screen and reference is really decoded.",
    "ideal-fast": "The *ideal-fast* user ranks the candidates from the alignment of screen and reference by "
    f"sentence BLEU with the word put in by hand, has the best {FAST_PROPOSALS} really decoded, and makes "
    "the one that leads to the best sentence BLEU.",
    "left-to-right": "The *left-to-right* user puts right the first wrong word.",
    "random": "The *random* user puts right any wrong word.",
}

_DIFFERENCES = """## What differs from the paper, and why

- **Data and size.** The paper trains RNNSearch and a Transformer of 6 layers on 1.6 million NIST pairs
  and tests with four references. Here it is {model}, small enough for two CPU cores, and other text with
  other references. Absolute BLEU does not compare; gains, and the order of the protocols, do.
- **Units.** Fixes are words on the screen; the model writes pieces of words.
- **The draft.** The paper's is written by the forward decoder. Here each decoder writes a beam of them and
  both choose among all. All protocols start from the same draft; what the unidirectional ones write anew is
  by the forward decoder alone.
- **The third stage.** The paper always takes the new left part. Here old and new parts compete, and both
  decoders judge whole sentences.
- **Stronger baselines.** `replace only` and `unidirectional, free position` are not in the paper. The
  user gains much BLEU simply by telling words, which `replace only` shows; the rest is what a protocol adds.
- **The ideal user is optimistic.** It tries fixes before it makes one, as in the paper; people do not.
- **Lines of a document are not independent** once memory and learning carry over from one to the next; the
  bootstrap treats them as if they were.
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
    """Run everything, and write the page, its plots and the figures as JSON beside it.

    Everything that can be wrong with corpora and models is told before the first run, and the page is
    written anew after each corpus.
    """
    corpora = _checked(page)
    folder = path.parent / "results"
    if path == folder:
        raise InputError(f"{path} is where the plots go; call the page RESULTS.md.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; the plots of the page need a folder of that name, move it.")
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder / "results.json")
    tables: list[Table] = []
    sections: list[str] = []
    for base in corpora:
        found = [
            multi(base, store.get),
            ideal(base, store.get),
            effort(base, store.get),
            history(base, store.get),
        ]
        if page.word_model is not None:
            found.append(unk(msgspec.structs.replace(base, model=page.word_model), store.get))
        runs = [run for run in store.runs if _plain(run.settings, base)]
        name = _name(base, runs[0])
        image = _free(folder, name.replace(", lines ", "-"), sections)
        write_atomically(image, curves(name, runs).encode())
        sections.append(
            f"## {name}\n\n![BLEU against revisions]({_relative(image, path)})\n\n"
            f"BLEU `{runs[0].figures.signatures['bleu']}`.\n"
        )
        sections += [table.as_markdown() for table in found]
        tables += found
        _write(path, folder, page, sections, store)
    return tables


def _checked(page: Page) -> list[Experiment]:
    """The experiments with all that is to be known before they are played; `InputError` for what is wrong."""
    if len(set(page.corpora)) < len(page.corpora):
        raise InputError("the same lines of a corpus are named twice; name them once.")
    model = page.corpora[0].model
    if page.word_model is not None:
        if languages(page.word_model) != languages(model):
            raise InputError(f"{page.word_model} and {model} translate between different languages.")
        if load(page.word_model).target_vocabulary.kind != "words":
            raise InputError(
                f"{page.word_model} writes pieces of words and has no unknown ones; for --word-model train "
                "one with --arch rnnsearch."
            )
    models = [load(name) for name in (model, page.word_model) if name is not None]
    for translator in models:  # these read gates, guard and replay
        RevisionMemory(translator)
        OnlineLearner(translator)
    settled = []
    for base in page.corpora:
        experiment, lines = prepare(base)
        settled.append(experiment)
        for translator in models:
            check_sources(translator, experiment.corpus, lines)
    return settled


def _plain(settings: Experiment, base: Experiment) -> bool:
    """Is it a run of these lines without memory and learning?"""
    return settings == msgspec.structs.replace(
        base, protocol=settings.protocol, revisions=settings.revisions, memory=False, learning=False
    )


def _name(base: Experiment, run: Run) -> str:
    name = Path(base.corpus).name.removesuffix(".gz").removesuffix(".tsv")
    cut = base.skip or base.limit is not None
    return f"{name}, lines {run.sentences[0].line}-{run.sentences[-1].line}" if cut else name


def _free(folder: Path, name: str, sections: Sequence[str]) -> Path:
    """A file of this name that no section shows yet: files in different folders may be called the same."""
    taken = "".join(sections)
    names = chain([name], (f"{name}-{n}" for n in count(2)))
    return folder / next(f"{one}.svg" for one in names if f"/{one}.svg)" not in taken)


def _write(path: Path, folder: Path, page: Page, sections: Sequence[str], store: Store) -> None:
    base = page.corpora[0]
    done = sum(section.startswith("## ") for section in sections)
    missing = f"**So far {done} of {len(page.corpora)} corpora.**\n" if done < len(page.corpora) else ""
    change = (
        "leaving a sentence as it is counts as a candidate"
        if base.no_change_is_a_candidate
        else '"no change" is not a candidate: the user revises as long as a word is wrong, also for the worse'
    )
    network = load(base.model).network
    size = sum(parameter.numel() for parameter in network.parameters()) / 1e6
    model = f"a {network.config.arch} of {size:.1f} million parameters"
    text = "\n".join(
        [
            _HEAD.format(command=page.command, user=_USERS[base.user], change=change),
            missing,
            *sections,
            _DIFFERENCES.format(model=model),
            _runs(store.runs),
        ]
    )
    summary = [_without_text(run) for run in store.answers]
    write_atomically(
        folder / "results.json", msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"
    )
    write_atomically(path, text.encode())


def curves(title: str, runs: Sequence[Run]) -> str:
    """BLEU against revisions, one line for each run."""
    lines = {_label(run.settings): [quality.bleu for quality in run.figures.revisions] for run in runs}
    return plot(f"{title}: BLEU after each revision", lines)


def _label(settings: Experiment) -> str:
    history = HISTORY[settings.memory, settings.learning] if settings.memory or settings.learning else ""
    return f"{PROTOCOLS[settings.protocol].label} {history}".strip()


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
    settings = msgspec.structs.replace(
        run.settings, corpus=Path(run.settings.corpus).name, model=Path(run.settings.model).name
    )
    return {
        "settings": msgspec.to_builtins(settings),
        "provenance": msgspec.to_builtins(run.provenance),
        **msgspec.to_builtins(run.figures),
    }


def _relative(image: Path, page: Path) -> str:
    return Path(os.path.relpath(image, page.parent)).as_posix()
