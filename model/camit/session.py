"""A session: the sentences of one document, revised and confirmed one after the other.

The paper's session (section "Preliminary"): each revision regenerates the whole sentence, each confirmed sentence is
written into the revision memory and teaches the model one guarded step. One worker thread owns the model, so every method
may be called from any thread.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from camit.draft import Draft, Stage, Version, with_origins
from camit.errors import SessionError
from camit.learning import Lesson, OnlineLearner
from camit.memory import RevisionMemory
from camit.search.grid import Phrase
from camit.search.revise import Protocol, Readers, Request, Revision, Searcher, Settings
from camit.search.scoring import Sources
from camit.text import normalise
from camit.translator import Translator, check_beam
from camit.worker import Worker

T = TypeVar("T")
SOURCES_KEPT = 32  # encoded sentences at hand; one takes about 100 kB
_CAPTIONS = {
    "draft": "The sentence as it stood, and the word you fixed.",
    "forward": "Forward: what stands right of your fix is written anew.",
    "backward": "Backward: knowing the new right part, what stands left of your fix is written anew.",
    "result": "Both decoders read every candidate whole, the old parts too; this one fits best.",
}


@dataclass(frozen=True)
class Event:
    """Something a person did, with what it took."""

    time: float
    kind: str
    draft: int
    typed: str = ""
    keystrokes: int = 0
    mouse: int = 0


@dataclass(frozen=True)
class Statistics:
    """The figures of the paper's real environment, and the usual effort rates, over confirmed sentences.

    WSR: words typed per word of the result. MAR: mouse actions per character. KSMR: keystrokes and mouse actions per
    character.
    """

    confirmed: int
    revisions_per_sentence: float
    seconds_per_sentence: float
    wsr: float
    mar: float
    ksmr: float


@dataclass(frozen=True)
class _Confirmed:
    """What undoing a confirmation needs."""

    draft: Draft
    memory: object
    learning: object


class Session:
    """Many drafts, one memory, one learner.

    >>> session = camit.Session(camit.load("zh-en"))  # doctest: +SKIP
    >>> draft = session.open("我们昨天在公园里看到了他。")  # doctest: +SKIP
    >>> draft.replace(1, "met").text  # doctest: +SKIP
    'We met him in the park yesterday.'
    """

    def __init__(
        self,
        translator: Translator,
        *,
        memory: bool = True,
        learning: bool = True,
        beam: int = 4,
        stability: float | None = None,
        protocol: Protocol = "bidirectional",
    ) -> None:
        if not isinstance(translator, Translator):
            raise SessionError(
                f"a session needs a translator from camit.load(...), not {type(translator).__name__}."
            )
        check_beam(beam)
        settings = Settings(protocol=protocol, beam=beam)
        self.settings = settings if stability is None else replace(settings, stability=stability)
        self.translator = translator
        self.memory = RevisionMemory(translator)
        self.memory.enabled = memory
        self.learning = OnlineLearner(translator)
        self.learning.enabled = learning
        self.worker = Worker()
        self._drafts: tuple[Draft, ...] = ()
        self._events: tuple[Event, ...] = ()
        self._confirmations: list[_Confirmed] = []
        self._latest: Draft | None = None
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._encoded: OrderedDict[int, Sources] = OrderedDict()

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return self._drafts

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that was done, in order."""
        return self._events

    def open(self, text: str) -> Draft:
        """Translate a sentence into a draft."""
        source = normalise(text)

        def run() -> Draft:
            ids = tuple(self.translator.encode_source(source))
            first, sources = self._first(source, ids)
            draft = Draft(self, len(self._drafts), source, ids, first)
            self._drafts = (*self._drafts, draft)
            self._remember(draft, sources)
            self._log("open", draft)
            return draft

        return self.worker.call(run)

    def refresh(self, draft: Draft) -> Draft:
        """Translate a sentence that nobody has touched anew, with what was learned since it was opened."""

        def run() -> Draft:
            if not draft.untouched:
                raise SessionError("only a draft that nobody has worked on can be translated anew.")
            first, sources = self._first(draft.source, draft.source_ids)
            draft.begin(first)
            self._remember(draft, sources)
            return draft

        return self.worker.call(run)

    def _first(self, source: str, ids: tuple[int, ...]) -> tuple[Version, Sources]:
        """The machine's own translation, and the sentence as it was read."""
        sources = self.translator.read([ids])
        readers = self.memory.readers(source)
        reader = readers.forward if readers else None
        pieces, _ = self.translator.best(sources, self.settings.beam, reader, self.worker.check)[0]
        tokens = self.translator.tokens(sources, [0], [source], [ids], [pieces], reader)[0]
        return Version(pieces, tokens), sources

    def confirm(self, draft: Draft | None = None) -> Lesson:
        """Accept a sentence as it stands: its fixes are remembered, and the model learns one guarded step from it."""

        def run() -> Lesson:
            chosen = self._latest if draft is None else draft
            if chosen is None:
                raise SessionError("there is no draft to confirm; open a sentence first.")
            if chosen not in self._drafts:
                raise SessionError("this draft belongs to another session.")
            if chosen.confirmed:
                raise SessionError(
                    "this sentence is confirmed already; session.undo_confirm() takes that back."
                )
            record = _Confirmed(chosen, self.memory.snapshot(), self.learning.snapshot())
            version = chosen.version
            for token in version.tokens:
                if token.copied_from is not None:
                    self.memory.count_copy(token.copied_from)
            spans = [span for fixed in version.fixed for span in _mine(fixed.start, fixed.mine)]
            if self.memory.enabled:
                self.memory.write(chosen.source, chosen.source_ids, version.pieces, spans, chosen.id)
            lesson = self.learning.learn(chosen.source_ids, version.pieces)
            if lesson.accepted:
                self._weights_changed()
            chosen.confirmed = True
            self._confirmations.append(record)
            self._log("confirm", chosen)
            return lesson

        return self.worker.call(run)

    def undo_confirm(self) -> Draft:
        """Take the last confirmation back: weights and memory are exactly what they were before it."""

        def run() -> Draft:
            if not self._confirmations:
                raise SessionError("no confirmation to undo.")
            record = self._confirmations.pop()
            self.memory.restore(record.memory)
            self.learning.restore(record.learning)
            self._weights_changed()
            record.draft.confirmed = False
            self._log("undo_confirm", record.draft)
            return record.draft

        return self.worker.call(run)

    def configure(
        self, *, beam: int | None = None, stability: float | None = None, protocol: Protocol | None = None
    ) -> Settings:
        """Change how revisions are searched from now on."""
        if beam is not None:
            check_beam(beam)
        given = {"beam": beam, "stability": stability, "protocol": protocol}
        self.settings = replace(self.settings, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
        return self.settings

    def visit(self, draft: Draft) -> None:
        """Say that a person turned to this draft, so that its time is counted."""
        self.worker.call(lambda: self._log("visit", draft))

    def statistics(self) -> Statistics:
        """Effort over the confirmed sentences."""
        confirmed = [draft for draft in self._drafts if draft.confirmed]
        if not confirmed:
            return Statistics(0, 0.0, 0.0, 0.0, 0.0, 0.0)
        ids = {draft.id for draft in confirmed}
        events = [event for event in self._events if event.draft in ids]
        characters = sum(len(draft.text) for draft in confirmed)
        words = sum(len(draft.tokens) for draft in confirmed)
        mouse = sum(event.mouse for event in events)
        keys = sum(event.keystrokes for event in events)
        return Statistics(
            confirmed=len(confirmed),
            revisions_per_sentence=sum(draft.revisions for draft in confirmed) / len(confirmed),
            seconds_per_sentence=self._seconds(ids) / len(confirmed),
            wsr=sum(len(event.typed.split()) for event in events) / words,
            mar=mouse / characters,
            ksmr=(keys + mouse) / characters,
        )

    def submit(self, run: Callable[[], T], *, key: Hashable | None = None) -> Future[T]:
        """Run something on the session's worker without waiting; a newer submit of the same key cancels an older one."""
        return self.worker.submit(run, key=key)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have `listener` called on the worker after each event, whoever caused it."""
        self._listeners = (*self._listeners, listener)

    def close(self) -> None:
        """Finish what is queued and let the worker go."""
        self.worker.close()

    def _seconds(self, drafts: set[int]) -> float:
        """Time between neighbouring events that belong to one of these drafts; a pause over five minutes is a pause."""
        total = 0.0
        for before, after in zip(self._events, self._events[1:], strict=False):
            if before.draft == after.draft and after.draft in drafts:
                total += min(after.time - before.time, 300.0)
        return total

    def _log(self, kind: str, draft: Draft, *, typed: str = "", keystrokes: int = 0, mouse: int = 0) -> None:
        self._events = (*self._events, Event(time.time(), kind, draft.id, typed, keystrokes, mouse))
        self._latest = draft
        for listener in self._listeners:
            listener()

    def _readers(self, draft: Draft) -> Readers | None:
        return self.memory.readers(draft.source)

    def _sources(self, draft: Draft) -> Sources:
        if draft.id not in self._encoded:
            self._remember(draft, self.translator.read([draft.source_ids]))
        self._encoded.move_to_end(draft.id)
        return self._encoded[draft.id]

    def _remember(self, draft: Draft, sources: Sources) -> None:
        self._encoded[draft.id] = sources
        while len(self._encoded) > SOURCES_KEPT:
            self._encoded.popitem(last=False)

    def _weights_changed(self) -> None:
        self._encoded.clear()
        self.memory.rekey()

    def _searcher(self, draft: Draft) -> Searcher:
        translator = self.translator
        sources = self._sources(draft)
        return Searcher(
            translator.directions, sources, self.settings, self._readers(draft), self.worker.check
        )

    def _search(self, draft: Draft, request: Request) -> Revision:
        return self._searcher(draft).revise([request])[0]

    def _refill(self, draft: Draft, left: Phrase, right: Phrase, old: Phrase) -> Phrase:
        return self._searcher(draft).refill(0, left, right, old)

    @torch.inference_mode()
    def _version(
        self, draft: Draft, before: Version, after: Version, pieces: Phrase, forward: Phrase, backward: Phrase
    ) -> Version:
        """`after` with the tokens of its pieces, and the stages that led there."""
        readers = self._readers(draft)
        stages = [stage for stage in (forward, backward) if stage]
        sentences = [pieces, *stages]
        rows = [0] * len(sentences)
        sources = self._sources(draft)
        texts, ids = [draft.source] * len(rows), [draft.source_ids] * len(rows)
        found = self.translator.tokens(
            sources, rows, texts, ids, sentences, readers.forward if readers else None
        )
        words = self.translator.target_vocabulary.words(pieces)
        tokens = with_origins(words, found[0], after.fixed, before.tokens)
        trace = [Stage("draft", before.tokens, _CAPTIONS["draft"])]
        for name, stage in zip(("forward", "backward"), found[1:], strict=False):
            texts_before = {token.text for token in before.tokens}
            shown = tuple(replace(t, origin="kept" if t.text in texts_before else "changed") for t in stage)
            trace.append(Stage(name, shown, _CAPTIONS[name]))  # type: ignore[arg-type]
        trace.append(Stage("result", tokens, _CAPTIONS["result"]))
        return replace(after, pieces=pieces, tokens=tokens, trace=tuple(trace))


def _mine(start: int, mine: tuple[bool, ...]) -> list[tuple[int, int]]:
    """Runs of pieces the person wrote, as spans of the sentence."""
    spans: list[tuple[int, int]] = []
    for offset, written in enumerate(mine):
        if written and spans and spans[-1][1] == start + offset:
            spans[-1] = (spans[-1][0], start + offset + 1)
        elif written:
            spans.append((start + offset, start + offset + 1))
    return spans
