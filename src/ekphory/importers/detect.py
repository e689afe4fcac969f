"""Which format a file has: by its name, and by what is in it."""

from __future__ import annotations

import io
import re
from itertools import islice
from pathlib import Path
from typing import Literal, cast, get_args

from ekphory import legacy
from ekphory.documents import tree
from ekphory.errors import InvalidInput, suggest
from ekphory.importers import source
from ekphory.importers.text import TEXT_SUFFIXES
from ekphory.transfer import HEADER_KEY

Format = Literal[
    "ekphory", "locomo", "jsonl", "documents", "text", "chatgpt", "claude", "mem0", "zep", "langmem"
]
FORMATS: tuple[Format, ...] = get_args(Format)
Look = Format | Literal["other JSON", "binary data", "an empty list"]

_LINES_SUFFIXES = (".jsonl", ".ndjson")
_TELLING_KEYS: dict[str, Format] = {
    "mapping": "chatgpt",
    "chat_messages": "claude",
    "conversation": "locomo",
    "sample_id": "locomo",
    HEADER_KEY: "ekphory",
    legacy.EXPORT_HEADER: "ekphory",
    "memory": "mem0",
    "fact": "zep",
    "role_type": "zep",
    "namespace": "langmem",
}
_TELLING_TOGETHER: tuple[tuple[frozenset[str], Format], ...] = (
    (frozenset({"content", "created_at", "role"}), "zep"),
    (frozenset({"content", "created_at", "uuid"}), "zep"),
    (frozenset({"content", "created_at", "uuid_"}), "zep"),
    (frozenset({"prefix", "key", "value"}), "langmem"),
)
_IN_LINES = ("ekphory", "mem0", "zep", "langmem")
"""Formats whose files may be called .jsonl, as our own records are."""
_PROBED_LINES = 20
_JSON_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{")
_EMPTY_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\]\s*\Z")
_OPENING_BYTES = 4096
_PACKED_SUFFIXES = (".pdf", ".docx")
_REMEDIES = {"other JSON": "Records of your own go one JSON object per line (--format jsonl)."}
_KNOWN = f"{', '.join(tree.DOCUMENT_SUFFIXES[:-1])} or {tree.DOCUMENT_SUFFIXES[-1]} file"


def choose_format(path: Path, wanted: str | None) -> Format:
    """Return the format to read a path in, having checked that it looks like it.

    Args:
        path: What the user wants to import.
        wanted: The format that the user named; None finds it out. A folder of `documents` may hold
            none: all of them may have been deleted.

    Raises:
        InvalidInput: The path is missing or empty, the format is unknown, cannot be found out, or
            is not what the path looks like.
        MissingExtra: It is one document, and what reads it is not installed.
    """
    if wanted is not None and wanted not in FORMATS:
        remedy = f"{suggest(wanted, FORMATS)}Use one of {', '.join(FORMATS)}."
        raise InvalidInput("format", wanted, "unknown format", remedy)
    if not path.exists():
        raise InvalidInput("path", str(path), "no such file or folder", "Check the path.")
    if path.is_file() and path.stat().st_size == 0:
        raise InvalidInput("path", str(path), "the file is empty", "Give a file with content.")
    if wanted != "documents":
        _check_folder(path)
    if wanted == "documents" or (wanted is None and _is_named_like_documents(path)):
        _check_documents(path)
        return "documents"
    if wanted is not None and path.is_file() and path.suffix.lower() in _PACKED_SUFFIXES:
        # No other format could be in it.
        raise _describe_mismatch(path, wanted, "documents")
    look = find_look(path)
    if look == "an empty list" and wanted != "text":
        raise InvalidInput("path", str(path), "holds an empty list", "Export your data again.")
    chosen = cast("Format | None", wanted) or _choose_by_name(path, look)
    if chosen is None:
        problem = f"its format cannot be told; it looks like {look}"
        remedy = _REMEDIES.get(look, f"Name it with --format {'|'.join(FORMATS)}.")
        raise InvalidInput("path", str(path), problem, remedy)
    _check_look(path, chosen, look)
    return chosen


