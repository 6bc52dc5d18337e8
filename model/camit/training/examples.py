"""Encoded corpora: cleaned, turned into piece ids once, and kept on disk as plain arrays.

Encoding millions of lines takes minutes, so it is done once per corpus and vocabulary; a run that goes on
maps the arrays into memory.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from camit.checkpoint import write_atomically
from camit.corpus import Pair, read_corpus
from camit.text import SPECIALS, Vocabulary
from camit.training.languages import LANGUAGE_SAMPLE, check_languages

CHUNK = 20_000  # lines that one process encodes at a time
_VERSION = 1

Ids = np.ndarray[Any, np.dtype[np.int32]]
Offsets = np.ndarray[Any, np.dtype[np.int64]]


class Cleaning(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of a corpus are left out."""

    longest: int = 160  # pieces on either side
    ratio: float = 3.0  # of pieces, longer side to shorter side, both counted two longer than they are
    copies: int = 4  # how often the same pair of sentences may come


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What cleaning did to one corpus."""

    path: str
    lines: int
    kept: int
    too_long: int
    unequal: int  # length ratio
    duplicate: int
    target_pieces: int


@dataclass(frozen=True)
class Examples:
    """The lines of one corpus as piece ids; line i is ids[offsets[i]:offsets[i + 1]] of each side."""

    source: Ids
    source_offsets: Offsets
    target: Ids
    target_offsets: Offsets
    follows: np.ndarray[Any, np.dtype[np.bool_]]  # does line i directly follow line i - 1 in its document?
    report: Report

    def __len__(self) -> int:
        return len(self.follows)


def encode_corpus(
    path: Path, source: Vocabulary, target: Vocabulary, cleaning: Cleaning, cache: Path
) -> Examples:
    """A corpus cleaned and encoded, from the cache when it was done before."""
    key = _key(path, source, target, cleaning)
    folder = cache / f"{path.name.split('.')[0]}-{key[:16]}"
    if (folder / "report.json").is_file():
        with suppress(OSError, ValueError, msgspec.MsgspecError):  # a damaged cache is made anew
            return _cached(folder)
    _encode(path, source, target, cleaning, folder)
    return _cached(folder)


def _cached(folder: Path) -> Examples:
    report = msgspec.json.decode((folder / "report.json").read_bytes(), type=Report)
    arrays = {
        name: np.load(folder / f"{name}.npy", mmap_mode="r")
        for name in ("source", "source_offsets", "target", "target_offsets", "follows")
    }
    return Examples(**arrays, report=report)


def _key(path: Path, source: Vocabulary, target: Vocabulary, cleaning: Cleaning) -> str:
    digest = hashlib.sha256(msgspec.json.encode((_VERSION, cleaning, path.name)))
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        list(islice(read_corpus(path), 1))  # raises with the right message
    for vocabulary in (source, target):
        digest.update(f"{vocabulary.language} {vocabulary.kind} {vocabulary.segmented}".encode())
        digest.update("\n".join(vocabulary.piece(i) for i in range(len(vocabulary))).encode())
    return digest.hexdigest()


def _encode(path: Path, source: Vocabulary, target: Vocabulary, cleaning: Cleaning, folder: Path) -> None:
    ids: tuple[list[Ids], list[Ids]] = ([], [])
    lengths: tuple[list[int], list[int]] = ([], [])
    follows: list[bool] = []
    dropped: Counter[str] = Counter()
    seen: Counter[bytes] = Counter()
    last, lines = (-1, ""), 0
    for pair, sides in _encoded(path, source, target):
        lines += 1
        reason = _reason_to_drop(sides, cleaning, seen)
        if reason:
            dropped[reason] += 1
            continue
        for side in (0, 1):
            ids[side].append(sides[side])
            lengths[side].append(len(sides[side]))
        follows.append((pair.line - 1, pair.document) == last)
        last = (pair.line, pair.document)
    folder.mkdir(parents=True, exist_ok=True)
    for name, side in (("source", 0), ("target", 1)):
        np.save(folder / f"{name}.npy", np.concatenate(ids[side]) if ids[side] else np.empty(0, np.int32))
        np.save(folder / f"{name}_offsets.npy", np.cumsum([0, *lengths[side]], dtype=np.int64))
    np.save(folder / "follows.npy", np.array(follows, dtype=bool))
    report = Report(
        path=str(path),
        lines=lines,
        kept=len(follows),
        too_long=dropped["too long"],
        unequal=dropped["unequal"],
        duplicate=dropped["duplicate"],
        target_pieces=sum(lengths[1]),
    )
    # Last of all: a folder with a report is complete.
    write_atomically(folder / "report.json", msgspec.json.encode(report))


def _reason_to_drop(sides: tuple[Ids, Ids], cleaning: Cleaning, seen: Counter[bytes]) -> str | None:
    short, long = sorted(len(side) for side in sides)
    if long > cleaning.longest:
        return "too long"
    if short == 0 or long + 2 > cleaning.ratio * (short + 2):
        return "unequal"
    key = hashlib.blake2b(sides[0].tobytes() + b"|" + sides[1].tobytes(), digest_size=12).digest()
    seen[key] += 1
    return "duplicate" if seen[key] > cleaning.copies else None


def _encoded(path: Path, source: Vocabulary, target: Vocabulary) -> Iterator[tuple[Pair, tuple[Ids, Ids]]]:
    """The lines of a corpus with their ids, encoded by all cores when there is much to do."""
    lines = read_corpus(path)
    head = list(islice(lines, max(CHUNK, LANGUAGE_SAMPLE)))
    check_languages(path, head, source.language, target.language)
    if len(head) < CHUNK:
        yield from zip(head, _ids(head, source, target), strict=True)
        return
    context = multiprocessing.get_context("fork")  # vocabularies hold caches that do not pickle
    global _vocabularies
    _vocabularies = (source, target)
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        pending = [(head, pool.submit(_ids_in_worker, head))]
        while pending:
            while len(pending) < 2 * workers and (chunk := list(islice(lines, CHUNK))):
                pending.append((chunk, pool.submit(_ids_in_worker, chunk)))
            chunk, future = pending.pop(0)
            yield from zip(chunk, future.result(), strict=True)


_vocabularies: tuple[Vocabulary, Vocabulary] | None = None


def _ids_in_worker(pairs: list[Pair]) -> list[tuple[Ids, Ids]]:
    assert _vocabularies is not None
    return list(_ids(pairs, *_vocabularies))


def _ids(pairs: Iterable[Pair], source: Vocabulary, target: Vocabulary) -> Iterator[tuple[Ids, Ids]]:
    for pair in pairs:
        yield (
            np.array(source.feed(source.encode(pair.source)), dtype=np.int32),
            np.array(target.feed(target.encode(pair.target)), dtype=np.int32),
        )


def joints(vocabulary: Vocabulary) -> Ids:
    """For each piece: the one to use when no space stands before it; 0 to leave it out, itself if none is.

    Languages written without spaces need both forms where two sentences meet.
    """
    index = {vocabulary.piece(i): i for i in range(SPECIALS, len(vocabulary))}
    result = np.arange(len(vocabulary), dtype=np.int32)
    for piece, i in index.items():
        if piece.startswith("\u2581"):
            result[i] = 0 if piece == "\u2581" else index.get(piece[1:], i)
    return result
