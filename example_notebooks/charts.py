"""Charts and coloured sentences as small SVG pictures, for these notebooks: no plotting library is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from camit_widget.figures import Figure

COLOURS = ("#b4480a", "#0b57c4", "#3a7d34", "#6f42c1", "#8a6d00", "#5b6470")
_INK, _DIM, _RULE = "#1f2328", "#575e66", "#d9dad6"
# What happened to a word, as in the widget: yours, mended by the model, kept.
_ORIGINS = {
    "yours": ("#a63f06", "700"),
    "changed": ("#0b57c4", "400"),
    "kept": (_INK, "400"),
    "draft": (_INK, "400"),
}
_COPIED = ("#6f42c1", "700")
_FONT = "Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"


def _chart(parts: Sequence[str], width: float, height: float, title: str) -> Figure:
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" font-family="{_FONT}" font-size="12">'
        f"<title>{escape(title)}</title>"
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" '
        f'fill="#fdfdfc" stroke="{_RULE}"/>' + "".join(parts) + "</svg>"
    )
    return Figure(svg, title)


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x: str,
    y: str,
    from_zero: bool = False,
    width: int = 640,
) -> Figure:
    """One line per name through its points (x, y), labelled at its end."""
    points = [point for line in series.values() for point in line]
    x_low, x_high = min(p[0] for p in points), max(p[0] for p in points)
    ticks = _ticks(0.0 if from_zero else min(p[1] for p in points), max(p[1] for p in points))
    label_room = 14 + 6.6 * max(_length(name) for name in series)
    left, right, top, bottom = 56.0, width - label_room, 46.0, 270.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        across = (point[0] - x_low) / ((x_high - x_low) or 1.0)
        up = (point[1] - ticks[0]) / (ticks[-1] - ticks[0])
        return left + across * (right - left), bottom - up * (bottom - top)

    parts = [_text(16, 24, title, weight="600"), _text(left, 38, y, fill=_DIM, size=11)]
    for tick in ticks:
        height = place((x_low, tick))[1]
        parts.append(_line(left, height, right, height))
        parts.append(_text(left - 8, height + 4, f"{tick:g}", anchor="end", fill=_DIM))
    across = sorted({point[0] for point in points})
    parts += [
        _text(place((tick, ticks[0]))[0], bottom + 18, f"{tick:g}", anchor="middle", fill=_DIM)
        for tick in (across if len(across) <= 14 else _ticks(x_low, x_high))
        if x_low <= tick <= x_high
    ]
    parts.append(_text((left + right) / 2, bottom + 36, x, anchor="middle", fill=_DIM, size=11))
    ends: list[tuple[float, str, str]] = []
    for (name, line), colour in zip(series.items(), COLOURS * 3, strict=False):
        placed = [place(point) for point in line]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in placed]
        ends.append((placed[-1][1], name, colour))
    lowest = -math.inf
    for height, name, colour in sorted(ends):
        lowest = max(height + 4, lowest + 15)
        parts.append(_text(right + 8, lowest, name, fill=colour))
    return _chart(parts, width, max(bottom + 50, lowest + 16), title)


def bars(
    values: Sequence[tuple[str, float]],
    *,
    title: str,
    shown: str = "{:.2f}",
    high: float | None = None,
    width: int = 640,
) -> Figure:
    """A horizontal bar per (label, value); values are not negative."""
    top = high or max((value for _, value in values), default=1.0) or 1.0
    left = 26 + 6.6 * max(_length(label) for label, _ in values)
    parts = [_text(16, 24, title, weight="600")]
    for row, (label, value) in enumerate(values):
        y = 42 + 24 * row
        length = max(1.0, min(1.0, value / top) * (width - left - 70))
        parts.append(_text(left - 10, y + 13, label, anchor="end"))
        parts.append(
            f'<rect x="{left:.1f}" y="{y}" width="{length:.1f}" height="17" rx="2" fill="{COLOURS[1]}"/>'
        )
        parts.append(_text(left + length + 7, y + 13, shown.format(value), fill=_DIM))
    return _chart(parts, width, 42 + 24 * len(values) + 14, title)


def gains(
    values: Sequence[tuple[str, float]], *, title: str, shown: str = "{:+.1f}", width: int = 760
) -> Figure:
    """A horizontal bar per (label, value): right of the line what is gained, left of it what is lost."""
    left = 26 + 6.6 * max(_length(label) for label, _ in values)
    lowest, highest = min(0.0, *(value for _, value in values)), max(0.0, *(value for _, value in values))
    margin = 55 if lowest < 0 else 0  # for the figures left of the bars
    scale = (width - left - margin - 75) / ((highest - lowest) or 1.0)
    zero = left + margin - lowest * scale
    parts = [_text(16, 24, title, weight="600")]
    for row, (label, value) in enumerate(values):
        y = 42 + 24 * row
        length = max(1.0, abs(value) * scale)
        colour = COLOURS[2] if value >= 0 else COLOURS[0]
        x = zero if value >= 0 else zero - length
        parts.append(_text(left - 10, y + 13, label, anchor="end"))
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="17" rx="2" fill="{colour}"/>')
        beside = (x + length + 7, "start") if value >= 0 else (x - 7, "end")
        parts.append(_text(beside[0], y + 13, shown.format(value), anchor=beside[1], fill=_DIM))
    bottom = 42.0 + 24 * len(values)
    parts.append(_line(zero, 38, zero, bottom))
    return _chart(parts, width, bottom + 14, title)


def sentences(rows: Sequence[tuple[str, Sequence[Any]]], *, title: str, width: int = 760) -> Figure:
    """A sentence per (label, tokens): orange a person wrote, blue the model changed, purple is copied."""
    left = 30 + 6.6 * max(_length(label) for label, _ in rows)
    letters = (width - left - 20) / 7.0
    parts = [_text(16, 24, title, weight="600")]
    y = 36.0
    for label, tokens in rows:
        y += 22
        parts.append(_text(16, y, label, fill=_DIM))
        used, line = 0.0, ""
        for token in tokens:
            word = (" " if token.space_before and line else "") + token.text
            if token.space_before and used and used + _length(word) > letters:
                parts.append(_flow(left, y, line))
                y, used, line = y + 19, 0.0, ""
                word = token.text
            copied = token.copied_from is not None and token.origin != "yours"
            colour, weight = _COPIED if copied else _ORIGINS[token.origin]
            under = ' text-decoration="underline"' if token.origin == "changed" and not copied else ""
            space = " " if word.startswith(" ") else ""
            line += (
                f'{space}<tspan fill="{colour}" font-weight="{weight}"{under}>{escape(token.text)}</tspan>'
            )
            used += _length(word)
        parts.append(_flow(left, y, line))
    return _chart(parts, width, y + 18, title)


def heat(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    title: str,
    high: float = 1.0,
) -> Figure:
    """A table of shades: values[row][column] from 0 (white) to `high` (blue); below 0 it is orange."""
    cell = 26
    left = 24 + 6.6 * max(_length(row) for row in rows)
    top = 44 + 6.2 * max(_length(column) for column in columns) * 0.72
    parts = [_text(16, 24, title, weight="600")]
    for n, column in enumerate(columns):
        x = left + cell * n + cell / 2 + 2
        parts.append(
            f'<g transform="translate({x:.1f} {top - 6:.1f}) rotate(-45)">{_text(0, 0, column, size=11)}</g>'
        )
    for m, row in enumerate(rows):
        y = top + cell * m
        parts.append(_text(left - 8, y + 17, row, anchor="end"))
        parts += [_shade(left + cell * n, y, value, high) for n, value in enumerate(values[m])]
    below = any(value < -0.005 * high for row in values for value in row)
    scale = [high * n / 4 for n in range(-2 if below else 0, 5)]
    y = top + cell * len(rows) + 14
    for n, value in enumerate(scale):
        parts.append(_shade(16 + 40 * n, y, value, high))
        parts.append(_text(28 + 40 * n, y + 38, f"{value:.2f}", anchor="middle", fill=_DIM, size=10))
    width = left + cell * len(columns) + 6.2 * _length(columns[-1]) * 0.72 + 20
    return _chart(parts, max(width, 40 + 7 * _length(title), 30 + 40 * len(scale)), y + 50, title)


def _shade(x: float, y: float, value: float, high: float) -> str:
    colour, opacity = COLOURS[1 if value >= 0 else 0], min(1.0, abs(value) / high)
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="24" height="24" rx="3" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}" stroke="{_RULE}"><title>{value:.2f}</title></rect>'
    )


def _flow(x: float, y: float, spans: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="14" xml:space="preserve">{spans}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Four to seven round numbers that span the values."""
    span = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (factor * step) <= 6)
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return [round(step * n, 10) for n in range(first, last + 1)]


def _length(text: str) -> float:
    """In letters: a Chinese character takes about two."""
    return sum(1.9 if ord(character) > 0x2E80 else 1.0 for character in text)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_RULE}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = _INK,
    size: int = 12,
    weight: str = "400",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
