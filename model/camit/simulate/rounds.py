"""Rounds of revision, played: a simulated user works through sentences until they are right or patience ends.

Everything the user proposes for all sentences at hand is decoded in one batch, which is what makes the ideal user
affordable.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from camit.search.revise import Readers, Request, Searcher, Settings
from camit.simulate.corpus import Line
from camit.simulate.edits import Edit, Screen, after, request
from camit.simulate.protocols import Protocol
from camit.simulate.users import Judge, Proposer, Reference, candidates, leftmost
from camit.translator import Translator

BATCH = 96  # requests decoded together


@dataclass(frozen=True)
class Turn:
    """One revision: what was typed where, and what it did."""

    edit: Edit
    proposals: int  # how many candidates were decoded
    before: Screen
    after: Screen
    gain: float  # sentence BLEU
    seconds: float | None  # of this revision decoded alone, where it was measured


@dataclass
class Round:
    """One sentence with its turns."""

    line: Line
    references: tuple[Reference, ...]
    draft: Screen
    turns: list[Turn] = field(default_factory=list)
    done: bool = False

    @property
    def screen(self) -> Screen:
        return self.turns[-1].after if self.turns else self.draft

    def at(self, k: int) -> Screen:
        """The screen after k turns, or after the last one made."""
        k = min(k, len(self.turns))
        return self.turns[k - 1].after if k else self.draft


@dataclass(frozen=True)
class Play:
    """The rules: who plays, by which protocol, for how long."""

    user: Proposer
    protocol: Protocol
    settings: Settings
    judge: Judge
    revisions: int
    may_pass: bool = False  # is "no change" a candidate?
    seed: int = 1
    timed: int = 4  # revisions timed alone, per batch of sentences

    def rounds(self, translator: Translator, lines: Sequence[Line], readers: Readers | None) -> list[Round]:
        """Play the lines side by side."""
        vocabulary = translator.target_vocabulary
        sources = translator.read([translator.encode_source(line.source) for line in lines])
        reader = readers.forward if readers is not None else None
        rounds = [
            Round(
                line,
                tuple(Reference.of(text, vocabulary) for text in line.references),
                Screen.of(pieces, vocabulary),
            )
            for line, (pieces, _) in zip(
                lines, translator.best(sources, self.settings.beam, reader), strict=True
            )
        ]
        searcher = Searcher(
            translator.directions, sources, replace(self.settings, protocol=self.protocol.search), readers
        )
        timed = self.timed
        for k in range(self.revisions):
            proposals = [self._proposals(n, played, k) for n, played in enumerate(rounds)]
            requests = [
                request(n, rounds[n].screen, edit) for n, edits in enumerate(proposals) for edit in edits
            ]
            screens = _decode(searcher, requests, translator)
            at = 0
            for n, edits in enumerate(proposals):
                outcomes = screens[at : at + len(edits)]
                asked = requests[at : at + len(edits)]
                at += len(edits)
                if not edits:
                    continue
                played = rounds[n]
                now = self.judge.score(vocabulary.decode(played.screen.pieces), played.references)
                scores = [
                    self.judge.score(vocabulary.decode(outcome.pieces), played.references)
                    for outcome in outcomes
                ]
                best = max(range(len(edits)), key=lambda i: (scores[i], -i))
                if self.may_pass and scores[best] <= now:
                    played.done = True
                    continue
                seconds = None
                if timed:
                    timed -= 1
                    start = perf_counter()
                    searcher.revise([asked[best]])
                    seconds = perf_counter() - start
                played.turns.append(
                    Turn(edits[best], len(edits), played.screen, outcomes[best], scores[best] - now, seconds)
                )
        return rounds

    def _proposals(self, n: int, played: Round, k: int) -> list[Edit]:
        if played.done or self.judge.done(played.screen, played.references):
            return []
        edits = candidates(played.screen, played.references, self.judge)
        if self.protocol.leftmost:
            edits = leftmost(edits)
        if not edits:
            return []
        chance = random.Random(f"{self.seed}/{played.line.number}/{k}")
        return self.user(played.screen, played.references, self.judge, edits, chance)


def _decode(searcher: Searcher, requests: Sequence[Request], translator: Translator) -> list[Screen]:
    """The screens after each request, similar work together."""
    screens: dict[int, Screen] = {}
    # The search reads what the prefixes of a batch have in common in one pass, so similar prefixes go together.
    order = sorted(range(len(requests)), key=lambda i: (len(requests[i].left.pieces), i))
    for first in range(0, len(order), BATCH):
        chosen = order[first : first + BATCH]
        for i, revision in zip(chosen, searcher.revise([requests[i] for i in chosen]), strict=True):
            screens[i] = after(revision, requests[i], translator.target_vocabulary)
    return [screens[i] for i in range(len(requests))]
