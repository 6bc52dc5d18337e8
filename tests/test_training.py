"""Training: a small corpus is learned, a killed run goes on exactly, bad input is named, nothing is lost."""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from typer.testing import CliRunner

import camit.checkpoint
import camit.training.memory_stage
import camit.training.precision
import camit.training.run
from camit import cli
from camit.checkpoint import check_writable, load_checkpoint
from camit.corpus import read_corpus
from camit.errors import CamitError, CorpusError, InputError, TrainingError
from camit.search.scoring import Directions
from camit.training.batches import Mixture
from camit.training.card import card
from camit.training.command import ENVIRONMENT
from camit.training.distributed import Processes
from camit.training.examples import encode_corpus
from camit.training.memory_stage import run_memory_stage, sample_documents
from camit.training.run import RunFolder
from camit.training.scores import translate
from camit.training.settings import PRESETS, Settings
from camit.training.start import make_trainer
from camit.training.trainer import Trainer
from scripts import embed

PEOPLE = {"ich": "I", "du": "you", "wir": "we", "sie": "they", "Anna": "Anna"}
VERBS = {"kenne": "know", "kaufe": "buy", "male": "paint", "suche": "want"}
THINGS = {"das Haus": "the house", "den Hund": "the dog", "ein Lied": "a song", "Brot": "bread"}

PAIRS = [
    # the object comes first on one side and last on the other, so that word order has to be learned
    (f"{thing} {verb} {person}.", f"{PEOPLE[person]} {VERBS[verb]} {THINGS[thing]}.")
    for person, verb, thing in itertools.product(PEOPLE, VERBS, THINGS)
]
ONE = Processes(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def write_corpus(path: Path, pairs: list[tuple[str, str]] = PAIRS) -> Path:
    path.write_text("".join(f"{i // 8}\t{s}\t{t}\n" for i, (s, t) in enumerate(pairs)), "utf-8")
    return path


def settings_for(corpus: Path, **changes: Any) -> Settings:
    values: dict[str, Any] = {
        "train": (Mixture(path=str(corpus)),),
        "source": "de",
        "target": "en",
        "preset": "tiny",
        "steps": 10,
        "rate": 3e-3,
        "warmup": 20,
        "average": 0.9,
    }
    return Settings(**(values | changes))


def train(out: Path, settings: Settings, *, resume: bool = False) -> Trainer:
    folder = RunFolder(out)
    folder.prepare(resume=resume)
    trainer = make_trainer(settings, folder, ONE)
    folder.save_settings(settings)
    if resume:
        trainer.resume()
    trainer.run()
    return trainer


def log_of(out: Path, kind: str = "train") -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [record for record in records if record["kind"] == kind]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "camit.cli", "train", *map(str, arguments)]


def toy_command(corpus: Path, out: Path, steps: int) -> list[str | Path]:
    return [
        *("--train", corpus, "--source", "de", "--target", "en", "--preset", "tiny", "--out", out),
        *("--steps", str(steps), "--rate", "3e-3", "--warmup", "20", "--memory-lines", "0"),
    ]


def call(*arguments: str | Path) -> None:
    """The command line in this process; its errors are raised."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def joins(out: Path) -> dict[str, float]:
    return {Path(mixture.path).name: mixture.join for mixture in RunFolder(out).settings().train}


def environment() -> dict[str, str]:
    """With all that the command would start itself again for, which takes seconds."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **ENVIRONMENT}


