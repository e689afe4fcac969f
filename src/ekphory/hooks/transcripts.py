"""Reading the transcripts of agent tools as messages.

Each tool keeps its own form of JSON Lines, and none of them is promised to stay; what is not known
is passed over, a line that is just being written among it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.types import to_utc

ReadLine = Callable[[Mapping[str, Any]], Iterable[dict[str, Any]]]

_MACHINE_MADE = re.compile(
    r"\s*<(?:command-name|command-message|local-command-stdout|local-command-caveat|"
    r"system-reminder|task-notification|environment_context|user_instructions|"
    r"permissions instructions|turn_aborted|hook_context)\b|\s*# AGENTS\.md"
)
"""How a user's message begins that nobody typed."""
_MOST_OF_A_RESULT = 4_000
"""Characters of what a tool printed that are read; it is evidence only."""


def read_transcript(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a transcript file, `{"role": …, "content": …, "at": …}`, in order.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        found = [_parse(line) for line in file]
    return list(read_lines([line for line in found if isinstance(line, Mapping)]))


def read_end(path: Path, most_bytes: int) -> list[dict[str, Any]]:
    """Return the messages at the end of a transcript file, those that begin within some bytes.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - most_bytes)
        file.seek(start)
        lines = file.read(most_bytes).decode("utf-8-sig", "replace").split("\n")
    found = [_parse(line) for line in lines[1 if start else 0 :]]  # the first one is cut
    return list(read_lines([line for line in found if isinstance(line, Mapping)]))


def _parse(line: str) -> object:
    """Return what a line holds; None where it is damaged, too deep, or not whole yet."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def read_lines(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the messages of lines of any known form."""
    if any("$set" in line or line.get("type") == "gemini" for line in lines):
        lines = _settle(lines)
    for line in lines:
        try:
            found = next(filter(None, (list(read(line)) for read in _READERS)), [])
        except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
            continue  # of a form that is not known
        yield from found


def _settle(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records of a log, of each id the last one."""
    records: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        changed = line.get("$set")
        if isinstance(changed, Mapping) and "messages" in changed:
            records = {
                each["id"]: each
                for each in changed["messages"]
                if isinstance(each, Mapping) and isinstance(each.get("id"), str)
            }
        elif isinstance(line.get("$rewindTo"), str) and line["$rewindTo"] in records:
            names = list(records)
            records = {name: records[name] for name in names[: names.index(line["$rewindTo"])]}
        elif isinstance(line.get("id"), str):
            records[line["id"]] = line
    return list(records.values())


def _message(role: str, text: object, at: object = None) -> Iterator[dict[str, Any]]:
    if not isinstance(text, str) or not text.strip() or _MACHINE_MADE.match(text):
        return
    if role == "tool":
        text = text[:_MOST_OF_A_RESULT]
    message: dict[str, Any] = {"role": role, "content": text}
    moment = _read_moment(at)
    yield message if moment is None else {**message, "at": moment}


def _read_moment(at: object) -> str | None:
    """Return a moment as ISO 8601; None where it is none that can be read."""
    try:
        if isinstance(at, int | float):
            return datetime.fromtimestamp(at / 1000, UTC).isoformat()
        return to_utc(at, field="at").isoformat() if isinstance(at, str) else None
    except (InvalidInput, ValueError, OverflowError, OSError):
        return None


def _texts(content: object, *kinds: str) -> str:
    """Return the texts of blocks of some kinds, or a content that is text itself."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        return ""
    parts = [
        block if isinstance(block, str) else block.get("text", "")
        for block in content
        if isinstance(block, str)
        or (isinstance(block, Mapping) and block.get("type", "text") in ("text", *kinds))
    ]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _read_claude(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = line.get("message")
    if line.get("type") not in ("user", "assistant") or not isinstance(message, Mapping):
        return
    if any(line.get(name) for name in ("isSidechain", "isMeta", "isCompactSummary")):
        return
    content, at = message.get("content"), line.get("timestamp")
    yield from _message(str(line["type"]), _texts(content), at)
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            yield from _message("tool", _texts(block.get("content")), at)


def _read_codex(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    payload, at = line.get("payload"), line.get("timestamp")
    if line.get("type") != "response_item" or not isinstance(payload, Mapping):
        return
    kind = payload.get("type")
    if kind == "message" and payload.get("role") in ("user", "assistant"):
        text = _texts(payload.get("content"), "input_text", "output_text")
        yield from _message(str(payload["role"]), text, at)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        content = output.get("content") if isinstance(output, Mapping) else output
        yield from _message("tool", _texts(content, "output_text"), at)


def _read_gemini(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    role = {"user": "user", "gemini": "assistant"}.get(str(line.get("type")))
    if role is None or "content" not in line or "message" in line:
        return
    at = line.get("timestamp")
    yield from _message(role, _texts(line["content"]), at)
    for call in line.get("toolCalls") or ():
        if isinstance(call, Mapping):
            yield from _message("tool", call.get("resultDisplay"), at)


def _read_cursor(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = line.get("message")
    if line.get("role") not in ("user", "assistant") or not isinstance(message, Mapping):
        return
    text = _texts(message.get("content"))
    _, opened, rest = text.partition("<user_query>")
    typed = rest.partition("</user_query>")[0].strip() if opened else text
    yield from _message(str(line["role"]), typed)


def _read_openclaw(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = line.get("message")
    if line.get("type") == "message" and isinstance(message, Mapping):
        yield from _read_plain({"timestamp": line.get("timestamp"), **message})


def _read_plain(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Read a message as chat services have it, or as opencode sends it."""
    info, parts = line.get("info"), line.get("parts")
    if isinstance(info, Mapping) and isinstance(parts, list):
        yield from _read_parts(info, parts)
        return
    role = {"toolResult": "tool"}.get(str(line.get("role")), line.get("role"))
    if role in ("user", "assistant", "tool"):
        at = line.get("at", line.get("timestamp"))
        yield from _message(str(role), _texts(line.get("content")), at)


def _read_parts(info: Mapping[str, Any], parts: Sequence[Any]) -> Iterator[dict[str, Any]]:
    role, at = info.get("role"), (info.get("time") or {}).get("created")
    if role not in ("user", "assistant") or info.get("summary"):
        return
    told = [part for part in parts if isinstance(part, Mapping)]
    text = "\n".join(
        str(part["text"])
        for part in told
        if part.get("type") == "text" and part.get("text") and not part.get("synthetic")
    )
    yield from _message(str(role), text, at)
    for part in told:
        state = part.get("state")
        if part.get("type") == "tool" and isinstance(state, Mapping):
            yield from _message("tool", state.get("output"), at)


_READERS: Sequence[ReadLine] = (
    *(_read_claude, _read_codex, _read_gemini, _read_cursor, _read_openclaw, _read_plain),
)
