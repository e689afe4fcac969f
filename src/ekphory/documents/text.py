"""Readers of text: plain, reStructuredText and Markdown, decoded where the encoding is sure."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.documents.blocks import (
    Block,
    BlockKind,
    NoteFacts,
    Problem,
    Read,
    SkippedPart,
    from_docs_extra,
)
from ekphory.documents.notes import QUERIES, part_comments, part_front_matter
from ekphory.documents.settings import ReadingSettings

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# Bytes into text

LARGEST_TEXT = 64 * 2**20
"""Most bytes of a text, Markdown or HTML file: 64 MB are some 16 million tokens."""

# The marks of UTF-32 begin with those of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
EMPTY = SkippedPart("empty file")


def read_bytes(path: Path) -> bytes | Problem | SkippedPart:
    """Read a whole file that holds text."""
    size = path.stat().st_size / 2**20
    limit = LARGEST_TEXT // 2**20
    if size > limit:
        return Problem(f"{size:,.0f} MB is more than the {limit} MB that are read. Split it.")
    return path.read_bytes() or EMPTY


def read_text(path: Path, encoding: str | None) -> str | Problem | SkippedPart:
    """Read a text file, every line ended by a single line feed.

    Args:
        path: The file.
        encoding: Of files that are neither UTF-8 nor say by a byte order mark what they are.
    """
    data = read_bytes(path)
    return decode(data, encoding) if isinstance(data, bytes) else data


def decode(data: bytes, encoding: str | None) -> str | Problem:
    """Turn bytes into text: by the byte order mark, else as UTF-8, else in the named encoding.

    Where none is named, one that is found is used if it is sure; a guess would be stored garbled.
    """
    for mark, marked in _MARKS:
        if data.startswith(mark):
            return _decode_as(data, marked)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _decode_as(data, encoding) if encoding else _decode_found(data, error)
    if "\0" not in text:
        return _normalize_line_ends(_decode_switched(data) or text)
    return _decode_as(data, encoding) if encoding else _decode_found(data, None)


_SWITCH = b"\x1b$"
"""Where an encoding of seven bits goes over to other signs than ASCII's."""


_HZ_RUN = re.compile(rb"~\{((?:[!-w][!-~])+)~\}")
"""Chinese in seven bits, two of them a sign."""


def _decode_switched(data: bytes) -> str | None:
    """Decode East Asian text in seven bits, which passes for UTF-8; None where it is none."""
    names = ("iso2022_kr", "iso2022_jp_2") if _SWITCH in data else ()
    for name in (*names, *(("hz",) if _may_be_hz(data) else ())):
        with suppress(UnicodeDecodeError):
            return data.decode(name)
    return None


def _may_be_hz(data: bytes) -> bool:
    """Whether what stands between `~{` and `~}` is Chinese, of common ideographs: rows 16 to 55.

    A word in small letters would be rare ones.
    """
    rows: list[int] = [byte - 0x20 for run in _HZ_RUN.findall(data) for byte in run[::2]]
    common = sum(16 <= row <= 55 for row in rows)
    return common >= _FEWEST_LETTERS and 2 * common > len(rows)


_BINARY = Problem(
    "holds NUL bytes: it is binary, or UTF-16 without a byte order mark. Save it as UTF-8 text."
)


def _decode_found(data: bytes, error: UnicodeDecodeError | None) -> str | Problem:
    """Decode in the encoding that the bytes show, or say what is known of it."""
    name, confidence = _find_encoding(data)
    text = _decode_as(data, name) if name and confidence >= _LEAST_CONFIDENCE else None
    if name and isinstance(text, str) and (name.startswith("utf") or _is_plausible(text)):
        return text
    if error is None or b"\0" in data:
        return _BINARY
    line = data.count(b"\n", 0, error.start) + 1
    found = data[error.start : error.start + 4]
    return Problem(
        f"line {line} is not UTF-8 ({found!r}). Save the file as UTF-8, or name its encoding with "
        "--encoding; that of Windows is cp1252 in western and cp1250 in central Europe."
    )


