"""Drawings as SVG, without a script: whiskers, sparklines and the history of ratings.

Only attributes and classes are used, since the pages' policy forbids inline style.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

_WHISKER = 110
_SPARK = 76
"""Widths that the style sheet gives them."""
_CHART = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 16, 12, 34
COLOURS = 6
"""Curves that the style sheet tells apart."""


class Scale(NamedTuple):
    """A range of Elo that is drawn onto a width."""

    low: float
    high: float

    def at(self, value: float, width: float) -> float:
        """Return where a value is, 0 ... width."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return round(min(1.0, max(0.0, share)) * width, 1)


class Curve(NamedTuple):
    """A line of a chart: its name, and for each point a label and Elo."""

    name: str
    points: Sequence[tuple[str, float]]


def scale_of(rows: Sequence[tuple[float, float | None]]) -> Scale:
    """Return the scale that shows all of these: Elo, each with its error."""
    if not rows:
        return Scale(1400, 1600)
    return Scale(min(elo - (error or 0) for elo, error in rows), max(elo + (error or 0) for elo, error in rows))


def whisker(elo: float, error: float | None, scale: Scale) -> Markup:
    """Draw a value with its interval."""
    width = _WHISKER
    inner = width - 8
    at = scale.at(elo, inner) + 4
    low, high = (scale.at(end, inner) + 4 for end in (elo - (error or 0), elo + (error or 0)))
    bar = f'<rect class="e" x="{low}" y="7" width="{max(high - low, 1):.1f}" height="4" rx="2"/>' if error else ""
    return Markup(
        '<svg class="whisker" aria-hidden="true">'
        f'<path d="M0 9H{width}"/>{bar}<circle cx="{at:.1f}" cy="9" r="3"/></svg>'
    )


def sparkline(values: Sequence[float]) -> Markup:
    """Draw how a value went."""
    if len(values) < 2:
        return Markup("–")
    scale = Scale(min(values), max(values) if max(values) - min(values) > 1 else min(values) + 1)
    step = (_SPARK - 4) / (len(values) - 1)
    points = " ".join(f"{2 + i * step:.0f},{18 - scale.at(v, 16):.0f}" for i, v in enumerate(values))
    return Markup(f'<svg class="spark" aria-hidden="true"><polyline points="{points}"/></svg>')


def _ticks(scale: Scale) -> list[int]:
    span = max(scale.high - scale.low, 1)
    step = next((one for one in (1, 5, 10, 20, 25, 50, 100, 200, 500) if span / one <= 6), 1000)
    first = int(-(-scale.low // step) * step)
    return list(range(first, int(scale.high) + 1, step))


def chart(curves: Sequence[Curve], title: str) -> Markup:
    """Draw ratings over rounds, with a legend; dashes tell curves apart as well as colours."""
    width, height = _CHART
    every = [elo for curve in curves for _, elo in curve.points]
    low, high = min(every), max(every)
    margin = max((high - low) * 0.05, 5)
    scale = Scale(low - margin, high + margin)
    inner = height - _TOP - _BOTTOM
    count = max(len(curve.points) for curve in curves)
    step = (width - _LEFT - _RIGHT) / max(count - 1, 1)

    def y(value: float) -> float:
        return round(_TOP + inner - scale.at(value, inner), 1)

    parts = [f'<svg class="chart" viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>']
    for tick in _ticks(scale):
        parts.append(f'<path class="grid" d="M{_LEFT} {y(tick)}H{width - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 6:.1f}" text-anchor="end">{tick:,}</text>')
    longest = max(curves, key=lambda curve: len(curve.points)).points
    every_nth = -(-len(longest) // 8)
    for index in range(0, len(longest), every_nth):
        x = _LEFT + index * step
        parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{escape(longest[index][0])}</text>')
    for number, curve in enumerate(curves):
        points = [(_LEFT + (count - len(curve.points) + i) * step, y(elo)) for i, (_, elo) in enumerate(curve.points)]
        parts.append(_curve(number % COLOURS, points))
    keys = "".join(_key(number % COLOURS, curve.name) for number, curve in enumerate(curves))
    return Markup("".join(parts) + f'</svg><ul class="legend">{keys}</ul>')


def _key(number: int, name: str) -> str:
    """Return a line of the legend."""
    line = f'<polyline class="c{number}" points="0,6 26,6"/>'
    return f'<li><svg class="chart key" aria-hidden="true">{line}</svg>{escape(name)}</li>'


def _curve(number: int, points: Sequence[tuple[float, float]]) -> str:
    line = " ".join(f"{x:.1f},{y}" for x, y in points)
    x, y = points[-1]
    return f'<polyline class="c{number}" points="{line}"/><circle class="c{number}" cx="{x:.1f}" cy="{y}" r="3"/>'
