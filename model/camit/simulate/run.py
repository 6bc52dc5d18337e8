"""A simulation, whole: a corpus, a user and a protocol in; sentences and figures out.

Lines that do not depend on each other are played in small batches of similar length; with memory or
learning a document is played line by line. Such a *share* of the work is the same whoever plays it, on one
thread, so a run split over processes gives exactly the results of one process.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import msgspec
import torch

from camit.checkpoint import find, languages
from camit.corpus import Pair, documents, looks_lowercased
from camit.errors import CorpusError, InputError
from camit.learning.guard import GUARD, REPLAY
from camit.memory.alignment import stands_for
from camit.memory.gate import FILE as GATES
from camit.search.revise import Settings, check_beam
from camit.simulate.corpus import read_lines, with_capitals
from camit.simulate.history import Confirmed, History, Preset
from camit.simulate.metrics import Figures, Lexicon, Sentence, figures, record
from camit.simulate.protocols import protocol
from camit.simulate.rounds import Rules
from camit.simulate.users import Judge, user
from camit.training.languages import check_languages
from camit.translator import MAX_SOURCE_PIECES, Translator, load

SHARE = 16  # independent lines played together
# The files of this package that results depend on.
PLAYING = (
    *(f"{name}.py" for name in ("checkpoint", "corpus", "text", "tokens", "translator")),
    *(f"{room}/*.py" for room in ("learning", "memory", "networks", "search")),
    "session/plan.py",
    *(f"simulate/{name}.py" for name in ("corpus", "history", "metrics", "protocols", "rounds", "run")),
    *(f"simulate/{name}.py" for name in ("screen", "users")),
)
Progress = Callable[[int], None]  # told how many lines were played


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run: all that its results depend on."""

    model: str
    corpus: str
    user: str = "ideal"
    protocol: str = "bidirectional"
    revisions: int = 4
    memory: bool = False
    learning: bool = False
    preset: Preset = "default"  # of both
    limit: int | None = None  # so many lines
    skip: int = 0  # after so many that are left out
    lowercase: bool | None = None  # None: as the corpus looks
    language: str | None = None  # of the target; None: the model's
    no_change_is_a_candidate: bool = False
    confirmed: Confirmed = "reference"
    beam: int = 4
    stability: float = Settings().stability
    seed: int = 1

    @property
    def judge(self) -> Judge:
        return Judge(bool(self.lowercase), self.language or "en")

    def rules(self) -> Rules:
        """The rules of play; `InputError` for a setting that is none."""
        check_beam(self.beam)
        if not 0 <= self.revisions <= 100:
            raise InputError(f"revisions must lie between 0 and 100, not {self.revisions!r}.")
        chosen = protocol(self.protocol)
        return Rules(
            user=user(self.user),
            protocol=chosen,
            settings=Settings(protocol=chosen.search, beam=self.beam, stability=self.stability),
            judge=self.judge,
            revisions=self.revisions,
            may_pass=self.no_change_is_a_candidate,
            seed=self.seed,
        )


class Provenance(msgspec.Struct, frozen=True):
    """Where numbers come from."""

    commit: str
    code: str  # digest of the code that plays
    time: str  # UTC
    seconds: float
    processes: int
    model: str  # digest of the weights
    corpus: str  # digest of the lines
    versions: dict[str, str]


class Run(msgspec.Struct, frozen=True):
    """Settings, figures and sentences of a finished simulation."""

    settings: Experiment
    figures: Figures
    sentences: tuple[Sentence, ...]
    provenance: Provenance

    def to_json(self) -> bytes:
        """For machines: the figures on top, then settings, provenance and sentences."""
        data = {
            **msgspec.to_builtins(self.figures),
            "settings": msgspec.to_builtins(self.settings),
            "provenance": msgspec.to_builtins(self.provenance),
            "outputs": msgspec.to_builtins(self.sentences),
        }
        return msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Run:
        try:
            raw: dict[str, Any] = msgspec.json.decode(data)
            return cls(
                msgspec.convert(raw["settings"], Experiment),
                msgspec.convert(raw, Figures),
                msgspec.convert(raw["outputs"], tuple[Sentence, ...]),
                msgspec.convert(raw["provenance"], Provenance),
            )
        except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"these are no results of camit simulate --json, or of another version ({error}); run the "
                "simulation again."
            ) from error

    @property
    def judge(self) -> Judge:
        return self.settings.judge

    def cut(self, revisions: int) -> Run:
        """The run as it would have been with fewer revisions; for lines that do not depend on each other."""
        if revisions == self.settings.revisions:
            return self
        sentences = tuple(sentence.cut(revisions) for sentence in self.sentences)
        settings = msgspec.structs.replace(self.settings, revisions=revisions)
        return Run(settings, figures(sentences, self.judge), sentences, self.provenance)


def prepare(experiment: Experiment) -> tuple[Experiment, list[Pair]]:
    """Read the corpus and settle what depends on it; every mistake in settings or corpus shows here."""
    experiment.rules()
    source, target = languages(experiment.model)
    lines = read_lines(experiment.corpus, experiment.limit, experiment.skip)
    check_languages(Path(experiment.corpus), lines, source, target)
    lowercase = looks_lowercased(lines) if experiment.lowercase is None else experiment.lowercase
    settled = msgspec.structs.replace(experiment, lowercase=lowercase, language=target)
    return settled, with_capitals(lines) if lowercase else lines


def check_processes(processes: int) -> None:
    if processes < 1:
        raise InputError(f"processes must be at least 1, not {processes!r}.")


