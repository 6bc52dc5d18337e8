"""The journal of a session: a directory with an append-only file of records and a few snapshots beside it.

`journal.jsonl` has one JSON object per line: its number, a checksum and a record (`ledger.py`). A record is
on the disk before the change it stands for is shown to anybody. What is large, the entries of the memory
and the learned weights, lies in JSON and safetensors files, written before the record that names them. So
the process may end at any moment. Everything is data: validated, versioned, never code.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from camit.checkpoint import write_atomically
from camit.errors import InputError, SessionError
from camit.session.ledger import AnyRecord, File

try:
    import fcntl
except ImportError:  # Windows has no flock: there nobody is told that a session is open twice
    fcntl = None  # type: ignore[assignment]

# What a disk answers that knows no locks, as some in a network do: there, too, nobody is told.
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
VERSION = 5
FILE = "journal.jsonl"
_ENDINGS = {"memory": "json", "learned": "safetensors"}  # of snapshots, by what they hold
_SNAPSHOT = re.compile(r"(memory|learned)-(\d{6,})\.(json|safetensors)(\.part)?")


def snapshot_name(kind: str, number: int) -> str:
    return f"{kind}-{number:06d}.{_ENDINGS[kind]}"


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: what this is, and for which model."""

    version: int
    model: str
    digest: str
    created: float


class _Line(msgspec.Struct, frozen=True):
    n: int
    crc: int
    record: msgspec.Raw


class JournalWarning(UserWarning):
    """Something at the end of a journal was damaged and has been dropped."""


