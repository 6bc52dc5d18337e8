"""What the memory offers is put into a draft where both decoders together would rather have it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from camit.memory import RevisionMemory
from camit.networks import Features
from camit.search.direction import Direction
from camit.search.exchange import exchanged
from camit.search.problem import Copy, Mixed, Phrase, Readers, Span
from camit.search.scoring import follow
from camit.translator import Translator
from tests.helpers import tiny_translator
from tests.memories import Sentence, chinese, remember, translate


class Overlooked:
    """A memory whose words every search has missed: on offer only where a whole sentence is read. There
    `worth` is added for each of them that stands, or the whole log-probability is `known`."""

    def __init__(
        self,
        translator: Translator,
        *words: str,
        worth: float,
        known: float | None = None,
        looks: bool = True,
    ) -> None:
        self._vocabulary = translator.target_vocabulary
        self._words, self._worth, self._known = words, worth, known
        self.looks, self.backward = looks, False

    def read(self, features: Features) -> list[list[Copy]]:
        return [[] for _ in features.s]

    def offers(self, features: Features, pieces: Phrase) -> list[tuple[Span, Copy]]:
        copies = [Copy((tuple(self._vocabulary.encode(word)),), 0.5, 1) for word in self._words]
        return [((w.start, w.stop), copy) for w in self._vocabulary.words(pieces) for copy in copies]

    def shares(self, features: Features) -> torch.Tensor:
        return torch.zeros(*features.s.shape[:2], 0)

    def mix(
        self,
        direction: Direction,
        shares: torch.Tensor,
        features: Features,
        logp: torch.Tensor,
        sentences: Sequence[Phrase],
    ) -> Mixed:
        mixed = logp.clone()
        for row, pieces in enumerate(sentences):
            text = self._vocabulary.decode(pieces[::-1] if self.backward else pieces)
            found = sum(word in text.split() for word in self._words)
            mixed[row, 0] += self._worth * found
            if found and self._known is not None:
                mixed[row] = 0.0
                mixed[row, 0] = self._known
        return Mixed(mixed, torch.zeros_like(logp), [[] for _ in sentences])


def helped(translator: Translator, source: str, forward: Overlooked, backward: Overlooked) -> str:
    """A first draft with these readers."""
    backward.backward = True
    sources = translator.read([translator.encode_source(source)])
    [(pieces, _)] = translator.best(sources, 4, Readers(forward, backward))
    return translator.target_vocabulary.decode(pieces)


@pytest.mark.parametrize(
    ("forward", "backward", "taken"),
    [(90.0, 90.0, True), (90.0, -30.0, True), (-90.0, -90.0, False), (30.0, -90.0, False)],
)
def test_a_remembered_word_the_search_has_lost_is_put_in_if_the_sentence_is_likelier_with_it(
    forward: float, backward: float, taken: bool
) -> None:
    translator = tiny_translator(seed=3)
    plain = translate(translator, "大猫", None)
    readers = [Overlooked(translator, "zebra", worth=worth) for worth in (forward, backward)]
    text = helped(translator, "大猫", *readers)
    assert "zebra" not in plain
    assert text.split().count("zebra") == taken
    assert taken or text == plain


@pytest.mark.parametrize(("difference", "taken"), [(-0.1, False), (0.1, True)])
def test_a_word_of_many_pieces_is_not_put_in_for_having_many(difference: float, taken: bool) -> None:
    source = "今天天气真好。"
    sources = chinese().read([chinese().encode_source(source)])
    [(pieces, mean)] = chinese().best(sources, 4)
    known = mean * (len(pieces) + 1) + difference
    readers = [Overlooked(chinese(), "Xyzzyqux", worth=0.0, known=known) for _ in range(2)]
    assert ("Xyzzyqux" in helped(chinese(), source, *readers)) == taken


def test_at_most_three_words_are_put_in_and_none_for_the_papers_memory() -> None:
    source, words = "我们明天早上在火车站见面。", ("zebra", "gnu", "yak", "ibex", "okapi")
    for looks, most in ((True, 3), (False, 0)):
        readers = [Overlooked(chinese(), *words, worth=90.0, looks=looks) for _ in range(2)]
        assert len(set(helped(chinese(), source, *readers).split()) & set(words)) == most


def exchanges(draft: str, *terms: str) -> list[str]:
    """What a draft becomes with a remembered term in place of one of its words, wherever that is tried."""
    translator = chinese()
    vocabulary, forward = translator.target_vocabulary, translator.directions.forward
    pieces = tuple(vocabulary.encode(draft))

    def ways(attach: bool) -> tuple[Phrase, ...]:
        return tuple(tuple(vocabulary.encode(term, attach=attach)) for term in terms)

    copy = Copy(ways(False), 0.5, 1, attached=ways(True))
    offers = [((word.start, word.stop), copy) for word in vocabulary.words(pieces)]
    with torch.inference_mode():
        sources = translator.read([translator.encode_source("我喜欢苹果。")])
        features = follow(forward, sources.forward, [pieces])
        found = exchanged(forward, pieces, offers, forward.decoder.logits(features.s[0]))
    return [vocabulary.decode(sentence) for sentence in found]


def test_words_are_exchanged_but_marks_are_not() -> None:
    assert exchanges("I saw it.", "beacon", "Beacon") == ["Beacon saw it.", "I beacon it.", "I saw beacon."]
    assert exchanges('He said, "Now."', "beacon", "Beacon")[-1] == 'He said, "Beacon."'


@pytest.mark.parametrize(
    ("draft", "terms"),
    [
        ("I like apple.", ("apple", "Apple")),
        ("The world health organization came.", ("world health organization",)),
    ],
)
def test_a_term_that_stands_in_a_draft_is_exchanged_for_nothing(draft: str, terms: tuple[str, ...]) -> None:
    assert exchanges(draft, *terms) == []


def test_a_plural_is_not_exchanged_for_its_singular() -> None:
    assert exchanges("I like apples.", "apple", "Apple") == ["Apple like apples."]


def test_an_exchange_does_not_double_the_end_of_a_phrase() -> None:
    assert "The blue whale whale is here." not in exchanges("The big whale is here.", "blue whale")
    assert "The big blue whale is here." in exchanges("The big whale is here.", "blue whale")


@pytest.mark.parametrize(
    ("draft", "term", "doubled"),
    [
        ("It is in silicon valley now.", "Silicon Valley", ("silicon silicon", "valley valley")),
        ("I saw the president.", "The President", ("the the", "president president")),
    ],
)
def test_an_exchange_doubles_nothing_in_another_case(draft: str, term: str, doubled: tuple[str, ...]) -> None:
    found = [text.lower() for text in exchanges(draft, term)]
    assert not [text for text in found for words in doubled if words in text]


def test_a_draft_keeps_the_small_letter_of_a_glossary_term() -> None:
    memory = RevisionMemory(chinese())
    memory.add("苹果", "apple")
    for source in ("我喜欢苹果。", "他昨天买了一个苹果，很高兴。"):
        text = translate(chinese(), source, memory)
        assert " apple" in text and "Apple" not in text


def test_what_is_on_offer_along_a_sentence_has_its_place_there() -> None:
    """As both decoders see it, in the order of the text."""
    memory = RevisionMemory(chinese())
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel")
    draft = Sentence(chinese(), "那座教堂很老。", "That church is very old.")
    readers = memory.readers(draft.source)
    assert readers is not None
    for direction, reader in (
        (chinese().directions.forward, readers.forward),
        (chinese().directions.backward, readers.backward),
    ):
        with torch.inference_mode():
            sources = chinese().read([draft.ids])
            features = follow(direction, sources.start(direction), [draft.pieces])
            offered = {
                span: [chinese().target_vocabulary.decode(way) for way in copy.spellings]
                for span, copy in reader.offers(features, draft.pieces)
            }
        assert "chapel" in offered[draft.spans("church")[0]]
