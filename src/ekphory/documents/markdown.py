"""Markdown: headings, paragraphs, lists, tables and code, each with its lines in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.documents.blocks import Block, BlockKind, LeftOut, Problem, Read
from ekphory.documents.decoding import read_text
from ekphory.documents.extra import from_docs_extra
from ekphory.documents.plain_text import lines_of
from ekphory.documents.settings import ReadingSettings

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "html_block": "paragraph",
}
_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(?=[\w\"'-][^\n]*:).*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL
)
_LONGEST_FRONT_MATTER = 20_000
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
# Bounded, so that a text of nothing but brackets takes no quadratic time.
_TARGET = r"(?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])"
_IMAGE = re.compile(rf"!\[[^\[\]]{{0,500}}\]{_TARGET}")
_EMPTY_LINK = re.compile(rf"\[\s{{0,9}}\]{_TARGET}")
_LINK = re.compile(rf"!?\[([^\[\]]{{0,500}})\]{_TARGET}")
_ANCHOR_ITEM = re.compile(
    r"\s{0,40}(?:[-*+]|\d{1,9}[.)])\s{1,9}\[[^\[\]]{0,500}\]\(#[^()]{0,500}\)\s{0,9}"
)
_MARKS = re.compile(r"(?<!\w)[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?!\w)")
_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})")
_PORTION = 2**20
"""Characters after which the next heading begins a new portion: the parser keeps all its tokens."""


def read_markdown(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read a Markdown file; the text of every block is that of the file, to the letter."""
    text = read_text(path, settings.encoding)
    if isinstance(text, Problem):
        yield text
        return
    yield from blocks_of(text)


def blocks_of(text: str) -> Iterator[Block | LeftOut]:
    """Give the outermost blocks of a Markdown text."""
    with from_docs_extra("Reading Markdown files"):
        from markdown_it import MarkdownIt
    front = _front_matter(text)
    if front is not None:
        yield front
        # Blank lines in its place keep the count of lines.
        text = "\n" * front.last + text.split("\n", front.last)[-1]
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable(["inline", "text_join"])
    before = 0
    for lines in _portions(text):
        for found in _parsed(parser, lines):
            yield _moved(found, before)
        before += len(lines)


def _parsed(parser: MarkdownIt, lines: list[str]) -> Iterator[Block | LeftOut]:
    tokens = parser.parse("\n".join(lines))
    for place, token in enumerate(tokens):
        if token.level == 0 and token.map is not None and token.type in _KINDS:
            yield from _block(token, tokens[place + 1 : place + 2], lines)


def _portions(text: str) -> Iterator[list[str]]:
    """Part a long text before headings that stand in no fence, so that little is parsed at once."""
    portion: list[str] = []
    size, fence = 0, ""
    for line in lines_of(text):
        if size > _PORTION and not fence and line.startswith("#"):
            yield portion
            portion, size = [], 0
        if found := _FENCE.match(line):
            closes = bool(fence) and found[1].startswith(fence)
            fence = "" if closes else fence or found[1]
        portion.append(line)
        size += len(line)
    yield portion


def _moved(found: Block | LeftOut, lines: int) -> Block | LeftOut:
    if isinstance(found, LeftOut) or lines == 0:
        return found
    return replace(found, first=found.first + lines, last=found.last + lines)


def _front_matter(text: str) -> Block | None:
    """Give the settings between two rules at the top of a file, which are no Markdown."""
    found = _FRONT_MATTER.match(text[:_LONGEST_FRONT_MATTER])
    if found is None:
        return None
    text = "\n".join(line.rstrip() for line in found[0].rstrip().split("\n"))
    return Block(text, "code", 1, text.count("\n") + 1, verbatim=True)


def _block(token: Token, inner: Sequence[Token], lines: list[str]) -> Iterator[Block | LeftOut]:
    first, last = _span(token, lines)
    text = "\n".join(line.rstrip() for line in lines[first:last])
    if token.type == "heading_open":
        title = plain_title(inner[0].content if inner else "")
        if title:
            level = int(token.tag[1:])
            yield Block(text, "heading", first + 1, last, level=level, title=title, verbatim=True)
        return
    kind = _KINDS[token.type]
    reason = None if kind == "code" else _reason_to_leave_out(text, kind)
    if reason is not None:
        yield LeftOut(reason)
    elif text.strip():
        yield Block(text, kind, first + 1, last, verbatim=True)


def _span(token: Token, lines: list[str]) -> tuple[int, int]:
    """Give the lines of a token without the blank ones that the parser counts to a list."""
    first, last = token.map or (0, 0)
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return first, last


def _reason_to_leave_out(text: str, kind: BlockKind) -> str | None:
    if kind == "list" and all(_ANCHOR_ITEM.fullmatch(line) for line in text.split("\n")):
        return "table of contents"
    left = _COMMENT.sub("", text)
    if not left.strip():
        return "comment"
    words = _EMPTY_LINK.sub("", _IMAGE.sub("", _TAG.sub("", left)))
    only_pictures = words != left and not any(letter.isalnum() for letter in words)
    return "pictures and tags only" if only_pictures else None


def plain_title(source: str) -> str:
    """Give a heading without the marks of Markdown."""
    title = _LINK.sub(r"\1", source.strip().strip("#").strip())
    return _MARKS.sub("", title).strip()