def check_sources(translator: Translator, corpus: str, lines: Sequence[Pair]) -> None:
    """Too long a sentence is told before hours of work, not after."""
    for line in lines:
        try:
            translator.encode_source(line.source)
        except InputError as error:
            raise CorpusError(f"{corpus}, line {line.line}: {error}") from None
        longest = max(len(translator.target_vocabulary.encode(text)) for text in line.references)
        if longest > MAX_SOURCE_PIECES:
            raise CorpusError(
                f"{corpus}, line {line.line}: the reference has {longest} pieces; at most "
                f"{MAX_SOURCE_PIECES} can be told. Split the line into sentences."
            )


def simulate(experiment: Experiment, *, processes: int = 1, progress: Progress = lambda done: None) -> Run:
    """Play a corpus.

    >>> run = simulate(Experiment(model="zh-en", corpus="dev.tsv", limit=100))  # doctest: +SKIP
    >>> [round(q.bleu, 1) for q in run.figures.revisions]  # doctest: +SKIP
    [16.9, 38.2, 52.2, 60.5, 66.0]
    """
    check_processes(processes)
    started = time.time()
    experiment, lines = prepare(experiment)
    translator = load(experiment.model)
    check_sources(translator, experiment.corpus, lines)
    shares = divide(experiment, lines)
    played: list[Sentence] = []
    with one_thread():
        if processes == 1:
            for share in shares:
                played.extend(play_share(translator, experiment, share, progress))
        else:
            played = _in_processes(experiment, shares, processes, progress)
    sentences = tuple(sorted(played, key=lambda sentence: sentence.line))
    return Run(
        experiment,
        figures(sentences, experiment.judge),
        sentences,
        Provenance(
            commit=commit(),
            code=code_digest(),
            time=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            seconds=round(time.time() - started, 1),
            processes=processes,
            model=model_digest(find(experiment.model)),
            corpus=corpus_digest(lines),
            versions=versions(),
        ),
    )


def divide(experiment: Experiment, lines: Sequence[Pair]) -> list[list[Pair]]:
    """The shares of work. They do not depend on the number of processes."""
    if experiment.memory or experiment.learning:
        # The longest first, so that processes end at about the same time.
        return sorted(documents(lines), key=len, reverse=True)
    ordered = sorted(lines, key=lambda line: (-len(line.source), line.line))
    return [ordered[first : first + SHARE] for first in range(0, len(ordered), SHARE)]


def play_share(
    translator: Translator, experiment: Experiment, lines: Sequence[Pair], progress: Progress
) -> list[Sentence]:
    """Play one share of the work."""
    rules = experiment.rules()
    if not (experiment.memory or experiment.learning):
        rounds = rules.play(translator, lines)
        progress(len(lines))
    else:
        history = History(
            translator,
            rules.judge,
            memory=experiment.memory,
            learning=experiment.learning,
            preset=experiment.preset,
            confirmed=experiment.confirmed,
        )
        rounds = []
        try:
            for line in lines:
                [played] = rules.play(translator, [line], history.readers(line.source))
                history.confirm(played)
                rounds.append(played)
                progress(1)
        finally:
            history.forget()
    # Only now, with the model's own weights again: all runs are judged by the same alignment.
    lexicon = Lexicon(translator.source_vocabulary, translator.target_vocabulary)
    align = partial(stands_for, translator)
    return [record(played, rules.judge, rules.revisions, lexicon, align) for played in rounds]


@contextmanager
def one_thread() -> Iterator[None]:
    """Small matrices are quicker on one thread, and sums do not depend on how they are split."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


_worker: dict[str, Any] = {}


def _start_worker(model: str, queue: Queue[int]) -> None:
    torch.set_num_threads(1)
    _worker["translator"] = load(model)
    _worker["queue"] = queue


def _work(experiment: Experiment, lines: Sequence[Pair]) -> list[Sentence]:
    return play_share(_worker["translator"], experiment, lines, _worker["queue"].put)


def _in_processes(
    experiment: Experiment, shares: Sequence[Sequence[Pair]], processes: int, progress: Progress
) -> list[Sentence]:
    context = multiprocessing.get_context("spawn")
    played: list[Sentence] = []
    with context.Manager() as manager:
        queue: Queue[int] = manager.Queue()
        with ProcessPoolExecutor(
            min(processes, len(shares)), context, _start_worker, (experiment.model, queue)
        ) as pool:
            waiting = {pool.submit(_work, experiment, share) for share in shares}
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in done:  # the first that failed ends it all
                        played.extend(future.result())
                    _tell(queue, progress)
            except BrokenProcessPool:
                raise InputError(
                    "a process of the simulation was ended from outside, maybe for want of memory; "
                    "ask for fewer --processes."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)
        _tell(queue, progress)
    return played


def _tell(queue: Queue[int], progress: Progress) -> None:
    try:
        while True:
            progress(queue.get_nowait())
    except Empty:
        pass


def corpus_digest(lines: Sequence[Pair]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update("\t".join((line.document, line.source, *line.references)).encode() + b"\n")
    return digest.hexdigest()[:12]


def model_digest(directory: Path) -> str:
    """Of all that a model brings along: weights (config.json has their digest), gates, guard and replay."""
    digest = hashlib.sha256()
    for name in ("config.json", GATES, GUARD, REPLAY):
        path = directory / name
        digest.update(name.encode() + (path.read_bytes() if path.is_file() else b""))
    return digest.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Of the packages that results depend on."""
    return {name: version(name) for name in ("torch", "sacrebleu")}


@lru_cache
def code_digest() -> str:
    """Of all that the results of a run can depend on, so that stored runs of other code are not reused."""
    room = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for pattern in PLAYING:
        for path in sorted(room.glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache
def commit() -> str:
    """The commit of this code, or the version where it was installed without its history."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
        )
        if done.returncode == 0:
            return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
    try:
        return f"camit-widget {version('camit-widget')}"
    except PackageNotFoundError:
        return "unknown"
