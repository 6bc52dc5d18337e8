"""`translate` on the embedded model: any input has a correct answer or an error that says what to do."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import camit
from camit.errors import CamitError, InputError
from camit.search.revise import DRAFT_LENGTH
from camit.search.scoring import limit_for, score
from camit.text import BOS, EOS, detokenise, fold
from camit.translator import MAX_SOURCE_PIECES

SENTENCES = [
    "我们昨天在公园里看到了他。",
    "谢谢。",
    "你为什么不告诉我真相？",
    "他说他明天会和他的朋友们一起去北京看一场电影。",
]


@pytest.fixture(scope="module")
def translator() -> camit.Translator:
    return camit.load("zh-en")


def check(translator: camit.Translator, source: str, answer: camit.Translation) -> None:
    """What is true of every answer: text for a screen, tokens that spell it, and no more work than stated."""
    assert answer.source == " ".join(answer.source.split())
    assert answer.text and answer.text == fold(answer.text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in answer.text)
    assert detokenise((token.text, token.space_before) for token in answer.tokens) == answer.text
    assert all(0.0 <= token.probability <= 1.0 for token in answer.tokens)
    words = len(translator.source_tokens(answer.source))
    assert all(len(token.attention) == words for token in answer.tokens)
    read = len(translator.encode_source(answer.source))
    assert read <= MAX_SOURCE_PIECES
    assert len(answer.tokens) <= limit_for(read)
    assert answer.source.encode() and source  # well-formed, and of something


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty.*pass at least one word"),
        (" \t\r\n\u00a0\u3000", "empty.*pass at least one word"),
        ("\x00", "empty.*pass at least one word"),
        ("\x00\x01\x1b\x7f\x9f", "empty.*pass at least one word"),
        ("\u200b\u200d\ufeff\u202e", "empty.*pass at least one word"),
        ("\ud83d", "empty.*pass at least one word"),
        ("我们去看电影吧。" * 2_500, "20,000 characters.*Split it into sentences"),
        ("a" * 20_000, "20,000 characters.*Split it into sentences"),
        ("ﷺ" * 4_999, "once normalised.*Split it"),
        ("啊" * 2_000, "2001 pieces.*at most 400.*Split it into sentences"),
        ("😀" * 2_000, "8001 pieces.*at most 400.*Split it into sentences"),
        ("e" + "\u0301" * 2_000, "pieces.*at most 400.*Split it into sentences"),
        (None, "not NoneType; pass one sentence as str"),
        (7, "not int; pass one sentence as str"),
        (["你好"], "not list; pass one sentence as str"),
        ("你好".encode(), "not bytes; pass one sentence as str"),
    ],
)
def test_what_cannot_be_translated_is_refused_and_says_what_to_do(
    translator: camit.Translator, text: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message) as raised:
        translator.translate(text)
    assert isinstance(raised.value, CamitError)
    assert len(str(raised.value)) < 200  # the message does not repeat what was given


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("我们\x00走吧。", id="NUL"),
        pytest.param("\x01\x02你好\x1b[31m\x07", id="control characters"),
        pytest.param("我😀爱👨‍👩‍👧‍👦你❤️", id="emoji"),
        pytest.param("😀", id="one emoji"),
        pytest.param("我love кошки と犬 한국어 ελληνικά", id="mixed scripts"),
        pytest.param('<b onclick="alert(1)">你好&nbsp;</b><script>x()</script>', id="HTML"),
        pytest.param("你好\ud800吗？", id="lone surrogate"),
        pytest.param("مرحبا بالعالم", id="right to left"),
        pytest.param("\u202e你好\u202c吗？", id="direction marks"),
        pytest.param("<s> </s> <pad> <unk> <0x41>", id="names of special pieces"),
        pytest.param("▁▁你好▁", id="the space mark"),
        pytest.param("e" + "\u0301" * 50, id="combining marks"),
        pytest.param("。", id="one mark"),
        pytest.param("ＡＢＣ，１２３", id="full width"),
        pytest.param("我们\r\n走吧。\n\n\n", id="line ends"),
    ],
)
def test_odd_text_has_an_answer(translator: camit.Translator, text: str) -> None:
    check(translator, text, translator.translate(text))


def test_the_longest_source_that_is_read_has_an_answer_of_bounded_length(
    translator: camit.Translator,
) -> None:
    text = "哈" * (MAX_SOURCE_PIECES - 1)  # and the space mark before it
    assert len(translator.encode_source(text)) == MAX_SOURCE_PIECES
    check(translator, text, translator.translate(text, beam=1))


@settings(max_examples=12)
@given(
    text=st.text(max_size=12)
    | st.text(st.sampled_from("你好 a9.。'-\x00\u0301😀<&\u200b\ud800"), max_size=12)
)
def test_any_short_text_has_an_answer_or_a_clear_error(translator: camit.Translator, text: str) -> None:
    try:
        answer = translator.translate(text, beam=2)
    except InputError as error:
        assert "pass at least one word" in str(error)
    else:
        check(translator, text, answer)


def test_control_characters_and_lone_surrogates_do_not_change_the_answer(
    translator: camit.Translator,
) -> None:
    plain = translator.translate("我们 走吧。").text
    assert [answer.text for answer in translator.translate_batch(["我们\x00走吧。", "我们\udfff走吧。"])] == [
        plain
    ] * 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "sentence 3 must be a string, not NoneType"),
        (["你好"], "sentence 3 must be a string, not list"),
        ("", "sentence 3 is empty"),
        ("我" * 20_000, "sentence 3 has 20,000 characters"),
        ("啊" * 2_000, "sentence 3 has 2001 pieces"),
    ],
)
def test_a_batch_with_one_bad_sentence_names_it(translator: camit.Translator, bad: Any, message: str) -> None:
    done: list[int] = []
    with pytest.raises(InputError, match=message):
        translator.translate_batch([*SENTENCES[:2], bad, SENTENCES[2]], progress=done.append)
    assert not done  # it is known before any work is done


@pytest.mark.parametrize("texts", ["你好", "你好".encode(), None, 7, {"你好": 1}, iter(["你好"])])
def test_a_batch_is_a_list(translator: camit.Translator, texts: Any) -> None:
    with pytest.raises(InputError, match="takes a list of sentences"):
        translator.translate_batch(texts)


def test_an_empty_batch_has_no_answers(translator: camit.Translator) -> None:
    assert translator.translate_batch([]) == []


@pytest.mark.parametrize("beam", [0, -1, 65, 2.0, "4", None, True])
def test_a_beam_that_is_none_is_refused(translator: camit.Translator, beam: Any) -> None:
    with pytest.raises(InputError, match="beam must be a whole number from 1 to 64"):
        translator.translate("你好。", beam=beam)


@pytest.mark.parametrize("batch", [0, -1, 2.0, "4", None, True])
def test_a_batch_size_that_is_none_is_refused(translator: camit.Translator, batch: Any) -> None:
    with pytest.raises(InputError, match="batch must be a whole number from 1"):
        translator.translate_batch(["你好。"], batch=batch)


def test_a_batch_gives_what_each_sentence_gives_alone(translator: camit.Translator) -> None:
    odd = ["<b>你好</b>", "我😀你", "你好\ud800吗？"]
    together = translator.translate_batch(SENTENCES + odd, batch=4)
    alone = [translator.translate(text) for text in SENTENCES + odd]
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.source == other.source
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert [t.probability for t in one.tokens] == pytest.approx(
            [t.probability for t in other.tokens], abs=1e-4
        )


def test_the_same_input_gives_the_same_output(translator: camit.Translator) -> None:
    first = translator.translate_batch(SENTENCES)
    assert translator.translate_batch(SENTENCES) == first
    assert camit.load("zh-en").translate_batch(SENTENCES) == first


def test_beam_one_is_the_better_of_what_both_decoders_write_greedily(translator: camit.Translator) -> None:
    chosen = set()
    for text in [*SENTENCES, "他每天早上都喝一杯咖啡。"]:
        written = [greedy(translator, text, backward) for backward in (False, True)]
        worth = [sum(logps(translator, text, pieces)) / 2 for pieces in written]
        # Between their sums and their means: a long sentence may have the better mean, a short one the sum.
        lengths = [(len(pieces) + 1) ** DRAFT_LENGTH for pieces in written]
        ranked = [value / length for value, length in zip(worth, lengths, strict=True)]
        best = ranked.index(max(ranked))
        found = translator.translate(text, beam=1)
        assert found.text == translator.target_vocabulary.decode(written[best])
        assert found.score == pytest.approx(worth[best] / (len(written[best]) + 1), abs=1e-4)
        chosen.add(best)
    assert chosen == {0, 1}, "these sentences do not show that either decoder may be the better one"


@torch.inference_mode()
def logps(translator: camit.Translator, text: str, pieces: list[int]) -> list[float]:
    """What each decoder makes of a whole sentence."""
    sources = translator.read([translator.encode_source(text)])
    directions = translator.directions
    return [float(score(way, sources.start(way), [0], [tuple(pieces)]).logp.sum()) for way in directions.both]


@torch.inference_mode()
def greedy(translator: camit.Translator, text: str, backward: bool) -> list[int]:
    """The best next piece, again and again, by the network's contract alone; in reading order."""
    ids = translator.encode_source(text)
    network = translator.network
    decoder = network.backward_decoder if backward else network.forward_decoder
    start, end = (EOS, BOS) if backward else (BOS, EOS)
    never = torch.from_numpy(translator.target_vocabulary.never_generated).clone()
    never[end] = False
    state = decoder.start(network.encode(torch.tensor([ids])))
    pieces: list[int] = []
    piece = start
    while len(pieces) < limit_for(len(ids)):
        state, features = decoder.advance(state, torch.tensor([[piece]]))
        scores = decoder.logits(features.s)[0, 0].masked_fill(never, float("-inf"))
        scores[end] = scores[end] if pieces else float("-inf")
        piece = int(scores.argmax())
        if piece == end:
            break
        pieces.append(piece)
    return pieces[::-1] if backward else pieces
