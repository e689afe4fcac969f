"""Bytes of a text file into text, without guessing."""

from __future__ import annotations

import codecs
from pathlib import Path

from ekphory.documents.blocks import Problem

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
EMPTY = Problem("the file is empty. Delete it, or write something into it.")


def read_bytes(path: Path) -> bytes | Problem:
    """Read a whole file that holds text."""
    size = path.stat().st_size
    if size > LARGEST_TEXT:
        limit = LARGEST_TEXT // 2**20
        return Problem(
            f"{size / 2**20:,.0f} MB is more than the {limit} MB that are read. Split it."
        )
    return path.read_bytes() or EMPTY


def read_text(path: Path, encoding: str | None) -> str | Problem:
    """Read a text file, every line ended by a single line feed.

    Args:
        path: The file.
        encoding: Of files that are neither UTF-8 nor say by a byte order mark what they are.
    """
    data = read_bytes(path)
    return data if isinstance(data, Problem) else decode(data, encoding)


def decode(data: bytes, encoding: str | None) -> str | Problem:
    """Turn bytes into text: by the byte order mark, else as UTF-8, else in the named encoding."""
    for mark, marked in _MARKS:
        if data.startswith(mark):
            return _decoded(data, marked)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf8(data, error) if encoding is None else _decoded(data, encoding)
    if "\0" not in text:
        return _with_plain_line_ends(text)
    return _BINARY if encoding is None else _decoded(data, encoding)


_BINARY = Problem(
    "holds NUL bytes: it is binary, or UTF-16 without a byte order mark. Save it as UTF-8 text."
)


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> Problem:
    if b"\0" in data:
        return _BINARY
    line = data.count(b"\n", 0, error.start) + 1
    found = data[error.start : error.start + 4]
    return Problem(
        f"line {line} is not UTF-8 ({found!r}). Save the file as UTF-8, or name its encoding with "
        "--encoding."
    )


def _decoded(data: bytes, encoding: str) -> str | Problem:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        return Problem(f"byte {error.start + 1} is not {encoding}. Save the file as UTF-8.")
    if "\0" in text:
        return _BINARY
    return _with_plain_line_ends(text)


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