@pytest.mark.parametrize(("arch", "steps", "rate"), [("transformer", 180, 4e-3), ("rnnsearch", 180, 1.5e-2)])
def test_a_small_corpus_is_learned_by_both_decoders(
    arch: str, steps: int, rate: float, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    train(tmp_path / "out", settings_for(corpus, arch=arch, steps=steps, rate=rate, dev=(str(corpus),)))
    model = load_checkpoint(tmp_path / "out")
    for way in ("forward", "backward"):
        texts = translate(model.network, (model.source, model.target), [s for s, _ in PAIRS], way=way, beam=1)
        assert texts == [t for _, t in PAIRS]
    (validation,) = log_of(tmp_path / "out", "validation")
    assert validation["forward"] < 0.3
    assert validation["backward"] < 0.3
    assert validation["forward_bleu"] > 99
    first, last = log_of(tmp_path / "out")[0], log_of(tmp_path / "out")[-1]
    assert first["forward"] > 2 * last["forward"]
    assert 5e-324 > 0.0  # the caller's arithmetic is as before
    assert last["pieces_per_second"] > 0


def test_a_killed_run_resumes_exactly(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    steps = 40
    mixture = Mixture(path=str(corpus), join=0.3)
    settings = settings_for(corpus, steps=steps, average=0.9995, dropout=0.1, sampled=0.4, train=(mixture,))
    train(tmp_path / "whole", settings)
    arguments = [
        *toy_command(corpus, tmp_path / "killed", steps),
        *("--join", "0.3", "--dropout", "0.1", "--sampled", "0.4", "--checkpoint-minutes", "0"),
    ]
    run = subprocess.Popen(command(*arguments), env=environment(), stderr=subprocess.PIPE)
    try:
        wait_for(lambda: (tmp_path / "killed/log.jsonl").exists() and len(log_of_or_none(tmp_path)) > 12, run)
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    load_checkpoint(tmp_path / "killed")  # whatever the moment, the model is whole
    stopped = RunFolder(tmp_path / "killed").state()
    assert stopped is not None
    assert 0 < stopped[1].step < steps
    train(tmp_path / "killed", RunFolder(tmp_path / "killed").settings(), resume=True)
    whole, resumed = (RunFolder(tmp_path / name).state() for name in ("whole", "killed"))
    assert whole is not None
    assert resumed is not None
    for name, tensor in whole[0].items():
        assert torch.equal(tensor, resumed[0][name]), name
    timeless = [
        [
            {k: v for k, v in r.items() if k not in ("minutes", "pieces_per_second")}
            for r in log_of(tmp_path / name)
        ]
        for name in ("whole", "killed")
    ]
    assert timeless[0] == timeless[1]


def log_of_or_none(folder: Path) -> list[dict[str, Any]]:
    try:
        return log_of(folder / "killed")
    except json.JSONDecodeError:  # a line just being written
        return []


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise AssertionError(f"the run ended early: {process.communicate()[1].decode()}")
        if time.monotonic() > end:
            raise AssertionError("the run takes too long")
        time.sleep(0.02)


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    """The stated tolerance: losses of each step differ by less than 1e-4 of their value."""
    corpus = write_corpus(tmp_path / "toy.tsv")
    steps = 25
    train(tmp_path / "one", settings_for(corpus, steps=steps, average=0.9995))
    result = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            *("-m", "camit.cli", "train", *map(str, toy_command(corpus, tmp_path / "two", steps))),
        ],
        env=environment(),
        capture_output=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr.decode()
    one, two = log_of(tmp_path / "one"), log_of(tmp_path / "two")
    assert len(one) == len(two) == steps
    for left, right in zip(one, two, strict=True):
        assert left["pieces"] == right["pieces"]
        assert left["forward"] == pytest.approx(right["forward"], rel=1e-4)
        assert left["backward"] == pytest.approx(right["backward"], rel=1e-4)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_bfloat16_learns_what_float32_learns(arch: str, tmp_path: Path) -> None:
    """Within one percent of the loss."""
    corpus = write_corpus(tmp_path / "toy.tsv")
    for precision in ("fp32", "bf16"):
        train(tmp_path / precision, settings_for(corpus, arch=arch, steps=30, precision=precision))
    losses = [[record["forward"] for record in log_of(tmp_path / name)] for name in ("fp32", "bf16")]
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
    assert losses[1] != losses[0]
    assert losses[1][-1] < 0.8 * losses[1][0]


def test_a_model_may_end_between_its_first_and_last_weights(tmp_path: Path) -> None:
    corpus, first, out = write_corpus(tmp_path / "toy.tsv"), tmp_path / "first", tmp_path / "out"
    train(first, settings_for(corpus, steps=5))
    settings = settings_for(corpus, steps=8, init=str(first))
    train(out, settings)
    train(out, msgspec.structs.replace(settings, steps=16, keep_start=0.25), resume=True)
    state = RunFolder(out).state()
    assert state is not None
    began = dict(load_checkpoint(first).network.named_parameters())
    for name, found in load_checkpoint(out).network.named_parameters():
        last = state[0][f"average.{name}"]
        assert not torch.allclose(last, began[name], atol=1e-3) or "norm" in name
        assert torch.allclose(found, 0.75 * last + 0.25 * began[name], atol=2e-3), name
    train(tmp_path / "whole", msgspec.structs.replace(settings, steps=16))  # what was trained is the same
    whole = RunFolder(tmp_path / "whole").state()
    assert whole is not None
    assert whole[1].step == state[1].step == 16
    for other in (settings_for(corpus, steps=5, seed=2), settings_for(corpus, steps=1, vocabulary=290)):
        shutil.rmtree(first)
        train(first, other)
        with pytest.raises(TrainingError, match="another model than the one this run started from"):
            train(out, msgspec.structs.replace(settings, steps=24, keep_start=0.25), resume=True)
        assert log_of(out)[-1]["step"] == 16
    shutil.rmtree(first)
    with pytest.raises(CamitError, match="first"):  # said at once, not at the end
        train(out, msgspec.structs.replace(settings, steps=24, keep_start=0.25), resume=True)


def test_a_sampled_vocabulary_teaches_too(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    for sampled in (1.0, 0.3):
        train(tmp_path / str(sampled), settings_for(corpus, steps=60, sampled=sampled))
    full, estimated = ([r["forward"] for r in log_of(tmp_path / name)] for name in ("1.0", "0.3"))
    assert estimated != full
    assert estimated[-1] == pytest.approx(full[-1], rel=0.1)
    assert full[-1] < 0.7 * full[0]


def test_bfloat16_that_the_machine_cannot_do_is_an_error_and_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    monkeypatch.setattr(camit.training.precision, "_PROBE", "import os; os.abort()")
    with pytest.raises(TrainingError, match="ONEDNN_MAX_CPU_ISA"):
        train(tmp_path / "out", settings_for(corpus, precision="bf16"))
    with pytest.raises(TrainingError, match="auto, fp32, bf16, not 'half'"):
        settings_for(corpus, precision="half").check()


def test_a_run_is_never_overwritten_without_being_asked(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    train(tmp_path / "out", settings_for(corpus, steps=2))
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    with pytest.raises(TrainingError, match="--resume"):
        train(tmp_path / "out", settings_for(corpus, steps=2))
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == before
    with pytest.raises(TrainingError, match="no training run"):
        train(tmp_path / "other", settings_for(corpus, steps=2), resume=True)


def test_a_longer_budget_goes_on_where_the_run_ended(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    train(tmp_path / "out", settings_for(corpus, steps=4))
    longer = train(tmp_path / "out", settings_for(corpus, steps=7), resume=True)
    assert longer.position.step == 7
    assert [r["step"] for r in log_of(tmp_path / "out")] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_a_resumed_run_keeps_the_vocabularies_of_its_weights(arch: str, tmp_path: Path) -> None:
    """Whatever became of the cache, and whatever text the run goes on with."""
    out = tmp_path / "out"
    size = 10 if arch == "rnnsearch" else None  # words: both texts have that many, so no size tells
    settings = settings_for(write_corpus(tmp_path / "toy.tsv"), arch=arch, vocabulary=size, steps=2)
    train(out, settings)
    cache = RunFolder(out).cache
    shutil.rmtree(cache)
    other = write_corpus(tmp_path / "other.tsv", [(s, f"{t} {t}") for s, t in PAIRS if "paint" not in t])
    longer = msgspec.structs.replace(settings, train=(Mixture(path=str(other)),), steps=3)
    assert train(out, longer, resume=True).position.step == 3
    model = load_checkpoint(out)
    encode_corpus(other, model.source, model.target, settings.cleaning, cache)
    assert len(list(cache.glob("other-*"))) == 1  # found in the cache: the run read it in the same pieces


def test_shares_of_joined_lines_are_stored_kept_and_replaced(tmp_path: Path) -> None:
    """One for a corpus of its own counts more than one for all, in any order."""
    a, b, c = (write_corpus(tmp_path / f"{name}.tsv") for name in "abc")
    out = tmp_path / "out"
    call("train", *toy_command(a, out, 1), "--train", b, "--join", "a.tsv=0.35", "--join", "0.12")
    assert joins(out) == {"a.tsv": 0.35, "b.tsv": 0.12}
    call("train", "--out", out, "--resume", "--join", "b.tsv=0.5")
    assert joins(out) == {"a.tsv": 0.35, "b.tsv": 0.5}
    call("train", "--out", out, "--resume", "--train", f"{b}=2", "--train", c)
    assert joins(out) == {"b.tsv": 0.5, "c.tsv": 0.0}
    call("train", "--out", out, "--resume", "--join", "0.9")
    assert joins(out) == {"b.tsv": 0.9, "c.tsv": 0.9}
    assert [mixture.weight for mixture in RunFolder(out).settings().train] == [2.0, 1.0]


@pytest.mark.parametrize("share", ["typo.tsv=0.9", "toy.tsv=x", "toy.tsv"])
def test_a_share_for_no_corpus_or_no_number_is_refused(share: str, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    with pytest.raises(TrainingError, match=f"--join {share}"):
        call("train", *toy_command(corpus, tmp_path / "out", 1), "--join", share)


@pytest.mark.parametrize("option", [("--vocabulary", "300"), ("--preset", "tiny")])
def test_a_warm_start_refuses_what_its_model_decides(option: tuple[str, str], tmp_path: Path) -> None:
    arguments = ("--train", write_corpus(tmp_path / "toy.tsv"), "--out", tmp_path / "out", "--steps", "1")
    with pytest.raises(TrainingError, match=f"--init.*{option[0]}"):
        call("train", *arguments, "--init", "zh-en", *option)


def test_the_memory_stage_can_be_interrupted_and_is_waited_for_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals mean what they meant before the run, and its processes have gone their ways."""
    events: list[object] = []

    def memory_stage(*_: object, **__: object) -> None:
        events.append([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)])
        raise TrainingError("nothing to train on")

    monkeypatch.setattr(Processes, "leave", lambda self: events.append("left"))
    monkeypatch.setattr(camit.training.memory_stage, "run_memory_stage", memory_stage)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    corpus = write_corpus(tmp_path / "toy.tsv")
    call("train", *toy_command(corpus, tmp_path / "out", 1), "--memory-lines", "50")
    assert events[:2] == ["left", before]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_processes_wait_for_the_first_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vocabularies and corpora of millions of lines take more than the half hour that gloo would wait."""
    given: dict[str, Any] = {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    distributed = torch.distributed
    monkeypatch.setattr(distributed, "init_process_group", lambda backend, **how: given.update(how))
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    assert Processes.join().rank == 1
    assert given["timeout"].total_seconds() >= 12 * 3600


@pytest.mark.parametrize("content", [None, "", "one column\n", "1\t房子\tthe house\n"])
def test_a_dev_file_that_cannot_be_used_is_told_before_the_work(content: str | None, tmp_path: Path) -> None:
    dev = tmp_path / "dev.tsv"
    if content is not None:
        dev.write_text(content, "utf-8")
    with pytest.raises(CorpusError, match=r"dev\.tsv"):
        train(tmp_path / "out", settings_for(write_corpus(tmp_path / "toy.tsv"), dev=(str(dev),)))
    assert list(RunFolder(tmp_path / "out").cache.iterdir()) == []


def test_a_result_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    corpus, out, nowhere = write_corpus(tmp_path / "toy.tsv"), tmp_path / "out", tmp_path / "nodir" / "x.json"
    with pytest.raises(InputError, match=r"nodir/x\.json"):
        call("train", *toy_command(corpus, out, 1), "--json", nowhere)
    assert not RunFolder(out).has_run()
    call("train", *toy_command(corpus, out, 1), "--json", out / "result.json")  # the run makes that folder
    assert json.loads((out / "result.json").read_bytes())["position"]["step"] == 1
    with pytest.raises(InputError, match=r"nodir/x\.json"):
        call("evaluate", "--model", out, "--corpus", tmp_path / "not read", "--json", nowhere)
    call("evaluate", "--model", out, "--corpus", corpus, "--limit", "2", "--json", tmp_path / "scores.json")
    assert len(json.loads((tmp_path / "scores.json").read_bytes())["scores"]) == 3
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("name", ["nodir/x.json", "file/x.json", "folder", "/dev/null"])
def test_a_file_that_cannot_be_written_is_refused_and_nothing_is_made(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=name):
        check_writable(tmp_path / name)
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "folder" / "new.json")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_result_may_not_take_the_place_of_what_is_read(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path / "toy.tsv"), tmp_path / "out"
    text = corpus.read_bytes()
    with pytest.raises(InputError, match="written over"):
        call("train", *toy_command(corpus, out, 1), "--json", corpus)
    call("train", *toy_command(corpus, out, 1))
    for victim in (out / "config.json", out / "log.jsonl"):
        with pytest.raises(InputError, match="written over"):
            call("train", "--out", out, "--resume", "--steps", "2", "--json", victim)
    with pytest.raises(InputError, match="written over"):
        call("evaluate", "--model", out, "--corpus", corpus, "--json", corpus)
    assert corpus.read_bytes() == text and RunFolder(out).settings().steps == 1


def test_a_start_that_failed_leaves_nothing_to_the_next_one(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    cache = RunFolder(tmp_path / "out").cache
    cache.mkdir(parents=True)
    for side in ("source", "target"):  # as if it had ended before its settings were stored
        (cache / f"{side}.model").write_bytes(b"of other text")
    train(tmp_path / "out", settings_for(corpus, steps=1))
    source = load_checkpoint(tmp_path / "out").source
    assert source.decode(source.encode("das Haus kenne ich.")) == "das Haus kenne ich."


def test_swapped_columns_are_told_before_vocabularies_are_made(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv", [(f"word {n}", f"词{n}") for n in range(20)])
    with pytest.raises(CorpusError, match="swapped"):
        train(tmp_path / "out", settings_for(corpus, source="zh", target="en"))
    assert list(RunFolder(tmp_path / "out").cache.iterdir()) == []


def test_a_state_that_cannot_be_used_leaves_the_settings_of_the_run(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path / "toy.tsv"), tmp_path / "out"
    call("train", *toy_command(corpus, out, 2))
    state = out / "training" / "state.safetensors"
    whole = state.read_bytes()
    train(tmp_path / "other", settings_for(corpus, steps=1, arch="rnnsearch"))
    for broken in (whole[:1000], (tmp_path / "other" / "training" / "state.safetensors").read_bytes()):
        state.write_bytes(broken)
        with pytest.raises(TrainingError, match="put it back from a copy"):
            call("train", "--out", out, "--resume", "--steps", "9", "--rate", "0.5")
    state.write_bytes(whole)
    assert (RunFolder(out).settings().steps, RunFolder(out).settings().rate) == (2, 3e-3)
    call("train", "--out", out, "--resume", "--steps", "3")


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path / "toy.tsv"), tmp_path / "out"
    train(out, settings_for(corpus, steps=1))
    [cached] = RunFolder(out).cache.glob("toy-*")
    (cached / "source.npy").write_bytes(b"half")
    assert train(out, settings_for(corpus, steps=2), resume=True).position.step == 2
    (cached / "report.json").write_bytes(b"")
    assert train(out, settings_for(corpus, steps=3), resume=True).position.step == 3


def test_case_is_scored_where_references_have_it_in_one_call_for_several_corpora(tmp_path: Path) -> None:
    out, scores = tmp_path / "out", tmp_path / "scores.json"
    small = write_corpus(tmp_path / "small.tsv", [(s, t.lower()) for s, t in PAIRS])
    train(out, settings_for(small, steps=1))
    capital = write_corpus(tmp_path / "capital.tsv", [(s, t.capitalize()) for s, t in PAIRS])
    corpora = ("--corpus", small, "--corpus", capital, "--limit", "3", "--beam", "1", "--json", scores)
    for option, expected in (
        ((), [True, False]),
        (("--no-lowercase",), [False] * 2),
        (("--lowercase",), [True] * 2),
    ):
        call("evaluate", "--model", out, *corpora, *option)
        found = json.loads(scores.read_bytes())["scores"]
        assert [row["lowercase"] for row in found] == [value for value in expected for _ in range(3)]
    call("evaluate", "--model", out, *corpora)
    text = card(out, [scores])
    assert (
        "| small.tsv | 3 | 1 | ignored | both |" in text and "| capital.tsv | 3 | 1 | counts | both |" in text
    )


def test_a_card_says_what_a_run_stored_and_what_was_measured(tmp_path: Path) -> None:
    corpus, out, scores = write_corpus(tmp_path / "toy.tsv"), tmp_path / "out", tmp_path / "scores.json"
    train(tmp_path / "first", settings_for(corpus, steps=1))
    mixture = Mixture(path=str(corpus), weight=2.0, join=0.25)
    settings = settings_for(
        corpus, steps=2, train=(mixture,), dev=(str(corpus),), precision="fp32", keep_start=0.5, init="x"
    )
    train(out, msgspec.structs.replace(settings, init=str(tmp_path / "first")))
    call("evaluate", "--model", out, "--corpus", corpus, "--limit", "3", "--beam", "1", "--json", scores)
    text = card(out, [scores])
    assert text.startswith("# out: de to en\n")
    assert "(transformer): d 64, inner size 128, 1 encoder and 1 decoder layers" in text
    assert re.search(r"\n\| toy.tsv \| 80 \| 80 \| 0.00 M \| 2 \| 25% \|\n", text)
    assert "2 steps of about 600 target pieces" in text
    assert "--train toy.tsv=2 \\\n  --join toy.tsv=0.25 \\\n  --dev toy.tsv" in text
    assert "--init first" in text
    assert "--precision fp32" in text
    assert "--keep-start 0.5" in text
    assert "50% of it are the weights it started from" in text
    for direction in ("both", "forward", "backward"):
        assert f"| toy.tsv | 3 | 1 | counts | {direction} | " in text
    assert str(tmp_path) not in text
    scores.write_text('{"scores": []}')
    with pytest.raises(InputError, match=r"scores\.json holds no scores"):
        card(out, [scores])


def test_a_run_that_cannot_be_embedded_leaves_the_embedded_model_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(embed, "TARGET", shutil.copytree(embed.TARGET, tmp_path / "zh-en"))
    corpus, scores = tmp_path / "zh.tsv", tmp_path / "scores.json"
    corpus.write_text("".join(f"1\t我有{i}本书。\tI have {i} books.\n" for i in range(60)), "utf-8")
    train(tmp_path / "chinese", settings_for(corpus, source="zh", steps=1))
    train(tmp_path / "german", settings_for(write_corpus(tmp_path / "toy.tsv"), steps=1))
    before = {path.name: path.read_bytes() for path in embed.TARGET.iterdir()}

    def refused(run: str, *scores: Path) -> str:
        with pytest.raises(SystemExit):
            embed.main([str(tmp_path / run), *map(str, scores)])
        assert {path.name: path.read_bytes() for path in embed.TARGET.iterdir()} == before
        return capsys.readouterr().err

    assert "no model" in refused("nothing")
    assert "translates de to en" in refused("german")
    assert "has no memory.safetensors" in refused("chinese")
    shutil.copyfile(embed.TARGET / "memory.safetensors", tmp_path / "chinese" / "memory.safetensors")
    assert "scores.json holds no scores" in refused("chinese", scores)
    assert "has shape (256,), config.json asks for (64,)" in refused("chinese")  # gates of another network


def test_a_run_that_is_asked_to_stop_saves_first(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    folder = RunFolder(tmp_path / "out")
    folder.prepare(resume=False)
    trainer = make_trainer(
        settings_for(corpus, steps=50),
        folder,
        ONE,
        show=lambda tick: tick.position.step == 3 and trainer.stop(),
    )
    assert trainer.run() is False
    state = folder.state()
    assert state is not None
    assert state[1].step == 3


@pytest.mark.parametrize("failing", range(3))
def test_a_checkpoint_is_never_half_written(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up at any of the files of a save: the model and the state before it are still there."""
    corpus = write_corpus(tmp_path / "toy.tsv")
    train(tmp_path / "out", settings_for(corpus, steps=2))
    before = load_checkpoint(tmp_path / "out").network.state_dict()
    writes = itertools.count()
    original = camit.checkpoint.write_atomically

    def fill_up(path: Path, data: bytes) -> None:
        if path.name in ("settings.json", "log.jsonl"):
            original(path, data)
        elif next(writes) == failing:
            path.with_name(path.name + ".part").write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        else:
            original(path, data)

    monkeypatch.setattr(camit.checkpoint, "write_atomically", fill_up)
    monkeypatch.setattr(camit.training.run, "write_atomically", fill_up)
    with pytest.raises(TrainingError, match="No space left"):
        train(tmp_path / "out", settings_for(corpus, steps=4), resume=True)
    monkeypatch.undo()
    after = load_checkpoint(tmp_path / "out").network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert train(tmp_path / "out", settings_for(corpus, steps=4), resume=True).position.step == 4


def test_a_full_disk_is_noticed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type(usage)(usage.total, usage.total - 1000, 1000))
    with pytest.raises(TrainingError, match="full"):
        train(tmp_path / "out", settings_for(corpus, steps=1))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TrainingError, match="cannot be written"):
        train(tmp_path / "file" / "out", settings_for(write_corpus(tmp_path / "toy.tsv")))


GOOD = "1\tdas Haus\tthe house\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.encode() + b"1\tdas Haus\n", r"bad\.tsv, line 2: 2 column"),
        (GOOD.encode() + b"\n" + GOOD.encode(), r"bad\.tsv, line 2: the line is empty"),
        (GOOD.encode() + b"1\t\tthe house\n", r"bad\.tsv, line 2: the source column is empty"),
        (GOOD.encode() + b"1\tdas Haus\t \n", r"bad\.tsv, line 2: the reference column is empty"),
        (GOOD.encode() + "1\tHäuser\thouses\n".encode("latin-1"), r"bad\.tsv, line 2: byte 4 is not UTF-8"),
        (b"1\tdas Haus\tthe house\r1\tder Hund\tthe dog\n", r"bad\.tsv, line 1: there is a carriage return"),
        (b"", r"bad\.tsv is empty"),
        (gzip.compress(GOOD.encode() * 5000)[:-20], r"bad\.tsv, line \d+: cannot be read"),
        ("1\t房子\tthe house\n".encode() * 3, r"bad\.tsv, line 1: the source column is not 'de'"),
        ("1\tdas Haus\tдом\n".encode() * 3, r"bad\.tsv, line 1: the reference column is not 'en'"),
    ],
)
def test_a_bad_corpus_is_named_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    """And a run that is resumed with it keeps all it had."""
    path = tmp_path / "bad.tsv"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        train(tmp_path / "new", settings_for(path))
    with pytest.raises(CorpusError, match=message):
        train(tmp_path / "dev", settings_for(write_corpus(tmp_path / "toy.tsv"), dev=(str(path),)))


def test_a_bad_corpus_leaves_an_earlier_run_as_it_was(tmp_path: Path) -> None:
    train(tmp_path / "out", settings_for(write_corpus(tmp_path / "toy.tsv"), steps=3))
    state = RunFolder(tmp_path / "out").state()
    bad = tmp_path / "bad.tsv"
    bad.write_text("only one column\n")
    with pytest.raises(CorpusError):
        train(tmp_path / "out", settings_for(bad, steps=6), resume=True)
    after = RunFolder(tmp_path / "out").state()
    assert state is not None
    assert after is not None
    assert after[1] == state[1]
    assert RunFolder(tmp_path / "out").settings().train[0].path.endswith("toy.tsv")
    load_checkpoint(tmp_path / "out")


def test_the_command_line_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text("1\tdas Haus\n")
    result = subprocess.run(
        command(*toy_command(tmp_path / "bad.tsv", tmp_path / "out", 2)),
        env={name: value for name, value in environment().items() if name not in ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 2
    assert "bad.tsv, line 1: 2 column(s)" in result.stderr
    assert "Traceback" not in result.stderr


def test_gzip_byte_order_marks_and_several_references_are_read(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv.gz"
    path.write_bytes(gzip.compress("\ufeff7\tdas Haus\tthe house\tthe home\r\n".encode()))
    (pair,) = read_corpus(path)
    assert (pair.document, pair.source, pair.references) == ("7", "das Haus", ("the house", "the home"))


def test_the_rate_warms_up_holds_falls_and_cools_down() -> None:
    settings = Settings(train=(), rate=1e-3, warmup=100, hold=1000, cooldown=0.2, minutes=10.0)
    assert settings.rate_at(0, 0.0) == pytest.approx(1e-5)
    assert settings.rate_at(500, 0.1) == pytest.approx(1e-3)
    assert settings.rate_at(4000, 0.5) == pytest.approx(5e-4)
    assert settings.rate_at(4000, 0.9) == pytest.approx(2.5e-4)
    assert 0.0 < settings.rate_at(4000, 1.0) < 5e-5
    assert settings.budget_used(10**6, 5.0, 1e9) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": None}, "how long"),
        ({"minutes": 0.0}, "--minutes"),
        ({"smoothing": 1.0}, "--smoothing"),
        ({"keep_start": 0.5}, "--init"),
        ({"keep_start": 1.5, "init": "zh-en"}, "--keep-start"),
        ({"sampled": 0.0}, "--sampled"),
        ({"sampled": 1.01}, "--sampled"),
        ({"seed": -1}, "--seed"),
        ({"target": "zh-CN"}, "not zh-CN"),
        ({"source": ""}, "--source"),
        ({"train": (Mixture(path="x.tsv", weight=0.0),)}, "x.tsv: a weight"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        settings_for(Path("toy.tsv"), **changes).check()


def test_every_preset_builds_a_network() -> None:
    assert {arch for arch, _ in PRESETS} == {"transformer", "rnnsearch"}
    paper = PRESETS["rnnsearch", "paper"]
    assert (paper.words, paper.vocabulary) == (True, 30_000)
    with pytest.raises(TrainingError, match="--preset paper"):
        Settings(train=(), preset="huge").preset_or_error()


def test_a_warm_start_takes_weights_and_vocabularies(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    train(tmp_path / "first", settings_for(corpus, steps=30))
    settings = settings_for(corpus, steps=1, warmup=10**9, init=str(tmp_path / "first"))
    train(tmp_path / "second", settings)
    first, second = (load_checkpoint(tmp_path / name) for name in ("first", "second"))
    assert len(first.target) == len(second.target)
    for name, tensor in first.network.state_dict().items():
        assert torch.allclose(tensor, second.network.state_dict()[name], atol=2e-3), name
    with pytest.raises(TrainingError, match="translates de to en"):
        train(tmp_path / "third", msgspec.structs.replace(settings, source="fr"))


def test_a_chinese_target_is_written_in_words(tmp_path: Path) -> None:
    lines = [("I like apples.", "我喜欢苹果。"), ("I like the library.", "我喜欢图书馆。")] * 40
    path = tmp_path / "toy.tsv"
    path.write_text("".join(f"1\t{i} {s}\t{i}{t}\n" for i, (s, t) in enumerate(lines)), "utf-8")
    train(tmp_path / "out", settings_for(path, source="en", target="zh", steps=1))
    target = load_checkpoint(tmp_path / "out").target
    assert target.segmented
    ids = target.encode("我喜欢图书馆。")
    assert [word.text for word in target.words(ids)] == ["我", "喜欢", "图书馆", "。"]
    assert target.decode(ids) == "我喜欢图书馆。"


def test_unknown_words_are_unk_in_a_word_vocabulary(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "toy.tsv")
    train(tmp_path / "out", settings_for(corpus, arch="rnnsearch", vocabulary=10, steps=1))
    model = load_checkpoint(tmp_path / "out")
    assert len(model.target) == 10
    assert 1 in model.target.feed(model.target.encode("they paint bread."))
    directions = Directions.of(model.network, model.target)
    assert math.isfinite(float(directions.forward.banned[3]))


def test_the_revision_memory_is_trained_on_documents_with_the_network_frozen(tmp_path: Path) -> None:
    """Names that no vocabulary has and that come again in their document: what the memory is for."""
    lines = []
    for document in range(12):
        name = f"Xq{document}zo{chr(97 + document)}"
        for i, (person, thing) in enumerate(itertools.islice(itertools.product(PEOPLE, THINGS), 7)):
            verb = list(VERBS)[(i + document) % 4]
            pair = (
                f"{thing} {verb} {person} {name}.",
                f"{PEOPLE[person]} {VERBS[verb]} {THINGS[thing]} {name}.",
            )
            lines.append((document, *pair))
    corpus = tmp_path / "names.tsv"
    corpus.write_text("".join(f"{d}\t{s}\t{t}\n" for d, s, t in lines), "utf-8")
    settings = settings_for(corpus, arch="rnnsearch", vocabulary=24, steps=60, rate=1.5e-2, memory_lines=84)
    train(tmp_path / "out", settings)
    before = load_checkpoint(tmp_path / "out").network.state_dict()
    report = run_memory_stage(settings, RunFolder(tmp_path / "out"))
    assert (tmp_path / "out" / "memory.safetensors").is_file()
    assert report.copyable > 5
    assert report.forward > 10.0
    assert log_of(tmp_path / "out", "memory")[0]["forward"] == report.forward
    after = load_checkpoint(tmp_path / "out").network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_documents_for_the_memory_come_from_every_corpus(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.tsv"
        rows = [f"{i // 5}\t{name} {i}\t{name} {i}\n" for i in range(200)]
        path.write_text("".join(rows), "utf-8")
        paths.append(path)
    documents = sample_documents(paths, 40, seed=1)
    assert {document[0][0][0] for document in documents} == {"a", "b"}
    assert 35 <= sum(map(len, documents)) <= 60
    assert all(len(document) == 5 for document in documents)
