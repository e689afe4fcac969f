"""Importing a path into a memory: read, write in chunks, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recollect.errors import InvalidInput
from recollect.importers.chatgpt import read_chatgpt
from recollect.importers.claude import read_claude
from recollect.importers.detect import Format, choose_format
from recollect.importers.failures import FailedRecord, FailuresFile, content_of, failures_file
from recollect.importers.jsonl import read_jsonl
from recollect.importers.locomo import read_locomo
from recollect.importers.record import ImportedRecord, Readable, Unreadable
from recollect.importers.text import read_text
from recollect.types import WriteReport

CHUNK_RECORDS = 256
_CHUNK_CHARACTERS = 4_000_000
_EXAMPLES = 5
_READERS: dict[Format, Callable[[Path], Iterator[Readable]]] = {
    "jsonl": read_jsonl,
    "text": read_text,
    "chatgpt": read_chatgpt,
    "claude": read_claude,
}


class RecordWriter(Protocol):
    """What an import writes to; `Memory` is one."""

    def add_many(self, records: Iterable[dict[str, object]]) -> WriteReport:
        """Write the records durably and report what became of each."""
        ...


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of an import, or what has become of it so far.

    Attributes:
        added: Number of memories written and durable.
        skipped: Number of records that were already there.
        failed: Number of records and places that were refused.
        failures_path: The file that lists the failures; None where there are none.
        examples: The first few failures.
    """

    added: int = 0
    skipped: int = 0
    failed: int = 0
    failures_path: Path | None = None
    examples: tuple[FailedRecord, ...] = ()


class ImportInterrupted(KeyboardInterrupt):
    """Ctrl-C ended an import; what was acknowledged stays.

    Attributes:
        report: What was done until then.
    """

    def __init__(self, report: ImportReport) -> None:
        self.report = report
        super().__init__(
            f"Import interrupted: {report.added} added, {report.skipped} already there, "
            f"{report.failed} failed. Run the same import again to go on: "
            "what is already there is skipped."
        )


def import_path(
    memory: RecordWriter,
    path: Path | str,
    *,
    format: Format | None = None,  # noqa: A002 - the name that users know from the command line
    failures_path: Path | None = None,
    on_progress: Callable[[ImportReport], None] | None = None,
    conversation: str | None = None,
) -> ImportReport:
    """Import a file, folder or export into a memory.

    An import is idempotent: run again, after an interruption or later, it adds what is missing.

    Args:
        memory: Where to write.
        path: What to import.
        format: The form of the input; None finds it out.
        failures_path: Where to list what failed; by default `<input>.failed.jsonl` beside the
            input, or in the current folder where that place cannot be written to. The file is
            appended to.
        on_progress: Called with the report so far after every chunk.
        conversation: LoCoMo only: sample id of the one conversation to import.

    Returns:
        The numbers of records added, skipped and failed, and where the failures are listed.

    Raises:
        InvalidInput: The path is missing, empty, or not in the format.
        ImportInterrupted: Ctrl-C was pressed.
    """
    source = Path(path)
    chosen = choose_format(source, format)
    if chosen != "locomo" and conversation is not None:
        raise InvalidInput(
            "conversation", conversation, f"{chosen} has no selection", "Leave it out."
        )
    with failures_file(source, failures_path) as failures:
        records = (
            read_locomo(source, conversation=conversation, project=_bound_project(memory))
            if chosen == "locomo"
            else _READERS[chosen](source)
        )
        return _Import(memory, failures, on_progress or _ignore).run(records)


def _bound_project(memory: RecordWriter) -> str | None:
    project = getattr(getattr(memory, "scope", None), "project", None)
    return project if isinstance(project, str) else None


def _ignore(report: ImportReport) -> None:
    del report


class _Import:
    """One run of an import, with its counters."""

    def __init__(
        self,
        memory: RecordWriter,
        failures: FailuresFile,
        on_progress: Callable[[ImportReport], None],
    ) -> None:
        self._memory = memory
        self._failures = failures
        self._on_progress = on_progress
        self._added = 0
        self._skipped = 0
        self._failed = 0
        self._examples: list[FailedRecord] = []

    def run(self, records: Iterator[Readable]) -> ImportReport:
        """Write all records and give the report."""
        try:
            for chunk in _chunks(records, self._fail_unreadable):
                self._write(chunk)
                self._on_progress(self._report())
        except KeyboardInterrupt as error:
            raise ImportInterrupted(self._report()) from error
        return self._report()

    def _write(self, chunk: list[ImportedRecord]) -> None:
        report = self._memory.add_many([record.fields for record in chunk])
        self._added += report.added
        self._skipped += report.skipped
        for failure in report.failed:
            record = chunk[failure.index]
            content = content_of(record)
            self._fail(
                FailedRecord(record.place, failure.id, failure.field, failure.message, content)
            )

    def _fail_unreadable(self, unreadable: Unreadable) -> None:
        self._fail(
            FailedRecord(
                unreadable.place, None, unreadable.field, unreadable.message, unreadable.content
            )
        )

    def _fail(self, failure: FailedRecord) -> None:
        self._failures.append(failure)
        self._failed += 1
        if len(self._examples) < _EXAMPLES:
            self._examples.append(failure)

    def _report(self) -> ImportReport:
        return ImportReport(
            added=self._added,
            skipped=self._skipped,
            failed=self._failed,
            failures_path=self._failures.path,
            examples=tuple(self._examples),
        )


def _chunks(
    records: Iterator[Readable], on_unreadable: Callable[[Unreadable], None]
) -> Iterator[list[ImportedRecord]]:
    """Gather records into chunks, bounded in number and in length of text."""
    chunk: list[ImportedRecord] = []
    characters = 0
    try:
        for record in records:
            if isinstance(record, Unreadable):
                on_unreadable(record)
                continue
            chunk.append(record)
            characters += len(str(record.fields.get("text", "")))
            if len(chunk) == CHUNK_RECORDS or characters >= _CHUNK_CHARACTERS:
                yield chunk
                chunk, characters = [], 0
    except InvalidInput:
        # What was read before the input broke is still written.
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
