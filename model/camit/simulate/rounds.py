"""Rounds of revision, played: a simulated user works through sentences until they are right or patience ends.

Everything the user proposes for all sentences at hand is decoded in one batch, which is what makes the
ideal user affordable.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from camit.corpus import Pair
from camit.search.problem import Readers
from camit.search.revise import Revision, Searcher, Settings
from camit.session.plan import Plan, Version
from camit.simulate.protocols import Protocol
from camit.simulate.screen import Edit, after, opened, planned, text, words
from camit.simulate.users import Judge, Proposer, Reference, Situation, candidates, leftmost
from camit.translator import Translator

BATCH = 96  # requests decoded together


@dataclass(frozen=True)
class Turn:
    """One revision: what was typed where, and what it did."""

    edit: Edit
    proposals: int  # how many edits were decoded to choose this one
    before: Version
    after: Version
    gain: float  # sentence BLEU
    seconds: float | None  # of this revision decoded alone, where that was measured


@dataclass
class Round:
    """One sentence with its turns."""

    line: Pair
    references: tuple[Reference, ...]
    draft: Version
    turns: list[Turn] = field(default_factory=list)
    passed: bool = False

    @property
    def screen(self) -> Version:
        return self.after(len(self.turns))

    def after(self, k: int) -> Version:
        """The screen after k turns, or after the last one made."""
        k = min(k, len(self.turns))
        return self.turns[k - 1].after if k else self.draft


@dataclass(frozen=True)
class Rules:
    """Who plays, by which protocol, for how long.

    `may_pass`: the user may leave a sentence alone when no proposal improves it. By default the user has to
    revise as long as a word is wrong, so a protocol that makes things worse cannot hide it.
    """

    user: Proposer
    protocol: Protocol
    settings: Settings
    judge: Judge
    revisions: int
    may_pass: bool = False
    seed: int = 1
    timed: float = 0.25  # share of the revisions that are timed, decoded once more alone

    def play(
        self, translator: Translator, lines: Sequence[Pair], readers: Readers | None = None
    ) -> list[Round]:
        """Play these lines side by side."""
        vocabulary = translator.target_vocabulary
        sources = translator.read([translator.encode_source(line.source) for line in lines])
        rounds = [
            Round(
                line,
                tuple(Reference.of(reference, vocabulary) for reference in line.references),
                opened(pieces, vocabulary),
            )
            for line, (pieces, _) in zip(
                lines, translator.best(sources, self.settings.beam, readers), strict=True
            )
        ]
        settings = replace(self.settings, protocol=self.protocol.search)
        searcher = Searcher(translator.directions, sources, settings, readers)
        for k in range(self.revisions):
            plans = [
                (played, edit, planned(played.screen, edit, vocabulary, n))
                for n, played in enumerate(rounds)
                for edit in self._proposals(played, k)
            ]
            for played, turn, plan in self._best(searcher, plans):
                if self._chance(played, f"{k}/seconds").random() < self.timed:
                    start = perf_counter()
                    searcher.revise([plan.request])
                    turn = replace(turn, seconds=perf_counter() - start)
                if self.may_pass and turn.gain <= 0:
                    played.passed = True
                else:
                    played.turns.append(turn)
        return rounds

    def _proposals(self, played: Round, k: int) -> Sequence[Edit]:
        screen, references, judge = played.screen, played.references, self.judge
        if played.passed or judge.accepts(words(screen), references):
            return ()
        allowed = leftmost if self.protocol.leftmost else candidates
        edits = allowed(screen, references, judge)
        if not edits:
            return ()
        chance = self._chance(played, str(k))
        return self.user(Situation(screen, references, judge, tuple(edits), chance))

    def _chance(self, played: Round, what: str) -> random.Random:
        # A generator for each turn of each line, so that nothing depends on how the corpus is split.
        return random.Random(f"{self.seed}/{played.line.line}/{what}")

    def _best(
        self, searcher: Searcher, plans: Sequence[tuple[Round, Edit, Plan]]
    ) -> list[tuple[Round, Turn, Plan]]:
        """For each sentence the proposal with the best result, the first of equals."""
        vocabulary = searcher.directions.forward.vocabulary
        best: dict[int, tuple[Round, Turn, Plan]] = {}
        count: dict[int, int] = {}
        for (played, edit, plan), revision in zip(
            plans, _revisions(searcher, [plan for _, _, plan in plans]), strict=True
        ):
            screen = after(played.screen, plan, revision, vocabulary)
            gain = self.judge.score(text(screen), played.references)
            key = played.line.line
            count[key] = count.get(key, 0) + 1
            if key not in best or gain > best[key][1].gain:
                best[key] = played, Turn(edit, 0, played.screen, screen, gain, None), plan
        return [
            (
                played,
                replace(
                    turn,
                    proposals=count[key],
                    gain=turn.gain - self.judge.score(text(turn.before), played.references),
                ),
                plan,
            )
            for key, (played, turn, plan) in best.items()
        ]


def _revisions(searcher: Searcher, plans: Sequence[Plan]) -> list[Revision]:
    """The answers to all plans, similar work together."""
    found: dict[int, Revision] = {}
    # A batch reads what its prefixes have in common in one pass, so similar prefixes go together.
    order = sorted(range(len(plans)), key=lambda i: (len(plans[i].request.left.pieces), i))
    for first in range(0, len(order), BATCH):
        chosen = order[first : first + BATCH]
        found.update(zip(chosen, searcher.revise([plans[i].request for i in chosen]), strict=True))
    return [found[i] for i in range(len(plans))]
