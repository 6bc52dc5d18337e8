"""BLEU against the number of revisions, as a small SVG that reads on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from camit.errors import InputError

# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 190, 40, 44


def plot(title: str, lines: Mapping[str, Sequence[float]]) -> str:
    """One line for each name: its values after 0, 1, 2, ... revisions.

    >>> "<svg" in plot("BLEU", {"bidirectional": [16.9, 38.2]})
    True
    """
    if not lines or any(len(values) < 1 for values in lines.values()):
        raise InputError("a plot needs at least one line with at least one value.")
    longest = max(map(len, lines.values()))
    low, high, step = _scale([value for values in lines.values() for value in values])

    def x(k: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * k / max(1, longest - 1)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" '
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="600" fill="#1a1a1a">{escape(title)}</text>',
    ]
    for n in range(round((high - low) / step) + 1):
        value = low + n * step
        at = y(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e3e3e3"/>'
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#555555">{value:g}</text>'
        )
    parts += [
        f'<text x="{x(k):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555555">{k}</text>'
        for k in range(longest)
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle" fill="#1a1a1a">'
        "revisions</text>"
    )
    ends = _apart([y(values[-1]) for values in lines.values()])
    for n, ((name, values), end) in enumerate(zip(lines.items(), ends, strict=True)):
        colour = COLOURS[n % len(COLOURS)]
        points = " ".join(f"{x(k):.1f},{y(value):.1f}" for k, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(k):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>'
            for k, value in enumerate(values)
        ]
        parts.append(
            f'<text x="{x(len(values) - 1) + 8:.1f}" y="{end + 4:.1f}" fill="{colour}">'
            f"{escape(name)} {values[-1]:.1f}</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _scale(values: Sequence[float]) -> tuple[float, float, float]:
    """Round limits around all values, and a round step between grid lines."""
    low, high = min(values), max(values)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1e9) if (high - low) / s <= 7)
    return step * (low // step), step * (high // step + 1), step


def _apart(places: Sequence[float], gap: float = 15.0) -> list[float]:
    """Labels moved down until none covers another."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda n: places[n])
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    return moved
