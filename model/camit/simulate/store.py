"""Finished runs on disk, so that tables share them and an interrupted evaluation goes on where it stopped.

A stored run answers for an experiment when settings, model, lines and code are the same. Where nothing
carries over from line to line, one with more revisions answers for fewer: it is cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from glob import escape
from pathlib import Path

import msgspec

from camit.checkpoint import check_writable, find, write_atomically
from camit.corpus import Pair
from camit.errors import InputError
from camit.simulate.run import (
    Experiment,
    Run,
    check_processes,
    code_digest,
    corpus_digest,
    model_digest,
    prepare,
    simulate,
    versions,
)

Announce = Callable[[Experiment, int], Callable[[int], None]]  # experiment, lines -> progress


class Store:
    """Runs by their experiment; with a directory they outlive the process."""

    def __init__(self, directory: Path | None, processes: int, announce: Announce) -> None:
        check_processes(processes)
        if directory is not None:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"--runs {directory} cannot be made ({error.strerror}); name a folder of your own."
                ) from error
            check_writable(directory / "run.json")
        self._directory = directory
        self._processes = processes
        self._announce = announce
        self._runs: dict[Experiment, Run] = {}
        self._answers: dict[Experiment, Run] = {}
        self.unwritten: list[str] = []  # what went wrong while runs were kept

    def get(self, experiment: Experiment) -> Run:
        """The run of an experiment: known, stored, or played now."""
        experiment, lines = prepare(experiment)
        if experiment not in self._answers:
            self._answers[experiment] = self._found(experiment, lines).cut(experiment.revisions)
        return self._answers[experiment]

    def _found(self, experiment: Experiment, lines: Sequence[Pair]) -> Run:
        for known in self._runs.values():
            if _answers(known.settings, experiment):
                return known
        run = self._stored(experiment, corpus_digest(lines))
        if run is None:
            progress = self._announce(experiment, len(lines))
            run = simulate(experiment, processes=self._processes, progress=progress)
            if self._directory is not None:
                try:
                    write_atomically(self._path(experiment), run.to_json())
                except OSError as error:  # the figures are shown all the same
                    self.unwritten.append(f"{self._directory} could not keep a run ({error.strerror}).")
        self._runs[run.settings] = run
        return run

    @property
    def runs(self) -> tuple[Run, ...]:
        """All that were needed, as they were played."""
        return tuple(self._runs.values())

    @property
    def answers(self) -> tuple[Run, ...]:
        """All that were given out, cut to the revisions asked for."""
        return tuple(self._answers.values())

    def _path(self, experiment: Experiment) -> Path:
        assert self._directory is not None
        digest = hashlib.sha256(msgspec.json.encode(experiment)).hexdigest()[:10]
        history = ("-memory" if experiment.memory else "") + ("-learning" if experiment.learning else "")
        return self._directory / f"{_stem(experiment)}-{experiment.protocol}{history}-{digest}.json"

    def _stored(self, experiment: Experiment, corpus: str) -> Run | None:
        if self._directory is None or not self._directory.is_dir():
            return None
        for path in sorted(self._directory.glob(f"{escape(_stem(experiment))}-*.json")):
            try:
                run = Run.from_json(path.read_bytes())
            except (InputError, OSError):
                continue  # half a file, or of another version: played again
            found = run.provenance
            if (
                _answers(run.settings, experiment)
                and found.corpus == corpus
                and found.code == code_digest()
                and found.model == model_digest(find(experiment.model))
                and found.versions == versions()
            ):
                return run
        return None


def _stem(experiment: Experiment) -> str:
    return Path(experiment.corpus).stem[:60]


def _answers(known: Experiment, wanted: Experiment) -> bool:
    if wanted.memory or wanted.learning:  # what is confirmed depends on the last revision
        return known == wanted
    same = msgspec.structs.replace(known, revisions=wanted.revisions) == wanted
    return same and known.revisions >= wanted.revisions
