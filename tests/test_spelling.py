"""Remembered words are written as their place asks: with a capital, a space, whole, and once."""

from __future__ import annotations

import pytest
import torch

from camit.memory import RevisionMemory
from camit.memory.reader import MemoryReader
from camit.networks import Features
from camit.search.grid import search
from camit.search.problem import Copy, Problem
from camit.search.rules import fitting_spellings, occurrences
from camit.search.scoring import follow, score
from tests.memories import chinese, eager, reader_of, remembered, translate


@torch.inference_mode()
def test_a_word_that_was_copied_is_not_copied_again_with_another_first_letter() -> None:
    memory = eager(RevisionMemory(chinese()))
    memory.add("记得", "remember")
    memory.add("记得", "Remember")
    source = "我记得那座教堂。"
    readers, sources = memory.readers(source), chinese().read([chinese().encode_source(source)])
    assert readers is not None
    forward = chinese().directions.forward
    problem = Problem(0, sources.limit(0))
    [[written]] = search(forward, sources.forward, [problem], beam=4, reader=readers.forward)
    said = chinese().target_vocabulary.decode(written.pieces).lower()
    assert said.count("remember") == 1


@pytest.mark.parametrize(
    ("term", "text", "source", "written"),
    [
        ("蓝鲸", "blue whale", "蓝鲸！", "Blue whale"),
        ("蓝鲸", "blue whale", "我看见了蓝鲸。", "blue whale"),
        ("灯塔", "beacon", "灯塔！", "Beacon"),
        ("灯塔", "beacon", "“灯塔和船！”", '"Beacon'),
        ("灯塔", "beacon", "我们看见了灯塔。", "beacon"),
        ("座头鲸", "humpbacks", "座头鲸和海豚。", "Humpbacks"),
        ("AI", "artificial intelligence", "他喜欢AI。", "artificial intelligence"),
        ("苹果手机", "iPhone", "苹果手机很贵。", "iPhone"),
        ("岛", "island", "长岛在纽约。", "Long Island"),
    ],
)
def test_a_term_has_a_capital_where_it_is_the_first_word(
    term: str, text: str, source: str, written: str
) -> None:
    memory = RevisionMemory(chinese())
    memory.add(term, text)
    assert written in translate(chinese(), source, memory)


@pytest.mark.parametrize(
    ("sentence", "fixed", "spellings"),
    [
        ('He said, "fish swim."', "fish", ["fish", "Fish"]),
        ("Fish swim.", "Fish", ["Fish", "fish"]),
        ('He said, "Fish swim."', "Fish", ["Fish", "fish"]),
        ("I know Bill well.", "Bill", ["Bill"]),
        ("NASA knows.", "NASA", ["NASA"]),
        ("He has (mitochondria).", "mitochondria", ["mitochondria", "Mitochondria"]),
    ],
)
def test_a_word_is_remembered_for_other_places_too(sentence: str, fixed: str, spellings: list[str]) -> None:
    # "Fish" may open a sentence or be a name; a capital in the middle of one is no accident.
    zh_en = chinese()
    vocabulary = zh_en.target_vocabulary
    pieces = tuple(vocabulary.encode(sentence))
    [span] = [(w.start, w.stop) for w in vocabulary.words(pieces) if w.text == fixed]
    memory = eager(RevisionMemory(zh_en))
    source = "鱼会游泳。"
    [entry] = memory.write(source, zh_en.encode_source(source), pieces, [span], 1)
    readers = memory.readers(source)
    assert readers is not None
    with torch.inference_mode():
        sources = zh_en.read([zh_en.encode_source(source)])
        features = follow(zh_en.directions.forward, sources.forward, [()])
        [[copy]] = reader_of(readers).read(features)
    assert copy.spellings == tuple(tuple(vocabulary.encode(text)) for text in spellings)
    assert copy.attached == tuple(tuple(vocabulary.encode(text, attach=True)) for text in spellings)
    assert entry.text == fixed


