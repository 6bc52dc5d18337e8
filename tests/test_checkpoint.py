"""Checkpoints: what is saved is loaded again, and everything that can be wrong with one has a message."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import camit
from camit.checkpoint import Checkpoint, find, load_checkpoint, save_checkpoint
from camit.errors import CheckpointError
from tests.helpers import tiny_translator


def saved(directory: Path, arch: str = "transformer", words: bool = False) -> Path:
    translator = tiny_translator(arch, words=words)
    checkpoint = Checkpoint(
        "tiny", translator.network, translator.source_vocabulary, translator.target_vocabulary
    )
    save_checkpoint(checkpoint, directory)
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return saved(tmp_path / "tiny")


def edit_config(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = directory / "config.json"
    config = json.loads(path.read_text("utf-8"))
    change(config)
    path.write_text(json.dumps(config), "utf-8")


def edit_weights(directory: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the weights and sign them, as somebody would who exports a model with other tools."""
    path = directory / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    change(weights)
    safetensors.torch.save_file(weights, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit_config(directory, lambda config: config.update(digest=digest))


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
@pytest.mark.parametrize("words", [False, True])
def test_a_saved_model_translates_as_before(tmp_path: Path, arch: str, words: bool) -> None:
    first = camit.load(saved(tmp_path / "a", arch, words))  # weights are fp16 from here on
    checkpoint = Checkpoint("b", first.network, first.source_vocabulary, first.target_vocabulary)
    save_checkpoint(checkpoint, tmp_path / "b")
    second = camit.load(str(tmp_path / "b"))
    for name, weight in first.network.state_dict().items():
        assert torch.equal(weight, second.network.state_dict()[name])
    assert second.translate("the cat sat.") == first.translate("the cat sat.")
    assert not second.network.training


def test_files_are_data_never_code(directory: Path) -> None:
    assert sorted(path.name for path in directory.iterdir()) == [
        "config.json",
        "model.safetensors",
        "source.model",
        "target.model",
    ]
    weights = safetensors.torch.load_file(directory / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}


def test_the_embedded_model_is_found_by_name() -> None:
    translator = camit.load("zh-en")
    assert (translator.name, translator.source_language, translator.target_language) == ("zh-en", "zh", "en")


def test_a_folder_of_the_same_name_does_not_stand_in_for_the_embedded_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zh-en").mkdir()
    (tmp_path / "zh-en" / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert find("zh-en").parent.name == "checkpoints"
    assert find("./zh-en") == Path("zh-en")


@pytest.mark.parametrize("name", ["zh-fr", "./zh-en", "../checkpoints/zh-en", ""])
def test_an_unknown_name_lists_what_there_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"zh-en|no config\.json"):
        camit.load(name)


@pytest.mark.parametrize("name", [None, 3, ["zh-en"]])
def test_a_name_is_a_string_or_a_path(name: Any) -> None:
    with pytest.raises(CheckpointError, match="string or a path"):
        camit.load(name)


def test_a_directory_without_config_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        camit.load(tmp_path)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused(directory: Path, version: object) -> None:
    edit_config(directory, lambda config: config.update(format=version))
    with pytest.raises(CheckpointError, match=r"config\.json has format .* reads format 1"):
        load_checkpoint(directory)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}', b'{"format": 1, "surprise": true}', b"null"]
)
def test_a_broken_description_is_refused(directory: Path, content: bytes) -> None:
    (directory / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_checkpoint(directory)


@pytest.mark.parametrize("name", ["model.safetensors", "source.model", "target.model"])
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        load_checkpoint(directory)


@pytest.mark.parametrize("name", ["model.safetensors", "source.model", "target.model"])
@pytest.mark.parametrize("keep", [0, 7, 0.5])
def test_a_truncated_file_is_named(directory: Path, name: str, keep: float) -> None:
    path = directory / name
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(CheckpointError, match=name):
        load_checkpoint(directory)


def test_one_changed_byte_is_noticed(directory: Path) -> None:
    path = directory / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged or was changed"):
        load_checkpoint(directory)


def test_wrong_shapes_are_named(directory: Path) -> None:
    edit_weights(directory, lambda weights: weights.update({"norm.weight": torch.zeros(3)}))
    with pytest.raises(CheckpointError, match=r"'norm\.weight' has shape \(3,\), .* asks for \(16,\)"):
        load_checkpoint(directory)


def test_missing_weights_are_named(directory: Path) -> None:
    edit_weights(directory, lambda weights: weights.pop("norm.bias"))
    with pytest.raises(CheckpointError, match=r"lacks the weights 'norm\.bias'"):
        load_checkpoint(directory)


def test_surplus_weights_are_named(directory: Path) -> None:
    edit_weights(directory, lambda weights: weights.update(extra=torch.zeros(2)))
    with pytest.raises(CheckpointError, match="unknown weights 'extra'"):
        load_checkpoint(directory)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(directory: Path, value: float) -> None:
    edit_weights(directory, lambda weights: weights["norm.bias"].fill_(value))
    with pytest.raises(CheckpointError, match=r"'norm\.bias' holds NaN or infinity"):
        load_checkpoint(directory)


def test_vocabularies_of_another_model_are_noticed(directory: Path) -> None:
    edit_config(directory, lambda config: config["network"].update(target_size=999))
    with pytest.raises(CheckpointError, match=r"the target vocabulary has .* config.json says 999"):
        load_checkpoint(directory)


@pytest.mark.parametrize("kind", ["bytes", "../pieces", ""])
def test_an_unknown_vocabulary_kind_is_named(directory: Path, kind: str) -> None:
    edit_config(directory, lambda config: config["source"].update(kind=kind))
    with pytest.raises(CheckpointError, match="vocabulary kind"):
        load_checkpoint(directory)


@pytest.mark.parametrize(
    "change",
    [{"d": 15}, {"heads": 3}, {"d": -16}, {"heads": 0}, {"encoder_layers": -1}, {"ff": 0}, {"d": 10**9}],
)
def test_an_impossible_network_is_refused(directory: Path, change: dict[str, int]) -> None:
    edit_config(directory, lambda config: config["network"].update(change))
    with pytest.raises(CheckpointError):
        load_checkpoint(directory)


def test_a_crash_while_saving_leaves_the_old_checkpoint_whole(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = camit.load(directory).translate("the cat").text

    def crash(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", crash)
    with pytest.raises(OSError, match="disk full"):
        saved(directory, "rnnsearch")
    monkeypatch.undo()
    assert camit.load(directory).translate("the cat").text == before


def test_loading_under_inference_mode_gives_a_model_that_can_learn(directory: Path) -> None:
    with torch.inference_mode():
        network = load_checkpoint(directory).network
    assert not any(parameter.is_inference() for parameter in network.parameters())


def test_copies_of_a_directory_are_checkpoints_too(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "copy")
    assert load_checkpoint(tmp_path / "copy").name == "tiny"


def test_loading_does_not_wake_the_compiler() -> None:
    """PyTorch's compiler takes seconds to import, and nothing here uses it."""
    code = """
import sys, camit
with camit.Session(camit.load("zh-en")) as session:
    session.confirm(session.open("我记得那座教堂。").replace(0, "She"))
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 0