def _find_encoding(data: bytes) -> tuple[str | None, float]:
    """Return the likeliest encoding, and how sure it is; none where `[docs]` is not installed."""
    try:
        import chardet
    except ImportError:
        return None, 0.0
    found = chardet.detect(data)
    return found["encoding"], found["confidence"]


def _decode_as(data: bytes, encoding: str) -> str | Problem:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        return Problem(f"byte {error.start + 1} is not {encoding}. Save the file as UTF-8.")
    return _BINARY if "\0" in text else _normalize_line_ends(text)


def _normalize_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


_LEAST_CONFIDENCE = 0.1
"""Of chardet's scale, on which a sentence has 0.12 to 0.8; below lie single words."""

_FEWEST_LETTERS = 4
_CONTROLS = re.compile(r"[\x80-\x9f]")


def _is_plausible(text: str) -> bool:
    """Whether what is not ASCII is words: enough letters, of one script, and no stray signs.

    In `Price: 20 € — cheap` the two signs are two Hebrew letters of another encoding.
    """
    beyond = [sign for sign in text if not sign.isascii()]
    letters = [sign for sign in beyond if sign.isalpha()]
    foreign = sum(not unicodedata.name(sign, "").startswith("LATIN") for sign in letters)
    plain = sum(sign.isascii() and sign.isalpha() for sign in text)
    of_one_script = foreign == 0 or (foreign == len(letters) and foreign >= plain)
    are_words = len(letters) >= _FEWEST_LETTERS and 2 * len(letters) >= len(beyond)
    return are_words and of_one_script and not _CONTROLS.search(text)


TextReader = Callable[[Path, ReadingSettings], Iterator[Read]]


def _make_reader(parse: Callable[[str], Iterator[Read]]) -> TextReader:
    """Return a reader of files whose text is parsed so."""

    def read(path: Path, settings: ReadingSettings) -> Iterator[Read]:
        text = read_text(path, settings.encoding)
        if isinstance(text, str):
            yield from parse(text)
        else:
            yield text

    return read


# Plain text


def parse_paragraphs(text: str) -> Iterator[Block]:
    """Return the paragraphs with their lines, counted from 1."""
    held: list[str] = []
    number = 0
    for number, line in enumerate(iterate_lines(text), start=1):
        if line.strip():
            held.append(line)
        elif held:
            yield _make_paragraph(held, number - 1)
            held = []
    if held:
        yield _make_paragraph(held, number)


def iterate_lines(text: str) -> Iterator[str]:
    """Return the lines without their ends, one after the other."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _make_paragraph(lines: list[str], last: int) -> Block:
    text = "\n".join(line.rstrip() for line in lines)
    return Block(text, "paragraph", last - len(lines) + 1, last, verbatim=True)


read_plain_text = _make_reader(parse_paragraphs)


# reStructuredText

_RULE = re.compile(r"([!-/:-@[-`{-~])\1{2,}\s*")


def parse_restructured_text(text: str) -> Iterator[Block]:
    """Return paragraphs and titles; a title's level is the order in which its style came up."""
    styles: list[str] = []
    for block in parse_paragraphs(text):
        yield from _part_title(block, styles)


read_restructured_text = _make_reader(parse_restructured_text)


def _part_title(block: Block, styles: list[str]) -> Iterator[Block]:
    """Part a title at the top of a paragraph from the lines below it."""
    lines = block.text.split("\n")
    over = bool(_RULE.fullmatch(lines[0])) and len(lines) > 2
    title, rule = (lines[1:3] if over else lines[:2]) if len(lines) > 1 else (lines[0], "")
    if not _RULE.fullmatch(rule) or len(rule.rstrip()) < len(title.strip()):
        yield block
        return
    style = rule[0] * (2 if over else 1)
    if style not in styles:
        styles.append(style)
    taken = 3 if over else 2
    last, level = block.first + taken - 1, styles.index(style) + 1
    heading = replace(block, text="\n".join(lines[:taken]), kind="heading", last=last)
    yield replace(heading, level=level, title=title.strip())
    if lines[taken:]:
        yield replace(block, text="\n".join(lines[taken:]), first=last + 1)


