"""Drawing points and lines as SVG, without a library."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from scripts.figures.definitions import FigureError, Picture

_WIDTH, _HEIGHT = 620, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 596, 44, 348
_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b7791f", "#4a5568")
_SMALLEST, _LARGEST = 3.0, 11.0
_TICKS = 5


@dataclass(frozen=True, slots=True)
class _Point:
    series: str
    name: str
    x: float
    y: float
    size: float


@dataclass(frozen=True, slots=True)
class _Axis:
    """Where values lie on the paper, and at which of them a line is drawn."""

    place: Callable[[float], float]
    ticks: tuple[float, ...]


def draw(picture: Picture, values: Mapping[str, float]) -> str:
    """Return a picture as SVG.

    Raises:
        FigureError: No value fits the picture's keys.
    """
    points = _points(picture, values)
    if not points:
        raise FigureError(f"picture {picture.name}: no value fits {picture.x}")
    if picture.scale == "bars":
        body = _bars(picture, points)
    else:
        across, up = _axes(picture, points)
        body = [*_frame(picture, across, up), *_marks(picture, points, across, up)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(picture.title)}</text>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _points(picture: Picture, values: Mapping[str, float]) -> list[_Point]:
    pattern = re.compile(re.escape(picture.x).replace(r"\*", "(.+)"))
    found = []
    for key, x in values.items():
        match = pattern.fullmatch(key)
        if match is None:
            continue
        steps = match.groups()
        y = values[_filled(picture.y, steps)]
        size = values[_filled(picture.size, steps)] if picture.size else 1.0
        found.append(_Point(steps[0] if picture.series else "", steps[-1], x, y, size))
    return [each for each in found if each.series in picture.series or not picture.series]


def _filled(key: str, steps: tuple[str, ...]) -> str:
    for step in steps:
        key = key.replace("*", step, 1)
    return key


# Bars, the first value of each to the end of its bar, the second at the end of a thin line.


def _bars(picture: Picture, points: list[_Point]) -> list[str]:
    labels = picture.labels or {}
    left, high = _LEFT + 80, (_BOTTOM - _TOP) / len(points)
    longest = max(point.y for point in points)
    step = _round_step(longest)
    across = _even(0, math.ceil(longest / step) * step, left, _RIGHT - 60, step)
    found = list(_ticks(across))
    for place, point in enumerate(points):
        y, label = _TOP + high * place, escape(labels.get(point.name, point.name))
        middle, end, most = y + high / 2, across.place(point.x), across.place(point.y)
        found += [
            f'<text x="{left - 8}" y="{middle + 4:.1f}" text-anchor="end">{label}</text>',
            f'<rect x="{left}" y="{y + high * 0.15:.1f}" width="{end - left:.1f}" '
            f'height="{high * 0.7:.1f}" fill="{_COLOURS[0]}"/>',
            f'<line x1="{end:.1f}" y1="{middle:.1f}" x2="{most:.1f}" y2="{middle:.1f}" '
            f'stroke="{_COLOURS[1]}"/>',
            f'<text x="{most + 6:.1f}" y="{middle + 4:.1f}">{point.x:.2f}</text>',
        ]
    return [*found, *_titles(picture, across_only=True)]


# The axes.


def _axes(picture: Picture, points: list[_Point]) -> tuple[_Axis, _Axis]:
    if picture.scale == "probability":
        return _even(0, 1, _LEFT, _RIGHT), _even(0, 1, _BOTTOM, _TOP)
    lowest, highest = min(p.y for p in points), max(p.y for p in points)
    step = _round_step(highest - lowest or highest or 1)
    up = _even(
        math.floor(lowest / step) * step, math.ceil(highest / step) * step, _BOTTOM, _TOP, step
    )
    most, least = max(p.x for p in points), min(p.x for p in points)
    if picture.scale == "powers":
        return _powers(math.floor(math.log10(least)), math.ceil(math.log10(most))), up
    step = _round_step(most)
    return _even(0, math.ceil(most / step) * step, _LEFT, _RIGHT, step), up


def _round_step(span: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that needs few steps for a span."""
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    return next(power * each for each in (1, 2, 5, 10) if power * each * _TICKS >= span)


def _even(low: float, high: float, start: float, end: float, step: float = 0.2) -> _Axis:
    span = high - low or 1.0
    ticks = tuple(low + place * step for place in range(round(span / step) + 1))
    return _Axis(lambda value: start + (value - low) / span * (end - start), ticks)


def _powers(low: int, high: int) -> _Axis:
    high = max(high, low + 1)
    span = (_RIGHT - _LEFT) / (high - low)
    ticks = tuple(10.0**power for power in range(low, high + 1))
    return _Axis(lambda value: _LEFT + (math.log10(value) - low) * span, ticks)


def _ticks(across: _Axis) -> Iterator[str]:
    for tick in across.ticks:
        x = across.place(tick)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}" stroke="#e2e8f0"/>'
        yield f'<text x="{x:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{tick:g}</text>'


def _frame(picture: Picture, across: _Axis, up: _Axis) -> Iterator[str]:
    yield from _ticks(across)
    for tick in up.ticks:
        y = up.place(tick)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}" stroke="#e2e8f0"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.3g}</text>'
    if picture.scale == "probability":
        yield (
            f'<line x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_TOP}" stroke="#a0aec0" '
            'stroke-dasharray="4 4"/>'
        )
    yield from _titles(picture)


def _titles(picture: Picture, *, across_only: bool = False) -> Iterator[str]:
    middle = (_LEFT + _RIGHT) / 2
    yield (
        f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">'
        f"{escape(picture.x_label)}</text>"
    )
    if across_only:
        return
    middle = (_TOP + _BOTTOM) / 2
    yield (
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">'
        f"{escape(picture.y_label)}</text>"
    )


# The points.


def _marks(picture: Picture, points: list[_Point], across: _Axis, up: _Axis) -> Iterator[str]:
    labels = picture.labels or {}
    most = max(point.size for point in points)
    for place, series in enumerate(picture.series or ("",)):
        colour = _COLOURS[place % len(_COLOURS)]
        own = [point for point in points if point.series == series]
        spots = [(across.place(point.x), up.place(point.y)) for point in own]
        if series:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            yield (
                f'<text x="{_LEFT + 10}" y="{_TOP + 16 + 16 * place}" fill="{colour}">'
                f"{escape(labels.get(series, series))}</text>"
            )
        for point, (x, y) in zip(own, spots, strict=True):
            radius = _SMALLEST + (_LARGEST - _SMALLEST) * (point.size / most) ** 0.5
            radius = radius if picture.size else 5.0
            told = f"{point.name}: {point.x:.4g}, {point.y:.4g}"
            yield (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" '
                f'fill-opacity=".7"><title>{escape(told)}</title></circle>'
            )
            if not series:
                yield _label(labels.get(point.name, point.name), x, y)


def _label(text: str, x: float, y: float) -> str:
    is_right = x > (_LEFT + 2 * _RIGHT) / 3
    where = f'x="{x - 9:.1f}" text-anchor="end"' if is_right else f'x="{x + 9:.1f}"'
    return f'<text {where} y="{y + 4:.1f}">{escape(text)}</text>'
