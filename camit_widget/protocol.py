"""What kernel and browser say to each other, declared once.

Durable state (`Overview`, `Sentence`, `Memory`, `Learning`, `Settings`) travels in traits: saved with the notebook and seen by
every view. Requests, answers and progress are messages. `camit_widget.typescript` writes the browser's types from this file.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Percent: TypeAlias = int
"""0 to 100: attention and memory weights are drawn, so two digits are enough and keep a saved notebook small."""

Origin: TypeAlias = Literal["draft", "kept", "changed", "yours"]
Status: TypeAlias = Literal["waiting", "draft", "revised", "confirmed", "failed"]
ExportFormat: TypeAlias = Literal["text", "tsv", "tmx", "xliff", "html"]


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that is replaced, never changed."""


# --- durable state -------------------------------------------------------------------------------------------------------------


class Problem(Value):
    """Something that went wrong, in words a person can act on."""

    title: str
    detail: str
    advice: str


class Row(Value):
    """One sentence in the document rail."""

    source: str
    text: str
    status: Status
    revisions: int
    seconds: float


class Overview(Value):
    """All sentences, in the order of the text."""

    model: str
    source_language: str
    target_language: str
    rows: tuple[Row, ...]


class SourceWord(Value):
    text: str
    space: bool


class Word(Value):
    """One word or mark of the translation, with why it stands there."""

    text: str
    space: bool
    origin: Origin
    locked: bool
    probability: float
    theta: float
    memory: int | None
    attention: tuple[Percent, ...]


class StageWord(Value):
    text: str
    space: bool
    origin: Origin


class Stage(Value):
    """One step of the last revision, for playback."""

    name: Literal["draft", "forward", "backward", "result"]
    caption: str
    words: tuple[StageWord, ...]


class Look(Value):
    """How much the model looked at one memory entry while writing one word (r of the paper); small ones are left out."""

    word: int
    entry: int
    weight: Percent


class Sentence(Value):
    """The sentence on the desk. `version` names its wording: a request about another wording is refused, not guessed at."""

    row: int
    version: int
    status: Status
    source: tuple[SourceWord, ...]
    words: tuple[Word, ...]
    can_undo: bool
    can_redo: bool
    stages: tuple[Stage, ...]
    looks: tuple[Look, ...]
    problem: Problem | None


class Entry(Value):
    """One memory entry and where it came from; `row` is None for entries added by hand or from another document."""

    id: int
    text: str
    source: str
    target: str
    row: int | None
    pinned: bool
    copies: int


class Memory(Value):
    enabled: bool
    entries: tuple[Entry, ...]


class Lesson(Value):
    """What one confirmed sentence taught: mean log-probability per piece before and after, and the guard's verdict."""

    row: int | None
    accepted: bool
    before: float
    after: float
    guard: float
    seconds: float
    reason: str


class Learning(Value):
    """`studying` is the row a lesson is being taken from right now."""

    enabled: bool
    lessons: tuple[Lesson, ...]
    studying: int | None


class Settings(Value):
    beam: int
    stability: float
    protocol: str
    protocols: tuple[str, ...]


# --- requests ------------------------------------------------------------------------------------------------------------------


class Request(Value, tag_field="type", tag=str.lower):
    """Every request names the view that asks and a number of its own; the answer carries both back."""

    view: str
    id: int


class Hello(Request):
    """Asks for nothing: an answer proves that the kernel is alive."""


class Go(Request):
    row: int


class Retry(Request):
    row: int


class About(Request):
    """A request about the words of one wording of one sentence, from `start` up to, not including, `stop`."""

    row: int
    version: int
    start: int
    stop: int


class Replace(About):
    text: str


class Insert(Request):
    row: int
    version: int
    at: int
    text: str


class Delete(About):
    pass


class Blank(About):
    pass


class Keep(About):
    pass


class Release(About):
    pass


class Alternatives(About):
    pass


class Complete(Request):
    row: int
    version: int
    at: int
    typed: str


class Undo(Request):
    row: int


class Redo(Request):
    row: int


class Cancel(Request):
    row: int


class Confirm(Request):
    row: int
    version: int


class Unconfirm(Request):
    """Takes the last confirmation back, with all it taught."""


class Pin(Request):
    entry: int
    pinned: bool


class Forget(Request):
    entry: int


class Remember(Request):
    source: str
    text: str


class Configure(Request):
    """Fields left out stay as they are."""

    memory: bool | None = None
    learning: bool | None = None
    beam: int | None = None
    stability: float | None = None
    protocol: str | None = None


class Export(Request):
    format: ExportFormat


AnyRequest: TypeAlias = (
    Hello
    | Go
    | Retry
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
    | Remember
    | Configure
    | Export
)

# --- answers -------------------------------------------------------------------------------------------------------------------


class Suggestion(Value):
    """`memory` is the entry it comes from, if any."""

    text: str
    probability: float
    memory: int | None


class Suggestions(Value, tag_field="kind", tag="suggestions"):
    items: tuple[Suggestion, ...]


class Exported(Value, tag_field="kind", tag="exported"):
    filename: str
    mime: str
    text: str


class Nothing(Value, tag_field="kind", tag="nothing"):
    """The result is in the traits."""


AnyResult: TypeAlias = Suggestions | Exported | Nothing


class Answer(Value, tag_field="type", tag=str.lower):
    view: str
    id: int


class Done(Answer):
    result: AnyResult


class Failed(Answer):
    problem: Problem


class Cancelled(Answer):
    """A newer request took this one's place; nothing was changed."""


AnyAnswer: TypeAlias = Done | Failed | Cancelled
