"""Random people: what they type, where they click, and random networks for them to meet."""

from __future__ import annotations

import io
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from random import Random

import sentencepiece
import torch

from camit.checkpoint import Checkpoint
from camit.networks import NetworkConfig, build
from camit.session.draft import Draft
from camit.soak.oracle import Action
from camit.text import PieceVocabulary, Vocabulary, WordVocabulary
from camit.translator import Translator

SOURCES = (
    "我们昨天在公园里看到了他和他的老板。",
    "你好，老板。",
    "这部电影的导演不喜欢记者。",
    "我不知道他为什么没有来，也许他生病了。",
    "请把门关上！",
    "她说：“明天见。”",
    "科学家们在海底发现了一种新的鱼。",
    "如果你有时间，我们可以一起去看那部关于鲸鱼的电影，然后吃晚饭。",
    "三点半，火车准时到站。",
    "好。",
)
# Sentences for a long document, and how they are to be translated: hardly two of a thousand are the same.
_WHEN = (("昨天", "yesterday"), ("今天早上", "this morning"), ("上个星期", "last week"),
         ("去年夏天", "last summer"), ("每天晚上", "every evening"), ("很久以前", "a long time ago"),
         ("下雨的时候", "in the rain"), ("", ""))  # fmt: skip
_WHO = (("他", "he"), ("我们的老师", "our teacher"), ("那位老人", "the old man"), ("我妹妹", "my sister"),
        ("新来的经理", "the new manager"), ("两个学生", "two students"), ("邻居", "the neighbour"),
        ("大家", "everybody"))  # fmt: skip
_WHERE = (("在公园里", "in the park"), ("在火车站", "at the railway station"), ("在办公室", "in the office"),
          ("在海边", "by the sea"), ("在图书馆", "in the library"), ("在厨房里", "in the kitchen"),
          ("在医院门口", "outside the hospital"), ("", ""))  # fmt: skip
_WHAT = (("看到了一只猫", "saw a cat"), ("买了三本书", "bought three books"),
         ("忘了带钥匙", "forgot the keys"), ("唱了一首歌", "sang a song"),
         ("等了两个小时", "waited for two hours"),
         ("谈论那部电影", "talked about that film"), ("修好了自行车", "repaired the bicycle"),
         ("写了一封信", "wrote a letter"), ("找不到自己的手机", "could not find the phone"),
         ("遇见了一个老朋友", "met an old friend"))  # fmt: skip
TOY_SOURCES = (
    "the cat sat on the mat.",
    "the dog ran, the cat sat!",
    "a catalogue of dogs and cats (mats and logs).",
    "the cat's dog isn't red; it is a big red dog.",
    "not now, not then, not ever.",
    "why?",
)
# Common words, phrases, punctuation, names in pieces, letters outside the vocabulary, and what looks odd.
TYPED = (
    "the", "met", "filmmakers", "boss", "Yesterday", "his old friend", "a blue whale", "isn't",
    "well-known", "2,5", ",", ".", "?!", "…", "%", "(maybe)", "\u201cyes\u201d", "\u2019s", "-", "--", "C++",
    "e.g.", "@home", "Zürich", "Σωκράτης", "鲸鱼", "🐋", "🐋🐋 ok", "naïve", "a--b", "xyzzyqq", "I", "to to",
    "...", "'", "_", "O'Neill's",
)  # fmt: skip


def sentence(rng: Random) -> tuple[str, str]:
    """One of some thousand sentences, and its translation."""
    when, who, where, what = map(rng.choice, (_WHEN, _WHO, _WHERE, _WHAT))
    said = " ".join(part for _, part in (who, what, where, when) if part)
    return "".join(part for part, _ in (when, who, where, what)) + "。", said[0].upper() + said[1:] + "."


def correction(draft: Draft, wanted: Sequence[str]) -> Action | None:
    """What somebody does next who wants these words: the first thing that is not as it should be."""
    shown = [token.text for token in draft.tokens]
    for kind, start, stop, at, end in SequenceMatcher(None, shown, wanted, autojunk=False).get_opcodes():
        if kind != "equal":
            return Action(kind, start, stop, " ".join(wanted[at:end]).replace(" .", "."))
    return None


def toy(rng: Random) -> Translator:
    """A translator with tiny random weights over a tiny vocabulary, of pieces or of words."""
    vocabulary = rng.choice((_pieces, _words))()
    torch.manual_seed(rng.randrange(1 << 30))
    config = NetworkConfig(
        arch=rng.choice(("transformer", "rnnsearch")),
        source_size=len(vocabulary),
        target_size=len(vocabulary),
        d=16,
        heads=2,
        ff=24,
        encoder_layers=1,
        decoder_layers=1,
    )
    tiny = build(config).eval()
    with torch.no_grad():
        for parameter in tiny.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3.0)  # far from flat, so that searches differ
    return Translator(Checkpoint("toy", tiny, vocabulary, vocabulary))


@cache
def _pieces() -> PieceVocabulary:
    return few_pieces(TOY_SOURCES, 330, "en")


def few_pieces(sentences: Sequence[str], size: int, language: str) -> PieceVocabulary:
    """Sentencepiece trained on a few lines: words of one and of several pieces, and bytes for the rest."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences] * 20),
        model_writer=model,
        vocab_size=size,
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return PieceVocabulary(model.getvalue(), language)


def _words() -> WordVocabulary:
    """A new one each time, since it takes up the words it meets."""
    return WordVocabulary.build(TOY_SOURCES, 40, "en")


def typed(rng: Random, vocabulary: Vocabulary, draft: Draft) -> str:
    """Something to type: from the list, a word of the sentence once more, or any word of the vocabulary."""
    if rng.random() < 0.6:
        return rng.choice(TYPED)
    if rng.random() < 0.4:
        return rng.choice(draft.tokens).text
    bodies = vocabulary.bodies
    return next(body for _ in range(10_000) if (body := rng.choice(bodies)).strip())


def action(rng: Random, vocabulary: Vocabulary, draft: Draft) -> Action:
    """An operation that is possible now."""
    tokens = draft.tokens
    n = len(tokens)
    start = rng.randrange(n)
    stop = min(n, start + 1 + (rng.randrange(4) if rng.random() < 0.3 else 0))
    whole = stop - start == n
    locked = any(token.locked for token in tokens[start:stop])
    kinds = ["replace"] * 4 + ["insert"] * 2 + ["keep"]
    kinds += ["delete"] * (not whole) * 2 + ["blank"] * (not whole and not locked) + ["release"] * locked
    kinds += ["undo"] * draft.can_undo + ["redo"] * (3 * draft.can_redo)
    kind = rng.choice(kinds)
    if kind == "insert":
        at = rng.choice([0, n, rng.randrange(n + 1)])
        return Action(kind, at, at, typed(rng, vocabulary, draft))
    return Action(kind, start, stop, typed(rng, vocabulary, draft) if kind == "replace" else "")
