"""Figures for papers and slides: memory, attention and revision of one sentence as SVG, drawn without a
browser.
"""

from __future__ import annotations

import base64
import pathlib
import typing
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from camit.errors import InputError
from camit_widget import protocol

FigureKind = Literal["memory", "attention", "revision"]

_INK, _DIM, _EMPTY = "#1f2328", "#575e66", "#f4f4f2"
_YOURS, _CHANGED, _THETA = "#a63f06", "#0b57c4", "#6f42c1"
_FONT = "font-family='Helvetica, Arial, &quot;Noto Sans&quot;, &quot;Noto Sans CJK SC&quot;, sans-serif'"
_CELL, _PAD = 24, 14
_LETTER = 6.4  # mean width of a letter at 12 px; a Chinese character takes about two
_LINE_LETTERS = 84
_STAGES = {"draft": "Before", "forward": "Forward", "backward": "Backward", "result": "Result"}


class Figure:
    """An SVG picture: shown when it is the last line of a cell, and savable.

    >>> figure.save("figure.svg")    # doctest: +SKIP
    """

    def __init__(self, svg: str, title: str) -> None:
        self.svg = svg
        self.title = title

    def __repr__(self) -> str:
        return f"<Figure: {self.title}; .save(path) keeps it as SVG>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # JupyterLab shows SVG itself only in notebooks that are trusted, which a fresh clone is not.
        data = base64.b64encode(self.svg.encode()).decode()
        return f"<img alt={quoteattr(self.title)} src='data:image/svg+xml;base64,{data}'>"

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write the picture to a file and return its path."""
        path = pathlib.Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path


def draw(kind: str, sentence: protocol.Sentence, looks: protocol.Looks, memory: protocol.Memory) -> Figure:
    """The picture of a sentence."""
    if kind == "memory":
        return _memory(sentence, looks, memory)
    if kind == "attention":
        return _attention(sentence)
    if kind == "revision":
        return _revision(sentence)
    raise InputError(f"There is no figure {kind!r}; choose one of {', '.join(typing.get_args(FigureKind))}.")


def _memory(sentence: protocol.Sentence, looks: protocol.Looks, memory: protocol.Memory) -> Figure:
    """theta over the words, then a row for each entry that was looked at: theta times r."""
    weights: dict[int, dict[int, float]] = {}
    for look in looks.cells:
        theta = sentence.words[look.word].theta
        weights.setdefault(look.entry, {})[look.word] = look.weight / 100 * theta
    entries = [entry for entry in memory.entries if entry.id in weights]
    labels = ["θ copy weight", *(_entry_label(entry) for entry in entries)]
    left = _PAD + max(map(_width, labels)) + 10
    top = _PAD + max((_width(word.text) for word in sentence.words), default=0) + 6
    parts = _column_labels([word.text for word in sentence.words], left, top)
    height = 34
    parts.append(_text(left - 10, top + height - 6, labels[0], anchor="end", fill=_DIM))
    for column, word in enumerate(sentence.words):
        bar = max(1.0, (height - 6) * word.theta)
        parts.append(_cell(left + column * _CELL, top + height - 2 - bar, bar, 1.0, f"θ {word.theta:.2f}"))
    y = top + height + 4
    for entry, label in zip(entries, labels[1:], strict=True):
        parts.append(_text(left - 10, y + 15, label, anchor="end"))
        parts += _row(left, y, len(sentence.words), weights[entry.id])
        y += _CELL
    return _svg(
        left + len(sentence.words) * _CELL + _PAD, y + _PAD, parts, "Copy weight and memory entries per word"
    )


def _attention(sentence: protocol.Sentence) -> Figure:
    """Source words down, translation across."""
    left = _PAD + max((_width(word.text) for word in sentence.source), default=0) + 10
    top = _PAD + max((_width(word.text) for word in sentence.words), default=0) + 6
    parts = _column_labels([word.text for word in sentence.words], left, top)
    for line, source in enumerate(sentence.source):
        y = top + line * _CELL
        parts.append(_text(left - 10, y + 15, source.text, anchor="end"))
        found = {n: word.attention[line] / 100 for n, word in enumerate(sentence.words)}
        parts += _row(left, y, len(sentence.words), found)
    width, height = left + len(sentence.words) * _CELL + _PAD, top + len(sentence.source) * _CELL + _PAD
    return _svg(width, height, parts, "Attention: source words read for each word of the translation")


def _revision(sentence: protocol.Sentence) -> Figure:
    """The stages of the last revision under each other, in the colours of the paper."""
    parts: list[str] = []
    y: float = _PAD + 14
    source = "".join(" " * word.space + word.text for word in sentence.source).strip()
    parts.append(_text(_PAD + 90, y, source, fill=_DIM, size=14))
    stages = sentence.stages or (protocol.Stage("draft", "", _plain(sentence.words)),)
    for stage in stages:
        y += 34
        parts.append(_text(_PAD, y, _STAGES[stage.name], fill=_DIM))
        for line in _lines(stage.words):
            spans = "".join(_span(word, first=n == 0) for n, word in enumerate(line))
            parts.append(f"<text x='{_PAD + 90}' y='{y}' font-size='15' xml:space='preserve'>{spans}</text>")
            y += 22
        y -= 22
    longest = max(
        _width(source), *(_width(" ".join(w.text for w in line)) for s in stages for line in _lines(s.words))
    )
    return _svg(_PAD + 90 + longest * 1.3 + _PAD, y + 20, parts, "The last revision, step by step")


def _plain(words: Iterable[protocol.Word]) -> tuple[protocol.StageWord, ...]:
    return tuple(protocol.StageWord(word.text, word.space, word.origin) for word in words)


def _lines(words: Sequence[protocol.StageWord]) -> list[list[protocol.StageWord]]:
    lines: list[list[protocol.StageWord]] = [[]]
    used = 0
    for word in words:
        if used > _LINE_LETTERS and word.space:
            lines.append([])
            used = 0
        lines[-1].append(word)
        used += len(word.text) + word.space
    return lines


def _span(word: protocol.StageWord, *, first: bool) -> str:
    space = " " if word.space and not first else ""
    style = {
        "yours": f"fill='{_YOURS}' font-weight='bold'",
        "changed": f"fill='{_CHANGED}' text-decoration='underline'",
    }.get(word.origin, f"fill='{_INK}'")
    return f"{space}<tspan {style}>{escape(word.text)}</tspan>"


def _entry_label(entry: protocol.Entry) -> str:
    where = "added by hand" if entry.row is None else f"sentence {entry.row + 1}"
    copied = f" · copied {entry.copies}×" if entry.copies else ""
    return f"{entry.text} · {where}{copied}"


def _column_labels(words: Sequence[str], left: float, top: float) -> list[str]:
    return [_text(left + n * _CELL + 16, top - 6, word, fill=_DIM, turn=-90) for n, word in enumerate(words)]


def _row(left: float, y: float, columns: int, weights: dict[int, float]) -> list[str]:
    parts = []
    for column in range(columns):
        x, weight = left + column * _CELL, weights.get(column, 0.0)
        parts.append(
            f"<rect x='{x}' y='{y}' width='{_CELL - 2}' height='{_CELL - 3}' rx='3' fill='{_EMPTY}'/>"
        )
        if weight > 0:
            parts.append(_cell(x, y, _CELL - 3, weight, f"{weight:.2f}"))
    return parts


def _cell(x: float, y: float, height: float, opacity: float, title: str) -> str:
    return (
        f"<rect x='{x}' y='{y:.1f}' width='{_CELL - 2}' height='{height:.1f}' rx='3' fill='{_THETA}' "
        f"fill-opacity='{opacity:.2f}'><title>{escape(title)}</title></rect>"
    )


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", fill: str = _INK, size: int = 12, turn: int = 0
) -> str:
    turned = f" transform='rotate({turn} {x} {y})'" if turn else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{fill}'{turned}>"
        f"{escape(words)}</text>"
    )


def _width(words: str) -> float:
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words)


def _svg(width: float, height: float, parts: Iterable[str], title: str) -> Figure:
    size = f"width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}'"
    return Figure(
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img' aria-label={quoteattr(title)} {_FONT}>"
        f"<rect width='100%' height='100%' fill='#fff'/>{''.join(parts)}</svg>",
        title,
    )
