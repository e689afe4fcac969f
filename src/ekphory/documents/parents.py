"""Parents: the section that a passage belongs to, as an id and as its passages joined.

A parent is no memory of its own, so it takes no place among the hits; its text is put together
when it is wanted, from the passages that share its id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import pairwise

from ekphory.documents.passages import Section
from ekphory.documents.tokens import is_dense
from ekphory.types import MemoryRecord

_LINES = re.compile(r"(\d+)-(\d+)")
_ENDS_A_SENTENCE = re.compile(r"[.!?…。！？:：;；][\"'”’»)\]」』）]*$")


def parent_id(document: str, section: Section) -> str:
    """Give the id of a section; it stays while its titles stay.

    Args:
        document: What names the document among all others.
        section: The titles above it, and which one of several alike it is.
    """
    parts = (document, *section.headings, str(section.occurrence))
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return f"section:{digest.hexdigest()[:32]}"


def parent_text(children: Iterable[MemoryRecord]) -> str:
    """Join the passages of one section into its text.

    Passages that lie on adjoining lines are joined by a line end, parts of one line by a blank,
    and all others by a blank line.

    Args:
        children: Memories of one `parent_id`, in any order, each once.

    Returns:
        The text of the section; empty where there are no children.
    """
    ordered = sorted(children, key=lambda child: (child.sequence or 0, child.id))
    if not ordered:
        return ""
    text = ordered[0].text
    for before, after in pairwise(ordered):
        text += _between(before, after) + after.text
    return text


def _between(before: MemoryRecord, after: MemoryRecord) -> str:
    above, below = _LINES.fullmatch(before.lines or ""), _LINES.fullmatch(after.lines or "")
    if above is None or below is None:
        goes_on = before.lines == after.lines and not _ENDS_A_SENTENCE.search(before.text)
        return " " if goes_on else "\n\n"
    gap = int(below[1]) - int(above[2])
    if gap > 0:
        return "\n" if gap == 1 else "\n\n"
    return "" if is_dense(before.text[-1]) and is_dense(after.text[0]) else " "
