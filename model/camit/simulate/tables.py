"""The paper's tables, with the controls it lacks: which runs each needs, and what it says about them.

`ideal` is its Table 1 (protocols by revisions 1 and 2), `multi` its revisions 1 to 4, `history` online
learning (OL) and revision memory (RM), `unk` unknown words with and without memory. The paper's own figures
stand beside ours; they are on other data (NIST with four references), so only differences compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Literal, get_args

import msgspec

from camit.errors import InputError
from camit.simulate.metrics import Comparison, Sentence, columns, compare, later_half
from camit.simulate.protocols import PROTOCOLS
from camit.simulate.run import Experiment, Run
from camit.simulate.users import Judge

TableName = Literal["ideal", "multi", "history", "unk"]
Get = Callable[[Experiment], Run]

MULTI = ("replace-only", "unidirectional-free", "bidirectional")  # beside ours the control and the best rival
HISTORY = {  # memory, learning
    (False, False): "neither",
    (False, True): "+OL",
    (True, False): "+RM",
    (True, True): "+OL+RM",
}

# The paper's averages over NIST04 and NIST05: BLEU without revision, then after 1, 2, ... of them.
PAPER_DRAFT = 35.45
PAPER_PROTOCOLS = {
    "unidirectional": (38.12, 41.55),
    "unidirectional-grid": (45.81, 49.71),
    "bidirectional": (47.27, 51.71, 55.84, 59.91),
}
PAPER_TRANSFORMER = (43.65, 50.58, 53.66, 55.73, 57.21)
# (memory, learning): BLEU without revision, BLEU after two bi-directional revisions
PAPER_HISTORY = {
    (False, False): (35.45, 51.71),
    (False, True): (39.00, 52.13),
    (True, False): (36.04, 51.97),
    (True, True): (39.54, 52.66),
}
PAPER_UNK = (2052, 1723)


@dataclass(frozen=True)
class Table:
    """Cells of text, ready to be written out."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def as_text(self) -> str:
        """Aligned columns for a terminal."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.title, self._line(self.columns, widths), "  ".join("-" * width for width in widths)]
        lines += [self._line(row, widths) for row in self.rows]
        return "\n".join([*lines, *self.notes]) + "\n"

    def as_markdown(self) -> str:
        lines = [f"**{self.title}**", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("|" + "|".join(["---"] + ["---:"] * (len(self.columns) - 1)) + "|")
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}  " for note in self.notes)]).rstrip() + "\n"

    def as_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @staticmethod
    def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
        first, *rest = (
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *rest]).rstrip()


def table_name(name: str) -> TableName:
    known: tuple[TableName, ...] = get_args(TableName)
    for one in known:
        if name == one:
            return one
    raise InputError(f"unknown table {name!r}; choose one of {', '.join(get_args(TableName))}.")


def build(name: TableName, base: Experiment, get: Get) -> Table:
    """A table; `get` runs an experiment, or knows its result already."""
    return {"ideal": ideal, "multi": multi, "history": history, "unk": unk}[name](base, get)


def _with(base: Experiment, revisions: int, protocol: str, **changes: bool) -> Experiment:
    # What the tables compare is set here; a base with other ideas would make them say something else.
    settings = {"memory": False, "learning": False, **changes}
    return msgspec.structs.replace(base, revisions=revisions, protocol=protocol, **settings)


def ideal(base: Experiment, get: Get) -> Table:
    """Protocols by one and two revisions, each against bidirectional."""
    runs = {name: get(_with(base, 2, name)) for name in PROTOCOLS}
    best = runs["bidirectional"]
    draft = best.figures.revisions[0]
    columns = ["protocol"]
    for k in (1, 2):
        columns += [f"BLEU {k}", "Δ", "chrF", "success", "p"]
    rows = [
        ("no revision", *[f"{draft.bleu:.2f}", "", f"{draft.chrf:.1f}", _share(draft.success_rate), ""] * 2)
    ]
    for name, run in runs.items():
        row = [PROTOCOLS[name].label]
        for k in (1, 2):
            quality = run.figures.revisions[k]
            found = None if run is best else compare(best.sentences, run.sentences, best.judge, k)
            row += [
                f"{quality.bleu:.2f}",
                f"{quality.bleu - draft.bleu:+.2f}",
                f"{quality.chrf:.1f}",
                _share(quality.success_rate),
                "" if found is None else p_text(found, len(run.sentences)),
            ]
        rows.append(tuple(row))
    return Table(
        "ideal",
        f"One and two revisions, {_user(base)} ({_size(best)})",
        tuple(columns),
        tuple(rows),
        (
            f"p: {_TEST}, the row against bidirectional.",
            "success: share of sentences that are right, word for word.",
            "The paper (NIST, RNNSearch): "
            + "; ".join(
                f"{PROTOCOLS[name].paper} {_gains(values[:2])}" for name, values in PAPER_PROTOCOLS.items()
            )
            + f" over {PAPER_DRAFT:.2f}.",
        ),
    )


def effort(base: Experiment, get: Get) -> Table:
    """What the same revisions cost a person, finishing by hand included."""
    runs = {PROTOCOLS[name].label: get(_with(base, 2, name)) for name in PROTOCOLS}
    best = runs[PROTOCOLS["bidirectional"].label]
    rows = []
    for label, run in {"all by hand": best.cut(0), **runs}.items():
        f = run.figures
        rows.append(
            (
                label,
                f"{f.revisions_per_sentence:.2f}",
                "" if f.revisions_to_success is None else f"{f.revisions_to_success:.2f}",
                f"{f.wsr:.3f}",
                f"{f.mar:.3f}",
                f"{f.ksmr:.3f}",
                f"{f.revisions[-1].ter:.1f}",
                f"{f.changed_tokens_per_turn:.2f}",
                "" if f.seconds is None else f"{f.seconds.p50 * 1000:.0f} / {f.seconds.p95 * 1000:.0f}",
            )
        )
    return Table(
        "effort",
        "Effort: up to two revisions, the rest by hand",
        ("protocol", "revisions", "to success", "WSR", "MAR", "KSMR", "TER", "changed", "ms p50 / p95"),
        tuple(rows),
        (
            "For each word (WSR) or character (MAR, KSMR) of the reference: words typed; mouse actions, one "
            "for each place and one to accept; keystrokes (one ends what is typed at a place) and mouse "
            "actions. A revision goes to one place and tells one word; by hand all wrong words of a place "
            "are typed over at once.",
            "changed: words that differ between the screens before and after a revision, the fix included.",
            "ms: of a quarter of the revisions, drawn by lot, decoded once more alone on one thread.",
        ),
    )


def multi(base: Experiment, get: Get) -> Table:
    """One to four revisions."""
    runs = {name: get(_with(base, 4, name)) for name in MULTI}
    rows = [
        (PROTOCOLS[name].label, *(f"{quality.bleu:.2f}" for quality in run.figures.revisions[:5]))
        for name, run in runs.items()
    ]
    rows.append(
        ("paper, RNNSearch BiDiR", *(f"{v:.2f}" for v in (PAPER_DRAFT, *PAPER_PROTOCOLS["bidirectional"])))
    )
    rows.append(("paper, Transformer BiDiR", *(f"{value:.2f}" for value in PAPER_TRANSFORMER)))
    run = runs["bidirectional"]
    return Table(
        "multi",
        f"BLEU after 0 to 4 revisions, {_user(base)} ({_size(run)})",
        ("protocol", "0", "1", "2", "3", "4"),
        tuple(rows),
    )


def history(base: Experiment, get: Get) -> Table:
    """Online learning and revision memory, without revision and after two of them."""
    rows, later, apart = [], [], []
    plain: Run | None = None
    for (memory, learning), label in HISTORY.items():
        run = get(_with(base, 2, "bidirectional", memory=memory, learning=learning))
        plain = plain or run
        paper_draft, paper_final = PAPER_HISTORY[memory, learning]
        paper_before, paper_after = PAPER_HISTORY[False, False]
        cells = [label]
        for k in (0, 2):
            cells.append(f"{run.figures.revisions[k].bleu:.2f}")
            if run is plain:
                cells += ["", ""]
            else:
                found = compare(run.sentences, plain.sentences, run.judge, k)
                cells += [f"{found.difference:+.2f}", p_text(found, len(run.sentences))]
        wide, narrow = run.figures, run.figures.same_source
        cells.append(f"{wide.repeated_mistakes} ({narrow.repeated_mistakes})")
        cells.append(f"{recall_text(wide.one_shot_recall)} ({recall_text(narrow.one_shot_recall)})")
        rows.append((*cells, f"{paper_draft - paper_before:+.2f} / {paper_final - paper_after:+.2f}"))
        if run is not plain:
            halves = later_half(run.sentences), later_half(plain.sentences)
            gains = [compare(*halves, run.judge, k) for k in (0, 2)]
            shown = (f"{g.difference:+.2f} (p {p_text(g, len(halves[0]))})" for g in gains)
            later.append(f"{label} " + " and ".join(shown))
            apart.append(f"{label} " + " and ".join(_mean_gain(run, plain, k) for k in (0, 2)))
    assert plain is not None
    return Table(
        "history",
        f"Learning from history, bidirectional, documents in order, {_user(base)} ({_size(plain)})",
        (
            "",
            "drafts",
            "Δ",
            "p",
            "2 revisions",
            "Δ",
            "p",
            "repeated mistakes",
            "one-shot recall",
            "paper's Δ",
        ),
        tuple(rows),
        (
            f"A sentence is confirmed as {_CONFIRMED[base.confirmed]}. p: {_TEST}, the row against neither.",
            "A word comes back when the user typed it before in the document and the reference asks for it "
            "again, for a source that shares a content word (in brackets: the source word that it stands "
            "for, by the model's own alignment of the reference). Repeated mistakes: drafts in which it is "
            "missing then. One-shot recall: the share of such words that are right the first time they come "
            "back.",
            f"In the later half of each document, drafts and after 2 revisions: {'; '.join(later)}.",
            "Each document scored alone, since too long a translation of one makes up for too short ones of "
            f"others: the mean of the differences: {'; '.join(apart)}.",
        ),
    )


def document_gains(ours: Sequence[Sentence], theirs: Sequence[Sentence], judge: Judge, k: int) -> list[float]:
    """By how much BLEU after k revisions differs, document by document."""
    bleu = judge.bleu()

    def scores(sentences: Sequence[Sentence]) -> list[float]:
        parts = [list(group) for _, group in groupby(sentences, key=lambda sentence: sentence.document)]
        return [
            float(bleu.corpus_score([s.outputs[k] for s in part], columns(s.references for s in part)).score)
            for part in parts
        ]

    return [mine - other for mine, other in zip(scores(ours), scores(theirs), strict=True)]


def _mean_gain(run: Run, plain: Run, k: int) -> str:
    gains = document_gains(run.sentences, plain.sentences, run.judge, k)
    return f"{fmean(gains):+.2f} (up in {sum(gain > 0 for gain in gains)} of {len(gains)})"


FEWEST = 20  # sentences, for a test
_TEST = "paired bootstrap (sacrebleu's, about one-sided)"
_CONFIRMED = {
    "reference": "the reference says it: what is still wrong in the end is typed by hand, word by word",
    "screen": "it stands after the last revision",
}


def unk(base: Experiment, get: Get) -> Table:
    """Unknown words on the screen, without and with the memory."""
    runs = [get(_with(base, 2, "bidirectional", memory=memory)) for memory in (False, True)]
    rows: list[tuple[str, ...]] = []
    for label, run in zip(("without memory", "with memory"), runs, strict=True):
        cells = [label]
        for k in (0, 2):
            count, before = run.figures.revisions[k].unk, runs[0].figures.revisions[k].unk
            cells += [
                str(count),
                f"{(count - before) / before:+.1%}" if before and run is not runs[0] else "",
            ]
        rows.append((*cells, str(PAPER_UNK[len(rows)])))
    change = (PAPER_UNK[1] - PAPER_UNK[0]) / PAPER_UNK[0]
    return Table(
        "unk",
        f"Unknown words ({_size(runs[0])})",
        ("", "UNK in drafts", "Δ", "UNK after 2 revisions", "Δ", "paper"),
        tuple(rows),
        (f"The paper: {change:+.1%}. A model that writes pieces of words has no unknown words.",),
    )


def _user(experiment: Experiment) -> str:
    return f"{experiment.user} user"


def _size(run: Run) -> str:
    references = len(run.sentences[0].references)
    plural = "s" if references > 1 else ""
    case = ", lower-cased" if run.settings.lowercase else ""
    return f"{len(run.sentences)} sentences, {references} reference{plural}{case}"


def _gains(values: Sequence[float]) -> str:
    return " and ".join(f"{value - PAPER_DRAFT:+.2f}" for value in values)


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def recall_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def p_text(found: Comparison, sentences: int) -> str:
    """Of a few sentences resampling says nothing: all samples are alike."""
    if sentences < FEWEST:
        return "unknown"
    return "< 0.001" if found.p < 0.001 else f"{found.p:.3f}"
