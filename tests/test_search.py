"""Ordered-constraint search and whole revisions, against brute force, scripted decoders and random networks.

What must hold always: every phrase stands in the result, whole, in order and on word boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from camit.errors import Cancelled, InputError
from camit.networks import Encoded, Features, Network, State
from camit.search.direction import Direction
from camit.search.grid import PATIENCE, search
from camit.search.problem import Copy, Phrase, Problem, Written
from camit.search.revise import Request, Revision, Searcher, Settings
from camit.search.rules import WORD_LIMIT
from camit.search.scoring import Directions, Readings, Sources, read_sources, score
from camit.search.sides import Part
from camit.text import BOS, EOS, SPECIALS, UNK, Vocabulary, WordVocabulary
from camit.translator import Translator, load
from tests.helpers import Offering, Scripted, piece_vocabulary, tiny_network, tiny_translator, word_vocabulary

# Five pieces with every kind of edge: words, a continuation and a punctuation mark.
TOY = WordVocabulary(["▁a", "▁b", "c", ",", "▁d"], "en")
A, B, C, COMMA, D = range(SPECIALS, SPECIALS + 5)
SOURCE = [5, 9, 7, 4]


def toy(arch: str, seed: int, *, scale: float = 3.0) -> tuple[Directions, Sources]:
    network = tiny_network(arch, target=len(TOY), seed=seed, scale=scale)
    directions = Directions.of(network, TOY)
    with torch.inference_mode():
        return directions, read_sources(network, directions, [SOURCE])


def run(
    direction: Direction, sources: Sources, problems: Sequence[Problem], **options: int
) -> list[list[Written]]:
    with torch.inference_mode():
        return search(direction, sources.start(direction), problems, **{"beam": 4, **options})  # type: ignore[arg-type]


def scripted(script: dict[Phrase, dict[int, float]], vocabulary: Vocabulary = TOY) -> tuple[Direction, State]:
    """A forward direction that follows a script; what the script does not say is unlikely."""
    decoder = Scripted(len(vocabulary), lambda written: script.get(written, {}))
    start = decoder.start(Encoded(torch.zeros(1, 1, 1), torch.ones(1, 1, dtype=torch.bool)))
    return Direction(decoder, vocabulary, backward=False), start


def check_written(direction: Direction, problem: Problem, written: Written) -> None:
    """Everything a result must keep, told from its pieces alone."""
    pieces, vocabulary = written.pieces, direction.vocabulary
    whole = (*problem.prefix, *pieces)
    shift = len(problem.prefix)
    assert len(written.starts) == len(problem.phrases)
    inside: set[int] = set()
    end = 0
    for start, phrase in zip(written.starts, problem.phrases, strict=True):
        assert start >= end, "phrases overlap or changed places"
        end = start + len(phrase)
        assert pieces[start:end] == phrase, "a phrase is not whole"
        inside.update(range(start, end))
        for at in (start + shift, end + shift):
            if 0 < at < len(whole):
                assert direction.boundary(whole[at - 1], whole[at]), "a phrase stands inside a word"
    if problem.anchored and problem.phrases:
        assert end == len(pieces), "something follows the last phrase"
    if problem.prefix and pieces:
        assert direction.boundary(problem.prefix[-1], pieces[0]), "the prefix was grown"
    never = vocabulary.never_generated
    free = [piece for at, piece in enumerate(pieces) if at not in inside]
    assert not any(piece >= len(vocabulary) or never[piece] for piece in free)
    assert whole, "an empty sentence"


def loops(pieces: Phrase) -> bool:
    """Do these pieces end with the same words four times in a row? "cccc" may be a word, and UNK is none."""
    units = [pieces[-n:] for n in range(1, min(10, len(pieces) // 4) + 1)]
    units = [unit for unit in units if len(unit) == 1 or len(set(unit)) > 1]
    words = [u for u in units if UNK not in u and (not {A, B, D}.isdisjoint(u) or (C in u and len(u) > 1))]
    return any(pieces[-4 * len(unit) :] == unit * 4 for unit in words)


def feasible(direction: Direction, problem: Problem) -> set[Phrase]:
    """Every result the constraints allow, by trying everything."""
    free_pieces = [i for i, never in enumerate(direction.vocabulary.never_generated) if not never]
    found: set[Phrase] = set()

    def grow(pieces: Phrase, used: int, placed: int, closed: bool) -> None:
        whole = (*problem.prefix, *pieces)
        if placed == len(problem.phrases):
            if whole:
                found.add(pieces)
            room = used < problem.limit and not problem.anchored
        else:
            phrase = problem.phrases[placed]
            fits = not whole or direction.boundary(whole[-1], phrase[0])
            if fits:
                grow((*pieces, *phrase), used, placed + 1, True)
            # A word begun at the limit may be finished, or the phrase could not stand behind it.
            room = used < problem.limit or (not fits and used < problem.limit + WORD_LIMIT)
        for piece in free_pieces if room else []:
            if loops((*whole, piece)):
                continue
            if not (closed and whole) or direction.boundary(whole[-1], piece):
                grow((*pieces, piece), used + 1, placed, False)

    grow((), 0, 0, bool(problem.prefix))
    return found


def values(
    direction: Direction, sources: Sources, problem: Problem, results: Sequence[Phrase]
) -> list[float]:
    """The score of each result: log-probability of what was written and of the end, per piece."""
    sentences = [direction.order((*problem.prefix, *pieces)) for pieces in results]
    with torch.inference_mode():
        logp = score(direction, sources.start(direction), [0] * len(results), sentences).logp
    shift = len(problem.prefix)
    return [
        float(row[shift : shift + len(pieces) + 1].sum()) / (len(pieces) + 1)
        for row, pieces in zip(logp, results, strict=True)
    ]


PROBLEMS = {
    "no constraint": Problem(0, 4),
    "a prefix": Problem(0, 3, prefix=(A, C)),
    "one word": Problem(0, 2, phrases=((B,),)),
    "a word of two pieces": Problem(0, 2, phrases=((B, C),)),
    "a mark": Problem(0, 2, phrases=((COMMA,),)),
    "two phrases": Problem(0, 1, phrases=((B, C), (A,))),
    "the same word twice": Problem(0, 2, phrases=((A,), (A,))),
    "overlapping words": Problem(0, 1, phrases=((A, B), (B, A))),
    "anchored": Problem(0, 2, phrases=((B,), (D,)), anchored=True),
    "prefix and phrase": Problem(0, 2, prefix=(D,), phrases=((A, COMMA),)),
    "nothing may follow the prefix": Problem(0, 3, prefix=(A, B), anchored=True),
}


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_wide_beam_finds_the_brute_force_optimum(arch: str, backward: bool, name: str) -> None:
    problem = PROBLEMS[name]
    if backward:  # a word begun at the limit is written to its beginning: fewer, or there are too many to try
        problem = replace(problem, limit=min(problem.limit, 2 if not problem.phrases else 1))
    for seed in range(3):
        directions, sources = toy(arch, seed)
        direction = directions.backward if backward else directions.forward
        everything = sorted(feasible(direction, problem))
        found = run(direction, sources, [problem], beam=3000, best=3)[0]
        scores = values(direction, sources, problem, everything)
        assert found[0].score == pytest.approx(max(scores), abs=1e-4)
        ranked = sorted(scores, reverse=True)[:3]
        assert [w.score for w in found] == pytest.approx(ranked, abs=1e-4)
        for written in found:
            check_written(direction, problem, written)
            whole = direction.order((*problem.prefix, *written.pieces))
            with torch.inference_mode():
                logp = score(direction, sources.start(direction), [0], [whole]).logp
            assert written.logp == pytest.approx(float(logp.sum()), abs=1e-3)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_beam_one_is_greedy(arch: str) -> None:
    for seed in range(5):
        directions, sources = toy(arch, seed, scale=2.0)
        direction = directions.forward
        decoder = direction.decoder
        pieces: list[int] = []
        with torch.inference_mode():
            state, features = decoder.advance(sources.forward, torch.tensor([[BOS]]))
            while len(pieces) < 12:
                scores = decoder.logits(features.s)[0, 0] + direction.banned
                if not pieces:
                    scores[EOS] = float("-inf")
                for piece in range(len(TOY)):
                    if loops((*pieces, piece)):
                        scores[piece] = float("-inf")
                best = int(scores.argmax())
                if best == EOS:
                    break
                pieces.append(best)
                state, features = decoder.advance(state, torch.tensor([[best]]))
        assert run(direction, sources, [Problem(0, 12)], beam=1)[0][0].pieces == tuple(pieces)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_without_constraints_it_is_plain_beam_search(arch: str) -> None:
    """The textbook algorithm on the same decoder; a finished hypothesis takes its place in the beam along."""
    for seed in range(4):
        for beam in (2, 3, 4):
            directions, sources = toy(arch, seed, scale=2.0)
            direction = directions.forward
            live: list[tuple[Phrase, float]] = [((), 0.0)]
            finished: list[tuple[Phrase, float]] = []
            best_possible = 0.0
            while (
                live and len(finished) < beam and best_possible > max((v for _, v in finished), default=-9e9)
            ):
                grown: list[tuple[float, Phrase, bool]] = []
                for pieces, value in live:
                    with torch.inference_mode():
                        tokens = torch.tensor([[BOS, *pieces]])
                        s = direction.decoder.advance(sources.forward, tokens)[1].s[:, -1]
                        logp = torch.log_softmax(direction.decoder.logits(s)[0], 0)
                    for piece in [EOS, UNK, *range(SPECIALS, len(TOY))]:
                        ends = piece == EOS
                        if pieces if ends else len(pieces) < 6 and not loops((*pieces, piece)):
                            grown.append((value + float(logp[piece]), (*pieces, piece), ends))
                grown.sort(reverse=True)
                live, places = [], beam - len(finished)
                for value, pieces, ends in grown[:places]:
                    if ends:
                        finished.append((pieces[:-1], value / len(pieces)))
                    else:
                        live.append((pieces, value))
                best_possible = max((v / (len(p) + 1 + PATIENCE) for p, v in live), default=-9e9)
            best = max(finished, key=lambda entry: entry[1])
            found = run(direction, sources, [Problem(0, 6)], beam=beam)[0][0]
            assert found.pieces == best[0]
            assert found.score == pytest.approx(best[1], abs=1e-4)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_company_changes_nothing(arch: str) -> None:
    network = tiny_network(arch, target=len(TOY), seed=3, scale=2.0)
    directions = Directions.of(network, TOY)
    with torch.inference_mode():
        sources = read_sources(network, directions, [SOURCE, [8, 8, 6, 4, 7, 12], [11]])
    problems = [
        Problem(0, 6),
        Problem(1, 6, prefix=(A, C, B), phrases=((D,), (B, C))),
        Problem(0, 6, prefix=(B,), phrases=((COMMA,),), anchored=True),
        Problem(2, 5),
        Problem(1, 5, phrases=((A,), (A,))),
    ]
    for direction in directions.both:
        together = run(direction, sources, problems, best=2)
        for problem, found in zip(problems, together, strict=True):
            alone = run(direction, sources, [problem], best=2)[0]
            assert [w.pieces for w in found] == [w.pieces for w in alone]
            assert [w.score for w in found] == pytest.approx([w.score for w in alone], abs=1e-4)


@pytest.mark.parametrize("arch", ["transformer", "rnnsearch"])
def test_forward_and_backward_agree_on_a_mirrored_network(arch: str) -> None:
    """Equal weights in both decoders, and no way to tell one end of the sentence from the other."""
    vocabulary = WordVocabulary(["▁a", "▁b", "▁c", "▁d"], "en")
    network = tiny_network(arch, target=len(vocabulary), seed=5, scale=2.0)
    network.backward_decoder.load_state_dict(network.forward_decoder.state_dict())
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.shape[:1] == (len(vocabulary),) and ("target" in name or "output" in name):
                parameter[BOS] = parameter[EOS]
    directions = Directions.of(network, vocabulary)
    with torch.inference_mode():
        sources = read_sources(network, directions, [SOURCE])
    for problem in (
        Problem(0, 5),
        Problem(0, 5, prefix=(4, 6), phrases=((5, 7), (4,))),
        Problem(0, 4, phrases=((7,), (6, 6)), anchored=True),
    ):
        ahead = run(directions.forward, sources, [problem], best=3)[0]
        behind = run(directions.backward, sources, [problem], best=3)[0]
        assert [w.pieces for w in ahead] == [w.pieces for w in behind]
        assert [w.score for w in ahead] == pytest.approx([w.score for w in behind], abs=1e-5)
        sentence = directions.forward.order((*problem.prefix, *ahead[0].pieces))
        assert directions.backward.order(sentence) == (*behind[0].pieces[::-1], *problem.prefix[::-1])


def test_the_same_input_gives_the_same_output() -> None:
    directions, sources = toy("transformer", 1)
    problem = Problem(0, 6, phrases=((B, C),))
    assert run(directions.forward, sources, [problem], best=4) == run(
        directions.forward, sources, [problem], best=4
    )


def test_no_problems_no_results() -> None:
    directions, sources = toy("transformer", 0)
    assert run(directions.forward, sources, []) == []


def test_a_cancelled_search_stops_at_its_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    directions, sources = toy("transformer", 0)
    decoder = directions.forward.decoder
    steps: list[int] = []
    advance = decoder.advance

    def counted(state: State, tokens: torch.Tensor, *, attention: bool) -> tuple[State, Features]:
        steps.append(1)
        return advance(state, tokens, attention=attention)

    def check() -> None:
        if len(steps) == 2:
            raise Cancelled("a newer request")

    monkeypatch.setattr(decoder, "advance", counted)
    with pytest.raises(Cancelled), torch.inference_mode():
        search(directions.forward, sources.forward, [Problem(0, 9)], beam=4, check=check)
    assert len(steps) == 2


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("cycle", [(A,), (A, COMMA), (B, C, A)])
def test_nothing_is_said_again_and_again(beam: int, cycle: Phrase) -> None:
    """But three times in a row it may be, and what a person fixed stands as often as they say."""

    def says(written: Phrase) -> dict[int, float]:
        nxt = cycle[len(written) % len(cycle)]
        return {nxt: 0.9, EOS: 0.05} if written == (cycle * 9)[: len(written)] else {EOS: 0.9}

    decoder = Scripted(len(TOY), says)
    start = decoder.start(Encoded(torch.zeros(1, 1, 1), torch.ones(1, 1, dtype=torch.bool)))
    direction = Direction(decoder, TOY, backward=False)
    with torch.inference_mode():
        [[free]] = search(direction, start, [Problem(0, 40)], beam=beam)
        [[fixed]] = search(direction, start, [Problem(0, 40, phrases=(cycle * 5,))], beam=beam)
    assert free.pieces[: 3 * len(cycle)] == cycle * 3
    assert free.pieces[: 4 * len(cycle)] != cycle * 4
    assert cycle * 5 == fixed.pieces[fixed.starts[0] :][: 5 * len(cycle)]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("unit", ["0", ",|0|0|0", "!", "Y", None, ",|None"])
def test_numbers_marks_and_unknown_words_are_no_loops(beam: int, unit: str | None) -> None:
    vocabulary = WordVocabulary(["\u2581a", ",", "0", "!", "Y"], "en")
    names = {"None": UNK} | {vocabulary.piece(i): i for i in range(SPECIALS, len(vocabulary))}
    said = (SPECIALS, *[names[name] for name in str(unit).split("|")] * 9)
    direction, start = scripted(
        {said[:n]: {following: 0.9} for n, following in enumerate((*said, EOS))}, vocabulary
    )
    with torch.inference_mode():
        [[found]] = search(direction, start, [Problem(0, 40)], beam=beam)
    assert found.pieces == said


def test_a_word_outside_the_list_is_no_loop_however_often_it_was_typed() -> None:
    typed = tuple(TOY.encode("zebra zebra zebra"))
    assert len(set(typed)) == 1 and typed[0] >= len(TOY)
    direction, start = scripted({typed: {A: 0.9}, (*typed, A): {EOS: 0.9}})
    with torch.inference_mode():
        [[found]] = search(direction, start, [Problem(0, 5, prefix=typed)], beam=2)
    assert found.pieces


@pytest.mark.parametrize("beam", [1, 4])
def test_a_number_among_words_does_not_let_them_loop(beam: int) -> None:
    vocabulary = WordVocabulary(["\u2581in", "\u2581", "2", "\u2581years"], "en")
    unit = tuple(range(SPECIALS, SPECIALS + 4))
    script = {(unit * 9)[:n]: {(unit * 9)[n]: 0.9, EOS: 0.05} for n in range(30)}
    direction, start = scripted(script, vocabulary)
    with torch.inference_mode():
        [[found]] = search(direction, start, [Problem(0, 30)], beam=beam)
    assert found.pieces[:12] == unit * 3
    assert found.pieces[:16] != unit * 4


@pytest.mark.parametrize("beam", [1, 2])
def test_several_loops_at_once_are_left_too(beam: int) -> None:
    cycle = (A, A, A, B)
    script = {(cycle * 6)[:n]: {A: 0.3, B: 0.3, EOS: 0.05, cycle[n % 4]: 0.6} for n in range(24)}
    direction, start = scripted(script)
    with torch.inference_mode():
        [[found]] = search(direction, start, [Problem(0, 24)], beam=beam)
    assert found.pieces[:16] != cycle * 4


class TestKnownFailures:
    """What goes wrong elsewhere, each by its name in DESIGN."""

    def test_a_phrase_that_breaks_does_not_force_earlier_phrases_again(self) -> None:
        # After "a" the model loves "b d", which looks like the phrase "b c" until it breaks.
        script = {
            (): {A: 0.9, EOS: 0.05},
            (A,): {B: 0.9, EOS: 0.05},
            (A, B): {D: 0.9, C: 1e-4, EOS: 0.05},
            (A, B, D): {B: 0.5, EOS: 0.4},
            (A, B, D, B): {C: 0.9},
            (A, B, D, B, C): {EOS: 0.95},
        }
        direction, start = scripted(script)
        problem = Problem(0, 6, phrases=((A,), (B, C)))
        with torch.inference_mode():
            found = search(direction, start, [problem], beam=3)[0][0]
        assert found.pieces == (A, B, D, B, C)
        assert found.starts == (0, 3)

    def test_constraints_do_not_leak_into_other_rows(self) -> None:
        script = {(): {A: 0.9}, (A,): {EOS: 0.9}}
        direction, start = scripted(script)
        problems = [Problem(0, 4), Problem(0, 4, phrases=((D, C),)), Problem(0, 4)]
        with torch.inference_mode():
            plain, forced, again = search(direction, start, problems, beam=4)
        assert plain[0].pieces == again[0].pieces == (A,)
        assert D in forced[0].pieces and C in forced[0].pieces

    @pytest.mark.parametrize("beam", [1, 4])
    def test_the_best_hypothesis_never_misses_a_constraint(self, beam: int) -> None:
        script = {(): {A: 0.99}, (A,): {EOS: 0.9999}}  # the end is near certain, the phrase near impossible
        direction, start = scripted(script)
        with torch.inference_mode():
            found = search(direction, start, [Problem(0, 5, phrases=((D,), (B, C)))], beam=beam, best=beam)[0]
        assert found
        for written in found:
            check_written(direction, Problem(0, 5, phrases=((D,), (B, C))), written)

    @pytest.mark.parametrize("beam", [1, 4])
    def test_the_end_does_not_come_at_step_0(self, beam: int) -> None:
        direction, start = scripted({(): {EOS: 0.999999}, (B,): {EOS: 0.9}})
        with torch.inference_mode():
            found = search(direction, start, [Problem(0, 5)], beam=beam)[0]
        assert found[0].pieces

    def test_a_constraint_longer_than_the_length_limit(self) -> None:
        phrase = (A, B, D) * 10
        direction, start = scripted({})
        with torch.inference_mode():
            found = search(direction, start, [Problem(0, 2, phrases=(phrase,))], beam=2)[0]
        check_written(direction, Problem(0, 2, phrases=(phrase,)), found[0])

    def test_no_hypothesis_stands_twice_in_the_beam(self) -> None:
        # What the phrase says is what the model would write anyway: two ways to the same pieces.
        script: dict[Phrase, dict[int, float]] = {
            (): {A: 0.6, B: 0.3},
            (A,): {EOS: 0.5, A: 0.3, B: 0.2},
            (A, A): {EOS: 0.9},
            (B,): {A: 0.9},
            (A, B): {EOS: 0.9},
            (B, A): {EOS: 0.9},
        }
        direction, start = scripted(script)
        with torch.inference_mode():
            found = search(direction, start, [Problem(0, 3, phrases=((A,),))], beam=4, best=4)[0]
        assert len({w.pieces for w in found}) == len(found) == 4

    @pytest.mark.parametrize("text", ["<s>", "</s>", "<unk>", "<pad>", "the </s> cat", "▁"])
    @pytest.mark.parametrize("words", [False, True])
    def test_a_constraint_that_looks_like_a_special_piece(self, text: str, words: bool) -> None:
        vocabulary = word_vocabulary() if words else piece_vocabulary()
        if words and "▁" in text:
            pytest.skip("a word list has no way to write this")
        phrase = tuple(vocabulary.encode(text))
        assert not set(phrase) & {BOS, EOS, UNK}
        direction, start = scripted({}, vocabulary)
        problem = Problem(0, 3, phrases=(phrase,))
        with torch.inference_mode():
            found = search(direction, start, [problem], beam=2)[0][0]
        check_written(direction, problem, found)
        assert text in vocabulary.decode(found.pieces)


phrases = st.lists(
    st.sampled_from([(A,), (B,), (B, C), (COMMA,), (D, C, C), (A, COMMA, B), (D, D)]), max_size=4
)


@given(
    chosen=phrases,
    prefix=st.sampled_from([(), (A,), (B, C), (D, COMMA)]),
    anchored=st.booleans(),
    beam=st.integers(1, 5),
    limit=st.integers(1, 8),
    seed=st.integers(0, 9),
    backward=st.booleans(),
    arch=st.sampled_from(["transformer", "rnnsearch"]),
)
@settings(max_examples=120)
def test_constraints_hold_on_random_networks(
    chosen: list[Phrase],
    prefix: Phrase,
    anchored: bool,
    beam: int,
    limit: int,
    seed: int,
    backward: bool,
    arch: str,
) -> None:
    directions, sources = cached_toy(arch, seed)
    direction = directions.backward if backward else directions.forward
    turned = tuple(direction.order(phrase) for phrase in chosen)
    problem = Problem(0, limit, direction.order(prefix), turned, anchored and bool(turned))
    found = run(direction, sources, [problem], beam=beam, best=beam)[0]
    assert found, "nothing was found"
    for written in found:
        check_written(direction, problem, written)
    assert [w.score for w in found] == sorted((w.score for w in found), reverse=True)
    assert len({w.pieces for w in found}) == len(found)


@cache
def cached_toy(arch: str, seed: int) -> tuple[Directions, Sources]:
    return toy(arch, seed)


def test_where_the_network_means_a_word_it_lacks_the_memory_says_which() -> None:
    vocabulary = word_vocabulary()
    the, redford = vocabulary.encode("the")[0], vocabulary.extra("▁Redford")
    script = {(): {the: 0.9}, (the,): {UNK: 0.8, EOS: 0.1}, (the, UNK): {EOS: 0.9}}
    direction, start = scripted(script, vocabulary)

    memory = Offering(Copy(((redford,),), 0.1, entry=1))
    [plain] = search(direction, start, [Problem(0, 5)], beam=2)
    [helped] = search(direction, start, [Problem(0, 5)], beam=2, reader=memory)
    assert plain[0].pieces == (the, UNK) and helped[0].pieces == (the, redford)


def test_words_outside_a_word_list_appear_as_typed() -> None:
    translator = tiny_translator(words=True)
    vocabulary, directions = translator.target_vocabulary, translator.directions
    sources = translator.read([translator.encode_source("the cat")])
    for text in ("zebra", "zebra okapi", "the zebra, Żółć 龍"):
        phrase = tuple(vocabulary.encode(text))
        for direction in directions.both:
            problem = Problem(0, 6, phrases=(direction.order(phrase),))
            found = run(direction, sources, [problem])[0][0]
            check_written(direction, problem, found)
            assert text in vocabulary.decode(direction.order(found.pieces))


class TestOnce:
    """Phrases that must not be written freely a second time."""

    script: ClassVar[dict[Phrase, dict[int, float]]] = {
        (): {A: 0.9, D: 0.05},
        (A,): {B: 0.9, D: 0.05},
        (A, B): {EOS: 0.9},
        (D,): {EOS: 0.5, A: 0.4},
        (A, D): {EOS: 0.9},
    }

    def found(self, **options: object) -> Phrase:
        direction, start = scripted(self.script)
        problem = Problem(0, 4, **options)  # type: ignore[arg-type]
        with torch.inference_mode():
            return search(direction, start, [problem], beam=4)[0][0].pieces

    def test_is_not_written_again(self) -> None:
        assert self.found(prefix=()) == (A, B)
        assert (B,) not in [self.found(once=((B,),))[i : i + 1] for i in range(4)]

    def test_may_stand_where_it_was_put(self) -> None:
        assert self.found(phrases=((B,),), once=((B,),)).count(B) == 1

    def test_may_be_the_beginning_of_a_longer_word(self) -> None:
        direction, start = scripted({(): {B: 0.9}, (B,): {EOS: 0.6, C: 0.3}, (B, C): {EOS: 0.9}})
        with torch.inference_mode():
            found = search(direction, start, [Problem(0, 4, once=((B,),))], beam=4)[0][0]
        assert found.pieces == (B, C)

    def test_is_not_written_right_before_the_next_phrase(self) -> None:
        direction, start = scripted(
            {
                (): {B: 0.9, A: 0.05},
                (B,): {A: 0.9},
                (B, A): {B: 0.9},
                (B, A, B): {EOS: 0.9},
                (A, B): {EOS: 0.5},
            }
        )
        with torch.inference_mode():
            problem = Problem(0, 4, phrases=((A,), (B,)), once=((B,),))
            found = search(direction, start, [problem], beam=4)[0][0]
        assert found.pieces == (A, B)

    def test_is_not_written_where_there_is_no_room_for_more(self) -> None:
        direction, start = scripted({(): {B: 0.9, A: 0.05}, (B,): {EOS: 0.9}, (A,): {EOS: 0.9}})
        with torch.inference_mode():
            found = search(direction, start, [Problem(0, 1, once=((B,),))], beam=4)[0][0]
        assert found.pieces == (A,)

    def test_is_not_finished_where_the_prefix_began_it(self) -> None:
        direction, start = scripted({(A, D): {C: 0.9, EOS: 0.05}, (A, D, C): {EOS: 0.9}})
        problem = Problem(0, 4, prefix=(A, D), once=((D, C),), open_end=True)
        with torch.inference_mode():
            found = search(direction, start, [problem], beam=4)[0][0]
        assert "dc" not in TOY.decode((*problem.prefix, *found.pieces)).split()


class TestCopies:
    """Words from memory during a search."""

    def search(self, reader: Offering, problem: Problem) -> Phrase:
        direction, start = scripted({(): {A: 0.9}, (A,): {EOS: 0.9}, (D, C): {EOS: 0.9}, (B,): {EOS: 0.9}})
        with torch.inference_mode():
            return search(direction, start, [problem], beam=4, reader=reader)[0][0].pieces

    def test_a_word_is_copied_whole(self) -> None:
        assert self.search(Offering(Copy(((D, C),), 0.95, 1)), Problem(0, 2)) == (D, C)

    def test_a_word_of_one_piece_shares_its_probability(self) -> None:
        assert self.search(Offering(Copy(((B,),), 0.95, 1)), Problem(0, 2)) == (B,)

    def test_an_unlikely_copy_changes_nothing(self) -> None:
        assert self.search(Offering(Copy(((D, C),), 1e-6, 1)), Problem(0, 2)) == (A,)

    def test_a_copy_does_not_follow_itself_however_it_is_spelled(self) -> None:
        twice = Offering(Copy(((B,), (D, C)), 0.95, 1, times=3))
        for prefix in ((B,), (D, C), (A, B), (A, D, C)):
            written = self.search(twice, Problem(0, 2, prefix=prefix))
            assert written[:1] != (B,) and written[:2] != (D, C)

    def test_a_copy_counts_in_all_its_spellings(self) -> None:
        spelled = Offering(Copy(((B,), (D, C)), 0.95, 1, times=1))
        assert self.search(spelled, Problem(0, 2)) == (B,)
        written = self.search(spelled, Problem(0, 2, prefix=(D, C, A)))
        assert B not in written and D not in written

    @pytest.mark.parametrize(
        ("usual", "likelier", "written"),
        [((B,), B, (B,)), ((B,), C, (C,)), ((D, C), B, (D, C)), ((D, C), C, (C,)), ((D, C), D, (D, C))],
    )
    def test_a_copy_is_spelled_as_the_network_would(
        self, usual: Phrase, likelier: int, written: Phrase
    ) -> None:
        spelled = Offering(Copy((usual, (C,)), 0.95, 1))
        ends = {way: {EOS: 0.9} for way in ((B,), (C,), (D, C))}
        direction, start = scripted({(): {A: 0.8, likelier: 0.1}, **ends})
        with torch.inference_mode():
            [[found]] = search(direction, start, [Problem(0, 2)], beam=4, reader=spelled)
        assert found.pieces == written

    def test_a_copy_is_not_a_second_time_of_what_stands_once(self) -> None:
        problem = Problem(0, 2, phrases=((D, C),), once=((D, C),))
        written = self.search(Offering(Copy(((D, C),), 0.95, 1)), problem)
        assert [written[i : i + 2] for i in range(len(written))].count((D, C)) == 1

    def test_a_copy_is_not_a_second_time_of_a_word_in_a_phrase_still_to_come(self) -> None:
        written = self.search(Offering(Copy(((D, C),), 0.95, 1)), Problem(0, 2, phrases=((B, D, C),)))
        assert [written[i : i + 2] for i in range(len(written))].count((D, C)) == 1

    def test_a_copy_does_not_follow_its_own_beginning(self) -> None:
        written = self.search(Offering(Copy(((B, D),), 0.95, 1)), Problem(0, 2, prefix=(B,)))
        assert written[:1] != (B,)

    def test_a_copy_does_not_follow_what_must_not_be_doubled(self) -> None:
        direction, start = scripted({(): {A: 0.9}, (A, D, C): {EOS: 0.9}})
        with torch.inference_mode():
            problem, reader = Problem(0, 4, once=((A,),)), Offering(Copy(((D, C),), 0.5, 1))
            written = search(direction, start, [problem], beam=4, reader=reader)[0][0].pieces
        assert "a" not in TOY.decode(written).split()


class AmongRivals(Offering):
    """One that leaves small words, marks and the rest of a word to the network, as the memory does."""

    def __init__(self, direction: Direction, copy: Copy) -> None:
        super().__init__(copy)
        self._direction = direction

    def rivals(self, last: torch.Tensor, offered: object) -> torch.Tensor:
        return self._direction.rivals(last)


LIST = word_vocabulary(["the", *(f"word{n}" for n in range(10)), "cat", "dog", "."])
THE, CAT, DOG = (LIST.encode(word)[0] for word in ("the", "cat", "dog"))


class TestRivals:
    """What a remembered word takes the place of: other words that say something."""

    def search(self, script: dict[Phrase, dict[int, float]]) -> Phrase:
        direction, start = scripted(script, LIST)
        reader = AmongRivals(direction, Copy(((CAT,),), 0.9, 1))
        with torch.inference_mode():
            return search(direction, start, [Problem(0, 3)], beam=4, reader=reader)[0][0].pieces

    def test_a_small_word_stands_before_a_copy_as_it_would_before_another_word(self) -> None:
        ends = {(THE, word): {EOS: 0.9} for word in (CAT, DOG)}
        assert self.search({(): {THE: 0.8, DOG: 0.1}, (THE,): {DOG: 0.9}, **ends}) == (THE, CAT)

    def test_a_copy_takes_the_place_of_another_word(self) -> None:
        ends = {(word,): {EOS: 0.9} for word in (CAT, DOG)}
        assert self.search({(): {DOG: 0.8, THE: 0.1}, **ends}) == (CAT,)

    def test_a_sentence_does_not_end_before_the_copy(self) -> None:
        ends = {(DOG, CAT): {EOS: 0.9}}
        assert self.search({(): {DOG: 0.9}, (DOG,): {EOS: 0.9}, **ends})[-1] == CAT

    def test_neither_the_rest_of_a_word_nor_a_small_one_is_a_rival(self) -> None:
        vocabulary = load("zh-en").target_vocabulary
        for direction in load("zh-en").directions.both:
            last = vocabulary.encode("house")[-1]
            rivals = direction.rivals(torch.tensor(last))
            assert all(rivals[vocabulary.encode(word)[-1]] for word in ("bicycle", "kitchen"))
            assert not any(rivals[vocabulary.encode(word)[0]] for word in ("the", "of", "her", "was"))
            assert all(rivals[vocabulary.encode(mark, attach=True)[0]] for mark in ".,?")
            assert rivals[direction.decoder.last_piece]
            suffix = vocabulary.encode("ed", attach=True)[0]
            assert rivals[suffix] == direction.backward  # backward it is how another word begins


SENTENCES = ["我们昨天在公园里看到了他。", "你为什么不告诉我真相？", "他说他明天会来，但是我不相信。"]
FIXES = [
    "saw",
    "truth",
    "He",
    "yesterday",
    "filmmakers",
    "in the park",
    ",",
    "don't",
    "Żółć",
    "龍",
    "tomorrow,",
]


@cache
def embedded() -> Translator:
    return load("zh-en")


@cache
def drafted(sentence: str) -> tuple[Sources, Phrase]:
    translator = embedded()
    sources = translator.read([translator.encode_source(sentence)])
    return sources, translator.best(sources, 4)[0][0]


def request_for(vocabulary: Vocabulary, pieces: Phrase, at: int, text: str) -> Request:
    """Word `at` of a sentence becomes `text`."""
    words = vocabulary.words(pieces)
    word = words[at % len(words)]
    rest = pieces[word.stop :]
    focus = tuple(vocabulary.encode(text))
    if rest and not vocabulary.boundary(focus[-1], rest[0]):
        rest = (*vocabulary.separated(rest[0]), *rest[1:])
    return Request(0, Part(pieces[: word.start]), focus, Part(rest))


def check_revision(vocabulary: Vocabulary, request: Request, revision: Revision) -> None:
    """In the result and in every pass each fix stands, in order and on word boundaries."""
    expected = [*request.left.phrases, request.focus, *request.right.phrases]
    for pieces, fixed in (revision.result, revision.forward, revision.backward):
        assert [pieces[a:b] for a, b in fixed] == expected
        for (_, stop), (start, _) in pairwise(fixed):
            assert stop <= start
        for span in fixed:
            for at in span:
                if 0 < at < len(pieces):
                    assert vocabulary.boundary(pieces[at - 1], pieces[at])


def again(vocabulary: Vocabulary, revision: Revision, at: int, text: str) -> Request:
    """A further fix on a revised sentence; what it covers of earlier fixes gives way."""
    fresh = request_for(vocabulary, revision.pieces, at, text)
    start = len(fresh.left.pieces)
    stop = len(revision.pieces) - len(fresh.right.pieces)
    left = tuple(span for span in revision.result.fixed if span[1] <= start)
    right = tuple((a - stop, b - stop) for a, b in revision.result.fixed if a >= stop)
    return replace(fresh, left=replace(fresh.left, fixed=left), right=replace(fresh.right, fixed=right))


@given(
    sentence=st.sampled_from(SENTENCES),
    fixes=st.lists(st.tuples(st.integers(0, 30), st.sampled_from(FIXES)), min_size=1, max_size=3),
    protocol=st.sampled_from(["replace-only", "unidirectional", "unidirectional-grid", "bidirectional"]),
    beam=st.sampled_from([1, 2, 4]),
)
@settings(max_examples=15)
def test_revisions_of_the_embedded_model_keep_every_fix(
    sentence: str, fixes: list[tuple[int, str]], protocol: str, beam: int
) -> None:
    translator = embedded()
    vocabulary = translator.target_vocabulary
    sources, pieces = drafted(sentence)
    searcher = Searcher(translator.directions, sources, Settings(protocol=protocol, beam=beam))  # type: ignore[arg-type]
    request = request_for(vocabulary, pieces, *fixes[0])
    for at, text in fixes[1:]:
        revision = searcher.revise([request])[0]
        check_revision(vocabulary, request, revision)
        request = again(vocabulary, revision, at, text)
    revision = searcher.revise([request])[0]
    check_revision(vocabulary, request, revision)
    assert vocabulary.decode(request.focus) in vocabulary.decode(revision.pieces)


@given(
    fixes=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["cat", "dogs", "the big", "xyz", ","])),
        min_size=1,
        max_size=4,
    ),
    protocol=st.sampled_from(["unidirectional", "unidirectional-grid", "bidirectional"]),
    seed=st.integers(0, 3),
    arch=st.sampled_from(["transformer", "rnnsearch"]),
    words=st.booleans(),
)
@settings(max_examples=40)
def test_revisions_of_random_networks_keep_every_fix(
    fixes: list[tuple[int, str]], protocol: str, seed: int, arch: str, words: bool
) -> None:
    translator = cached_translator(arch, seed, words)
    vocabulary = translator.target_vocabulary
    sources = translator.read([translator.encode_source("the cat sat")])
    pieces: Phrase = tuple(vocabulary.encode("the cat sat on the mat."))
    searcher = Searcher(translator.directions, sources, Settings(protocol=protocol, beam=2))  # type: ignore[arg-type]
    request = request_for(vocabulary, pieces, *fixes[0])
    for at, text in fixes[1:]:
        revision = searcher.revise([request])[0]
        check_revision(vocabulary, request, revision)
        request = again(vocabulary, revision, at, text)
    check_revision(vocabulary, request, searcher.revise([request])[0])


@cache
def cached_translator(arch: str, seed: int, words: bool) -> Translator:
    return tiny_translator(arch, seed, words)


class TestProtocols:
    """The paper's protocols on the embedded model."""

    def revise(self, **options: object) -> tuple[Request, Phrase]:
        translator = embedded()
        sources, pieces = drafted(SENTENCES[2])
        request = request_for(translator.target_vocabulary, pieces, 4, "yesterday")
        searcher = Searcher(translator.directions, sources, Settings(**options))  # type: ignore[arg-type]
        return request, searcher.revise([request])[0].pieces

    def test_replace_only_changes_nothing_else(self) -> None:
        request, pieces = self.revise(protocol="replace-only")
        assert pieces == (*request.left.pieces, *request.focus, *request.right.pieces)

    def test_unidirectional_keeps_what_stands_left(self) -> None:
        request, pieces = self.revise(protocol="unidirectional")
        assert pieces[: len(request.left.pieces) + len(request.focus)] == (
            *request.left.pieces,
            *request.focus,
        )

    def test_full_stability_keeps_every_word(self) -> None:
        request, pieces = self.revise(stability=1.0)
        kept, free = self.revise(stability=1.0)[1], self.revise(stability=0.0)[1]
        old = (*request.left.pieces, *request.focus, *request.right.pieces)
        assert sum(p in old for p in kept) >= sum(p in old for p in free)
        assert pieces == kept

    def test_unknown_protocols_and_stabilities_are_refused(self) -> None:
        with pytest.raises(InputError, match="unknown protocol 'sideways'"):
            Settings(protocol="sideways")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="between 0 and 1"):
            Settings(stability=1.5)

    def test_many_requests_are_answered_as_one_by_one(self) -> None:
        translator = embedded()
        vocabulary = translator.target_vocabulary
        ids = [translator.encode_source(sentence) for sentence in SENTENCES]
        sources = translator.read(ids)
        drafts = [pieces for pieces, _ in translator.best(sources, 4)]
        requests = [
            replace(request_for(vocabulary, pieces, row + 1, FIXES[row]), sentence=row)
            for row, pieces in enumerate(drafts)
        ]
        together = Searcher(translator.directions, sources, Settings()).revise(requests)
        for row, request in enumerate(requests):
            alone = Searcher(translator.directions, translator.read([ids[row]]), Settings())
            assert alone.revise([replace(request, sentence=0)])[0].pieces == together[row].pieces


