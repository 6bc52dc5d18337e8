"""The folder of a training run: settings, log, the state to resume from, and the model itself.

Every file is replaced in one step. The whole state (weights, average, optimiser, position)
is a single file, so a run killed at any moment goes on from its last complete state.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import safetensors
import safetensors.torch
from torch import Tensor

from camit.checkpoint import Checkpoint, save_checkpoint, write_atomically
from camit.errors import TrainingError
from camit.training.settings import Settings

STATE, SETTINGS, LOG, CACHE = "state.safetensors", "settings.json", "log.jsonl", "cache"


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands."""

    step: int = 0
    round: int = 0
    batch: int = 0
    pieces: int = 0  # target pieces read so far
    seconds: float = 0.0  # of training, all sittings together
    data: str = ""  # digest of what the rounds are made of
    start: str = ""  # digest of the weights the run began with


class RunFolder:
    """`--out`: made, checked and written here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._private = path / "training"  # what only the trainer needs; the rest of the folder is the model

    def prepare(self, *, resume: bool) -> None:
        """Make the folder; refuse to write over a run that was not asked for."""
        if resume and not self.has_run():
            raise TrainingError(
                f"{self.path} holds no training run to resume; leave out --resume to start one there."
            )
        if not resume and (self.has_run() or (self.path / "config.json").exists()):
            raise TrainingError(
                f"{self.path} already holds a training run or model, which is left untouched; "
                "add --resume to go on with it, or choose another --out."
            )
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            if not resume:  # vocabularies of a start that failed, maybe of other text
                for left in (*self.cache.glob("source.*"), *self.cache.glob("target.*")):
                    left.unlink()
            probe = self._private / ".probe"
            probe.write_bytes(b"x")
            probe.unlink()
        except OSError as error:
            raise TrainingError(
                f"{self.path} cannot be written ({error.strerror}); choose a folder of your own with --out."
            ) from error

    def has_run(self) -> bool:
        return (self._private / SETTINGS).exists() or (self._private / STATE).exists()

    @property
    def cache(self) -> Path:
        return self._private / CACHE

    @property
    def files(self) -> tuple[Path, ...]:
        """What belongs to the run and its model."""
        own = (self.log, *self.path.glob("*.safetensors"), *self.path.glob("config.json"))
        return (*own, *self.path.glob("source.*"), *self.path.glob("target.*"), *self._private.glob("*.*"))

    @property
    def log(self) -> Path:
        return self.path / LOG

    def save_settings(self, settings: Settings) -> None:
        self._write(self._private / SETTINGS, msgspec.json.format(msgspec.json.encode(settings), indent=1))

    def settings(self) -> Settings:
        path = self._private / SETTINGS
        try:
            return msgspec.json.decode(path.read_bytes(), type=Settings)
        except (OSError, msgspec.MsgspecError) as error:
            raise TrainingError(f"{path} cannot be read ({error}); start again in a new folder.") from error

    def save_state(self, tensors: dict[str, Tensor], position: Position) -> None:
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        free = shutil.disk_usage(self.path).free
        if free < 1.1 * size:
            raise TrainingError(
                f"the disk of {self.path} is full: a checkpoint needs {size / 1e6:.1f} MB, "
                f"{free / 1e6:.1f} MB are free. The last one is untouched; make room, then add --resume."
            )
        metadata = {"position": msgspec.json.encode(position).decode()}
        contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        self._write(self._private / STATE, safetensors.torch.save(contiguous, metadata=metadata))

    def state(self) -> tuple[dict[str, Tensor], Position] | None:
        """The last complete state, or None when the run was stopped before its first."""
        path = self._private / STATE
        if not path.exists():
            return None
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                position = msgspec.json.decode(file.metadata()["position"], type=Position)
                return {name: file.get_tensor(name) for name in file.keys()}, position  # noqa: SIM118
        except (OSError, KeyError, safetensors.SafetensorError, msgspec.MsgspecError) as error:
            raise TrainingError(
                f"{path} cannot be read ({error}); put it back from a copy, or start a new run from this "
                f"model: --init {self.path}."
            ) from error

    def save_model(self, checkpoint: Checkpoint) -> None:
        """The model as `camit.load` reads it; the one before stays whole until this one is."""
        try:
            save_checkpoint(checkpoint, self.path)
        except OSError as error:
            raise self._cannot_write(self.path, error) from error

    def append_log(self, record: dict[str, object]) -> None:
        try:
            with self.log.open("ab") as file:
                file.write(msgspec.json.encode(record) + b"\n")
        except OSError as error:
            raise TrainingError(f"{self.log} cannot be written: {error.strerror}.") from error

    def rewind_log(self, step: int) -> None:
        """Drop what a killed run logged after the state it resumes from."""
        if not self.log.exists():
            return
        kept = []
        for line in self.log.read_bytes().splitlines(keepends=True):
            try:
                record = msgspec.json.decode(line, type=dict[str, object])
            except msgspec.MsgspecError:
                continue  # half a line, cut by the kill
            logged = record.get("step")
            if not isinstance(logged, int) or logged <= step:
                kept.append(line)
        self._write(self.log, b"".join(kept))

    def _write(self, path: Path, data: bytes) -> None:
        try:
            write_atomically(path, data)
        except OSError as error:
            raise self._cannot_write(path, error) from error

    @staticmethod
    def _cannot_write(path: Path, error: OSError) -> TrainingError:
        return TrainingError(
            f"{path} cannot be written ({os.strerror(error.errno or 0)}); what was there before is "
            "untouched. Make room or choose another folder, then add --resume."
        )
