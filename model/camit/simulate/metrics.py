"""What a simulation is judged by: quality after each revision, and the effort it took.

Quality is sacrebleu's corpus BLEU, chrF and TER. Effort follows the usual definitions of interactive
translation (Barrachina et al. 2009): WSR, words typed per reference word; MAR, mouse actions per reference
character, one for each place the user goes to and one to accept the sentence; KSMR, keystrokes and mouse
actions per reference character. As in a session, what is typed at a place ends with a key of its own, and a
deletion is that key alone. A sentence that is not right after the last revision is finished by hand, and that
effort counts too: so protocols of different success compare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

import msgspec
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from camit.errors import InputError
from camit.simulate.rounds import Round
from camit.simulate.screen import text, words
from camit.simulate.users import Block, Judge, Reference, blocks, distance
from camit.text import UNK, UNSPACED_LANGUAGES, Vocabulary, says_something, screen_words

SAMPLES = 1000  # of the paired bootstrap


class TurnRecord(msgspec.Struct, frozen=True):
    """One revision, as the results keep it."""

    kind: str
    position: int
    typed: str
    proposals: int
    gain: float
    changed: int  # words that differ between the screens before and after
    seconds: float | None


class Effort(msgspec.Struct, frozen=True):
    """What a person's hands did."""

    words: int = 0
    keystrokes: int = 0
    mouse: int = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.words + other.words, self.keystrokes + other.keystrokes, self.mouse + other.mouse)


class End(msgspec.Struct, frozen=True):
    """What was left to do by hand if the revisions ended here, by the reference that is nearest then."""

    rest: Effort
    words: int  # of that reference
    characters: int
    told: tuple[str, ...]  # all content words typed so far and by hand, as the judge compares
    wanted: tuple[str, ...]  # the content words of that reference


class Sentence(msgspec.Struct, frozen=True):
    """One sentence of a simulation: everything the figures are computed from."""

    line: int
    document: str
    references: tuple[str, ...]
    outputs: tuple[str, ...]  # after 0, 1, ... revisions
    turns: tuple[TurnRecord, ...]
    success: int | None  # revisions until the sentence was right
    ends: tuple[End, ...]  # after 0, 1, ... revisions
    unk: tuple[int, ...]  # unknown words on the screen after 0, 1, ... revisions
    source_words: tuple[str, ...]  # these are content words too
    draft_words: tuple[str, ...]
    stands_for: dict[str, tuple[str, ...]]  # of content words of the references, those of the source

    @property
    def effort(self) -> Effort:
        """Of all revisions, of finishing by hand, and of accepting the sentence."""
        return sum((turn_effort(turn.typed) for turn in self.turns), self.ends[-1].rest + Effort(mouse=1))

    def cut(self, revisions: int) -> Sentence:
        """The sentence as it would have been with fewer revisions."""
        return msgspec.structs.replace(
            self,
            outputs=self.outputs[: revisions + 1],
            turns=self.turns[:revisions],
            success=self.success if self.success is not None and self.success <= revisions else None,
            ends=self.ends[: revisions + 1],
            unk=self.unk[: revisions + 1],
        )


