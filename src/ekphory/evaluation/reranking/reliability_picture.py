"""A reliability diagram as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ekphory.evaluation.reranking.reliability import Reliability, ReliabilityBin

_SIDE = 320
_LEFT, _TOP = 52, 40
_WIDTH, _HEIGHT = _LEFT + _SIDE + 24, _TOP + _SIDE + 52
_LARGEST, _SMALLEST = 11.0, 2.5


def reliability_svg(found: Reliability, *, title: str) -> str:
    """Draw what was said against what was observed, a circle for each bin.

    The area of a circle grows with the number of candidates in its bin; on the diagonal what is
    said holds.
    """
    body = "\n".join((*_axes(), *_circles(found.bins)))
    error = f"ECE {found.all_candidates.equal_width:.3f}, {found.candidates:,} candidates"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" \
width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>
<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>
<text x="{_LEFT}" y="31">{error}</text>
{body}
</svg>
"""


def _axes() -> Iterator[str]:
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#888"/>'
    )
    yield (
        f'<line x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{_TOP}" '
        'stroke="#bbb" stroke-dasharray="4 4"/>'
    )
    for step in range(0, 11, 2):
        x, y = _place(step / 10, step / 10)
        yield f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{step / 10:g}</text>'
        yield f'<text x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{step / 10:g}</text>'
    middle = _TOP + _SIDE / 2
    yield f'<text x="{_LEFT + _SIDE / 2}" y="{bottom + 38}" text-anchor="middle">probability</text>'
    yield (
        f'<text x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">share that answers</text>'
    )


def _circles(bins: tuple[ReliabilityBin, ...]) -> Iterator[str]:
    points = [_place(each.said, each.right) for each in bins]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="#2b6cb0" stroke-width="1.5"/>'
    most = max((each.candidates for each in bins), default=1)
    for each, (x, y) in zip(bins, points, strict=True):
        radius = _SMALLEST + (_LARGEST - _SMALLEST) * (each.candidates / most) ** 0.5
        told = f"said {each.said:.3f}, right {each.right:.3f}, {each.candidates:,} candidates"
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#2b6cb0" '
            f'fill-opacity=".6"><title>{told}</title></circle>'
        )


def _place(said: float, right: float) -> tuple[float, float]:
    return _LEFT + said * _SIDE, _TOP + (1 - right) * _SIDE