@pytest.mark.parametrize(
    ("written", "follows"),
    [
        ("", "blue whale"),
        ("I saw a", "blue whale"),
        ("I saw a (", "blue whale"),
        ('He said, "', "blue whale"),
        ("It costs $", "blue whale"),
        ('He said "no"', "blue whale"),
        ("A Blue Whale is a whale, a", "blue whale"),
        ("I saw a blue", None),
        ("I saw a Blue", None),
        ('I saw "|Blue', None),
        ("I saw a blue whale", None),
        ("The (|Blue whale|) is a", None),
        ("The blue whaler is a", "blue whale"),
    ],
)
def test_a_copy_goes_on_with_what_is_written(written: str, follows: str | None) -> None:
    vocabulary = chinese().target_vocabulary
    direction = chinese().directions.forward
    texts = ("blue whale", "Blue whale")
    spellings = tuple(tuple(vocabulary.encode(text)) for text in texts)
    attached = tuple(tuple(vocabulary.encode(text, attach=True)) for text in texts)
    parts = enumerate(written.split("|"))  # behind a bar without a space
    pieces = tuple(piece for n, part in parts for piece in vocabulary.encode(part, attach=n > 0))
    fitting = fitting_spellings(direction, Copy(spellings, 0.9, 1, 1, attached), pieces)
    glued = written.endswith(("(", ', "', "$"))
    if follows is None:
        assert fitting == ()
    else:
        assert fitting == (attached if glued else spellings)
        text = vocabulary.decode((*pieces, *fitting[0]))
        assert text == (written + follows if glued else f"{written} {follows}".strip())


@pytest.mark.parametrize(("sentence", "fixed"), [("It costs 2,000 yuan.", "000"), ("Come at 10:30.", "30")])
def test_a_part_of_a_number_stays_one(sentence: str, fixed: str) -> None:
    memory = eager(RevisionMemory(chinese()))
    source = "要两千块钱。"
    [entry] = remembered(memory, source, (sentence, fixed))
    memory.pin(entry.id)  # common words are read only if somebody insists
    readers = memory.readers(source)
    assert readers is not None
    with torch.inference_mode():
        sources = chinese().read([chinese().encode_source(source)])
        [[copy]] = reader_of(readers).read(follow(chinese().directions.forward, sources.forward, [()]))
    assert copy.spellings == (entry.pieces,) and copy.attached == ()


def test_the_likeliest_entry_says_how_its_word_is_spelled() -> None:
    memory = eager(RevisionMemory(chinese()))
    source = "鱼会游泳。"
    old, new = remembered(memory, source, ("Fish swim.", "Fish"), ("All fish swim.", "fish"))
    readers = memory.readers(source)
    assert readers is not None
    reader = reader_of(readers)
    assert isinstance(reader, MemoryReader)
    vocabulary = chinese().target_vocabulary
    with torch.inference_mode():
        sources = chinese().read([chinese().encode_source(source)])
        features = follow(chinese().directions.forward, sources.forward, [tuple(vocabulary.encode("All"))])
        for at in (0, 1):
            here = Features(*(x[:, at : at + 1] for x in features))
            [[copy]] = reader.read(here)
            best = reader.shares(here)[0, 0].argmax()
            assert copy.entry == (old, new)[best].id
            assert copy.spellings[0] == (old, new)[best].pieces and len(copy.spellings) == 2


@pytest.mark.parametrize("backward", [False, True])
def test_behind_an_opening_mark_the_attached_word_is_the_copy(backward: bool) -> None:
    memory = eager(RevisionMemory(chinese()))
    source = "他吃（鱼）。"
    remembered(memory, source, ("He eats fish.", "fish"))
    readers = memory.readers(source)
    assert readers is not None
    direction = chinese().directions.backward if backward else chinese().directions.forward
    vocabulary = chinese().target_vocabulary
    for before, attach, copied in (("He eats (", True, 1), ("He eats (", False, 0), ("He eats", False, 1)):
        pieces = (*vocabulary.encode(before), *vocabulary.encode("fish", attach=attach))
        with torch.inference_mode():
            sources = chinese().read([chinese().encode_source(source)])
            scored = score(direction, sources.start(direction), [0], [pieces])
            reader = reader_of(readers, backward)
            mixed = reader.mix(
                direction,
                reader.shares(scored.features),
                scored.features,
                torch.full_like(scored.logp, -9.0),
                [direction.order(pieces)],
            )
        assert len(mixed.copied[0]) == copied


def test_a_word_counts_only_where_it_is_one() -> None:
    vocabulary = chinese().target_vocabulary
    fish = (tuple(vocabulary.encode("fish")), tuple(vocabulary.encode("fish", attach=True)))
    for direction in chinese().directions.both:
        ordered = tuple(map(direction.order, fish))
        for text, times in (
            ("goldfish", 0),
            ("fish", 1),
            ('"fish" and fish', 2),
            ("fishing for starfish", 0),
        ):
            pieces = direction.order(tuple(vocabulary.encode(text)))
            assert occurrences(direction, pieces, ordered) == times
