"""Lines of a page into paragraphs and lists: a line that fills the page goes on in the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ekphory.documents.blocks import Block, BlockKind
from ekphory.documents.pdf_page import HYPHEN
from ekphory.documents.tokens import is_dense

_FULL = 0.75
"""Share of a long line's length from which a line is taken as wrapped."""
_LONG_RANK = 0.9
_ITEM = re.compile(r"(?:[•‣▪◦●○■–*]|[-](?=\s)|\d{1,3}[.)](?=\s)|[a-z]\)(?=\s))\s*")
_ENDS_A_SENTENCE = re.compile(r"[.!?…:。！？：][\"'”’»)\]」』）]*$")


def blocks_of_page(lines: Sequence[str], page: int) -> Iterator[Block]:
    """Join lines into blocks.

    Args:
        lines: Lines of a page, none of them blank.
        page: Its number, from 1.
    """
    full = _full_length(lines)
    held, kind, before = "", _kind_of(lines[0]) if lines else "paragraph", ""
    for line in lines:
        starts_item = _ITEM.match(line) is not None
        joint = _joint(before, line, full, starts_item=starts_item, in_list=kind == "list")
        if joint is None:
            yield Block(held, kind, page, page)
            held, kind = line, _kind_of(line)
        else:
            held = held.removesuffix(HYPHEN) + joint + line
        before = line
    if held:
        yield Block(held.replace(HYPHEN, ""), kind, page, page)


def _kind_of(line: str) -> BlockKind:
    return "list" if _ITEM.match(line) else "paragraph"


def _full_length(lines: Sequence[str]) -> float:
    lengths = sorted(len(line) for line in lines)
    return lengths[int(len(lengths) * _LONG_RANK)] * _FULL if lengths else 0.0


def _joint(before: str, line: str, full: float, *, starts_item: bool, in_list: bool) -> str | None:
    """Give what stands between two lines; None where a new block begins."""
    if not before or before.endswith(HYPHEN):
        return ""
    if starts_item:
        return "\n" if in_list else None
    if len(before) >= full:
        return "" if is_dense(before[-1]) and is_dense(line[0]) else " "
    return None if in_list or _ENDS_A_SENTENCE.search(before) else "\n"