class Journal:
    """An open journal; one process at a time.

    >>> journal = Journal.create(Path("mine"), header, {}, [])  # doctest: +SKIP
    >>> journal.append(record)  # doctest: +SKIP
    """

    def __init__(self, directory: Path, descriptor: int, lines: int, size: int) -> None:
        self.directory = directory
        self._descriptor = descriptor
        self._lines = lines  # good ones
        self._size = size  # bytes of them
        self._next = 1 + max((int(m[2]) for m in self._snapshots().values()), default=0)

    @classmethod
    def create(
        cls, directory: Path, header: Header, snapshots: dict[str, bytes], records: Iterable[AnyRecord]
    ) -> Journal:
        """Write a journal into a new directory, which appears complete or not at all."""
        _check_name(directory)
        if directory.is_dir() and (directory / FILE).exists():
            raise SessionError(
                f"{directory} holds a session already. Choose another directory, or go on with that session: "
                "Session.restore(path, translator)."
            )
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise SessionError(f"{directory} exists and is no empty directory; choose another name.")
        part = directory.with_name(f".{directory.name}.part")
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(part, ignore_errors=True)  # of a save that was interrupted
            part.mkdir()
            for name, data in snapshots.items():
                write_atomically(part / name, data)
            lines = [_line(n, _encode(item)) for n, item in enumerate((header, *records))]
            write_atomically(part / FILE, b"".join(lines))
            _sync(part)
            if directory.exists():
                directory.rmdir()
            part.rename(directory)
            _sync(directory.parent)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise SessionError(f"the session cannot be saved in {directory}: {_reason(error)}.") from error
        return cls(directory, _lock(directory), len(lines), sum(map(len, lines)))

    @classmethod
    def open(cls, directory: Path, model: str, digest: str) -> tuple[Journal, list[AnyRecord]]:
        """Read a journal of this model to go on with it; nothing in the directory is changed."""
        _check_there_is_one(directory)
        descriptor = _lock(directory)
        try:
            data = (directory / FILE).read_bytes()
            good, end = _good_lines(directory / FILE, data)
            _check(directory / FILE, good, model, digest)
            records = [_decode(directory / FILE, n, raw) for n, raw in enumerate(good) if n]
        except BaseException:
            os.close(descriptor)
            raise
        return cls(directory, descriptor, len(good), end), records

    def go_on(self, needed: Iterable[File]) -> None:
        """The session is restored: cut off what was damaged, and remove snapshots that nothing needs."""
        path = self.directory / FILE
        with path.open("rb") as file:
            file.seek(self._size - 1)
            whole = file.read(1) == b"\n"
        if not whole:  # a last line that lacks its end
            self._size += os.write(self._descriptor, b"\n")
        dropped = path.stat().st_size - self._size
        if dropped:
            with path.open("rb") as file:
                file.seek(self._size)
                tail = file.read()
            os.ftruncate(self._descriptor, self._size)
            os.fsync(self._descriptor)
            warnings.warn(_dropped(path, self._lines, tail), JournalWarning, stacklevel=4)
        self.keep(needed)

    def append(self, record: AnyRecord) -> None:
        """Put a record on the disk; afterwards it is there even if the machine fails."""
        self._check_there()
        line = _line(self._lines, _encode(record))
        try:
            os.ftruncate(self._descriptor, self._size)  # half a line of an append that failed
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # or else the line would be there after a restore
                os.ftruncate(self._descriptor, self._size)
            raise SessionError(
                f"{self.directory / FILE} cannot be written ({_reason(error)}), so nothing was changed. "
                "Make room and try again, or save the session in another place."
            ) from error
        self._lines += 1
        self._size += len(line)

    def store(self, kind: str, data: bytes) -> File:
        """Write a snapshot under a new name."""
        self._check_there()
        name = snapshot_name(kind, self._next)
        try:
            write_atomically(self.directory / name, data)
            _sync(self.directory)
        except OSError as error:
            raise SessionError(
                f"{self.directory / name} cannot be written ({_reason(error)}), so nothing was changed. "
                "Make room and try again, or save the session in another place."
            ) from error
        self._next += 1
        return File.of(name, data)

    def load(self, file: File) -> bytes:
        """The bytes of a snapshot, as they were written."""
        path = self.directory / file.name
        if not _SNAPSHOT.fullmatch(file.name):
            raise SessionError(
                f"{self.directory / FILE} names {file.name!r}, which is no snapshot of a session."
            )
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SessionError(
                f"{path} is missing or cannot be read ({_reason(error)}); put the whole directory of the "
                f"session back from a copy, or see with `camit rescue {self.directory}` what was confirmed. "
                "Nothing was changed."
            ) from error
        if File.of(file.name, data) != file:
            raise SessionError(
                f"{path} is damaged: its sha256 is not the one in the journal. Put the directory of the "
                f"session back from a copy, or see with `camit rescue {self.directory}` what was confirmed. "
                "Nothing was changed."
            )
        return data

    def has(self, file: File) -> bool:
        """Does this snapshot still lie there?"""
        return file.name in self._snapshots()

    def keep(self, needed: Iterable[File]) -> None:
        """Remove snapshots that nothing needs any more."""
        names = {file.name for file in needed}
        # Tidying up must not make a change fail that is on the disk already.
        with contextlib.suppress(OSError):
            for name in () if self.lost else self._snapshots():
                if name not in names:
                    with contextlib.suppress(OSError):
                        (self.directory / name).unlink(missing_ok=True)

    @property
    def lost(self) -> bool:
        """Has somebody removed its file, or put another in its place?"""
        mine = os.fstat(self._descriptor)
        try:
            return mine.st_nlink == 0 or not os.path.samestat(mine, (self.directory / FILE).stat())
        except OSError:
            return False  # moved as it is: it can be written to, wherever it is now

    def _check_there(self) -> None:
        if self.lost:
            raise SessionError(
                f"{self.directory / FILE} was removed or replaced, so nothing was changed. To go on, save "
                "the session in a new place: session.save(path)."
            )

    def close(self) -> None:
        """Let another process open it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _snapshots(self) -> dict[str, re.Match[str]]:
        return {e.name: m for e in os.scandir(self.directory) if (m := _SNAPSHOT.fullmatch(e.name))}


def _check_name(directory: Path) -> None:
    try:
        directory.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            raise SessionError(
                f"{str(directory)!r} is no name for a directory ({error}); choose another."
            ) from error


def _line(n: int, record: bytes) -> bytes:
    return b'{"n":%d,"crc":%d,"record":%s}\n' % (n, zlib.crc32(record), record)


def _parsed(line: bytes) -> _Line | None:
    """A line, if it is whole."""
    try:
        parsed = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return parsed if zlib.crc32(bytes(parsed.record)) == parsed.crc else None


def readable(directory: Path) -> tuple[list[tuple[int, AnyRecord]], int]:
    """Every record in a session's directory that can be read by itself, with its number, and how many lines
    cannot; whatever else is damaged."""
    _check_there_is_one(directory)
    found: list[tuple[int, AnyRecord]] = []
    lost = 0
    for line in (directory / FILE).read_bytes().removesuffix(b"\n").split(b"\n"):
        try:
            parsed = _parsed(line)
            if parsed is None:
                lost += 1
            elif parsed.n:  # the first one is the header
                found.append((parsed.n, _decode(directory / FILE, parsed.n, bytes(parsed.record))))
        except SessionError:  # of another version, or by another hand
            lost += 1
    return found, lost


def _check_there_is_one(directory: Path) -> None:
    _check_name(directory)
    if not (directory / FILE).is_file():
        raise SessionError(f"{directory} holds no session: there is no {FILE} in it.")


def _good_lines(path: Path, data: bytes) -> tuple[list[bytes], int]:
    """The records up to the first damaged line, and where they end; an error if good ones stand behind it."""
    lines = data.split(b"\n")
    if _parsed(lines[-1]) is None:  # nothing, or half a line; but a line may lack nothing but its end
        del lines[-1]
    good: list[bytes] = []
    end = 0
    for at, line in enumerate(lines):
        if at == 0:
            _check_version(path, line)
        parsed = _parsed(line)
        if parsed is None or parsed.n != at:
            behind = sum(_parsed(later) is not None for later in lines[at:])
            if behind or at == 0:
                raise SessionError(
                    f"{path}, line {at + 1} is damaged or missing, and {behind} good lines stand there or "
                    "behind, which cannot be applied without it. Put a copy of the file back, or see with "
                    f"`camit rescue {path.parent}` what was confirmed. Nothing was changed."
                )
            break
        good.append(bytes(parsed.record))
        end = min(end + len(line) + 1, len(data))
    if not good:
        raise SessionError(f"{path} is empty or damaged from its first line on; put it back from a copy.")
    return good, end


def _check_version(path: Path, line: bytes) -> None:
    """The version first: of another one, nothing else can be judged."""
    try:
        version = msgspec.json.decode(line)["record"]["version"]
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError):
        return
    if version != VERSION:
        raise SessionError(
            f"{path} has version {version!r}; this camit reads version {VERSION}. Open it with the "
            "camit-widget that wrote it. Nothing was changed."
        )


def _check(path: Path, good: Sequence[bytes], model: str, digest: str) -> None:
    try:
        header = msgspec.json.decode(good[0], type=Header)
    except msgspec.MsgspecError as error:
        raise SessionError(f"{path} does not begin like a session ({error}). Nothing was changed.") from error
    if header.digest != digest:
        raise SessionError(
            f"{path} belongs to another model: {header.model!r} with digest {header.digest[:12]}, not "
            f"{model!r} with {digest[:12]}. Load the model it was made with. Nothing was changed."
        )
    if len(good) < 2:
        raise SessionError(f"{path} ends after its first line; put it back from a copy.")


def _decode(path: Path, n: int, raw: bytes) -> AnyRecord:
    try:
        record: AnyRecord = msgspec.json.decode(raw, type=AnyRecord)
        return record
    except (msgspec.MsgspecError, InputError) as error:
        raise SessionError(
            f"{path}, line {n + 1} is no record this camit knows: {error}. Nothing was changed."
        ) from error


def _dropped(path: Path, lines: int, tail: bytes) -> str:
    """What was cut off, as far as one can tell."""
    kinds = re.findall(rb'"is":"([a-z]+)"', tail)
    what = ", ".join(kind.decode() for kind in kinds) or "nothing that can be made out"
    return (
        f"{path}: the last {len(tail):,} bytes, behind line {lines}, were damaged and have been dropped "
        f"(they began: {what}). Everything before them is restored."
    )


def _encode(item: Header | AnyRecord) -> bytes:
    """As JSON, if it can be read again: a value of the wrong type would make the whole journal unreadable."""
    data = msgspec.json.encode(item)
    try:
        msgspec.json.decode(data, type=Header if isinstance(item, Header) else AnyRecord)
    except msgspec.MsgspecError as error:
        raise SessionError(f"the journal cannot hold this ({error}), so nothing was changed.") from error
    return data


def _lock(directory: Path) -> int:
    """The journal, open for appending, by nobody else; the system lets go however the process ends."""
    flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(directory / FILE, flags)
    except OSError as error:
        raise SessionError(f"{directory / FILE} cannot be opened: {_reason(error)}.") from error
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SessionError(
                f"{directory} is in use by another session; close() that one, or end its process, first."
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise SessionError(f"{directory / FILE} cannot be locked: {_reason(error)}.") from error
    return descriptor


def _sync(directory: Path) -> None:
    """Names in a directory are on the disk as well."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
