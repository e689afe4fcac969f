"""Import of what `ekphory export` wrote: memories as they were, with their earlier versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ekphory import transfer
from ekphory.documents.blocks import SkippedPart
from ekphory.errors import InvalidInput
from ekphory.importers import source
from ekphory.types import now_utc, to_utc


def read_export(path: Path) -> Iterator[source.Readable]:
    """Read an export, line by line; see `read_export_lines`."""
    return read_export_lines(path.name, source.iterate_numbered_lines(path))


def read_export_lines(name: str, lines: source.NumberedLines) -> Iterator[source.Readable]:
    """Read the lines of an export, and check that nothing of it is missing or changed.

    A damaged line is reported with its number; so is a memory that lacks some of its versions,
    since it would not be complete. Then the others are still given.

    Args:
        name: What places call the file.
        lines: Its lines.

    Yields:
        One record for each memory, with its `versions`, one `SkippedPart` for one that has expired,
        or one `Unreadable` for each damage.

    Raises:
        InvalidInput: The first line is not the header of an export, or of a newer ekphory's.
    """
    number, first = next(lines, (1, b""))
    state = _Reading(name, _read_header(name, first))
    for number, line in lines:
        yield from state.take(number, line)
    yield from state.finish(number)


def _read_header(name: str, line: bytes | None) -> dict[str, Any]:
    try:
        header = transfer.decode_line(line or b"")
    except transfer.DamagedLine as error:
        problem, remedy = f"the header is {error}", "Take the file as it was exported"
        raise InvalidInput("path", f"{name}:1", problem, remedy) from error
    if header.get(transfer.HEADER_KEY) != transfer.FORMAT_VERSION:
        problem = f"this ekphory reads exports of version {transfer.FORMAT_VERSION}"
        remedy = "Upgrade it with: pip install --upgrade ekphory"
        raise InvalidInput(transfer.HEADER_KEY, header.get(transfer.HEADER_KEY), problem, remedy)
    return header


def _has_expired(value: object) -> bool:
    try:
        return isinstance(value, str) and to_utc(value, field="expires_at") <= now_utc()
    except InvalidInput:
        # The record is refused for it when it is written.
        return False


@dataclass(slots=True)
class _Memory:
    """A memory whose versions are being read."""

    number: int
    fields: dict[str, Any]
    expected: int
    versions: list[dict[str, Any]] = field(default_factory=list)


class _Reading:
    """What was read so far of an export, and what is still owed."""

    def __init__(self, name: str, header: dict[str, Any]) -> None:
        self._name = name
        self._promised = header.get("memories")
        self._digest = hashlib.sha256()
        self._memories = 0
        self._versions = 0
        self._current: _Memory | None = None
        self._ended = False

    def _add_up(self, line: bytes) -> None:
        # Whatever an editor ends its lines with.
        self._digest.update(line.rstrip(b"\r\n") + b"\n")

    def take(self, number: int, line: bytes | None) -> Iterator[source.Readable]:
        """Take one line in; return the memory before it, where that is complete by now."""
        if line is None:
            yield self._describe_damage(number, source.describe_excess_length("line"))
        elif not self._ended:
            yield from self._take_content(number, line)
        elif line.strip():
            problem = "a line behind the end of the export. Remove it."
            yield self._describe_damage(number, problem)

    def finish(self, number: int) -> Iterator[source.Readable]:
        """Return the last memory, and tell whether the file ended too early."""
        yield from self._settle()
        if not self._ended:
            yield self._describe_damage(
                number,
                f"the file is cut off: {self._memories:,} of {_format_count(self._promised)} "
                "memories are in it, and no last line. What could be read is imported; export "
                "again, and import that too.",
            )

    def _take_content(self, number: int, line: bytes) -> Iterator[source.Readable]:
        try:
            content = transfer.decode_line(line)
        except transfer.DamagedLine as error:
            self._add_up(line)
            message = f"{error}. Take the line as it was exported."
            yield self._describe_damage(number, message, line[:500].decode("utf-8", "replace"))
            return
        if transfer.END_KEY in content:
            yield from self._settle()
            yield from self._check_end(number, content)
            return
        self._add_up(line)
        if transfer.VERSIONS_KEY in content:
            yield from self._settle()
            self._memories += 1
            self._current = _Memory(number, content, content.pop(transfer.VERSIONS_KEY))
        else:
            self._versions += 1
            yield from self._take_version(number, content)

    def _take_version(self, number: int, content: dict[str, Any]) -> Iterator[source.Readable]:
        current = self._current
        if current is None or content.get("superseded_by") != current.fields.get("id"):
            problem = "an earlier version whose memory is not before it. Restore the line of it."
            yield self._describe_damage(number, problem)
        else:
            current.versions.append(content)

    def _settle(self) -> Iterator[source.Readable]:
        current, self._current = self._current, None
        if current is None:
            return
        if len(current.versions) != current.expected:
            yield self._describe_damage(
                current.number,
                f"{len(current.versions)} of the memory's {current.expected} earlier versions can "
                "be read, so it was not imported. Take the file as it was exported.",
            )
        elif _has_expired(current.fields.get("expires_at")):
            yield SkippedPart("expired since the export")
        else:
            fields = current.fields | {transfer.VERSIONS_KEY: current.versions}
            yield source.ImportedRecord(fields, f"{self._name}:{current.number}")

    def _check_end(self, number: int, end: dict[str, Any]) -> Iterator[source.Readable]:
        self._ended = True
        if self._digest.hexdigest() == end.get("sha256"):
            return
        yield self._describe_damage(
            number,
            "lines were changed, added or removed since the export: "
            f"{self._memories:,} of {_format_count(end.get('memories'))} memories and "
            f"{self._versions:,} of {_format_count(end.get('versions'))} earlier versions are in "
            "it. What could be read is imported.",
        )

    def _describe_damage(self, number: int, message: str, content: str = "") -> source.Unreadable:
        return source.Unreadable(f"{self._name}:{number}", "line", message, content)


def _format_count(count: object) -> str:
    return f"{count:,}" if isinstance(count, int) else "an unknown number of"
