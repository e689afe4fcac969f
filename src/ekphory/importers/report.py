"""What became of an import: the counts while it runs, the report, and the file of what failed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from ekphory.atomic_write import write_aside
from ekphory.documents.blocks import SkippedPart
from ekphory.documents.tree import FAILURES_FOLDER
from ekphory.errors import EkphoryError, InvalidInput
from ekphory.importers.source import ImportedRecord, Unreadable, parse_object
from ekphory.types import Failure, WriteReport

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


def _make_content(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}… ({len(value)} characters)"
    return value


def describe_failure(record: ImportedRecord, failure: Failure) -> FailedRecord:
    """Tell which record a memory refused, and why."""
    content = {name: _make_content(value) for name, value in record.fields.items()}
    return FailedRecord(record.place, failure.id, failure.field, failure.message, content)


def describe_unreadable(found: Unreadable) -> FailedRecord:
    """Tell which place could not be read, and why."""
    return FailedRecord(found.place, None, found.field, found.message, found.content)


class FailuresFile:
    """A JSON Lines file of what the last import of each input refused, and of nothing before.

    It is opened only when there is a failure to write; what it held of the same input goes then,
    or when an import of it ends without one.
    """

    def __init__(self, source: Path, path: Path, *, instead: Path | None = None) -> None:
        """Remember where to write.

        Args:
            source: The input.
            path: Where to write.
            instead: Where to write when `path` cannot be written to.
        """
        self._source = str(source)
        self._candidates = [path] if instead is None else [path, instead]
        self._stream: IO[str] | None = None
        self._run_at = datetime.now(tz=UTC).isoformat(timespec="seconds")
        self._listed: set[tuple[str, str, str]] = set()
        self.path: Path | None = None

    def __enter__(self) -> FailuresFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if self._stream is not None:
            self._stream.close()
        elif kind is None:
            self._forget_mended()

    def append(self, failure: FailedRecord) -> None:
        """Write one failure, once, and hand it to the operating system at once.

        Raises:
            InvalidInput: No place for the file can be written to.
        """
        stream = self._stream or self._open()
        told = (failure.place, failure.field, failure.message)
        if told in self._listed:
            return
        self._listed.add(told)
        row = {name: getattr(failure, name) for name in FailedRecord.__dataclass_fields__}
        row |= {"input": self._source, "run_at": self._run_at}
        # ASCII escapes keep lone surrogates writable.
        stream.write(json.dumps(row, ensure_ascii=True, default=str) + "\n")
        stream.flush()

    def retract(self, places: re.Pattern[str]) -> None:
        """Take out what was listed of these places."""
        left = {told for told in self._listed if not places.fullmatch(told[0])}
        if self._stream is None or left == self._listed:
            return
        self._stream.close()
        self._stream = self.path = None
        self._listed = left
        if left:
            self._open()
        else:
            self._forget_mended()

    def _open(self) -> IO[str]:
        reasons: list[str] = []
        for candidate in self._candidates:
            try:
                candidate.parent.mkdir(exist_ok=True)
                if candidate.exists():
                    _replace_lines(candidate, self._leave_others(_read_lines(candidate)))
                self._stream = candidate.open("a", encoding="utf-8", errors="surrogateescape")
            except OSError as error:
                reasons.append(f"{candidate}: {error.strerror}")
            else:
                self.path = candidate
                return self._stream
        problem = f"the failures cannot be written ({'; '.join(reasons)})"
        remedy = "Name a file that can be written to."
        raise InvalidInput("failures_path", str(self._candidates[0]), problem, remedy)

    def _leave_others(self, lines: list[str]) -> list[str]:
        """Return the lines that tell of other inputs, or what this import has listed."""
        rows = [parse_object(line.encode("utf-8", "surrogateescape")) or {} for line in lines]
        pairs = zip(lines, rows, strict=True)
        return [line for line, row in pairs if row.get("input") != self._source or self._lists(row)]

    def _lists(self, row: Mapping[str, object]) -> bool:
        return (row.get("place"), row.get("field"), row.get("message")) in self._listed

    def _forget_mended(self) -> None:
        """Take out what an earlier import refused and this one did not."""
        for candidate in self._candidates:
            with suppress(OSError):
                lines = _read_lines(candidate)
                kept = self._leave_others(lines)
                if not kept:
                    candidate.unlink()
                elif len(kept) < len(lines):
                    _replace_lines(candidate, kept)


def _read_lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="surrogateescape") as stream:
        return list(stream)


def _replace_lines(path: Path, lines: list[str]) -> None:
    """Replace a file whole, so that no crash takes the lines that stay."""
    with write_aside(path) as part:
        part.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")


def failures_file(path: Path, wanted: Path | None) -> FailuresFile:
    """Return the file for the failures of importing `path`.

    Without a wanted one it is `ekphory-failed/<input>.jsonl` beside the input, or in the current
    folder where that place cannot be written to.

    Raises:
        InvalidInput: The wanted file is a folder, or its folder does not exist.
    """
    source = path.resolve()
    if wanted is None:
        name = Path(FAILURES_FOLDER, f"{source.name.removesuffix('.jsonl')}.jsonl")
        return FailuresFile(source, source.parent / name, instead=Path.cwd() / name)
    if wanted.is_dir() or not wanted.parent.is_dir():
        problem = "not a file in an existing folder"
        raise InvalidInput("failures_path", str(wanted), problem, "Name such a file.")
    return FailuresFile(source, wanted)


_EXAMPLES = 5
OLDER_RECORD = "record older than what is stored"
OLDER_TEXT = "passage of a text older than what is stored"
"""Reasons for which a record whose id is known is left out."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of an import, or what has become of it so far.

    Attributes:
        added: Number of memories written and durable.
        updated: Number of memories that got a new version, as their record has changed.
        skipped: Number of records that were already there.
        failed: Number of records and places that were refused.
        failures_path: The file that lists the failures; None where there are none.
        examples: The first few failures.
        forgotten: Number of memories that a newer version of their document has replaced, or whose
            document is gone.
        left_out: Number of pieces that were passed over on purpose, by reason.
        places: The first few places of what was passed over and can be mended, by reason.
    """

    added: int = 0
    skipped: int = 0
    failed: int = 0
    failures_path: Path | None = None
    examples: tuple[FailedRecord, ...] = ()
    forgotten: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    updated: int = 0
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """Number of records that were read, whatever became of them."""
        older = sum(self.left_out.get(reason, 0) for reason in (OLDER_RECORD, OLDER_TEXT))
        return self.added + self.updated + self.skipped + self.failed + older

    def describe_counts(self) -> str:
        """Return the numbers in words, those that are rarer only where they are not 0."""
        rarer = [(self.updated, "updated"), (self.forgotten, "forgotten")]
        told = [(self.added, "added"), *(each for each in rarer if each[0])]
        told += [(self.skipped, "already there"), (self.failed, "failed")]
        return ", ".join(f"{count:,} {name}" for count, name in told)


class ImportInterrupted(EkphoryError, KeyboardInterrupt):
    """Ctrl-C ended an import; what was acknowledged stays.

    Attributes:
        report: What was done until then.
    """

    def __init__(self, report: ImportReport) -> None:
        self.report = report
        super().__init__(
            f"Import interrupted: {report.describe_counts()}. Run the same import again to go on: "
            "what is already there is skipped."
        )


class Tally:
    """Counts what becomes of an import, and lists its failures."""

    def __init__(self, failures: FailuresFile) -> None:
        self._failures = failures
        self._counts: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._examples: list[FailedRecord] = []
        self._places: dict[str, list[str]] = {}

    def count(self, chunk: Sequence[ImportedRecord], report: WriteReport) -> None:
        """Count what became of the records that were handed to a memory."""
        self.add(added=report.added, skipped=report.skipped)
        for failure in report.failed:
            self.list(describe_failure(chunk[failure.index], failure))

    def add(self, **counts: int) -> None:
        """Count memories that were `added`, `updated`, `skipped` or `forgotten`."""
        self._counts.update(counts)

    def leave_out(self, reason: str) -> None:
        """Count a piece that was passed over on purpose."""
        self._left_out[reason] += 1

    def pass_over(self, found: Unreadable | SkippedPart) -> None:
        """Count what yields no record; list a place that could not be read."""
        if isinstance(found, SkippedPart):
            self.leave_out(found.reason)
            places = self._places.setdefault(found.reason, []) if found.place else []
            if len(places) < _EXAMPLES and found.place not in places:
                places.append(found.place)
        else:
            self.list(describe_unreadable(found))

    def report(self) -> ImportReport:
        """Return the counts so far."""
        return ImportReport(
            added=self._counts["added"],
            skipped=self._counts["skipped"],
            failed=self._failed.total(),
            failures_path=self._failures.path,
            examples=tuple(self._examples),
            forgotten=self._counts["forgotten"],
            left_out=dict(self._left_out.most_common()),
            updated=self._counts["updated"],
            places={reason: tuple(places) for reason, places in self._places.items()},
        )

    def list(self, failure: FailedRecord) -> None:
        """Count and list a record that was refused."""
        self._failures.append(failure)
        self._failed[failure.place] += 1
        if len(self._examples) < _EXAMPLES:
            self._examples.append(failure)

    def retract(self, name: str) -> None:
        """Forget what was refused of a document, or below a folder, that is read anew."""
        places = re.compile(rf"{re.escape(name)}(?: \([^()]*\)|/.*)?", re.DOTALL)
        self._failures.retract(places)
        for place in filter(places.fullmatch, list(self._failed)):
            del self._failed[place]
        self._examples = [one for one in self._examples if not places.fullmatch(one.place)]
