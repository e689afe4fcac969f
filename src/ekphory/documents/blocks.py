"""What every reader of documents yields, and what all of them share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal, TypeAlias

from ekphory.errors import InvalidInput, MissingExtra
from ekphory.types import MemoryRecord, Scalar


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Files and folders that are passed over, by shell patterns; a folder with all that is in it.

    A pattern without `/` is compared with the names of files and folders at any depth; one with `/`
    with their paths below the root, where `*` also stands for `/`. Upper and lower case differ.

    Attributes:
        patterns: Such as `drafts`, `*.draft.md` or `handbook/old/*`; a `/` at the end is ignored.
    """

    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if not pattern.strip("/ "):
                raise InvalidInput("exclude", pattern, "names nothing", "Give one like 'drafts'.")

    def covers(self, path: str) -> bool:
        """Say whether a path below the root, written with `/`, is excluded by its own name.

        That a folder above it is excluded is not looked at.
        """
        return any(_is_match(path, pattern.rstrip("/")) for pattern in self.patterns)


def _is_match(path: str, pattern: str) -> bool:
    if "/" in pattern:
        return fnmatchcase(path, pattern.removeprefix("./").lstrip("/"))
    return fnmatchcase(path.rpartition("/")[2], pattern)


NOTHING_EXCLUDED = Exclusion()


@contextmanager
def from_docs_extra(purpose: str) -> Iterator[None]:
    """Import what `[docs]` installs.

    Args:
        purpose: What it is needed for, as the beginning of a sentence: `Reading PDF files`.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra("docs", purpose) from error


CHARACTERS_A_TOKEN = 4
"""Of alphabetic scripts; an ideogram, kana or Hangul syllable is a token of its own."""
DENSE = (
    r"\u2e80-\u303f\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean letters and signs, as the inside of a character class."""
_DENSE_SIGN = re.compile(f"[{DENSE}]")
_DENSE_RUN = re.compile(f"[{DENSE}]+")


def estimate_tokens(text: str) -> float:
    """Estimate the number of tokens: four characters each, one for a dense sign."""
    if text.isascii():
        return len(text) / CHARACTERS_A_TOKEN
    dense = sum(len(run) for run in _DENSE_RUN.findall(text))
    return dense + (len(text) - dense) / CHARACTERS_A_TOKEN


def is_dense(sign: str) -> bool:
    """Whether a character belongs to a script that is written without blanks between words."""
    return _DENSE_SIGN.fullmatch(sign) is not None


BlockKind = Literal["heading", "paragraph", "list", "table", "code"]
Unit = Literal["line", "page", "paragraph"]
_LABELS: dict[Unit, str] = {"page": "p. ", "paragraph": "par. "}


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list, table or piece of code.

    Attributes:
        text: Its text, never blank.
        kind: What it is.
        first, last: Where it begins and ends, counted from 1 in the unit of its document.
        level: Of a heading: 1 for the outermost.
        title: Of a heading: its words without marks; of a definition in code: its full name.
        continues: Whether its text goes on in the middle of that of the block before.
        verbatim: Whether each line of its text is a line of the file, so that lines can be counted.
    """

    text: str
    kind: BlockKind
    first: int
    last: int
    level: int = 0
    title: str = ""
    continues: bool = False
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """Text that is passed over on purpose.

    Attributes:
        reason: Why, in words that can be counted.
        can_be_mended: Whether somebody can mend it, and needs to know where it is.
        place: Where it is; empty where nobody needs to know, or only the importer knows.
    """

    reason: str
    can_be_mended: bool = False
    place: str = ""

    def locate(self, place: str) -> SkippedPart:
        """Return it with its place where somebody can mend it."""
        return replace(self, place=place) if self.can_be_mended else self


@dataclass(frozen=True, slots=True)
class Problem:
    """What cannot be read: the whole document, or one place of it.

    Attributes:
        message: What is wrong and what to do about it.
        position: Where, in the unit of the document; None for all of it.
    """

    message: str
    position: int | None = None


@dataclass(frozen=True, slots=True)
class NoteFacts:
    """What a document says about all of it: the front matter of a note, the date of any.

    Attributes:
        metadata: Its entries; those of a list joined into one text.
        dates: Which of `date` and `created` it gives, as moments.
        references: The notes that it links to.
    """

    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    dates: Mapping[str, datetime] = field(default_factory=dict)
    references: tuple[str, ...] = ()


Read: TypeAlias = Block | SkippedPart | Problem | NoteFacts


def format_place(first: int, last: int, unit: Unit) -> str:
    """Say where a text lies: `12-20` for lines, `p. 3` or `p. 3-4`, `par. 7` or `par. 7-9`."""
    if unit == "line":
        return f"{first}-{last}"
    return f"{_LABELS[unit]}{first}" + (f"-{last}" if last != first else "")


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a document below one heading, up to the next.

    Attributes:
        headings: The titles from the outermost to its own; empty before the first heading.
        occurrence: How many sections with the same titles came before it.
        has_title: Whether the outermost of them is of the first level, and so names the document.
    """

    headings: tuple[str, ...] = ()
    occurrence: int = 0
    has_title: bool = False


# Parents: the section that a passage belongs to, as an id and as its passages joined.
#
# A parent is not a memory of its own, so it takes no place among the hits; its text is put together
# when it is wanted, from the passages that share its id.

_LINES = re.compile(r"(\d+)-(\d+)")
_ENDS_A_SENTENCE = re.compile(r"[.!?…。！？:：;；][\"'”’»)\]」』）]*$")


def parent_id(document: str, section: Section) -> str:
    """Return the id of a section; it stays while its titles stay.

    Args:
        document: What names the document among all others.
        section: The titles above it, and which one of several alike it is.
    """
    parts = (document, *section.headings, str(section.occurrence))
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return f"section:{digest.hexdigest()[:32]}"


def join_passages(children: Iterable[MemoryRecord]) -> str:
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
        text += _find_separator(before, after) + after.text
    return text


def _find_separator(before: MemoryRecord, after: MemoryRecord) -> str:
    above, below = _LINES.fullmatch(before.lines or ""), _LINES.fullmatch(after.lines or "")
    if above is None or below is None:
        goes_on = before.lines == after.lines and not _ENDS_A_SENTENCE.search(before.text)
        return " " if goes_on else "\n\n"
    gap = int(below[1]) - int(above[2])
    if gap > 0:
        return "\n" if gap == 1 else "\n\n"
    return "" if is_dense(before.text[-1]) and is_dense(after.text[0]) else " "