class Lexicon:
    """Which words carry a meaning of their own: what is not among the commonest pieces of a vocabulary.

    "It" and "the" come and go with every other way to put a sentence; "wedding" is right or wrong.
    """

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self._source, self._target = source, target

    def source_words(self, text: str) -> tuple[str, ...]:
        words = (word for word, _ in screen_words(text, self._source.language))
        return tuple(word for word in words if _carries(word, self._source))

    def target_words(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Of words as the judge compares them, maybe in small letters."""
        return tuple(
            key for key in keys if _carries(key, self._target) and _carries(_capital(key), self._target)
        )


def _carries(word: str, vocabulary: Vocabulary) -> bool:
    return says_something(word) and not vocabulary.is_common(vocabulary.encode(word))


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


# Of a source and a translation: for each word of the latter the source words it stands for.
Align = Callable[[str, str], Sequence[tuple[str, ...]]]


def record(played: Round, judge: Judge, revisions: int, lexicon: Lexicon, align: Align) -> Sentence:
    """A round as a line of the results."""
    screens = [played.after(k) for k in range(revisions + 1)]
    right = [judge.accepts(words(screen), played.references) for screen in screens]
    return Sentence(
        line=played.line.line,
        document=played.line.document,
        references=played.line.references,
        outputs=tuple(map(text, screens)),
        turns=tuple(
            TurnRecord(
                turn.edit.kind,
                turn.edit.start,
                turn.edit.text,
                turn.proposals,
                round(turn.gain, 4),
                distance(words(turn.before), words(turn.after)),
                turn.seconds,
            )
            for turn in played.turns
        ),
        success=right.index(True) if any(right) else None,
        ends=tuple(_end(played, judge, k, lexicon) for k in range(revisions + 1)),
        unk=tuple(sum(piece == UNK for piece in screen.pieces) for screen in screens),
        source_words=lexicon.source_words(played.line.source),
        draft_words=lexicon.target_words(judge.keys(words(played.draft))),
        stands_for=_stands_for(played, judge, lexicon, align),
    )


def _stands_for(played: Round, judge: Judge, lexicon: Lexicon, align: Align) -> dict[str, tuple[str, ...]]:
    """What a word stands for, wherever it stands in a reference."""
    source = played.line.source
    content = lexicon.source_words(source)
    found: dict[str, set[str]] = {}
    for reference in played.references:
        keys = judge.keys(reference.words)
        carrying = set(lexicon.target_words(keys))
        for key, stood in zip(keys, align(source, reference.text), strict=True):
            if key in carrying:
                found.setdefault(key, set()).update(stood)
    return {
        key: tuple(word for word in dict.fromkeys(content) if word in stood) for key, stood in found.items()
    }


def _end(played: Round, judge: Judge, k: int, lexicon: Lexicon) -> End:
    final = words(played.after(k))
    nearest = judge.nearest(final, played.references)
    left = blocks(judge.keys(final), judge.keys(nearest.words))
    typed = [turn.edit.text for turn in played.turns[:k] if turn.edit.text]
    typed += [word for block in left for word in nearest.words[block.first : block.last]]
    return End(
        hand_effort(left, nearest),
        len(nearest.words),
        len(nearest.text),
        told=lexicon.target_words(judge.keys(typed)),
        wanted=lexicon.target_words(judge.keys(nearest.words)),
    )


def turn_effort(typed: str) -> Effort:
    """One click, the word typed, and the key that ends it."""
    return Effort(words=1 if typed else 0, keystrokes=len(typed) + 1, mouse=1)


def hand_effort(left: Sequence[Block], reference: Reference) -> Effort:
    """Finishing without help: at each place a click, the right words typed over the wrong ones with the
    spaces between them, and a key to end it; where there are none to type, it deletes."""
    effort = Effort()
    for block in left:
        missing = reference.words[block.first : block.last]
        effort += Effort(len(missing), len(reference.between(block.first, block.last)) + 1, 1)
    return effort


class Quality(msgspec.Struct, frozen=True):
    """After k revisions."""

    k: int
    bleu: float
    chrf: float
    ter: float
    success_rate: float
    unk: int


class Seconds(msgspec.Struct, frozen=True):
    """Of one revision, decoded alone on one thread."""

    p50: float
    p95: float
    measured: int


class Repetition(msgspec.Struct, frozen=True):
    """Words that the user typed and that came back."""

    repeated_mistakes: int  # drafts in which such a word is missing
    one_shot_recall: float | None  # the share of such words that are right the first time they come back


class Figures(msgspec.Struct, frozen=True):
    """Everything a simulation is judged by; the keys of `--json`."""

    sentences: int
    revisions: tuple[Quality, ...]
    revisions_per_sentence: float
    revisions_to_success: float | None  # of the sentences that became right
    success_rate: float
    wsr: float
    mar: float
    ksmr: float
    changed_tokens_per_turn: float
    proposals_per_turn: float
    unk: int  # in the final outputs
    repeated_mistakes: int
    one_shot_recall: float | None
    same_source: Repetition  # the same two, of words that come back for the same source word
    seconds: Seconds | None
    signatures: dict[str, str]


def figures(sentences: Sequence[Sentence], judge: Judge) -> Figures:
    """The figures of a whole run."""
    if not sentences:
        raise InputError("there are no sentences to compute figures of.")
    metrics = quality_metrics(judge)
    references = columns(s.references for s in sentences)
    quality = []
    for k in range(len(sentences[0].outputs)):
        outputs = [sentence.outputs[k] for sentence in sentences]
        scores = {
            name: round(float(metric.corpus_score(outputs, references).score), 4)
            for name, metric in metrics.items()
        }
        right = sum(sentence.success is not None and sentence.success <= k for sentence in sentences)
        unk = sum(sentence.unk[k] for sentence in sentences)
        quality.append(Quality(k=k, success_rate=right / len(sentences), unk=unk, **scores))
    turns = [turn for sentence in sentences for turn in sentence.turns]
    succeeded = [sentence.success for sentence in sentences if sentence.success is not None]
    total = sum((sentence.effort for sentence in sentences), Effort())
    characters = sum(sentence.ends[-1].characters for sentence in sentences)
    repeated = repetition(sentences, same_sentence)
    return Figures(
        sentences=len(sentences),
        revisions=tuple(quality),
        revisions_per_sentence=len(turns) / len(sentences),
        revisions_to_success=fmean(succeeded) if succeeded else None,
        success_rate=len(succeeded) / len(sentences),
        wsr=total.words / sum(sentence.ends[-1].words for sentence in sentences),
        mar=total.mouse / characters,
        ksmr=(total.keystrokes + total.mouse) / characters,
        changed_tokens_per_turn=fmean(turn.changed for turn in turns) if turns else 0.0,
        proposals_per_turn=fmean(turn.proposals for turn in turns) if turns else 0.0,
        unk=quality[-1].unk,
        repeated_mistakes=repeated.repeated_mistakes,
        one_shot_recall=repeated.one_shot_recall,
        same_source=repetition(sentences, same_word),
        seconds=_seconds([turn.seconds for turn in turns if turn.seconds is not None]),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def quality_metrics(judge: Judge) -> dict[str, Metric]:
    lower, unspaced = judge.lowercase, judge.language in UNSPACED_LANGUAGES
    return {
        "bleu": judge.bleu(),
        "chrf": CHRF(lowercase=lower),
        "ter": TER(case_sensitive=not lower, normalized=unspaced, asian_support=unspaced),
    }


def columns(references: Iterable[Sequence[str]]) -> list[list[str]]:
    """References as sacrebleu takes them: first all first ones, then all second ones."""
    return [list(column) for column in zip(*references, strict=True)]


def later_half(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The second half of each document, where there is something to have learned from."""
    found: list[Sentence] = []
    for _, group in groupby(sentences, key=lambda sentence: sentence.document):
        document = list(group)
        found += document[len(document) // 2 :]
    return found


def repetition(sentences: Sequence[Sentence], ground: Callable[[Sentence, str], Iterable[str]]) -> Repetition:
    """Repeated mistakes, and one-shot recall, over documents in order.

    A word comes back when the user typed it in an earlier sentence of the document, the reference asks for
    it, and the two sources share a word of its `ground`; without the latter, "eat" for another word of the
    source would count as the same mistake. Each draft without it repeats the mistake. Recall looks at the
    first time it comes back only: the share of words that are right then. (After Simianer et al. 2019; later
    times would count a word that was learned again and again.)
    """
    mistakes = hits = chances = 0
    for _, document in groupby(sentences, key=lambda sentence: sentence.document):
        told: defaultdict[str, set[str]] = defaultdict(set)  # with the grounds it was typed on
        back: set[str] = set()
        for sentence in document:
            end = sentence.ends[-1]
            for word in set(end.wanted) & told.keys():
                if told[word].isdisjoint(ground(sentence, word)):
                    continue
                right = word in sentence.draft_words
                mistakes += not right
                if word not in back:
                    back.add(word)
                    chances += 1
                    hits += right
            for word in end.told:
                told[word].update(ground(sentence, word))
    return Repetition(mistakes, hits / chances if chances else None)


def same_sentence(sentence: Sentence, word: str) -> Iterable[str]:
    """The wide ground: all content words of the source. Long sentences share one by chance."""
    return sentence.source_words


def same_word(sentence: Sentence, word: str) -> Iterable[str]:
    """The narrow ground: which of them the word stands for, as the model that was not taught yet aligns the
    references. Where a source is cut into other words this time, it is another word."""
    return sentence.stands_for.get(word, ())


def _seconds(values: Sequence[float]) -> Seconds | None:
    if not values:
        return None
    ordered = sorted(values)
    return Seconds(_quantile(ordered, 0.5), _quantile(ordered, 0.95), len(ordered))


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between neighbours, as numpy does it."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass(frozen=True)
class Comparison:
    """Is one system better than another? By paired bootstrap resampling over sentences (Koehn 2004).

    p is sacrebleu's, which is about what a one-sided test gives: double it for a two-sided one.
    """

    k: int
    difference: float  # BLEU of the first minus BLEU of the second
    p: float


def compare(
    ours: Sequence[Sentence], theirs: Sequence[Sentence], judge: Judge, k: int, samples: int = SAMPLES
) -> Comparison:
    """Two runs over the same lines after k revisions."""
    references = columns(s.references for s in ours)
    same = references == columns(s.references for s in theirs)
    if not same or [s.line for s in ours] != [s.line for s in theirs]:
        raise InputError(
            "the two runs are not over the same lines; simulate both with the same corpus and limit."
        )
    at: Callable[[Sentence], str] = lambda s: s.outputs[min(k, len(s.outputs) - 1)]  # noqa: E731
    systems: list[tuple[str, Sequence[str]]] = [
        ("theirs", [at(s) for s in theirs]),
        ("ours", [at(s) for s in ours]),
    ]
    if systems[0][1] == systems[1][1]:
        return Comparison(k, 0.0, 1.0)  # sacrebleu's resampling finds equals significantly different
    test = PairedTest(systems, {"BLEU": judge.bleu()}, references, test_type="bs", n_samples=samples)
    _, scores = test()
    base, mine = scores["BLEU"]
    assert isinstance(base, Result) and isinstance(mine, Result) and mine.p_value is not None
    return Comparison(k, float(mine.score - base.score), float(mine.p_value))
