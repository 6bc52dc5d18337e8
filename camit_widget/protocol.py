"""What kernel and browser say to each other, declared once.

Durable state (`Overview`, `Sentence`, `Looks`, `Memory`, `Learning`, `Settings`) travels in traits: saved
with the notebook and seen by every view. Requests, answers and progress are messages.
`camit_widget.typescript` writes the browser's types from this file.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Percent: TypeAlias = int
"""0 to 100: attention and memory weights are drawn, so two digits are enough and keep a saved notebook
small.
"""

Origin: TypeAlias = Literal["draft", "kept", "changed", "yours"]
Status: TypeAlias = Literal["waiting", "draft", "revised", "confirmed", "failed"]
ExportFormat: TypeAlias = Literal["text", "tsv", "tmx", "xliff", "html"]


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that is replaced, never changed."""


# --- durable state --------------------------------------------------------------------------------


class Problem(Value, frozen=True):
    """Something that went wrong, in words a person can act on."""

    title: str
    detail: str
    advice: str


class Row(Value, frozen=True):
    """One sentence in the document rail."""

    source: str
    text: str
    status: Status
    revisions: int
    seconds: float


class Overview(Value, frozen=True):
    """All sentences, in the order of the text."""

    model: str
    source_language: str
    target_language: str
    rows: tuple[Row, ...]


class SourceWord(Value, frozen=True):
    text: str
    space: bool


class Word(Value, frozen=True):
    """One word or mark of the translation, with why it stands there. `recalled` is the part of it that
    confirmed sentences give; where that is most of it, `like` is the row of the one that gives the most.
    """

    text: str
    space: bool
    origin: Origin
    locked: bool
    probability: float
    theta: float
    memory: int | None
    recalled: float
    like: int | None
    attention: tuple[Percent, ...]


class StageWord(Value, frozen=True):
    text: str
    space: bool
    origin: Origin


class Stage(Value, frozen=True):
    """One step of the last revision, for playback."""

    name: Literal["draft", "forward", "backward", "result"]
    caption: str
    words: tuple[StageWord, ...]


class Look(Value, frozen=True):
    """How much the model looked at one memory entry while writing one word (r of the paper); small ones
    are left out.
    """

    word: int
    entry: int
    weight: Percent


class Sentence(Value, frozen=True):
    """The sentence on the desk. `version` names its wording: a request about another wording is refused,
    not guessed at.
    """

    row: int
    version: int
    status: Status
    source: tuple[SourceWord, ...]
    words: tuple[Word, ...]
    can_undo: bool
    can_redo: bool
    can_unconfirm: bool
    stages: tuple[Stage, ...]
    problem: Problem | None


class Looks(Value, frozen=True):
    """What the memory was looked at for while the sentence on the desk was written; comes a moment after
    its words.
    """

    row: int
    version: int
    cells: tuple[Look, ...]


class Entry(Value, frozen=True):
    """One memory entry and where it came from; `row` is None for entries added by hand or from another
    document.
    """

    id: int
    text: str
    source: str
    target: str
    row: int | None
    pinned: bool
    copies: int


class Memory(Value, frozen=True):
    enabled: bool
    entries: tuple[Entry, ...]


class Lesson(Value, frozen=True):
    """What one confirmed sentence taught: mean log-probability per piece before and after, and the
    guard's verdict; "off" if learning was switched off, so that nothing was tried.
    """

    row: int | None
    outcome: Literal["learned", "rejected", "off"]
    before: float
    after: float
    guard: float
    seconds: float
    reason: str  # why not, or what more there is to say


class Learning(Value, frozen=True):
    """`studying` is the row a lesson is being taken from right now."""

    enabled: bool
    lessons: tuple[Lesson, ...]
    studying: int | None


class Settings(Value, frozen=True):
    beam: int
    widest_beam: int
    stability: float
    protocol: str
    protocols: tuple[str, ...]


# --- requests -------------------------------------------------------------------------------------


