"""The file that lists what an import could not write: one JSON object per failure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from ekphory.errors import InvalidInput
from ekphory.importers.record import ImportedRecord

_LONGEST_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """One record that was not imported.

    Attributes:
        place: Where in the input it is.
        id: The record's id where it has a usable one.
        field: The field at fault.
        message: What is wrong and what to do about it.
        content: The record as it was read, long texts cut; the raw text where it was unreadable.
    """

    place: str
    id: str | None
    field: str
    message: str
    content: object


def content_of(record: ImportedRecord) -> dict[str, object]:
    """Give a record's fields in a form that JSON can hold, long texts cut."""
    return {name: _for_json(value) for name, value in record.fields.items()}


def _for_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}… ({len(value)} characters)"
    return value


class FailuresFile:
    """A JSON Lines file of failures, appended to, and opened only when there is one to write."""

    def __init__(self, path: Path, *, instead: Path | None = None) -> None:
        """Remember where to write.

        Args:
            path: Where to write.
            instead: Where to write when `path` cannot be written to.
        """
        self._candidates = [path] if instead is None else [path, instead]
        self._stream: IO[str] | None = None
        self._run_at = datetime.now(tz=UTC).isoformat(timespec="seconds")
        self.path: Path | None = None

    def __enter__(self) -> FailuresFile:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def append(self, failure: FailedRecord) -> None:
        """Write one failure and hand it to the operating system at once.

        Raises:
            InvalidInput: No place for the file can be written to.
        """
        stream = self._stream or self._open()
        row = {
            "place": failure.place,
            "id": failure.id,
            "field": failure.field,
            "message": failure.message,
            "content": failure.content,
            "run_at": self._run_at,
        }
        # ASCII escapes keep lone surrogates writable.
        stream.write(json.dumps(row, ensure_ascii=True, default=str) + "\n")
        stream.flush()

    def _open(self) -> IO[str]:
        reasons: list[str] = []
        for candidate in self._candidates:
            try:
                self._stream = candidate.open("a", encoding="utf-8")
            except OSError as error:
                reasons.append(f"{candidate}: {error.strerror}")
            else:
                self.path = candidate
                return self._stream
        raise InvalidInput(
            "failures_path",
            str(self._candidates[0]),
            f"the failures cannot be written ({'; '.join(reasons)})",
            "Name a file that can be written to.",
        )


def failures_file(path: Path, wanted: Path | None) -> FailuresFile:
    """Give the file for the failures of importing `path`.

    Without a wanted one it lies beside the input as `<input>.failed.jsonl`, or in the current
    folder where that place cannot be written to.

    Raises:
        InvalidInput: The wanted file is a folder, or its folder does not exist.
    """
    if wanted is None:
        source = path.resolve()
        name = f"{source.name}.failed.jsonl"
        return FailuresFile(source.with_name(name), instead=Path.cwd() / name)
    if wanted.is_dir() or not wanted.parent.is_dir():
        raise InvalidInput(
            "failures_path", str(wanted), "not a file in an existing folder", "Name such a file."
        )
    return FailuresFile(wanted)
