"""Batches and losses: each line as often as its weight says, joined within documents, with little padding."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from camit.checkpoint import load_checkpoint
from camit.networks import NetworkConfig, build
from camit.text import BOS, EOS, PAD, Vocabulary, WordVocabulary
from camit.training.batches import Batch, BatchSource, Mixture
from camit.training.examples import Cleaning, Examples, encode_corpus
from camit.training.loss import BothDirections, blockwise_cross_entropy, reversed_rows, shifted

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture(scope="module")
def vocabulary() -> WordVocabulary:
    return WordVocabulary.build(WORDS, 60, "en")


def corpus_of(
    path: Path, lines: list[tuple[str, str, str]], vocabulary: Vocabulary, **cleaning: float
) -> Examples:
    path.write_text("".join("\t".join(line) + "\n" for line in lines), "utf-8")
    return encode_corpus(path, vocabulary, vocabulary, Cleaning(**cleaning), path.parent / "cache")  # type: ignore[arg-type]


def numbered(count: int, documents: int = 1) -> list[tuple[str, str, str]]:
    """Line i has source `w(i%40)` repeated, so that it can be recognised."""
    return [
        (
            str(i * documents // count),
            " ".join([WORDS[i % 40]] * (1 + i % 7)),
            " ".join([WORDS[i % 40]] * (1 + i % 5)),
        )
        for i in range(count)
    ]


def rows_of(source: BatchSource, round_: int = 0) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    rows = []
    for index in range(source.batches_in(round_)):
        batch = source.batch(round_, index)
        for s, t in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
            rows.append((tuple(x for x in s if x != PAD), tuple(x for x in t if x != PAD)))
    return rows


def test_a_round_reads_each_line_as_often_as_its_weight(tmp_path: Path, vocabulary: WordVocabulary) -> None:
    corpus = corpus_of(tmp_path / "a.tsv", numbered(35), vocabulary)
    data = BatchSource([corpus], [Mixture(path="a", weight=3)], source=vocabulary, pieces=30, seed=1)
    counts = Counter(rows_of(data))
    assert len(counts) == 35
    assert set(counts.values()) == {3}
    half = BatchSource([corpus], [Mixture(path="a", weight=0.5)], source=vocabulary, pieces=30, seed=1)
    assert 5 < len(rows_of(half)) < 30
    little = BatchSource([corpus], [Mixture(path="a", weight=1e-6)], source=vocabulary, pieces=30, seed=1)
    assert len(rows_of(little)) == 1  # a round is never empty


def test_joined_lines_are_neighbours_of_one_document_and_none_is_lost(
    tmp_path: Path, vocabulary: WordVocabulary
) -> None:
    lines = numbered(400, documents=20)
    corpus = corpus_of(tmp_path / "a.tsv", lines, vocabulary, copies=100)
    data = BatchSource([corpus], [Mixture(path="a", join=0.4)], source=vocabulary, pieces=200, seed=1)
    rows = rows_of(data)
    pieces = Counter(x for s, _ in rows for x in s)
    assert pieces == Counter(x for _, s, _ in lines for x in vocabulary.encode(s))
    documents = {}
    for document, source, _ in lines:
        documents[document] = documents.get(document, ()) + tuple(vocabulary.encode(source))
    joined = [s for s, _ in rows if len(set(s)) > 1]
    assert len(joined) > 40
    for s in joined:
        assert any(s == whole[i : i + len(s)] for whole in documents.values() for i in range(len(whole))), s


def test_batches_are_full_and_hardly_padded(tmp_path: Path, vocabulary: WordVocabulary) -> None:
    corpus = corpus_of(tmp_path / "a.tsv", numbered(4000), vocabulary, copies=10_000)
    data = BatchSource([corpus], [Mixture(path="a")], source=vocabulary, pieces=300, seed=1)
    batches = [data.batch(0, i) for i in range(data.batches_in(0))]
    assert max(b.target.shape[0] * (b.target.shape[1] + 1) for b in batches) <= 300
    padded = sum(b.target.numel() + b.source.numel() for b in batches)
    real = sum(int((b.target != PAD).sum() + (b.source != PAD).sum()) for b in batches)
    assert real / padded > 0.95
    assert sum(b.pieces for b in batches) / len(batches) > 200


def test_rounds_differ_but_repeat_themselves(tmp_path: Path, vocabulary: WordVocabulary) -> None:
    corpus = corpus_of(tmp_path / "a.tsv", numbered(200), vocabulary, copies=100)
    first, again = (
        BatchSource([corpus], [Mixture(path="a", join=0.2)], source=vocabulary, pieces=60, seed=1)
        for _ in "ab"
    )
    assert rows_of(first, 0) != rows_of(first, 1)
    assert rows_of(first, 1) == rows_of(again, 1)
    assert first.digest == again.digest
    other = BatchSource([corpus], [Mixture(path="a", join=0.3)], source=vocabulary, pieces=60, seed=1)
    assert other.digest != first.digest


def test_cleaning_says_what_it_dropped(tmp_path: Path, vocabulary: WordVocabulary) -> None:
    lines = [
        ("1", "w1 w2", "w1 w2"),
        *[("1", "w3", "w4")] * 6,
        ("1", "w1", " ".join(["w2"] * 30)),
        ("1", " ".join(["w5"] * 90), " ".join(["w6"] * 90)),
        ("1", "w7", "w8"),
    ]
    report = corpus_of(tmp_path / "a.tsv", lines, vocabulary, longest=60, copies=4).report
    assert (report.lines, report.kept) == (10, 6)
    assert (report.too_long, report.unequal, report.duplicate) == (1, 1, 2)


def test_dropped_lines_part_their_neighbours(tmp_path: Path, vocabulary: WordVocabulary) -> None:
    lines = [("1", "w1", "w1"), ("1", "w1", " ".join(["w2"] * 30)), ("1", "w3", "w3"), ("1", "w4", "w4")]
    corpus = corpus_of(tmp_path / "a.tsv", lines, vocabulary)
    assert corpus.follows.tolist() == [False, False, True]


def test_the_shards_of_a_batch_are_the_batch(tmp_path: Path, vocabulary: WordVocabulary) -> None:
    corpus = corpus_of(tmp_path / "a.tsv", numbered(30), vocabulary)
    batch = BatchSource([corpus], [Mixture(path="a")], source=vocabulary, pieces=40, seed=1).batch(0, 0)
    shards = [batch.shard(rank, 2) for rank in range(2)]
    assert sum(shard.pieces for shard in shards) == batch.pieces
    assert sorted(row for shard in shards for row in shard.target.tolist()) == sorted(batch.target.tolist())


def test_sentences_of_an_unspaced_language_meet_with_and_without_a_space() -> None:
    from camit.training.examples import joints

    source = load_checkpoint("zh-en").source
    table = joints(source)
    for word in ("他走了", "我们"):
        ids, attached = source.encode(word), source.encode(word, attach=True)
        head = table[ids[0]]
        assert [*([head] if head else []), *ids[1:]] == attached


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_blockwise_cross_entropy_is_cross_entropy(
    with_bias: bool, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camit.training.loss.BLOCK", 7)
    torch.manual_seed(1)
    s, weight = torch.randn(23, 8, requires_grad=True), torch.randn(31, 8, requires_grad=True)
    bias = torch.randn(31, requires_grad=True) if with_bias else None
    gold = torch.randint(0, 31, (23,))
    inputs = [x for x in (s, weight, bias) if x is not None]
    loss, plain = blockwise_cross_entropy(s, weight, bias, gold, smoothing)
    gradients = torch.autograd.grad(3.0 * loss, inputs)
    scores = F.linear(s, weight, bias)
    expected = F.cross_entropy(scores, gold, label_smoothing=smoothing, reduction="sum")
    assert torch.allclose(loss, expected, rtol=1e-5)
    assert torch.allclose(plain, F.cross_entropy(scores, gold, reduction="sum"), rtol=1e-5)
    for ours, theirs in zip(gradients, torch.autograd.grad(3.0 * expected, inputs), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_sampled_vocabulary_gives_the_same_loss_and_gradients_on_average(smoothing: float) -> None:
    torch.manual_seed(1)
    inputs = [torch.randn(60, 16), 0.3 * torch.randn(400, 16), torch.randn(400)]
    gold = torch.randint(0, 40, (60,))

    def measured(sampled: float) -> list[torch.Tensor]:
        s, weight, bias = (x.clone().requires_grad_() for x in inputs)
        loss, plain = blockwise_cross_entropy(s, weight, bias, gold, smoothing, sampled)
        return [loss.detach(), plain, *torch.autograd.grad(loss, (s, weight, bias))]

    exact = measured(1.0)
    draws = [measured(0.5) for _ in range(600)]
    assert len({float(draw[0]) for draw in draws}) > 500
    for n, value in enumerate(exact):
        mean = torch.stack([draw[n] for draw in draws]).mean(0)
        assert float((mean - value).norm() / value.norm()) < 0.03


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_with_bfloat16_the_loss_and_its_gradients_are_a_little_rounded(smoothing: float) -> None:
    torch.manual_seed(1)
    inputs = [torch.randn(1100, 32), torch.randn(300, 32), torch.randn(300)]
    gold = torch.randint(0, 300, (1100,))
    found = []
    for rough in (False, True):
        s, weight, bias = (x.clone().requires_grad_() for x in inputs)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rough):
            loss, plain = blockwise_cross_entropy(s, weight, bias, gold, smoothing)
        gradients = torch.autograd.grad(loss / 1100, (s, weight, bias))
        assert [g.dtype for g in gradients] == [torch.float32] * 3
        found.append((loss.detach(), plain, *gradients))
    for exact, rounded in zip(*found, strict=True):
        assert float((exact - rounded).norm() / exact.norm()) < 0.015


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_the_loss_is_what_the_two_decoders_say(arch: str) -> None:
    """And padding has no part in it."""
    torch.manual_seed(1)
    network = build(NetworkConfig(arch=arch, source_size=20, target_size=20, d=16, heads=2, ff=16)).eval()
    sentences = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12, 13])]
    batch = Batch(torch.tensor([[5, 6, 7], [4, 0, 0]]), torch.tensor([[8, 9, 0, 0], [10, 11, 12, 13]]))
    network.requires_grad_(False)
    _, forward, backward = BothDirections(network, 0.0)(batch.source, batch.target)
    expected = []
    for decoder, first, last, step in (
        (network.forward_decoder, BOS, EOS, 1),
        (network.backward_decoder, EOS, BOS, -1),
    ):
        total = 0.0
        for source, target in sentences:
            encoded = network.encode(torch.tensor([source]))
            _, features = decoder.advance(decoder.start(encoded), torch.tensor([[first, *target[::step]]]))
            logp = torch.log_softmax(decoder.logits(features.s), dim=2)[0]
            total -= sum(float(logp[i, piece]) for i, piece in enumerate([*target[::step], last]))
        expected.append(total)
    assert float(forward) == pytest.approx(expected[0], rel=1e-4)
    assert float(backward) == pytest.approx(expected[1], rel=1e-4)
    assert batch.pieces == 8


def test_the_backward_decoder_reads_from_the_end() -> None:
    target = torch.tensor([[8, 9, 0], [10, 11, 12]])
    assert reversed_rows(target).tolist() == [[9, 8, 0], [12, 11, 10]]
    network = build(NetworkConfig(arch="transformer", source_size=20, target_size=20, d=16, heads=2, ff=16))
    read, gold = shifted(reversed_rows(target), network.backward_decoder)
    assert read.tolist() == [[EOS, 9, 8, 0], [EOS, 12, 11, 10]]
    assert gold.tolist() == [[9, 8, BOS, 0], [12, 11, 10, BOS]]


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_autocast_changes_the_loss_and_its_gradient_only_a_little(arch: str) -> None:
    """What a GPU does, on the CPU."""
    torch.manual_seed(1)
    network = build(NetworkConfig(arch=arch, source_size=20, target_size=20, d=16, heads=2, ff=16))
    source, target = torch.tensor([[5, 6, 7], [4, 0, 0]]), torch.tensor([[8, 9, 0, 0], [10, 11, 12, 13]])
    results = []
    for enabled in (False, True):
        network.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            total, forward, _ = BothDirections(network, 0.1)(source, target)
        total.backward()
        gradient = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
        assert gradient.dtype == torch.float32
        results.append((total.item(), forward.item(), gradient))
    exact, rough = results
    assert rough[0] == pytest.approx(exact[0], rel=0.02)
    assert rough[1] == pytest.approx(exact[1], rel=0.02)
    assert float(F.cosine_similarity(exact[2], rough[2], dim=0)) > 0.99
