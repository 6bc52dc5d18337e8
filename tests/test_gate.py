"""theta and r: how much is copied, from which entry, and what a remembered word competes with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch

import camit
from camit.errors import CheckpointError
from camit.memory import RevisionMemory
from camit.memory.gate import FILE, Gates, Keys, evidence
from camit.memory.matching import Match
from camit.memory.reader import EvidenceReader, PaperReader
from camit.memory.spelling import Spellings
from camit.networks import Features
from camit.search.grid import search
from camit.search.problem import Problem
from camit.search.scoring import follow, score
from tests.helpers import tiny_translator
from tests.memories import Sentence, chinese, eager, reader_of, remember, remembered, translate


@torch.inference_mode()
def test_a_first_translation_is_worth_what_reading_it_again_says() -> None:
    # A remembered word may be the beginning of the one that is written, house of houses: then it is no copy.
    memory = RevisionMemory(chinese())
    memory.add("房子", "house")
    memory.add("苹果", "apple")
    source = "我喜欢大房子和苹果。"
    readers, sources = memory.readers(source), chinese().read([chinese().encode_source(source)])
    assert readers is not None
    [(pieces, value)] = chinese().best(sources, 4, readers)
    directions = chinese().directions
    ahead = score(directions.forward, sources.forward, [0], [pieces])
    behind = score(directions.backward, sources.backward, [0], [pieces])
    shares = readers.shares(ahead.features, behind.features, [pieces])
    total = float(
        readers.forward.mix(
            chinese().directions.forward, shares[0], ahead.features, ahead.logp, [pieces]
        ).logp.sum()
    )
    total += float(
        readers.backward.mix(
            chinese().directions.backward, shares[1], behind.features, behind.logp, [pieces[::-1]]
        ).logp.sum()
    )
    assert value == pytest.approx(total / (2 * (len(pieces) + 1)), abs=1e-4)


@torch.inference_mode()
def test_both_decoders_copy_a_word_of_a_known_sentence_with_the_mean_of_what_they_give_it() -> None:
    memory = RevisionMemory(chinese())
    memory.add("苹果", "apple")
    memory.add("大房子", "big house")
    source = "我喜欢大房子和苹果。"
    vocabulary, directions = chinese().target_vocabulary, chinese().directions
    sentences = [tuple(vocabulary.encode(t)) for t in ("I like big house and apple.", "Apples", "I like")]
    sources = chinese().read([chinese().encode_source(source)])
    start = torch.zeros(len(sentences), dtype=torch.long)
    ahead = follow(directions.forward, sources.forward.select(start), sentences)
    behind = follow(directions.backward, sources.backward.select(start), sentences)
    readers = memory.readers(source)
    assert readers is not None
    alone = readers.forward.shares(ahead), readers.backward.shares(behind)
    forward, backward = readers.shares(ahead, behind, sentences)
    pieces = sentences[0]
    words = vocabulary.words(pieces)
    for entry, (first, last) in ((0, (5, 5)), (1, (2, 3))):  # a phrase is begun at either end
        at = 0, words[first].start, entry
        mirrored = 0, len(pieces) - words[last].stop, entry
        assert forward[at] == backward[mirrored]
        assert float(forward[at]) == pytest.approx(float(alone[0][at] + alone[1][mirrored]) / 2)
        assert alone[0][at] != alone[1][mirrored]
    assert torch.equal(forward[0, len(pieces)], alone[0][0, len(pieces)])  # the end is no word
    last = vocabulary.words(sentences[2])[-1]
    assert torch.equal(forward[2, last.start, 1:], alone[0][2, last.start, 1:])  # nor room for two

    paper = RevisionMemory(chinese(), preset="paper", active_from=1)
    paper.add("苹果", "apple")
    readers = paper.readers(source)
    assert readers is not None
    shares = readers.shares(ahead, behind, sentences)
    assert torch.equal(shares[0], readers.forward.shares(ahead))
    assert torch.equal(shares[1], readers.backward.shares(behind))


@pytest.mark.parametrize("phrase", ["a very good morning to all", "good morning all", "good"])
def test_a_phrase_may_be_longer_than_the_sentence(phrase: str) -> None:
    session = camit.Session(chinese(), learning=False)
    session.memory.add("早上好", phrase)
    draft = session.open("早上好。")
    draft.replace(0, "Hi")
    assert draft.text.startswith("Hi")


def test_a_decoder_that_has_read_nothing_yet_does_not_talk_the_other_into_a_copy() -> None:
    memory, source = RevisionMemory(chinese()), "猫在火车站。"
    memory.add("猫", "Zyxq")
    weights = memory.weights(Sentence(chinese(), source, "Cats are at the train station."))
    assert weights.theta[0] > 0.3 and weights.theta[-1] == 0.0
    assert "Zyxq" in translate(chinese(), source, memory)
    session = camit.Session(chinese(), learning=False, beam=2)
    session.memory.add("猫", "Zyxq")
    assert not session.open("猫昨天没有回家。").text.endswith("Zyxq")


def test_where_nothing_may_be_copied_no_entry_has_a_part() -> None:
    memory, source = RevisionMemory(chinese()), "我住在纽约。"
    memory.add("纽约", "New York")
    memory.add("纽约", "York")
    other = tuple(chinese().target_vocabulary.encode("I live in the metropolis."))
    for sentence in range(2):  # refused twice
        memory.write(source, chinese().encode_source(source), other, [], sentence)
    weights = memory.weights(Sentence(chinese(), source, "I live in New York."))
    assert weights.theta[-2] == 0.0 and weights.r[-2] == (0.0, 0.0)


def test_a_phrase_and_its_words_are_not_copied_with_more_than_certainty() -> None:
    memory, source = RevisionMemory(chinese()), "罗伯特·雷德福来了。"
    draft = Sentence(chinese(), source, "Robert Redford is here.")
    words = chinese().target_vocabulary.words(draft.pieces)
    spans = [(words[0].start, words[1].stop), *((word.start, word.stop) for word in words[:2])]
    ids = chinese().encode_source(source)
    assert len(memory.write(source, ids, draft.pieces, spans, 1)) == 3
    for _ in range(3):  # and each is right again
        memory.write(source, ids, draft.pieces, [], 2)
    theta = memory.weights(draft).theta
    assert 0.9 < max(theta) <= 1.0 + 1e-6


@pytest.mark.parametrize("backward", [False, True])
def test_shares_are_theta_times_r_of_the_equations(backward: bool) -> None:
    translator = tiny_translator(seed=2)
    direction = translator.directions.backward if backward else translator.directions.forward
    gates = Gates(16, 16)
    gate = gates.of(direction)
    with torch.no_grad():
        gate.bias.fill_(-3.0)
        gate.state.normal_()
        gate.context.normal_()
        written = gates.paper(direction)
        written.state.normal_()
        written.context.normal_()
        features = Features(
            torch.randn(2, 3, 16),
            torch.randn(2, 3, 16),
            torch.rand(2, 3, 4),
            torch.zeros(2, 3, 0),
            torch.zeros(2, 3, dtype=torch.long),
        )
        keys = Keys(torch.randn(5, 16), torch.randn(5, 16))
        match = Match(torch.rand(4, 5), torch.rand(5), torch.rand(5), (1,) * 5)
        spelled, ids = [Spellings(((9,),))] * 5, range(5)
        reader = EvidenceReader(direction, gate, keys, spelled, ids, match=match, cut=0.0)
        e = evidence(features, keys, match) @ gate.evidence
        unit = torch.nn.functional.normalize
        opened = unit(features.s, dim=2) @ gate.state + unit(features.c, dim=2) @ gate.context + gate.bias
        theta = torch.sigmoid(opened + torch.logsumexp(e, dim=2))
        assert torch.allclose(
            reader.shares(features), theta.unsqueeze(2) * torch.softmax(e, dim=2), atol=1e-5
        )
        paper = PaperReader(direction, written, keys, spelled, ids, cut=0.0)
        s, c = features.s, features.c
        theta = torch.sigmoid(s @ written.state + c @ written.context + written.bias)
        products = (s @ keys.s.t()).abs() / 4, (c @ keys.c.t()).abs() / 4  # over sqrt(16)
        r = torch.softmax(written.similarity[0] * products[0] + written.similarity[1] * products[1], dim=2)
        assert torch.allclose(paper.shares(features), theta.unsqueeze(2) * r, atol=1e-5)


@torch.inference_mode()
def test_of_little_evidence_only_words_outside_a_word_list_are_offered() -> None:
    # Where the network can only say UNK, a faint memory is better than none.
    translator = tiny_translator(words=True)
    vocabulary = translator.target_vocabulary
    memory = RevisionMemory(translator)
    outside, listed = memory.add("猫", "zyzzyva"), memory.add("猫", "cat")
    assert outside.pieces[0] >= len(vocabulary) > listed.pieces[0]
    sources = translator.read([translator.encode_source("猫")])
    features = follow(translator.directions.forward, sources.forward, [listed.pieces])
    first_step = Features(*(x[:, :1] for x in features))
    for bias, offered in ((-28.0, {outside.pieces}), (20.0, {outside.pieces, listed.pieces}), (-40.0, set())):
        memory._gates.forward_gate.bias.fill_(bias)
        memory.rekey()
        readers = memory.readers("猫")
        assert readers is not None
        reader = reader_of(readers)
        if bias == -28.0:
            assert float(reader.shares(first_step).min()) > 1e-4
            assert float(reader.shares(first_step).max()) < memory.settings.cut
        assert {copy.spellings[0] for copy in reader.read(first_step)[0]} == offered


def test_while_nothing_changes_the_memory_gives_the_same_answer_made_once() -> None:
    translator = tiny_translator()
    memory = RevisionMemory(translator)
    memory.add("猫", "cat")

    def other_entries() -> None:
        memory.add("猫", "dog")

    def other_weights() -> None:
        weight = translator.directions.backward.decoder.adaptable[0]
        weight.data = weight.data * 2.0

    def other_settings() -> None:
        memory.settings = replace(memory.settings, cut=0.2)

    for change in (other_entries, lambda: memory.pin(1), other_weights, other_settings, memory.rekey):
        answer = memory.readers("猫")
        assert answer is not None and memory.readers("猫") is answer
        change()
        assert memory.readers("猫") is not answer
    assert memory.readers("猫") is not memory.readers("猫 猫")


def test_the_probability_of_a_word_held_by_several_entries_is_summed() -> None:
    translator = tiny_translator()
    memory = eager(RevisionMemory(translator))
    first, other = memory.add("猫", "cat"), memory.add("猫", "dog")
    second = msgspec.structs.replace(first, id=3)
    memory.put_back(second)
    readers = memory.readers("猫")
    assert readers is not None
    reader = reader_of(readers)
    sources = translator.read([translator.encode_source("猫")])
    with torch.inference_mode():
        features = follow(translator.directions.forward, sources.forward, [first.pieces])
        first_step = Features(*(x[:, :1] for x in features))
        shares = reader.shares(first_step)[0, 0]
        (offered,) = reader.read(first_step)
    by_word = {copy.spellings[0]: copy for copy in offered}
    assert by_word[first.pieces].probability == pytest.approx(float(shares[0] + shares[2]), rel=1e-4)
    assert by_word[first.pieces].entry in (first.id, second.id)
    assert by_word[other.pieces].entry == other.id
    assert sum(copy.probability for copy in offered) == pytest.approx(float(shares.sum()), rel=1e-4)


def test_along_a_known_sentence_a_copied_word_has_the_mixed_probability() -> None:
    translator = tiny_translator(seed=4)
    memory = eager(RevisionMemory(translator))
    entry = memory.add("猫", "zyxwv")
    readers = memory.readers("猫")
    assert readers is not None
    pieces = (*translator.target_vocabulary.encode("the"), *entry.pieces)
    sources = translator.read([translator.encode_source("猫")])
    with torch.inference_mode():
        scored = score(translator.directions.forward, sources.forward, [0], [pieces])
        mixed = reader_of(readers).mix(
            translator.directions.forward,
            reader_of(readers).shares(scored.features),
            scored.features,
            scored.logp,
            [pieces],
        )
        there = Features(*(x[:, 1:2] for x in scored.features))
        direction = translator.directions.forward
        rivals = (direction.predict(there).exp() * direction.rivals(there.last)).sum()
    assert mixed.copied == [[(1, len(pieces), entry.id)]]
    theta = float(mixed.theta[0, 1])
    alone = float(scored.logp[0, 1 : len(pieces)].sum().exp())
    expected = (1 - theta) * alone + theta * float(rivals)
    assert float(mixed.logp[0, 1].exp()) == pytest.approx(expected, rel=1e-3)
    assert mixed.logp[0, 2 : len(pieces)].tolist() == [0.0] * (len(pieces) - 2)


def test_a_search_and_a_reading_agree_also_where_sentences_are_recalled() -> None:
    with camit.Session(chinese()) as session:
        session.confirm(session.open("邻居在厨房里唱了一首歌。"))
        session.memory.add("邻居", "guest")
        source = "邻居在厨房里。"
        readers = session.memory.readers(source)
        assert readers is not None
        translator = session.translator
        with torch.inference_mode():
            sources = translator.read([translator.encode_source(source)])
            direction = sources.bind(translator.directions).forward
            assert direction.recall is not None
            [found] = search(
                direction, sources.forward, [Problem(0, 30)], beam=4, best=2, reader=readers.forward
            )
            for written in found:
                scored = score(direction, sources.forward, [0], [written.pieces])
                shares = readers.forward.shares(scored.features)
                mixed = readers.forward.mix(direction, shares, scored.features, scored.logp, [written.pieces])
                assert mixed.copied[0]
                assert float(mixed.logp.sum()) == pytest.approx(written.logp, abs=1e-3)


def test_the_papers_memory_takes_from_small_words_too() -> None:
    source, sentence = "邻居在公园里。", "The neighbor is in the park."
    logps = []
    for preset in ("paper", "default"):
        memory = RevisionMemory(chinese(), preset=preset, active_from=1)  # type: ignore[arg-type]
        for gate in (memory._gates.forward_gate, memory._gates.forward_paper):
            gate.bias.fill_(20.0)
        remembered(memory, source, ("The guest is in the park.", "guest"))
        readers = memory.readers(source)
        assert readers is not None
        pieces = tuple(chinese().target_vocabulary.encode(sentence))
        direction = chinese().directions.forward
        with torch.inference_mode():
            sources = chinese().read([chinese().encode_source(source)])
            scored = score(direction, sources.forward, [0], [pieces])
            shares = readers.forward.shares(scored.features)
            mixed = readers.forward.mix(direction, shares, scored.features, scored.logp, [pieces])
        logps.append(
            [round(float(new - old), 3) for new, old in zip(mixed.logp[0], scored.logp[0], strict=True)]
        )
    paper, default = logps
    assert paper[0] < -1.0 and paper[1] < -1.0  # "The" and "neighbor"
    assert default[0] == 0.0 and default[1] < -1.0


def test_a_word_that_begins_like_a_small_one_is_a_rival() -> None:
    vocabulary = chinese().target_vocabulary
    theology, the = (tuple(vocabulary.encode(text)) for text in ("theology", "the cat"))
    assert theology[0] == the[0]
    direction = chinese().directions.forward
    assert direction.rival_stands(theology, 0) and not direction.rival_stands(theology, 1)
    assert not direction.rival_stands(the, 0) and direction.rival_stands(the, 1)
    assert direction.rival_stands(the, len(the))  # the end


def test_weights_tell_for_each_word_how_much_is_copied_and_from_where() -> None:
    memory = RevisionMemory(chinese())
    memory.add("北京", "Beijing")
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel")
    draft = Sentence(chinese(), "他们在教堂里结婚。", "They got married in the chapel.")
    weights = memory.weights(draft)
    words = [word.text for word in chinese().target_vocabulary.words(draft.pieces)]
    assert len(weights.theta) == len(weights.r) == len(words)
    at = max(range(len(words)), key=lambda i: weights.theta[i])
    assert words[at] == "chapel"
    assert weights.theta[at] > 0.5
    assert weights.r[at] == pytest.approx((0.0, 1.0))
    assert weights.entries == tuple(entry.id for entry in memory.entries)
    silent = memory.weights(Sentence(chinese(), "今天的会议推迟了。", "No."))
    assert set(silent.theta) == {0.0}


def test_every_word_of_a_copied_phrase_is_marked_and_the_copy_counts_once() -> None:
    with camit.Session(chinese(), learning=False) as session:
        phrase, word = session.memory.add("面馆", "noodle shop"), session.memory.add("灯塔", "lighthouse")
        draft = session.open("我们在面馆等你。")
        copied = [token.text for token in draft.tokens if token.copied_from == phrase.id]
        assert copied == ["noodle", "shop"]
        session.confirm(draft)
        assert (session.memory[phrase.id].copies, session.memory[word.id].copies) == (1, 0)


def test_weights_say_of_a_draft_what_its_tokens_say() -> None:
    with camit.Session(chinese(), learning=False) as session:
        for source, text in (("面馆", "noodle shop"), ("面馆", "restaurant"), ("灯塔", "lighthouse")):
            session.memory.add(source, text)
        spoken = 0
        for source in ("灯塔旁边有一家面馆。", "我们在面馆等你。", "她把钥匙忘在了桌子上。"):
            draft = session.open(source)
            weights = session.memory.weights(draft)
            assert weights.theta == pytest.approx([token.theta for token in draft.tokens], abs=1e-6)
            for token, theta, r in zip(draft.tokens, weights.theta, weights.r, strict=True):
                assert sum(r) == pytest.approx(1.0 if theta else 0.0)
                assert token.copied_from is None or r[weights.entries.index(token.copied_from)] > 0.0
                spoken += theta > 0.0
        assert spoken


def test_a_term_added_by_hand_is_trusted_from_the_start_and_no_more_for_sentences_that_agree() -> None:
    memory = RevisionMemory(chinese())
    memory.add("渡船", "ferry")
    draft = Sentence(chinese(), "他说他会坐渡船回来。", "He said he'd come back on the ferry.")

    def theta() -> float:
        return max(memory.weights(draft).theta)

    def confirm(source: str, target: str) -> None:
        sentence = Sentence(chinese(), source, target)
        memory.write(source, sentence.ids, sentence.pieces, [], 0)

    start = theta()
    for _ in range(3):
        confirm("最后一班渡船已经开走了。", "The last ferry has already left.")
    assert theta() == pytest.approx(start)
    for _ in range(4):
        confirm("渡船来了。", "Here comes the boat.")
    assert theta() < start


def test_gates_are_stored_with_the_checkpoint_and_bad_ones_are_refused(tmp_path: Path) -> None:
    gates = Gates(8, 4)
    with torch.no_grad():
        gates.forward_gate.bias.fill_(-1.5)
    gates.save(tmp_path)
    assert float(Gates.load(tmp_path, 8, 4).forward_gate.bias) == -1.5
    with pytest.raises(CheckpointError, match=FILE):
        Gates.load(tmp_path, 9, 4)
