"""`camit soak`: endurance tests, each of which either finds nothing or says how to see it again."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Annotated, Any, TypeVar

import msgspec
import torch
import typer
from rich.console import Console

from camit.checkpoint import check_writable, write_atomically
from camit.errors import InputError
from camit.search.revise import Protocol
from camit.session import Session
from camit.session.draft import Draft
from camit.soak import chance
from camit.soak.kills import kill_once
from camit.soak.oracle import Action, Oracle, Violation
from camit.soak.state import digest, resident
from camit.text import screen_words
from camit.translator import load

T = TypeVar("T")
soak = typer.Typer(no_args_is_help=True, help="Endurance tests: operations, kills, confirms, threads.")
_out = Console(stderr=True, soft_wrap=True)

Seed = Annotated[int, typer.Option(help="Where the random numbers start; the same seed plays the same game.")]
Model = Annotated[str, typer.Option(help="A model, or 'toy' for random little networks.")]


def _writable(path: Path | None) -> Path | None:
    """A file that cannot be written is told before the hours of work, not after."""
    if path is not None:
        check_writable(path)
    return path


Json = Annotated[
    Path | None, typer.Option("--json", help="Write the figures into this file.", callback=_writable)
]
CLICKS = 6  # in one sentence, at most
_PROTOCOLS: tuple[Protocol, ...] = ("bidirectional", "bidirectional", "bidirectional", "bidirectional",
                                    "unidirectional", "unidirectional-grid", "replace-only")  # fmt: skip


@soak.command()
def operations(
    sequences: Annotated[int, typer.Option(help="How many drafts are played with.")] = 20_000,
    length: Annotated[int, typer.Option(help="Operations on each.")] = 5,
    seed: Seed = 1,
    model: Model = "toy",
    json: Json = None,
) -> None:
    """Random operations on random sentences: does every fixed word stand, in order, whole, every time?"""
    started, done = time.monotonic(), 0
    memory: list[int] = []
    translator = None if model == "toy" else load(model)
    session: Session | None = None
    for n in range(sequences):
        rng = Random(f"{seed}/{n}")
        if n % 20 == 0 or session is None:  # a session is for several drafts, a memory for a while
            if session is not None:
                session.close()
            used = translator or chance.toy(rng)
            session = Session(
                used, learning=False, beam=rng.choice((1, 2, 2, 4)), protocol=rng.choice(_PROTOCOLS)
            )
        sources = chance.TOY_SOURCES if translator is None else chance.SOURCES
        draft = session.open(rng.choice(sources))
        oracle = Oracle(draft, session.translator.target_vocabulary)
        story: list[object] = []
        try:
            for _ in range(length):
                action = chance.action(rng, session.translator.target_vocabulary, draft)
                story.append((action, draft.text))
                oracle.play(action)
                done += 1
            if rng.random() < 0.3:
                session.confirm(draft)
        except Exception as error:
            _out.print(f"sequence {n} of seed {seed}: {story}", markup=False)
            raise Violation(f"sequence {n} of seed {seed}: {error}") from error
        if n % max(1, sequences // 20) == 0:
            gc.collect()
            memory.append(resident())
            _progress(f"{n} of {sequences} sequences, {done} operations", started, memory)
    _report(
        json,
        {
            "sequences": sequences,
            "operations": done,
            "model": model,
            "seconds": time.monotonic() - started,
            **_growth(memory),
        },
    )


@soak.command()
def kills(
    kills: Annotated[int, typer.Option(help="How often.")] = 200,
    seed: Seed = 1,
    model: Model = "toy",
    directory: Annotated[
        Path | None, typer.Option(help="Where the session lives; by default it goes.")
    ] = None,
    json: Json = None,
) -> None:
    """kill -9 in the middle of a session, again and again: is everything there afterwards?"""
    if not hasattr(os, "fork"):
        raise InputError("this needs a system with fork: Linux or macOS.")
    torch.set_num_threads(1)  # threads of the parent do not live in a forked child
    started = time.monotonic()
    rng = Random(seed)
    toy = model == "toy"
    translator = chance.toy(rng) if toy else load(model)
    sources = chance.TOY_SOURCES if toy else chance.SOURCES
    doing: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="camit-soak-") as temporary:
        path = (directory or Path(temporary)) / "session"
        with Session(translator, journal=path) as session:
            state = digest(session)
        for n in range(kills):
            what, state = kill_once(path, translator, sources, Random(f"{seed}/{n}"), state)
            doing[what] = doing.get(what, 0) + 1
            if n % max(1, kills // 20) == 0:
                _progress(f"{n} of {kills} kills; last while it was in: {what}", started, [])
        with Session.restore(path, translator) as session:
            drafts, confirmed = len(session.drafts), sum(d.confirmed for d in session.drafts)
        files = len(list(path.iterdir()))
    _report(
        json,
        {
            "kills": kills,
            "killed_in": dict(sorted(doing.items())),
            "drafts": drafts,
            "confirmed": confirmed,
            "files": files,
            "model": model,
            "seconds": time.monotonic() - started,
        },
    )


@soak.command()
def confirms(
    confirms: Annotated[int, typer.Option(help="How many.")] = 1000,
    seed: Seed = 1,
    model: Model = "zh-en",
    journal: Annotated[bool, typer.Option(help="Save the session as it goes.")] = True,
    json: Json = None,
) -> None:
    """One confirmed sentence after the other: shows memory and latency all along; the guard must hold.

    Most are corrected until they are right; in one of ten a word is typed that makes no sense. Timed is a
    click that is undone again, the same kind in every sentence: another word for a place.
    """
    started, rng = time.monotonic(), Random(seed)
    toy = model == "toy"
    translator = chance.toy(rng) if toy else load(model)
    memory: list[int] = []
    opened: list[float] = []
    offered: list[float] = []
    clicks: list[float] = []
    lessons: list[float] = []
    needed: list[int] = []
    lengths: list[int] = []
    accepted, worst_guard, margin = 0, 0.0, 0.0
    with (
        tempfile.TemporaryDirectory(prefix="camit-soak-") as temporary,
        Session(translator, journal=Path(temporary) / "session" if journal else None) as session,
    ):
        margin = session.learning.settings.margin
        for n in range(confirms):
            source, translation = (rng.choice(chance.TOY_SOURCES),) * 2 if toy else chance.sentence(rng)
            with _timed(opened):
                draft = session.open(source)
            lengths.append(len(draft.tokens))
            place = rng.randrange(len(draft.tokens))
            with _timed(offered):
                others = draft.alternatives(place)
            with _timed(clicks):
                draft.replace(place, others[0].text if others else rng.choice(chance.TYPED[:8]))
            draft.undo()
            needed.append(0)
            for action in _actions(rng, draft, translation, nonsense=n % 10 == 9):
                action.do(draft)
                needed[-1] += 1
            with _timed(lessons):
                lesson = session.confirm(draft)
            if lesson.accepted:
                accepted += 1
                worst_guard = max(worst_guard, lesson.guard)
                if session.learning.settings.guarded and lesson.guard > margin:
                    raise Violation(f"confirmation {n}: the guard set got worse by {lesson.guard:.2%}")
            if n % max(1, confirms // 20) == 0:
                gc.collect()
                memory.append(resident())
                _progress(f"{n} of {confirms} confirmed, {accepted} lessons accepted", started, memory)
        files = len(list((Path(temporary) / "session").iterdir())) if journal else 0
        entries = len(session.memory.entries)
        recalled = sum(sentence.places for sentence in session.learning.snapshot().sentences)
    _report(
        json,
        {
            "confirms": confirms,
            "accepted": accepted,
            "worst_guard": worst_guard,
            "margin": margin,
            "entries": entries,
            "recalled_places": recalled,
            "open_ms": _tenths(opened),
            "alternatives_ms": _tenths(offered),
            "click_ms": _tenths(clicks),
            "confirm_ms": _tenths(lessons),
            "clicks_needed": [round(mean(part), 2) for part in _parts(needed)],
            "words": [round(mean(part), 1) for part in _parts(lengths)],
            "files": files,
            "model": model,
            "seconds": time.monotonic() - started,
            **_growth(memory),
        },
    )


@soak.command()
def threads(
    seconds: Annotated[float, typer.Option(help="How long.")] = 60.0,
    count: Annotated[int, typer.Option(help="How many threads.")] = 2,
    seed: Seed = 1,
    model: Model = "zh-en",
    json: Json = None,
) -> None:
    """Several threads on one session: does every answer belong to its request, and is nothing mixed up?"""
    rng = Random(seed)
    translator = chance.toy(rng) if model == "toy" else load(model)
    sources = chance.TOY_SOURCES if model == "toy" else chance.SOURCES
    stop = time.monotonic() + seconds
    problems: list[BaseException] = []
    answers = [0] * count
    waits: list[float] = []

    def hammer(n: int, session: Session) -> None:
        mine = Random(f"{seed}/{n}")
        try:
            while time.monotonic() < stop and not problems:
                draft = session.open(mine.choice(sources))
                oracle = Oracle(draft, session.translator.target_vocabulary)
                for _ in range(5):
                    start = time.perf_counter()
                    oracle.play(chance.action(mine, session.translator.target_vocabulary, draft))
                    waits.append(time.perf_counter() - start)
                    answers[n] += 1
                place = mine.randrange(len(draft.tokens))
                shown = draft.tokens[place].text
                if shown in [a.text for a in draft.alternatives(place)]:
                    raise Violation(f"{shown!r} is no alternative to itself")
                text = draft.text
                session.confirm(draft)
                if draft.text != text or not draft.confirmed:
                    raise Violation(f"confirmed {text!r}, got {draft}")
                answers[n] += 2
        except BaseException as error:
            problems.append(error)

    with Session(translator) as session:
        hammers = [threading.Thread(target=hammer, args=(n, session)) for n in range(count)]
        for thread in hammers:
            thread.start()
        for thread in hammers:
            thread.join()
        if problems:
            raise Violation(f"{type(problems[0]).__name__}: {problems[0]}") from problems[0]
        if sorted(draft.id for draft in session.drafts) != list(range(len(session.drafts))):
            raise Violation("drafts were lost or doubled")
        confirmed = sum(draft.confirmed for draft in session.drafts)
    _report(
        json,
        {
            "threads": count,
            "answers": answers,
            "confirmed": confirmed,
            "wait_ms": {"p50": _ms(waits), "max": round(1000 * max(waits), 1)},
            "model": model,
            "seconds": seconds,
        },
    )


def _actions(rng: Random, draft: Draft, translation: str, *, nonsense: bool) -> Iterator[Action]:
    """What is done to a sentence: what has to be, one thing after the other, or what makes no sense."""
    if nonsense:
        place = rng.randrange(len(draft.tokens))
        yield Action("replace", place, place + 1, rng.choice(chance.TYPED[:8]))
        return
    words = [word for word, _ in screen_words(translation, "en")]
    for _ in range(CLICKS):
        action = chance.correction(draft, words)
        if action is None:
            return
        yield action


@contextmanager
def _timed(into: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    into.append(time.perf_counter() - start)


def _ms(values: list[float]) -> float:
    return round(1000 * median(values), 1)


def _tenths(values: list[float]) -> list[float]:
    """The median of each tenth, in order."""
    return [_ms(part) for part in _parts(values)]


def _parts(values: list[T]) -> list[list[T]]:
    """Ten parts, in order; of fewer values, fewer."""
    n = len(values)
    parts = (values[k * n // 10 : (k + 1) * n // 10] for k in range(10))
    return [part for part in parts if part]


def _growth(memory: list[int]) -> dict[str, float]:
    """Megabytes after the first tenth, when everything is warm, and at the end."""
    warm = memory[min(2, len(memory) - 1)]
    return {"mb_warm": round(warm / 1e6, 1), "mb_end": round(memory[-1] / 1e6, 1)}


def _progress(what: str, started: float, memory: list[int]) -> None:
    held = f", {memory[-1] / 1e6:.0f} MB" if memory else ""
    _out.print(f"{time.monotonic() - started:7.0f} s  {what}{held}", markup=False, highlight=False)


def _report(path: Path | None, figures: dict[str, Any]) -> None:
    data = msgspec.json.format(msgspec.json.encode(figures), indent=1)
    Console(soft_wrap=True).print(data.decode(), markup=False, highlight=False)
    if path is not None:
        write_atomically(path, data)