# Markdown

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "table_open": "table",
    **dict.fromkeys(("paragraph_open", "blockquote_open", "html_block"), "paragraph"),
    **dict.fromkeys(("bullet_list_open", "ordered_list_open"), "list"),
    **dict.fromkeys(("fence", "code_block"), "code"),
}
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
_MARKDOWN_MARKS = re.compile(r"(?<!\w)[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?!\w)")
_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})")
_PORTION = 2**20
"""Characters after which the next heading begins a new portion: the parser keeps all its tokens."""


def parse_markdown(text: str) -> Iterator[Block | SkippedPart | NoteFacts]:
    """Return the outermost blocks of a Markdown text, their text that of the file to the letter.

    What its front matter says comes first; comments of a vault are not in it.
    """
    with from_docs_extra("Reading Markdown files"):
        from markdown_it import MarkdownIt
    facts, text = part_front_matter(text)
    yield from facts
    hidden, text = part_comments(text)
    yield from hidden
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable(["inline", "text_join"])
    before = 0
    for lines in _part_text(text):
        yield from _parse_portion(parser, lines, before)
        before += len(lines)


read_markdown = _make_reader(parse_markdown)


def _parse_portion(
    parser: MarkdownIt, lines: list[str], before: int
) -> Iterator[Block | SkippedPart]:
    tokens = parser.parse("\n".join(lines))
    for place, token in enumerate(tokens):
        if token.level == 0 and token.map is not None and token.type in _KINDS:
            yield from _make_block(token, tokens[place + 1 : place + 2], lines, before)


def _part_text(text: str) -> Iterator[list[str]]:
    """Part a long text before headings that stand in no fence, so that little is parsed at once."""
    portion: list[str] = []
    size, fence = 0, ""
    for line in iterate_lines(text):
        if size > _PORTION and not fence and line.startswith("#"):
            yield portion
            portion, size = [], 0
        if found := _FENCE.match(line):
            closes = fence and found[1].startswith(fence)
            fence = "" if closes else fence or found[1]
        portion.append(line)
        size += len(line)
    yield portion


def _make_block(
    token: Token, inner: Sequence[Token], lines: list[str], before: int
) -> Iterator[Block | SkippedPart]:
    first, last = token.map or (0, 0)
    # The parser counts the blank lines below a list to it.
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    text, kind = "\n".join(line.rstrip() for line in lines[first:last]), _KINDS[token.type]
    block = Block(text, kind, before + first + 1, before + last, verbatim=True)
    if kind == "heading":
        if title := strip_title_marks(inner[0].content if inner else ""):
            yield replace(block, level=int(token.tag[1:]), title=title)
    elif reason := _explain_exclusion(text, kind, token.info):
        yield SkippedPart(reason)
    elif text.strip():
        yield block


def _explain_exclusion(text: str, kind: BlockKind, info: str) -> str | None:
    if kind == "code":
        language = info.strip().split(" ")[0].lower()
        return f"{language} query" if language in QUERIES else None
    if kind == "list" and all(_ANCHOR_ITEM.fullmatch(line) for line in text.split("\n")):
        return "table of contents"
    left = _COMMENT.sub("", text)
    if not left.strip():
        return "comment"
    words = _EMPTY_LINK.sub("", _IMAGE.sub("", _TAG.sub("", left)))
    only_pictures = words != left and not any(letter.isalnum() for letter in words)
    return "pictures and tags only" if only_pictures else None


def strip_title_marks(source: str) -> str:
    """Return a heading without the marks of Markdown."""
    title = _LINK.sub(r"\1", source.strip().strip("#").strip())
    return _MARKDOWN_MARKS.sub("", title).strip()
