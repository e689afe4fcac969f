"""What is the same on all pages of a PDF: running titles, and the sizes of headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ekphory.documents.page_numbers import is_page_number
from ekphory.documents.pdf_page import PageLine

Page = Sequence[PageLine]

_MARGIN = 0.1
"""Share of the page's height at its top and bottom where running titles stand."""
_FEWEST_PAGES = 3
_LEAST_SHARE = 0.5
_LARGER = 1.15
_LONGEST_HEADING = 120
_MOST_LEVELS = 6
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Layout:
    """What is the same on all pages.

    Attributes:
        body: Size of running text in points.
        running: Lines that come back in the margins, numbers as `#`.
        heading_sizes: Sizes of headings in points, largest first.
    """

    body: float = 0.0
    running: frozenset[str] = frozenset()
    heading_sizes: tuple[float, ...] = ()

    def is_running(self, line: PageLine) -> bool:
        """Whether a line is a running title or a page number."""
        if not _is_in_margin(line):
            return False
        return is_page_number(line.text) or _key(line, self.body) in self.running

    def heading_level(self, line: PageLine) -> int | None:
        """Give the level of a heading, 1 for the largest; None for running text."""
        if line.size not in self.heading_sizes or not _may_be_heading(line):
            return None
        return self.heading_sizes.index(line.size) + 1


def layout_of(pages: Sequence[Page]) -> Layout:
    """Find what is the same on the pages of a sample."""
    letters: Counter[float] = Counter()
    for line in (line for page in pages for line in page):
        letters[line.size] += len(line.text)
    body = letters.most_common(1)[0][0] if letters else 0.0
    counts = Counter(
        key for page in pages for key in {_key(line, body) for line in page if _is_in_margin(line)}
    )
    least = max(_FEWEST_PAGES, len(pages) * _LEAST_SHARE)
    layout = Layout(body, frozenset(key for key, count in counts.items() if count >= least))
    lines = (line for page in pages for line in page if not layout.is_running(line))
    sizes = {line.size for line in lines if line.size >= body * _LARGER and _may_be_heading(line)}
    return replace(layout, heading_sizes=tuple(sorted(sizes, reverse=True)[:_MOST_LEVELS]))


def _may_be_heading(line: PageLine) -> bool:
    has_letters = any(sign.isalpha() for sign in line.text)
    return has_letters and len(line.text) <= _LONGEST_HEADING and not line.text.endswith((".", ","))


def _is_in_margin(line: PageLine) -> bool:
    return line.place < _MARGIN or line.place > 1 - _MARGIN


def _key(line: PageLine, body: float) -> str:
    """Give what is the same about a running title; `Chapter 7` in large letters is none."""
    return line.text if line.size >= body * _LARGER else _DIGITS.sub("#", line.text)
