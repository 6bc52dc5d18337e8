"""Training the gates of the revision memory, the network frozen (the paper: "by randomly sampling words and
contexts in the same discourse").

Each document is walked through from its beginning. Words the network does not expect, as a person would have
to fix them, are sampled into a memory; along each later sentence the gates learn to make the sentence more
probable by copying from it: the loss is -log((1 - theta) P(word) + theta r(word)), over all words, those that
cannot be copied too. As in use (`Direction.rivals`), the default form of the gate is asked only where a word
stands that a remembered one competes with, and takes its part of what these have; the paper's form is asked
everywhere.

The network is read once; what the gates see of it (similarities, attention) is kept as numbers, so the
training itself is a small regression.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from camit.corpus import documents, read_corpus
from camit.errors import TrainingError
from camit.memory import PRESETS
from camit.memory.alignment import Anchor, find_anchors
from camit.memory.gate import Gate, Gates, Keys, PaperGate, evidence
from camit.memory.matching import match_anchors
from camit.networks import Features
from camit.search.direction import Direction, together
from camit.search.problem import Phrase, Span
from camit.search.rules import occurrences
from camit.search.scoring import Scored, score
from camit.text import fold
from camit.translator import Translator

Document = Sequence[tuple[str, str]]
DOCUMENT = 60  # sentences of one document: the memory turns over about twice
BATCH = 16
MEMORY = PRESETS["paper"].size
LONGEST = 120  # pieces of a sentence, on either side


@dataclass(frozen=True)
class GateTraining:
    """How the gates are trained; chosen on 18 held-out documents of dialogue, talks and books."""

    sentences: int = 2_500  # beyond that nothing changes in the second digit
    fixes: int = 4  # of one sentence, at most
    surprise: float = 0.25  # a word the network gives less than this is one a person would fix
    steps: int = 200
    rate: float = 0.05
    decay: float = 3e-3  # on W_s and W_c, which have many more numbers than there is evidence for
    held_out: float = 0.15  # documents that decide when to stop
    seed: int = 1


@dataclass(frozen=True)
class GateReport:
    """What came of it: gain of log-probability per 1,000 held-out words, and how many could be copied."""

    words: int
    copyable: int
    forward: float
    backward: float
    forward_paper: float
    backward_paper: float


def documents_of(path: Path, length: int = DOCUMENT) -> Iterator[Document]:
    """The documents of a corpus file as lists of sentence pairs; long ones are cut."""
    for pairs in documents(read_corpus(path)):
        for first in range(0, len(pairs), length):
            document = [(pair.source, pair.target) for pair in pairs[first : first + length]]
            if len(document) > 1:
                yield document


def train_gates(
    translator: Translator,
    documents: Iterable[Document],
    settings: GateTraining | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[Gates, GateReport]:
    """Train both forms of the gate in both directions; `gates.save(directory)` puts them beside the weights.

    >>> gates, report = train_gates(translator, documents_of(Path("train.tsv.gz")))  # doctest: +SKIP
    >>> gates.save(translator.directory)  # doctest: +SKIP
    """
    settings = settings or GateTraining()
    chosen = list(_take(documents, settings.sentences))
    if len(chosen) < 2:
        raise TrainingError(
            "training the memory needs at least two documents of two sentences each; give a corpus whose "
            "first column names documents."
        )
    held = max(1, round(settings.held_out * len(chosen)))
    random.Random(settings.seed).shuffle(chosen)
    lessons: dict[bool, list[_Lessons]] = {False: [], True: []}
    for n, document in enumerate(chosen):
        for backward, sentences in _read(translator, document).items():
            found = _walk(translator, sentences, settings, random.Random(f"{settings.seed}/{n}"))
            if found is not None:
                lessons[backward].append(found)
        progress(f"memory: document {n + 1} of {len(chosen)}")
    if len(lessons[False]) <= held:
        raise TrainingError(
            "these documents hold no word worth remembering; give longer documents, or more of them."
        )
    gates = Gates(lessons[False][0].s.shape[1], lessons[False][0].c.shape[1])
    gains: dict[str, float] = {}
    for direction, name in (
        (translator.directions.forward, "forward"),
        (translator.directions.backward, "backward"),
    ):
        parts = lessons[direction.backward]
        train, test = _join(parts[held:]), _join(parts[:held])
        gains[name] = _fit(gates.of(direction), train, test, settings)
        gains[f"{name}_paper"] = _fit(gates.paper(direction), train, test, settings)
        if not direction.backward:
            words, copyable = len(test.alone), test.copyable
    return gates.requires_grad_(False).eval(), GateReport(words, copyable, **gains)


# Reading


@dataclass(frozen=True)
class _Sentence:
    """A sentence as one decoder reads it, everything in its order."""

    source: str
    ids: Sequence[int]  # of the source
    pieces: Phrase
    words: tuple[Span, ...]  # slices of `pieces`
    read: Mapping[bool, Features]  # by direction.backward, one row each
    logp: Tensor  # [pieces]
    contested: Tensor  # [pieces] the probability of all rivals of a remembered word; 0 where none stands
    direction: Direction

    @property
    def features(self) -> Features:
        return self.read[self.direction.backward]

    def anchors(self, translator: Translator, spans: Sequence[Span]) -> list[tuple[Anchor, ...]]:
        """The source words of some slices of `pieces`."""
        n = len(self.pieces)
        if self.direction.backward:
            spans = [(n - stop, n - start) for start, stop in spans]
        text = self.direction.order(self.pieces)
        return find_anchors(translator, self.source, self.ids, text, spans, self.read)


@dataclass(frozen=True)
class _Lessons:
    """Places of words in some sentences, and for each the entries that could be copied there."""

    alone: Tensor  # [words] log-probability of the word by the network
    contested: Tensor  # [words] see `_Sentence`
    s: Tensor  # [words, d]
    c: Tensor  # [words, d_c]
    row: Tensor  # [pairs] the place a pair of place and entry belongs to
    evidence: Tensor  # [pairs, 5]
    right: Tensor  # [pairs] 1 where the entry holds the word
    paper_row: Tensor  # the same for all entries, whatever the source says
    products: Tensor  # [pairs, 2] |s.s'| and |c.c'| over sqrt(d)
    paper_right: Tensor

    @property
    def copyable(self) -> int:
        return int((torch.zeros(len(self.alone)).index_add_(0, self.row, self.right) > 0).sum())


def _take(documents: Iterable[Document], sentences: int) -> Iterator[Document]:
    taken = 0
    for document in documents:
        if taken >= sentences:
            return
        if len(document) > 1:
            taken += len(document)
            yield document


@torch.inference_mode()
def _read(translator: Translator, document: Document) -> dict[bool, list[_Sentence]]:
    """Both decoders along the sentences of a document."""
    vocabulary, directions = translator.target_vocabulary, translator.directions
    pairs = []
    for texts in document:
        source, target = map(fold, texts)
        ids, pieces = translator.source_vocabulary.encode(source), tuple(vocabulary.encode(target))
        if ids and pieces and max(len(ids), len(pieces)) <= LONGEST:
            pairs.append((source, translator.encode_source(source), pieces))
    size = len(vocabulary)
    result: dict[bool, list[_Sentence]] = {False: [], True: []}
    for first in range(0, len(pairs), BATCH):
        batch = pairs[first : first + BATCH]
        sources = translator.read([ids for _, ids, _ in batch])
        targets = [pieces for _, _, pieces in batch]
        scored = {d.backward: score(d, sources.start(d), range(len(batch)), targets) for d in directions.both}
        for row, (source, ids, pieces) in enumerate(batch):
            n = len(pieces)
            contested = {
                d.backward: _contested(d, scored[d.backward].row(row), pieces) for d in directions.both
            }
            features = {
                b: Features(
                    found.features.s[row : row + 1, :n].clone(),
                    found.features.c[row : row + 1, :n].clone(),
                    found.features.attention[row : row + 1, :n, : len(ids)].clone(),
                    found.features.place[row : row + 1, :n, :0],  # no part of the evidence
                    found.features.last[row : row + 1, :n],
                )
                for b, found in scored.items()
            }
            # The network can expect UNK, but not say which word that is: the list is as long as all it knows.
            unknown = torch.tensor([-math.log(size) if piece >= size else 0.0 for piece in pieces])
            words = vocabulary.words(pieces)
            slices = tuple((word.start, word.stop) for word in words)
            mirrored = tuple((n - stop, n - start) for start, stop in reversed(slices))
            for d in directions.both:
                result[d.backward].append(
                    _Sentence(
                        source,
                        ids,
                        d.order(pieces),
                        mirrored if d.backward else slices,
                        features,
                        scored[d.backward].logp[row, :n] + unknown[list(d.order(range(n)))],
                        contested[d.backward],
                        d,
                    )
                )
    return result


def _contested(direction: Direction, scored: Scored, pieces: Phrase) -> Tensor:
    """What the rivals of a remembered word have together at each place where one of them stands."""
    n, ordered = len(pieces), direction.order(pieces)
    stands = torch.tensor([direction.rival_stands(ordered, at) for at in range(n)])
    rivals = direction.rivals(scored.features.last[0, :n])
    return together(direction.predict(scored.features)[0, :n], rivals) * stands


def _walk(
    translator: Translator, sentences: Sequence[_Sentence], settings: GateTraining, chance: random.Random
) -> _Lessons | None:
    """Through a document with a memory of sampled words: a sentence is a lesson, then gives its own words."""
    phrases: list[Phrase] = []
    anchors: list[tuple[Anchor, ...]] = []
    s: list[Tensor] = []
    c: list[Tensor] = []
    lessons: list[_Lessons] = []
    for sentence in sentences:
        if phrases:
            keys = Keys(torch.stack(s[-MEMORY:]), torch.stack(c[-MEMORY:]))
            lessons.append(_lessons(translator, sentence, keys, phrases[-MEMORY:], anchors[-MEMORY:]))
        unexpected = [
            (start, stop)
            for start, stop in sentence.words
            if float(sentence.logp[start:stop].sum()) < math.log(settings.surprise)
        ]
        fixed = sorted(chance.sample(unexpected, min(settings.fixes, len(unexpected))))
        for (start, stop), anchor in zip(fixed, sentence.anchors(translator, fixed), strict=True):
            if not anchor:
                continue
            phrases.append(sentence.pieces[start:stop])
            anchors.append(anchor)
            s.append(sentence.features.s[0, start])
            c.append(sentence.features.c[0, start])
    return _join(lessons) if lessons else None


def _lessons(
    translator: Translator,
    sentence: _Sentence,
    keys: Keys,
    phrases: Sequence[Phrase],
    anchors: Sequence[tuple[Anchor, ...]],
) -> _Lessons:
    starts = [start for start, _ in sentence.words]
    features = Features(*(x[:, starts] for x in sentence.features))
    held = [sentence.pieces[start:stop] for start, stop in sentence.words]
    right = torch.tensor([[float(word == phrase) for phrase in phrases] for word in held])  # [words, entries]
    # What says too little to be copied is remembered, but not read.
    read = [n for n, phrase in enumerate(phrases) if not translator.target_vocabulary.is_common(phrase)]
    found, match = match_anchors(translator, sentence.source, [anchors[n] for n in read])
    chosen = [read[n] for n in found]
    seen = torch.tensor(
        [
            [
                occurrences(sentence.direction, sentence.pieces[:start], (phrases[n],)) < times
                for n, times in zip(chosen, match.times, strict=True)
            ]
            for start in starts
        ],
        dtype=torch.bool,
    ).view(len(starts), len(chosen))
    row, column = torch.nonzero(seen, as_tuple=True)
    d, d_c = keys.s.shape[1], keys.c.shape[1]
    products = torch.stack(
        (
            (features.s[0] @ keys.s.t()).abs() / math.sqrt(d),
            (features.c[0] @ keys.c.t()).abs() / math.sqrt(d_c),
        ),
        dim=2,
    )
    return _Lessons(
        alone=torch.stack([sentence.logp[start:stop].sum() for start, stop in sentence.words]),
        contested=sentence.contested[starts],
        s=features.s[0],
        c=features.c[0],
        row=row,
        evidence=evidence(features, keys.select(chosen), match)[0][row, column],
        right=right[:, chosen][row, column],
        paper_row=torch.arange(len(starts)).repeat_interleave(len(phrases)),
        products=products.flatten(0, 1),
        paper_right=right.flatten(),
    )


def _join(lessons: Sequence[_Lessons]) -> _Lessons:
    offsets = torch.tensor([0, *(len(part.alone) for part in lessons)]).cumsum(0).tolist()

    def cat(name: str, shifted: bool = False) -> Tensor:
        return torch.cat(
            [getattr(part, name) + (at if shifted else 0) for part, at in zip(lessons, offsets, strict=False)]
        )

    return _Lessons(
        cat("alone"),
        cat("contested"),
        cat("s"),
        cat("c"),
        cat("row", True),
        cat("evidence"),
        cat("right"),
        cat("paper_row", True),
        cat("products"),
        cat("paper_right"),
    )


# Fitting


def _gain(gate: Gate | PaperGate, lessons: _Lessons) -> Tensor:
    """Log-probability won by copying, for each word. [words]"""
    if isinstance(gate, PaperGate):
        opened = lessons.s @ gate.state + lessons.c @ gate.context + gate.bias
        row, right = lessons.paper_row, lessons.paper_right
        similarity = lessons.products @ gate.similarity
        # softmax, one for each place: its largest is taken out
        largest = torch.full_like(lessons.alone, -math.inf).scatter_reduce(
            0, row, similarity.detach(), "amax"
        )
        similarity = similarity - largest[row]
    else:
        opened = F.normalize(lessons.s, dim=1) @ gate.state + F.normalize(lessons.c, dim=1) @ gate.context
        row, right = lessons.row, lessons.right
        similarity = lessons.evidence @ gate.evidence + (opened + gate.bias)[row]
    weight = similarity.clamp(max=60.0).exp()
    nothing = torch.zeros_like(lessons.alone)
    total = nothing.index_add(0, row, weight)
    good = nothing.index_add(0, row, weight * right)
    if isinstance(gate, PaperGate):
        theta = torch.sigmoid(opened)
        mixed = (1 - theta) * lessons.alone.exp() + theta * good / total.clamp(min=1e-30)
    else:
        mixed = (lessons.alone.exp() + lessons.contested * good) / (1 + total)
        mixed = torch.where(lessons.contested > 0.0, mixed, lessons.alone.exp())
    least = math.exp(-20.0)  # what both find impossible teaches nothing
    return torch.log(mixed + least) - torch.log(lessons.alone.exp() + least)


def _fit(gate: Gate | PaperGate, train: _Lessons, test: _Lessons, settings: GateTraining) -> float:
    """Adam from the start values; the weights that do best on held-out documents stay."""
    many = [gate.state, gate.context]
    few = [p for p in gate.parameters() if all(p is not q for q in many)]
    gate.requires_grad_(True)
    optimiser = torch.optim.AdamW(
        [
            {"params": few, "lr": settings.rate},
            {"params": many, "lr": settings.rate / 10, "weight_decay": settings.decay},
        ],
        weight_decay=0.0,
    )
    best, kept = (
        float(_gain(gate, test).detach().mean()),
        {n: p.detach().clone() for n, p in gate.state_dict().items()},
    )
    for step in range(settings.steps):
        optimiser.zero_grad()
        loss = -_gain(gate, train).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % 10 == 9:
            with torch.no_grad():
                value = float(_gain(gate, test).mean())
            if value > best:
                best, kept = value, {n: p.detach().clone() for n, p in gate.state_dict().items()}
    gate.load_state_dict(kept)
    return 1000.0 * best
