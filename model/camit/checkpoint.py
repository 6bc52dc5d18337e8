"""Checkpoints: a directory with config.json, model.safetensors (fp16) and one vocabulary file per side.

Data only, never pickle and never code. Loading checks version, digest, names and shapes first, and each
failure names the file and what to do about it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import safetensors
import safetensors.torch
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from camit.errors import CheckpointError, InputError
from camit.networks import Network, NetworkConfig, build
from camit.text import PieceVocabulary, Vocabulary, WordVocabulary

FORMAT = 1
EMBEDDED = Path(__file__).parent / "checkpoints"
_VOCABULARIES: dict[str, type[PieceVocabulary] | type[WordVocabulary]] = {
    "pieces": PieceVocabulary,
    "words": WordVocabulary,
}
_SUFFIX = {"pieces": "model", "words": "txt"}
# A new version goes into the file the present one does not use, so that config.json switches both at once.
_WEIGHTS = ("model.safetensors", "model-2.safetensors")


def digest_of(tensors: Mapping[str, Tensor], *texts: str) -> str:
    """Which weights these are, with what belongs to them: sha256 of it all."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tuple(tensor.shape)} ".encode())
        found.update(tensor.detach().cpu().contiguous().numpy().data)
    for text in texts:
        found.update(text.encode())
    return found.hexdigest()


class VocabularyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    language: str
    kind: str  # "pieces" or "words"
    segmented: bool = False


class CheckpointConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """config.json"""

    format: int
    name: str
    source: VocabularyConfig
    target: VocabularyConfig
    network: NetworkConfig
    digest: str  # sha256 of the weights
    weights: str = "model.safetensors"  # the file they are in


@dataclass(frozen=True)
class Checkpoint:
    """A network and the two vocabularies it speaks."""

    name: str
    network: Network
    source: Vocabulary
    target: Vocabulary
    directory: Path | None = None


def find(name_or_directory: str | os.PathLike[str]) -> Path:
    """The directory of an embedded model by its name, or of any checkpoint by its path.

    A bare name always means the embedded model, whatever lies in the current folder; "./zh-en" is a path.
    """
    if not isinstance(name_or_directory, (str, os.PathLike)):
        raise CheckpointError(
            f"a model is named by a string or a path, not {type(name_or_directory).__name__}; "
            "try camit.load('zh-en')."
        )
    path = Path(name_or_directory)
    embedded = EMBEDDED / path
    if name_or_directory == path.name and (embedded / "config.json").is_file():
        return embedded
    if (path / "config.json").is_file():
        return path
    known = ", ".join(sorted(p.parent.name for p in EMBEDDED.glob("*/config.json")))
    if path.is_dir():
        raise CheckpointError(
            f"{path} has no config.json, so it is no checkpoint; give the directory `camit train` wrote."
        )
    raise CheckpointError(
        f"no model {str(name_or_directory)!r}: embedded models are {known}; or give a checkpoint directory."
    )


def languages(name_or_directory: str | os.PathLike[str]) -> tuple[str, str]:
    """Source and target language of a checkpoint, without reading its weights."""
    config = _read_config(find(name_or_directory) / "config.json")
    return config.source.language, config.target.language


