"""The revision memory: every fix of a session, to be copied when its context comes again (the paper's
"Revision Memory").

An entry is a key, the decoding state s' and context vector c' where the fixed word begins, and a value, the
word itself: a phrase of pieces that is copied whole or not at all. Keys exist for both decoders. They
follow from the entry and the weights of the network, so they are made when they are read and stored nowhere;
what lessons do not move of them is kept at hand.
`gate.py` and `reader.py` decide how much is copied; this module writes, forgets, and finds what is read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import torch
from torch import Tensor

from camit.checkpoint import check_writable, write_atomically
from camit.errors import InputError
from camit.memory.alignment import READ_STEP, read_along
from camit.memory.entries import MemoryEntry, MemorySnapshot, checked
from camit.memory.fixes import anchored_fixes
from camit.memory.gate import Gates, Keys, Trust
from camit.memory.glossary import read_glossary
from camit.memory.matching import Characters, Match, match_anchors, meant
from camit.memory.reader import AgreedReaders, EvidenceReader, MemoryReader, PaperReader
from camit.memory.spelling import Spellings, spellings_of
from camit.networks import Features
from camit.search.direction import Direction
from camit.search.problem import Phrase, Readers, Span
from camit.search.scoring import follow, score
from camit.text import SPECIALS, negates, normalise, says_something, screen_words
from camit.translator import MAX_SOURCE_PIECES, Translator, copied_words

Preset = Literal["default", "paper"]
MOST_AGREED = 3  # later sentences that count for an entry
# Entries that are read for one sentence, so that it takes no longer: with the same word, and in all. What is
# pinned or was added by hand comes on top.
READ_OF_A_WORD, READ = 8, 48
# Endings of forms of a word, and what stands there in all of them.
ENDINGS = (("ing", ""), ("ies", "i"), ("ied", "i"), ("es", ""), ("ed", ""), ("s", ""), ("e", ""), ("y", "i"))


@dataclass(frozen=True)
class MemorySettings:
    """How the memory behaves; the comments say what was measured. What has none is a guess that did well."""

    size: int = 2000  # room for all that is wrong in some 170 sentences of a talk; the paper's 100, in 9
    active_from: int = 1  # so many entries before anything is read; the paper waits for more than 20
    cut: float = 0.05  # theta * r below this is not offered
    # `trust`, `by_hand` and `experience` are added to the evidence for an entry, by the attention on its
    # source words. As numbers added wherever attention is they put words in the wrong places: half of them
    # added so, 10 of 70 drafts with seven terms got worse and 3 better, and on 887 lines of talks drafts
    # gained 0.13 BLEU by the memory alone instead of 0.30. `trust` is for entries whose source words are
    # `rare`, `experience` for each later sentence that agreed with an entry (three times at most); if more
    # did not, that is taken off, whatever attention says. On the same talks, with learning, 211 of 386
    # mistakes were made again with 2.0 and 3.0 (176 if half of them counts everywhere), 190 with 3.5 and 4.5.
    trust: float = 3.5
    rare: float = 0.75
    experience: float = 4.5
    # Instead of `trust` for entries without a sentence, whose keys know no context; half as much each time
    # one is refused. When a `trust` of 2.0 came on top, of 24 sentences with 9 terms 24 had the term with
    # 7.5, 21 with 4.5; with 10.5 some lost other words. This is 7.5 and that.
    by_hand: float = 9.5
    paper: bool = False  # the paper's theta and r, which look at nothing but s and c


PRESETS: dict[str, MemorySettings] = {
    "default": MemorySettings(),
    "paper": MemorySettings(size=100, active_from=21, cut=0.001, paper=True),
}


@dataclass(frozen=True)
class MemoryWeights:
    """What the memory says along a sentence: theta per token, r per token and entry."""

    theta: tuple[float, ...]
    r: tuple[tuple[float, ...], ...]
    entries: tuple[int, ...]


class Known(Protocol):
    """A source and the pieces of its translation, as a draft has them."""

    @property
    def source(self) -> str: ...

    @property
    def pieces(self) -> Phrase: ...


class RevisionMemory:
    """Remembers fixes and offers them to both decoders.

    >>> memory = RevisionMemory(translator)  # doctest: +SKIP
    >>> memory.add("蓝鲸", "blue whale").text  # doctest: +SKIP
    'blue whale'
    """

    def __init__(
        self,
        translator: Translator,
        *,
        preset: Preset = "default",
        size: int | None = None,
        active_from: int | None = None,
    ) -> None:
        if preset not in PRESETS:
            raise InputError(f"unknown memory preset {preset!r}; choose one of {', '.join(PRESETS)}.")
        settings = PRESETS[preset]
        if size is not None:
            settings = replace(settings, size=size)
        if active_from is not None:
            settings = replace(settings, active_from=active_from)
        if settings.size < 1:
            raise InputError(f"a memory needs room for at least 1 entry, not {size!r}.")
        self.enabled = True
        self.settings = settings
        self._translator = translator
        self._entries: tuple[MemoryEntry, ...] = ()
        self._contexts: dict[int, dict[bool, _Context]] = {}  # by entry and direction.backward
        self._next_id = 1
        self._gates = _gates(translator)
        self._said: _Said | None = None

    @property
    def entries(self) -> tuple[MemoryEntry, ...]:
        """Oldest first."""
        return self._entries

    def __getitem__(self, entry: int) -> MemoryEntry:
        return self._entries[self._index(entry)]

    # Writing

    def write(
        self,
        source: str,
        source_ids: Sequence[int],
        target_pieces: Phrase,
        spans: Sequence[Span],
        sentence: int | None,
        known: Collection[Span] = (),
    ) -> tuple[MemoryEntry, ...]:
        """Remember the fixes of a confirmed sentence; `spans` are slices of its pieces, and `known` are words
        that the machine's own draft had: typed anew as part of a phrase, they are no fixes. `fixes.py` says
        what is remembered of a phrase."""
        vocabulary = self._translator.target_vocabulary
        worth = [
            (start, stop)
            for start, stop in dict.fromkeys(spans)
            if says_something(vocabulary.decode(target_pieces[start:stop]))
        ]
        if not worth:
            self._compare(source, target_pieces)
            return ()
        target = vocabulary.decode(target_pieces)
        read = read_along(self._translator, [(source_ids, target_pieces)])
        self._compare(source, target_pieces)
        anchored = anchored_fixes(self._translator, source, source_ids, target_pieces, worth, known, read)
        now = time.time()
        new = []
        for (start, stop), anchor in anchored.items():
            new.append(
                MemoryEntry(
                    id=self._next_id,
                    text=vocabulary.decode(target_pieces[start:stop]),
                    source=source,
                    target=target,
                    sentence=sentence,
                    start=start,
                    stop=stop,
                    pieces=tuple(target_pieces[start:stop]),
                    target_pieces=tuple(target_pieces),
                    anchor=anchor,
                    created=now,
                )
            )
            self._next_id += 1
        self._contexts |= {e.id: _pick(read, 0, e) for e in new}
        self._append(*new)
        return tuple(e for e in new if e in self._entries)

    def add(self, source: str, text: str) -> MemoryEntry:
        """Remember by hand that `source` (a term or a sentence) is called `text`. Who says it once more gets
        the same entry, and what refused it since is forgiven.

        >>> memory.add("比拉特", "Billat")  # doctest: +SKIP
        """
        source, text, pieces = self._term(source, text)
        self._check_room()
        return self._add([(source, text, pieces)])[0]

    def remove(self, entry: int) -> None:
        """Forget an entry by its id."""
        at = self._index(entry)
        self._keep([i for i in range(len(self._entries)) if i != at])

    def put_back(self, entry: MemoryEntry) -> None:
        """Remember an entry that was removed, exactly as it was, in its place among the others."""
        try:  # nothing may get in that could not be stored and come back
            msgspec.json.decode(msgspec.json.encode(entry), type=MemoryEntry)
        except (msgspec.MsgspecError, TypeError) as error:
            raise InputError(f"this is no entry of a memory ({error}); give one it had.") from error
        if any(known.id == entry.id for known in self._entries):
            raise InputError(f"the memory holds entry {entry.id} already.")
        if entry.id < 1:
            raise InputError(f"entries count from 1, so {entry.id} was never one.")
        vocabulary = self._translator.target_vocabulary
        extra: dict[int, str] = {}
        with suppress(IndexError):  # what is no piece at all is refused with the entry
            extra |= {i: vocabulary.piece(i) for i in entry.target_pieces if i >= len(vocabulary)}
        entry = checked(entry, extra, self._translator)
        self._check_room()
        self._append(entry)
        self._entries = tuple(sorted(self._entries, key=lambda e: e.id))
        self._next_id = max(self._next_id, entry.id + 1)

    def pin(self, entry: int) -> None:
        """Never forget this entry to make room."""
        self._change(entry, pinned=True)

    def unpin(self, entry: int) -> None:
        self._change(entry, pinned=False)

    def count_copies(self, copied: Iterable[int | None]) -> None:
        """Note what was copied into a translation; `copied` are the entries of its words, or None.

        A phrase is copied as a whole and counts once. An entry that is gone meanwhile is passed over.
        """
        words = Counter(copied)
        for entry in self._entries:
            if words[entry.id]:
                length = len(self._translator.target_vocabulary.words(entry.pieces))
                self._change(entry.id, copies=entry.copies + max(1, words[entry.id] // length))

    def clear(self) -> None:
        """Forget everything."""
        self._entries, self._contexts = (), {}

    # Glossaries

    def import_tsv(self, path: str | Path) -> tuple[MemoryEntry, ...]:
        """Rows `source<TAB>translation` of a glossary become entries; all rows are checked before any is
        added."""
        rows = read_glossary(Path(path))
        # What was learned, but refused more often than not, is meant all the same: now it is said by hand.
        said = (e for e in self._entries if e.refused <= (0 if e.sentence is None else e.agreed))
        known = {(e.term, e.text) for e in said}
        new = {row: line for row, line in rows.items() if row not in known}
        room = self.settings.size - sum(e.pinned or e.sentence is None for e in self._entries)
        if len(new) > room:
            raise InputError(
                f"{path} has {len(new)} rows that are new; the memory has room for {room} beside what is "
                "pinned or was added by hand. Shorten the file, or remove entries first."
            )
        terms = []
        for (source, text), line in new.items():
            try:
                terms.append(self._term(source, text))
            except InputError as error:
                raise InputError(f"{path}, line {line}: {error}") from error
        self._check_room()
        return self._add(terms)

    def export_tsv(self, path: str | Path) -> None:
        """Write all entries as `source<TAB>translation`, a file `import_tsv` reads again."""
        lines = dict.fromkeys(f"{e.term}\t{e.text}\n" for e in self._entries)
        check_writable(Path(path))
        write_atomically(Path(path), "".join(lines).encode())

    # Reading

    def readers(self, source: str | None = None) -> Readers | None:
        """What a search of this source reads; None when the memory has nothing to say about it."""
        if not self.enabled or not self._entries or len(self._entries) < self.settings.active_from:
            return None
        asked = _Asked(source, self.settings, self._entries, self._worn())
        if self._said is None or not self._said.asked.is_like(asked):
            self._said = _Said(asked, self._readers(source))
        return self._said.readers

    def _readers(self, source: str | None) -> Readers | None:
        chosen: Sequence[int] = range(len(self._entries))
        match: Match | None = None
        paper = self.settings.paper
        if source is not None and not paper:
            chosen, match = self._match(source)
            if not chosen:
                return None
        keys = self._keys_of([self._entries[i] for i in chosen])
        spellings = [self._spellings(self._entries[i]) for i in chosen]
        ids = [self._entries[i].id for i in chosen]
        gates, cut = self._gates, self.settings.cut
        trust = None if match is None else self._trust(chosen, match)
        language = self._translator.source_language
        negating = [e.id for e in map(self._entries.__getitem__, chosen) if _says_negation(e, language)]

        def reader(d: Direction) -> MemoryReader:
            mine = keys[d.backward]
            if paper:
                return PaperReader(d, gates.paper(d), mine, spellings, ids, cut=cut)
            gate = gates.of(d)
            return EvidenceReader(
                d, gate, mine, spellings, ids, match=match, cut=cut, trust=trust, negating=negating
            )

        forward, backward = map(reader, self._translator.directions.both)
        return (Readers if paper else AgreedReaders)(forward, backward)

    def _spellings(self, e: MemoryEntry) -> Spellings:
        vocabulary, by_hand = self._translator.target_vocabulary, e.sentence is None
        return spellings_of(vocabulary, e.text, e.target_pieces, e.start, e.stop, by_hand)

    def weights(self, draft: Known) -> MemoryWeights:
        """theta per token, r per token and entry along a draft, as the memory is read now.

        theta is what the draft's tokens have, as long as the memory is the one they were written with. Where
        it is 0, nothing may be copied, or a small word stands that the memory leaves alone; r is 0 too.
        """
        entries = tuple(e.id for e in self._entries)
        words = self._translator.target_vocabulary.words(draft.pieces)
        readers = self.readers(draft.source)
        if readers is None or not words:
            return MemoryWeights((0.0,) * len(words), ((0.0,) * len(entries),) * len(words), entries)
        reader = readers.forward
        assert isinstance(reader, MemoryReader)
        with torch.inference_mode():
            sources = self._translator.read([self._translator.encode_source(draft.source)])
            directions = sources.bind(self._translator.directions)
            scored = score(directions.forward, sources.forward, [0], [draft.pieces])
            behind = follow(directions.backward, sources.backward, [draft.pieces])
            shares, _ = readers.shares(scored.features, behind, [draft.pieces])
            mixed = reader.mix(directions.forward, shares, scored.features, scored.logp, [draft.pieces])
        places = [at for at, _ in copied_words(words, mixed.copied[0])]
        theta = tuple(mixed.theta[0, places].tolist())
        r = []
        for at, copied in zip(places, theta, strict=True):
            parts = reader.r(shares[0, at], draft.pieces[:at]) if copied else ()
            read = dict(zip(reader.ids, parts, strict=False))
            r.append(tuple(read.get(entry, 0.0) for entry in entries))
        return MemoryWeights(theta, tuple(r), entries)

    def keys(self, way: Literal["forward", "backward"] = "forward") -> Keys:
        """s' and c' of all entries for one decoder, as the weights have them now, in the order of `entries`.

        >>> memory.keys().s.shape  # doctest: +SKIP
        torch.Size([12, 256])
        """
        if not self._entries:
            gate = self._gates.forward_gate
            return Keys(torch.zeros(0, len(gate.state)), torch.zeros(0, len(gate.context)))
        return self._keys_of(self._entries)[way == "backward"]

    def rekey(self) -> None:
        """The network is another one, also in the parts that lessons do not move: sentences are read anew."""
        self._contexts, self._said = {}, None

    # Exact state

    def snapshot(self) -> MemorySnapshot:
        """The whole state; cheap, since nothing in it is ever changed in place."""
        return MemorySnapshot(self._entries, self._next_id)

    def restore(self, snapshot: MemorySnapshot) -> None:
        """Back to exactly this state, whatever weights the network has now."""
        places = {entry.id: entry.place for entry in snapshot.entries}
        same = {entry.id for entry in self._entries if places.get(entry.id) == entry.place}
        self._contexts = {entry: known for entry, known in self._contexts.items() if entry in same}
        self._entries = snapshot.entries
        self._next_id = snapshot.next_id

    # Inside

    def _worn(self) -> tuple[Tensor, ...]:
        """The weights that lessons move, as they are now."""
        directions = self._translator.directions
        return tuple(p.data for d in directions.both for p in d.decoder.adaptable)

    def _index(self, entry: int) -> int:
        for at, e in enumerate(self._entries):
            if e.id == entry:
                return at
        raise InputError(f"the memory has no entry {entry!r}; its entries are listed in memory.entries.")

    def _change(self, entry: int, **fields: Any) -> None:
        at = self._index(entry)
        entries = list(self._entries)
        entries[at] = msgspec.structs.replace(entries[at], **fields)
        self._entries = tuple(entries)

    def _term(self, source: str, text: str) -> tuple[str, str, Phrase]:
        """A term and its translation, if they can be remembered."""
        source = normalise(source, what="the source term")
        text = normalise(text, what="the translation")
        self._translator.encode_source(source)  # what is too long is refused now, not when it is read
        pieces = tuple(self._translator.target_vocabulary.encode(text))
        if len(pieces) > MAX_SOURCE_PIECES:
            raise InputError(
                f"the translation {text[:30]!r}... has {len(pieces)} pieces; at most {MAX_SOURCE_PIECES} are "
                "remembered. Give a term, or a shorter sentence."
            )
        return source, text, pieces

    def _add(self, terms: Iterable[tuple[str, str, Phrase]]) -> tuple[MemoryEntry, ...]:
        """Terms with the pieces of their translations, added by hand or there already."""
        known = {(e.source, e.text): e.id for e in self._entries if e.sentence is None}
        now, new, ids = time.time(), [], []
        for source, text, pieces in terms:
            ids.append(known.get((source, text), self._next_id))
            if ids[-1] != self._next_id:
                self._change(ids[-1], refused=0)
                continue
            known[source, text] = self._next_id
            self._next_id += 1
            new.append(
                MemoryEntry(
                    id=ids[-1],
                    text=text,
                    source=source,
                    target=text,
                    sentence=None,
                    start=0,
                    stop=len(pieces),
                    pieces=pieces,
                    target_pieces=pieces,
                    anchor=(("".join(source.split()), 1.0),),
                    created=now,
                )
            )
        self._append(*new)
        there = {entry.id: entry for entry in (*self._entries, *new)}
        return tuple(there[number] for number in ids)

    def _check_room(self) -> None:
        if sum(entry.pinned for entry in self._entries) >= self.settings.size:
            raise InputError(
                f"the memory is full: all {self.settings.size} entries are pinned. Unpin or remove one first."
            )

    def _append(self, *new: MemoryEntry) -> None:
        self._entries = (*self._entries, *new)
        if len(self._entries) > self.settings.size:
            kept = {entry.id for entry in self.fitting(self._entries)}
            self._keep([i for i, entry in enumerate(self._entries) if entry.id in kept])

    def fitting(self, entries: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
        """As many of them as the memory has room for, the most valuable."""
        surplus = max(0, len(entries) - self.settings.size)
        order = sorted(range(len(entries)), key=lambda i: (*self._value(entries[i]), i))
        return tuple(entries[i] for i in sorted(order[surplus:]))

    def _value(self, entry: MemoryEntry) -> tuple[bool, bool, bool]:
        """What goes first when room is needed has the least: unpinned before pinned, what came with a
        sentence before what was added by hand, "the" before "filmmakers"."""
        common = self._translator.target_vocabulary.is_common(entry.pieces)
        return entry.pinned, entry.sentence is None, self.settings.paper or not common

    def _keep(self, chosen: list[int]) -> None:
        self._entries = tuple(self._entries[i] for i in chosen)
        kept = {entry.id for entry in self._entries}
        self._contexts = {entry: known for entry, known in self._contexts.items() if entry in kept}

    def _keys_of(self, entries: Sequence[MemoryEntry]) -> dict[bool, Keys]:
        """Keys of these entries by direction, by the weights of now. A sentence that several entries come
        from is read once: lessons move only what comes behind `Features.place`."""
        unread: dict[tuple[str, Phrase], list[MemoryEntry]] = {}
        for e in sorted(entries, key=lambda e: (len(e.target_pieces), len(e.source), e.id)):
            if e.id not in self._contexts:
                unread.setdefault((e.source, e.target_pieces), []).append(e)
        encode = self._translator.encode_source
        for first in range(0, len(unread), READ_STEP):
            chosen = list(unread.items())[first : first + READ_STEP]
            read = read_along(self._translator, [(encode(source), pieces) for (source, pieces), _ in chosen])
            for row, (_, sharing) in enumerate(chosen):
                self._contexts |= {e.id: _pick(read, row, e) for e in sharing}
        found = [self._contexts[e.id] for e in entries]
        keys = {}
        for d in self._translator.directions.both:
            with torch.inference_mode():
                s = d.decoder.finish(torch.stack([k[d.backward].place for k in found]))
            keys[d.backward] = Keys(s.clone(), torch.stack([k[d.backward].c for k in found]))
        return keys

    def _compare(self, source: str, target_pieces: Phrase) -> None:
        """A confirmed sentence speaks for or against every entry whose source word it has."""
        characters = Characters(source, self._translator.source_language)
        vocabulary = self._translator.target_vocabulary
        words = [word.text.lower() for word in vocabulary.words(target_pieces)]
        said = _spaced(words), _spaced(word.removesuffix("'s").removesuffix("\u2019s") for word in words)
        found = characters.find_all(word for entry in self._entries for word, _ in entry.anchor)
        places = meant(found, (e.anchor for e in self._entries if self._worth_reading(e)))

        def judged(entry: MemoryEntry) -> MemoryEntry:
            if not any(word in places for word, _ in entry.anchor[:1]):
                return entry
            mine = [word.text.lower() for word in vocabulary.words(entry.pieces)]
            if any(_spaced(mine) in text for text in said):
                return msgspec.structs.replace(entry, agreed=entry.agreed + 1)
            if _stem(mine[-1]) in map(_stem, words):
                return entry  # "closes" says nothing against "close"
            return msgspec.structs.replace(entry, refused=entry.refused + 1)

        self._entries = tuple(map(judged, self._entries))

    def _trust(self, chosen: Sequence[int], match: Match) -> Trust:
        entries, settings = [self._entries[i] for i in chosen], self.settings
        agreed = torch.tensor([float(max(0, _experience(e))) for e in entries]) * settings.experience
        refused = torch.tensor([float(max(0, -_experience(e))) for e in entries])
        written = torch.tensor([e.sentence is None for e in entries])
        by_hand = written * settings.by_hand / 2.0**refused
        rare = ~written * (match.rarity >= settings.rare) * settings.trust
        return Trust(rare + by_hand + agreed, refused * settings.experience)

    def _match(self, source: str) -> tuple[list[int], Match]:
        """The entries worth reading whose source words stand in this source, and where."""
        worth = [n for n, e in enumerate(self._entries) if self._worth_reading(e)]
        anchors = [self._entries[n].anchor for n in worth]
        chosen, match = match_anchors(self._translator, source, anchors)
        entries = [self._entries[worth[n]] for n in chosen]
        insisted = {at for at, entry in enumerate(entries) if entry.pinned or entry.sentence is None}
        # Of a word that was fixed again and again, the latest fixes say all there is to say.
        later: Counter[str] = Counter()
        latest = []
        for at in reversed([at for at in range(len(entries)) if at not in insisted]):
            later[entries[at].text] += 1
            if later[entries[at].text] <= READ_OF_A_WORD:
                latest.append(at)
        # Of all, those that speak for themselves most, before a decoder has said anything; then the latest.
        if len(latest) > READ:
            trust = self._trust([worth[n] for n in chosen], match)
            prior = self._gates.forward_gate.prior(match) + trust.favour - trust.against
            latest.sort(key=lambda at: -float(prior[at]))  # stable
        read = sorted({*insisted, *latest[:READ]})
        return [worth[chosen[at]] for at in read], match.select(read)

    def _worth_reading(self, entry: MemoryEntry) -> bool:
        """ "It" and "the" stand for too much: copied, they were wrong nine times of ten. Who pins one, or
        adds it by hand, means it."""
        common = self._translator.target_vocabulary.is_common(entry.pieces)
        return not common or entry.pinned or entry.sentence is None


def _gates(translator: Translator) -> Gates:
    """The trained gates of the checkpoint, sized by what its decoders hand out."""
    sources = translator.read([[SPECIALS]])
    with torch.inference_mode():
        direction = translator.directions.forward
        features = follow(direction, sources.forward, [(SPECIALS,)])
    return Gates.load(translator.directory, features.s.shape[2], features.c.shape[2])


class _Asked(NamedTuple):
    """What the answer of a memory depends on. Nothing in it is ever changed in place: somebody who clicks
    again and again in one sentence gets one answer, made once."""

    source: str | None
    settings: MemorySettings
    entries: tuple[MemoryEntry, ...]
    weights: tuple[Tensor, ...]  # held, so that no others come to lie in their place

    def is_like(self, other: _Asked) -> bool:
        return (
            (self.source, self.settings) == (other.source, other.settings)
            and self.entries is other.entries
            and all(a.data_ptr() == b.data_ptr() for a, b in zip(self.weights, other.weights, strict=True))
        )


class _Said(NamedTuple):
    asked: _Asked
    readers: Readers | None


class _Context(NamedTuple):
    """What the key of an entry is made from."""

    place: Tensor  # [d_p], see `Features`; s' follows from it by the weights of the moment
    c: Tensor  # [d_c]


def _pick(read: dict[bool, Features], row: int, entry: MemoryEntry) -> dict[bool, _Context]:
    """The context of an entry from the features of its sentence: where its first piece is predicted."""
    at = {False: entry.start, True: len(entry.target_pieces) - entry.stop}
    # Clones: plain tensors, free of the batch they come from and of inference mode.
    return {b: _Context(f.place[row, at[b]].clone(), f.c[row, at[b]].clone()) for b, f in read.items()}


def _says_negation(entry: MemoryEntry, language: str) -> bool:
    """Does it stand for a negation and another word? (不锈钢 is one.)"""
    if entry.sentence is None or not entry.anchor:
        return False
    text = entry.anchor[0][0]
    words = [word for word, _ in screen_words(entry.source, language)]
    return any(text != word and text.startswith(word) and negates(word, language) for word in words)


def _experience(entry: MemoryEntry) -> int:
    """Later sentences for an entry, less those against it. What was added by hand has its credit already:
    with more, it is written as the first word of a sentence, wherever it belongs."""
    balance = min(entry.agreed, MOST_AGREED) - entry.refused
    return min(balance, 0) if entry.sentence is None else balance


def _spaced(words: Iterable[str]) -> str:
    """Words ready to be found among others."""
    return f" {' '.join(words)} "


def _stem(word: str) -> str:
    """What forms of an English word have in common, about: "clos" of closes, "dog" of dogs."""
    for ending, instead in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word.removesuffix(ending) + instead
    return word