class Request(Value, frozen=True, tag_field="type", tag=str.lower):
    """Every request names the view that asks and a number of its own; the answer carries both back."""

    view: str
    id: int


class Hello(Request, frozen=True):
    """Asks for nothing: an answer proves that the kernel is alive."""


class Go(Request, frozen=True):
    """Put a sentence on the desk, and translate it if that is still to be done, or failed."""

    row: int


class About(Request, frozen=True):
    """A request about the words of one wording of one sentence, from `start` up to, not including, `stop`."""

    row: int
    version: int
    start: int
    stop: int


class Effort(Value, frozen=True):
    """What a change took, for the session's statistics."""

    keystrokes: int
    mouse: int


class Replace(About, frozen=True):
    text: str
    effort: Effort


class Insert(Request, frozen=True):
    row: int
    version: int
    at: int
    text: str
    effort: Effort


class Delete(About, frozen=True):
    effort: Effort


class Blank(About, frozen=True):
    """Write these words anew, keep both ends."""

    effort: Effort


class Keep(About, frozen=True):
    pass


class Release(About, frozen=True):
    pass


class Alternatives(About, frozen=True):
    pass


class Complete(About, frozen=True):
    """`start` and `stop` are equal for the gap before a word."""

    typed: str


class Undo(Request, frozen=True):
    row: int


class Redo(Request, frozen=True):
    row: int


class Cancel(Request, frozen=True):
    """Stops a change of the same view, named by its number, if it is still on its way."""

    request: int


class Confirm(Request, frozen=True):
    row: int
    version: int


class Unconfirm(Request, frozen=True):
    """Takes the last confirmation back, with all it taught."""


class Pin(Request, frozen=True):
    entry: int
    pinned: bool


class Forget(Request, frozen=True):
    entry: int


class Recall(Request, frozen=True):
    """Takes a `Forget` back: the entry is there again as it was."""

    entry: int


class Remember(Request, frozen=True):
    source: str
    text: str


class Configure(Request, frozen=True):
    """Fields left out stay as they are."""

    memory: bool | None = None
    learning: bool | None = None
    beam: int | None = None
    stability: float | None = None
    protocol: str | None = None


class Export(Request, frozen=True):
    format: ExportFormat


AnyRequest: TypeAlias = (
    Hello
    | Go
    | Replace
    | Insert
    | Delete
    | Blank
    | Keep
    | Release
    | Alternatives
    | Complete
    | Undo
    | Redo
    | Cancel
    | Confirm
    | Unconfirm
    | Pin
    | Forget
    | Recall
    | Remember
    | Configure
    | Export
)

# --- answers --------------------------------------------------------------------------------------


class Suggestion(Value, frozen=True):
    """`memory` is the entry it comes from, if any."""

    text: str
    probability: float
    memory: int | None


class Suggestions(Value, frozen=True, tag_field="kind", tag="suggestions"):
    items: tuple[Suggestion, ...]


class Remembered(Value, frozen=True, tag_field="kind", tag="remembered"):
    """The entry that was asked for; it need not be `new`."""

    entry: int
    new: bool


class Exported(Value, frozen=True, tag_field="kind", tag="exported"):
    filename: str
    mime: str
    text: str


class Nothing(Value, frozen=True, tag_field="kind", tag="nothing"):
    """The result is in the traits."""


AnyResult: TypeAlias = Suggestions | Remembered | Exported | Nothing


EVERYBODY = ""
"""The `view` of an answer that is meant for all of them."""


class Answer(Value, frozen=True, tag_field="type", tag=str.lower):
    view: str
    id: int


class Done(Answer, frozen=True):
    result: AnyResult


class Failed(Answer, frozen=True):
    """`outdated`: nothing is wrong but the wording it is about; it can be asked again about the new one."""

    problem: Problem
    outdated: bool = False


class Cancelled(Answer, frozen=True):
    """It was stopped, or a newer question took its place; nothing was changed."""


AnyAnswer: TypeAlias = Done | Failed | Cancelled
