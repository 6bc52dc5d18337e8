"""Metrics of simulations agree with what one computes by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sacrebleu

import camit
from camit.corpus import Pair
from camit.errors import InputError
from camit.session.plan import Fixed, Version
from camit.simulate import metrics
from camit.simulate.history import typed_spans
from camit.simulate.metrics import (
    Effort,
    End,
    Repetition,
    Sentence,
    TurnRecord,
    compare,
    figures,
    repetition,
    same_sentence,
    same_word,
)
from camit.simulate.rounds import Round, Turn
from camit.simulate.screen import Edit, opened
from camit.simulate.tables import document_gains
from camit.simulate.users import Judge, Reference
from camit.text import UNK
from tests.helpers import word_vocabulary


def screen(sentence: str) -> Version:
    vocabulary = word_vocabulary()
    return opened(tuple(vocabulary.encode(sentence)), vocabulary)


def played(number: int, references: list[str], screens: list[str], edits: list[Edit]) -> Round:
    shown = [screen(sentence) for sentence in screens]
    turns = [
        Turn(edit, 3, before, after, 1.0, seconds=0.1 * (n + 1))
        for n, (edit, before, after) in enumerate(zip(edits, shown[:-1], shown[1:], strict=True))
    ]
    wanted = tuple(Reference.of(one, word_vocabulary()) for one in references)
    return Round(Pair(number, "a", "source", tuple(references)), wanted, shown[0], turns)


def record(round_: Round, judge: Judge, revisions: int, lexicon: metrics.Lexicon | None = None) -> Sentence:
    lexicon = lexicon or metrics.Lexicon(word_vocabulary(), word_vocabulary())
    return metrics.record(round_, judge, revisions, lexicon, align)


def zh_en_lexicon() -> metrics.Lexicon:
    zh_en = camit.load("zh-en")
    return metrics.Lexicon(zh_en.source_vocabulary, zh_en.target_vocabulary)


def align(source: str, target: str) -> list[tuple[str, ...]]:
    """Each word stands for its own capitals."""
    vocabulary = word_vocabulary()
    return [(word.text.upper(),) for word in vocabulary.words(tuple(vocabulary.encode(target)))]


CAT = played(
    1,
    ["the cat sat on the mat."],
    ["the dog sat on a mat.", "the cat sat on a mat."],
    [Edit(1, 2, "cat")],
)


def test_effort_is_what_the_hands_did() -> None:
    found = figures([record(CAT, Judge(), 1)], Judge())
    # Typed: "cat", then "the" by hand, a key to end each; a click each, one to accept.
    # The reference: 7 words, 23 characters.
    assert found.wsr == pytest.approx(2 / 7)
    assert found.mar == pytest.approx(3 / 23)
    assert found.ksmr == pytest.approx((6 + 2 + 3) / 23)
    assert found.revisions_per_sentence == 1
    assert found.success_rate == 0
    assert found.revisions_to_success is None


def test_effort_of_fewer_revisions_counts_more_work_by_hand() -> None:
    found = figures([record(CAT, Judge(), 1).cut(0)], Judge())
    # "cat" and "the" by hand: the same words and keys, two places, one to accept.
    assert found.wsr == pytest.approx(2 / 7)
    assert found.ksmr == pytest.approx((6 + 2 + 3) / 23)
    assert len(found.revisions) == 1


def test_words_typed_together_have_spaces_between_them() -> None:
    one = played(1, ["the cat sat on the mat."], ["the mat."], [])
    found = figures([record(one, Judge(), 0)], Judge())
    assert found.wsr == pytest.approx(4 / 7)
    assert found.ksmr == pytest.approx((len("cat sat on the") + 1 + 2) / 23)


def test_words_too_many_cost_a_key_and_no_word() -> None:
    one = played(1, ["the cat sat."], ["the big red cat sat."], [])
    found = figures([record(one, Judge(), 0)], Judge())
    assert found.wsr == 0
    # Selected together and deleted with one key, by hand as in a revision.
    assert found.ksmr == pytest.approx((1 + 1 + 1) / len("the cat sat."))
    turned = played(1, ["the cat sat."], ["the big red cat sat.", "the cat sat."], [Edit(1, 3)])
    assert figures([record(turned, Judge(), 1)], Judge()).ksmr == found.ksmr


def test_a_sentence_cut_short_is_what_fewer_revisions_had_made_of_it() -> None:
    edits = [Edit(1, 2, "cat"), Edit(4, 5, "the")]
    screens = ["the dog sat on a mat.", "the cat sat on a mat.", "the cat sat on the mat."]
    whole = played(1, ["the cat sat on the mat."], screens, edits)
    less = played(1, ["the cat sat on the mat."], screens[:2], edits[:1])
    assert record(whole, Judge(), 2).success == 2
    assert record(whole, Judge(), 2).cut(1) == record(less, Judge(), 1)


def test_the_user_typed_what_was_told_and_what_was_wrong_in_the_end_and_nothing_else() -> None:
    vocabulary = word_vocabulary()
    told = Fixed(1, 2, (True,))  # "cat"; "sat" was mended by the system, "the mat" is typed by hand
    shown = replace(screen("the cat sat on a dog."), fixed=(told,))
    reference = Reference.of("the cat sat on the mat.", vocabulary)
    pieces = tuple(vocabulary.encode(reference.text))
    spans = typed_spans(shown, reference, pieces, vocabulary, Judge())
    assert [vocabulary.decode(pieces[start:stop]) for start, stop in spans] == ["cat", "the", "mat"]


def test_success_counts_the_revisions_it_took() -> None:
    rows = [
        record(played(1, ["no", "the cat."], ["the cat."], []), Judge(), 2),
        record(
            played(
                2,
                ["no", "a dog ran."],
                ["the cat ran.", "a cat ran.", "a dog ran."],
                [Edit(0, 1, "a"), Edit(1, 2, "dog")],
            ),
            Judge(),
            2,
        ),
        record(played(3, ["no", "a log."], ["a mat.", "the log."], [Edit(1, 2, "log")]), Judge(), 2),
    ]
    found = figures(rows, Judge())
    assert [row.success for row in rows] == [0, 2, None]
    assert found.success_rate == pytest.approx(2 / 3)
    assert found.revisions_to_success == 1.0
    assert found.revisions_per_sentence == 1.0
    assert [q.success_rate for q in found.revisions] == [1 / 3, 1 / 3, 2 / 3]
    assert rows[2].outputs == ("a mat.", "the log.", "the log.")
    # Turn 1 of line 2 changes one word, turn 2 one word, the turn of line 3 two words.
    assert found.changed_tokens_per_turn == pytest.approx(4 / 3)


def test_seconds_are_quantiles_of_what_was_measured() -> None:
    turns = tuple(TurnRecord("replace", 0, "a", 1, 0.0, 1, seconds) for seconds in (0.1, 0.2, 0.3, 0.4, None))
    found = figures([row(1, "a", "b", turns=turns)], Judge()).seconds
    assert found is not None
    assert (found.p50, found.p95, found.measured) == (pytest.approx(0.25), pytest.approx(0.385), 4)


def row(
    line: int,
    output: str,
    reference: str,
    *,
    document: str = "a",
    source: str = "雷德福",
    told: tuple[str, ...] = (),
    stands_for: dict[str, tuple[str, ...]] | None = None,
    turns: tuple[TurnRecord, ...] = (),
) -> Sentence:
    words = tuple(reference.split())
    return Sentence(
        line=line,
        document=document,
        references=(reference,),
        outputs=(output,) * (len(turns) + 1),
        turns=turns,
        success=None,
        ends=(End(Effort(), len(words), len(reference), told, words),) * (len(turns) + 1),
        unk=(0,) * (len(turns) + 1),
        source_words=tuple(source.split()),
        draft_words=tuple(output.split()),
        stands_for=stands_for or {},
    )


def test_bleu_chrf_and_ter_are_sacrebleus() -> None:
    rows = [
        row(1, "the cat sat on a mat", "The cat sat on the mat"),
        row(2, "a big dog ran", "the big dog ran"),
    ]
    outputs, references = [r.outputs[0] for r in rows], [[r.references[0] for r in rows]]
    exact, folded = figures(rows, Judge()), figures(rows, Judge(lowercase=True))
    assert exact.revisions[0].bleu == pytest.approx(
        sacrebleu.corpus_bleu(outputs, references).score, abs=1e-3
    )
    assert folded.revisions[0].bleu == pytest.approx(
        sacrebleu.corpus_bleu(outputs, references, lowercase=True).score, abs=1e-3
    )
    assert exact.revisions[0].chrf == pytest.approx(
        sacrebleu.corpus_chrf(outputs, references).score, abs=1e-3
    )
    # two words of ten have to be replaced.
    assert folded.revisions[0].ter == pytest.approx(20.0)
    assert "case:lc" in folded.signatures["bleu"] and "case:mixed" in exact.signatures["bleu"]


def test_a_language_without_spaces_is_compared_character_by_character() -> None:
    judge, reference = Judge(language="zh"), Reference("今天天气很好。", (), ())
    near, far = (judge.score(text, [reference]) for text in ("今天天气不好。", "他们都走了。"))
    assert 20 < near < 100 and far < near
    assert "tok:zh" in figures([row(1, "今天", "今天")], judge).signatures["bleu"]


def test_bleu_by_hand() -> None:
    # 4 of 5 words, 2 of 4 pairs, 1 of 3 triples, no quadruple of 2: smoothing counts that as half a one.
    found = figures([row(1, "a b c x e", "a b c d e")], Judge()).revisions[0].bleu
    assert found == pytest.approx(
        100 * math.exp(sum(map(math.log, (4 / 5, 2 / 4, 1 / 3, 0.25))) / 4), abs=0.01
    )


def test_repeated_mistakes_and_one_shot_recall_follow_a_document() -> None:
    rows = [
        row(1, "x", "redford", told=("redford",)),
        row(2, "x mat", "redford mat", told=("redford",)),  # told before, missing again
        row(3, "redford", "redford"),  # it came back before: no longer one shot, no mistake
        row(4, "x", "mat", told=("mat",)),
        row(5, "mat", "mat"),  # told before, and there it is
        row(6, "x", "mat", document="b"),  # another document: nobody told it
    ]
    assert repetition(rows, same_sentence) == Repetition(1, 1 / 2)


def test_a_word_that_was_learned_counts_once_in_recall_however_often_it_comes_back() -> None:
    rows = [
        row(1, "x", "redford mat", told=("redford", "mat")),
        row(2, "redford", "redford mat", told=("mat",)),
        *(row(n, "redford", "redford") for n in range(3, 8)),
    ]
    assert repetition(rows, same_sentence) == Repetition(1, 1 / 2)


def test_the_later_half_of_each_document() -> None:
    rows = [row(n, "x", "y", document="a" if n < 5 else "b") for n in range(7)]
    assert [sentence.line for sentence in metrics.later_half(rows)] == [2, 3, 4, 6]


def test_each_document_is_scored_alone() -> None:
    # Too long a translation of one document lends its length to another that is too short.
    said, short = "the cat sat on the mat today", "the cat sat on the mat"
    long = row(1, f"{said} and yes and no and yes and no", said)
    theirs = [long, row(2, short, said, document="b")]
    ours = [row(1, said, said), row(2, short, said, document="b")]
    first, second = document_gains(ours, theirs, Judge(), 0)
    alone = Judge().bleu().corpus_score(list(long.outputs), [[said]]).score
    assert first == pytest.approx(100.0 - alone) and second == 0.0
    assert document_gains(theirs, theirs, Judge(), 0) == [0.0, 0.0]


def test_a_word_typed_for_something_else_is_no_repeated_mistake() -> None:
    rows = [
        row(1, "x", "eat", source="吃 饭", told=("eat",)),
        row(2, "x", "eat", source="五 分钟", told=("eat",)),  # another source: nobody could know
        row(3, "x", "eat", source="吃 药"),
    ]
    assert repetition(rows, same_sentence) == Repetition(1, 0.0)


def test_a_word_comes_back_for_the_same_source_word_or_only_for_a_sentence_like_the_one_before() -> None:
    rows = [
        row(1, "x", "eat", source="猫 吃", told=("eat",), stands_for={"eat": ("吃",)}),
        row(2, "x", "eat", source="猫 尝", told=("eat",), stands_for={"eat": ("尝",)}),
        row(3, "eat", "eat", source="狗 吃", stands_for={"eat": ("吃",)}),
        row(4, "x", "eat", source="狗 尝", stands_for={"eat": ("尝",)}),
    ]
    assert repetition(rows, same_sentence) == Repetition(2, 0.0)
    assert repetition(rows, same_word) == Repetition(1, 1.0)
    assert figures(rows, Judge()).same_source == Repetition(1, 1.0)


def test_a_word_that_stands_for_nothing_does_not_come_back_for_the_same_source_word() -> None:
    rows = [row(1, "x", "eat", told=("eat",)), row(2, "x", "eat")]
    assert repetition(rows, same_word) == Repetition(0, None)


def test_a_typed_word_of_any_reference_has_its_ground_and_only_content_words_are_one() -> None:
    lexicon = zh_en_lexicon()
    one = played(
        1, ["the wedding is", "the chapel is"], ["the dog is", "the chapel is"], [Edit(1, 2, "chapel")]
    )
    line = replace(one.line, source="我们的婚礼，在教堂。")
    one = Round(line, one.references, one.draft, one.turns)
    found = metrics.record(one, Judge(), 1, lexicon, lambda source, target: [("我们",), ("教堂", "我们"), ()])
    assert found.ends[-1].wanted == ("chapel",)
    assert found.stands_for == {"wedding": ("教堂",), "chapel": ("教堂",)}


def test_common_words_and_punctuation_carry_no_meaning_of_their_own() -> None:
    lexicon = zh_en_lexicon()
    assert lexicon.source_words("我们的婚礼，在教堂。") == ("婚礼", "教堂")
    assert lexicon.target_words(["it", "i", "the", "wedding", ",", "chapel", "what"]) == ("wedding", "chapel")


def test_unknown_words_are_counted_after_each_revision() -> None:
    one = played(1, ["the cat"], ["the dog", "the cat"], [Edit(1, 2, "cat")])
    one.draft = Version((*one.draft.pieces[:1], UNK), one.draft.tokens)
    assert record(one, Judge(), 1).unk == (1, 0)


def test_paired_bootstrap_tells_a_difference_from_noise() -> None:
    wanted = [f"the cat number {n} sat on the mat" for n in range(30)]
    right = [row(n, text, text) for n, text in enumerate(wanted)]
    wrong = [row(n, f"a dog number {n} ran on the log", text) for n, text in enumerate(wanted)]
    found = compare(right, wrong, Judge(), 0, samples=200)
    assert found.difference > 50 and found.p < 0.02
    assert compare(right, right, Judge(), 0, samples=200).p == 1


def test_runs_over_other_lines_do_not_compare() -> None:
    with pytest.raises(InputError, match="same lines"):
        compare([row(1, "a", "a")], [row(2, "a", "a")], Judge(), 0)