class _Unfilled(TorchFunctionMode):
    """Draws no first weights. On the meta device that would make PyTorch import its compiler, for seconds."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return (*args, *(kwargs or {}).values())[0]
        return func(*args, **(kwargs or {}))


@torch.inference_mode(False)  # what is loaded under it could never learn
def load_checkpoint(name_or_directory: str | os.PathLike[str]) -> Checkpoint:
    """Read and check a checkpoint; weights become float32, ready to translate."""
    directory = find(name_or_directory)
    config = _read_config(directory / "config.json")
    source = _read_vocabulary(directory, "source", config.source)
    target = _read_vocabulary(directory, "target", config.target)
    for side, vocabulary, size in (
        ("source", source, config.network.source_size),
        ("target", target, config.network.target_size),
    ):
        if len(vocabulary) != size:
            raise CheckpointError(
                f"{directory}: the {side} vocabulary has {len(vocabulary)} pieces, config.json says {size}: "
                "the files belong to different models. Copy the checkpoint again."
            )
    if config.weights not in _WEIGHTS:
        raise CheckpointError(
            f"{directory}/config.json names the weights {config.weights!r}; known: {_WEIGHTS}."
        )
    weights = read_tensors(directory / config.weights, config.digest)
    # Names and shapes without memory: the stored weights become the network's own.
    with torch.device("meta"), _Unfilled():
        network = build(config.network)
    load_weights(network, weights, directory / config.weights)
    network.eval()
    return Checkpoint(config.name, network, source, target, directory)


def save_checkpoint(checkpoint: Checkpoint, directory: Path) -> None:
    """Write a checkpoint; config.json comes last, so a directory with one is complete.

    A checkpoint that is there already stays whole until its config.json is replaced, in one step.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file = _WEIGHTS[0]
    complete = (directory / "config.json").exists()
    if complete and _read_config(directory / "config.json").weights == file:
        file = _WEIGHTS[1]
    half = {
        name: tensor.detach().to(torch.float16).contiguous()
        for name, tensor in checkpoint.network.state_dict().items()
    }
    data = safetensors.torch.save(half)
    write_atomically(directory / file, data)
    for side, vocabulary in (("source", checkpoint.source), ("target", checkpoint.target)):
        path = directory / f"{side}.{_SUFFIX[vocabulary.kind]}"
        if not (path.exists() and complete):  # the vocabularies of a checkpoint never change
            vocabulary.save(path.with_name(path.name + ".part"))
            path.with_name(path.name + ".part").replace(path)
    config = CheckpointConfig(
        format=FORMAT,
        name=checkpoint.name,
        source=_describe(checkpoint.source),
        target=_describe(checkpoint.target),
        network=checkpoint.network.config,
        digest=hashlib.sha256(data).hexdigest(),
        weights=file,
    )
    write_atomically(directory / "config.json", msgspec.json.format(msgspec.json.encode(config), indent=1))


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step: a reader, or a crash, sees the old content or the new, never half of it."""
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path, read: Iterable[Path | str] = ()) -> None:
    """Refuse a file that `write_atomically` could not write, before the work is done that goes into it; and
    one of those that are `read` for that work."""
    folder = path.parent
    if path.exists() and any(Path(one).exists() and path.samefile(one) for one in read):
        raise InputError(f"{path} is read here and would be written over; give the result another name.")
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path} is a folder or a device, so no file can be written there; give the name of a file."
        )
    if not folder.exists():
        raise InputError(
            f"{path} cannot be written: there is no folder {folder}; make it first, or choose another file."
        )
    if not folder.is_dir():
        raise InputError(
            f"{path} cannot be written: {folder} is a file, not a folder; choose a file in a folder."
        )
    probe = path.with_name(path.name + ".part")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}); choose a file in a folder of your own."
        ) from error


def read_tensors(path: Path, digest: str | None = None) -> dict[str, Tensor]:
    """Tensors of a safetensors file, checked against a sha256 digest."""
    data = _read(path)
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise CheckpointError(
            f"{path} is damaged or was changed: its sha256 is not the one in config.json. "
            "Copy the checkpoint again."
        )
    try:
        return safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise CheckpointError(
            f"{path} is no readable safetensors file ({error}); copy the checkpoint again."
        ) from error


def load_weights(network: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Put weights into a network; names and shapes must be exactly its own."""
    expected = network.state_dict()
    if missing := sorted(expected.keys() - weights.keys()):
        raise CheckpointError(
            f"{path} lacks the weights {missing[0]!r} (and {len(missing) - 1} more); wrong architecture?"
        )
    if surplus := sorted(weights.keys() - expected.keys()):
        raise CheckpointError(
            f"{path} has unknown weights {surplus[0]!r} (and {len(surplus) - 1} more); wrong architecture?"
        )
    for name, tensor in weights.items():
        if tensor.shape != expected[name].shape:
            raise CheckpointError(
                f"{path}: {name!r} has shape {tuple(tensor.shape)}, "
                f"config.json asks for {tuple(expected[name].shape)}."
            )
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(
                f"{path}: {name!r} holds NaN or infinity; train again from an earlier checkpoint."
            )
    network.load_state_dict({name: t.to(torch.float32) for name, t in weights.items()}, assign=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; copy the checkpoint again, whole.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error


def _read_config(path: Path) -> CheckpointConfig:
    data = _read(path)
    try:
        version = msgspec.json.decode(data, type=dict[str, object]).get("format")
        if version != FORMAT:
            raise CheckpointError(
                f"{path} has format {version!r}, this version of camit reads format {FORMAT}; "
                "install a matching camit-widget or export the model again."
            )
        return msgspec.json.decode(data, type=CheckpointConfig)
    except msgspec.MsgspecError as error:
        raise CheckpointError(f"{path} is not a valid checkpoint description: {error}.") from error


def _read_vocabulary(directory: Path, side: str, config: VocabularyConfig) -> Vocabulary:
    if config.kind not in _VOCABULARIES:
        raise CheckpointError(
            f"{directory}/config.json names the vocabulary kind {config.kind!r}; known: pieces, words."
        )
    path = directory / f"{side}.{_SUFFIX[config.kind]}"
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; copy the checkpoint again, whole.")
    return _VOCABULARIES[config.kind].load(path, config.language, segmented=config.segmented)


def _describe(vocabulary: Vocabulary) -> VocabularyConfig:
    return VocabularyConfig(
        language=vocabulary.language, kind=vocabulary.kind, segmented=vocabulary.segmented
    )