def find_look(path: Path) -> Look:
    """Say what a path looks like from its content alone."""
    look: Look = "text" if path.is_dir() else "other JSON"
    for _name, stream in source.open_exports(path):
        look = _find_look_of_stream(stream)
        break
    is_open = look in ("text", "other JSON", "an empty list")
    return "claude" if is_open and source.holds_projects(path) else look


def _is_named_like_documents(path: Path) -> bool:
    if path.is_dir():
        return not holds_export(path)
    return tree.find_reader(path) is not None and not tree.is_unread_code(path)


def _check_documents(path: Path) -> None:
    if path.is_dir():
        return
    reader = tree.find_reader(path)
    if reader is not None and (missing := reader.missing_extra()):
        raise missing
    if reader is None:
        raise InvalidInput("path", str(path), "not a document", f"Give a folder, or a {_KNOWN}.")
    if path.suffix.lower() in TEXT_SUFFIXES:
        with path.open("rb") as stream:
            opens_like_an_export = _JSON_OPENING.match(stream.read(_OPENING_BYTES)) is not None
        look = find_look(path) if opens_like_an_export else "text"
        if look in _TELLING_KEYS.values():
            raise _describe_mismatch(path, "documents", look)


def _check_folder(path: Path) -> None:
    if path.is_dir() and not holds_export(path) and not _holds_documents(path):
        problem = "the folder holds no document and no conversations.json"
        remedy = (
            f"Give a folder with a {_KNOWN}, an unpacked export, or a file; with --prune what was "
            "imported from it is forgotten."
        )
        raise InvalidInput("path", str(path), problem, remedy)


def holds_export(path: Path) -> bool:
    """Say whether a folder holds conversations, or projects of Claude and no documents."""
    if source.conversation_files(path):
        return True
    return source.holds_projects(path) and not _holds_documents(path)


def _holds_documents(path: Path) -> bool:
    unread = tree.UNREAD.values()
    found = tree.find_documents(path)
    return any(isinstance(each, tree.DocumentFile) or each in unread for each in found)


def _choose_by_name(path: Path, look: Look) -> Format | None:
    if look in _IN_LINES:
        return cast("Format", look)
    if not path.is_dir() and path.suffix.lower() in _LINES_SUFFIXES:
        return "jsonl"
    return look if look in FORMATS else None


def _find_look_of_stream(stream: io.BufferedReader) -> Look:
    first = stream.peek(_OPENING_BYTES)[:_OPENING_BYTES]
    if b"\0" in first:
        return "binary data"
    if _EMPTY_LIST.match(first):
        return "an empty list"
    if not (opening := source.looks_like_json(stream)):
        return "text"
    keys: set[str] = set()
    for key in source.top_level_keys(stream):
        if key in _TELLING_KEYS:
            return _TELLING_KEYS[key]
        keys.add(key)
    together = next((name for wanted, name in _TELLING_TOGETHER if wanted <= keys), None)
    return together or ("jsonl" if opening == "{" and "text" in keys else "other JSON")


def _check_look(path: Path, chosen: Format, look: Look) -> None:
    if look == chosen:
        return
    exports = set(_TELLING_KEYS.values())
    agrees = look not in exports and (
        (chosen == "text" and look != "binary data") or (chosen == "jsonl" and _has_json_line(path))
    )
    if not agrees:
        raise _describe_mismatch(path, chosen, look)


def _describe_mismatch(path: Path, chosen: str, look: Look) -> InvalidInput:
    named = f"Use --format {look}." if look in FORMATS else _REMEDIES.get(look, "Check the file.")
    problem = f"not in the format {chosen}: it looks like {look}"
    return InvalidInput("path", str(path), problem, named)


def _has_json_line(path: Path) -> bool:
    lines = source.iterate_numbered_lines(path) if path.is_file() else ()
    held = (line for _, line in lines if line is not None and line.strip())
    return any(source.parse_object(line) is not None for line in islice(held, _PROBED_LINES))