def test_scores_of_whole_sentences_do_not_depend_on_company() -> None:
    translator = embedded()
    vocabulary = translator.target_vocabulary
    sources = translator.read([translator.encode_source(sentence) for sentence in SENTENCES])
    sentences = [
        tuple(vocabulary.encode(text)) for text in ("We saw him.", "Why didn't you tell me the truth?", "He")
    ]
    for direction in translator.directions.both:
        with torch.inference_mode():
            start = sources.start(direction)
            together = score(direction, start, [0, 1, 1], sentences)
            for row, (source, pieces) in enumerate(zip([0, 1, 1], sentences, strict=True)):
                alone = score(direction, start, [source], [pieces])
                torch.testing.assert_close(
                    alone.logp[0], together.logp[row, : len(pieces) + 1], atol=1e-4, rtol=0
                )
                assert float(together.logp[row, len(pieces) + 1 :].abs().sum()) == 0.0


def test_a_sentence_that_was_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = embedded()
    vocabulary = translator.target_vocabulary
    sources = translator.read([translator.encode_source(sentence) for sentence in SENTENCES])
    first, second, third = (tuple(vocabulary.encode(t)) for t in ("We saw him.", "Why didn't you?", "He"))
    direction, passes = translator.directions.backward, []
    advance = type(direction.decoder).advance

    def counted(*args: object, **options: object) -> object:
        passes.append(len(args[2]))  # type: ignore[arg-type]
        return advance(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(type(direction.decoder), "advance", counted)
    with torch.inference_mode():
        readings = Readings(translator.directions, sources)
        readings.read(direction, [0, 1], [first, second])
        asked = [1, 0, 0, 1], [second, first, third, third]
        found = readings.along(direction, *asked)
        assert passes == [2, 2]  # the third one alone is new, for either source
        readings.along(direction, *asked)
        assert passes == [2, 2]
        again = score(direction, sources.start(direction), *asked)
        torch.testing.assert_close(found.logp, again.logp, atol=1e-4, rtol=0)
        assert found.lengths == again.lengths
        for row, length in enumerate(found.lengths):
            for known, read in zip(found.features, again.features, strict=True):
                torch.testing.assert_close(
                    known[row, : length + 1], read[row, : length + 1], atol=1e-4, rtol=0
                )
        readings.clear()
        readings.along(direction, [0], [first])
        assert passes == [2, 2, 4, 1]


def test_a_network_is_known_by_its_contract_alone() -> None:
    """Nothing in search asks which network runs: a scripted decoder is as good as any."""
    direction, start = scripted({(): {A: 0.9}, (A,): {EOS: 0.9}})
    assert not isinstance(direction.decoder, Network)
    with torch.inference_mode():
        assert search(direction, start, [Problem(0, 3)], beam=2)[0][0].pieces == (A,)
