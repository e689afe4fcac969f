"""What became of an import: the counts while it runs, and the report of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ekphory.errors import EkphoryError
from ekphory.importers.failures import FailedRecord, FailuresFile, content_of
from ekphory.importers.record import ImportedRecord, Unreadable
from ekphory.types import WriteReport

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of an import, or what has become of it so far.

    Attributes:
        added: Number of memories written and durable.
        skipped: Number of records that were already there.
        failed: Number of records and places that were refused.
        failures_path: The file that lists the failures; None where there are none.
        examples: The first few failures.
        forgotten: Number of memories that a newer version of their document has replaced, or whose
            document is gone.
        left_out: Number of pieces of documents that were passed over on purpose, by reason.
    """

    added: int = 0
    skipped: int = 0
    failed: int = 0
    failures_path: Path | None = None
    examples: tuple[FailedRecord, ...] = ()
    forgotten: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)


class ImportInterrupted(EkphoryError, KeyboardInterrupt):
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


class Tally:
    """Counts what becomes of an import, and lists its failures."""

    def __init__(self, failures: FailuresFile) -> None:
        self._failures = failures
        self._added = 0
        self._skipped = 0
        self._failed = 0
        self._forgotten = 0
        self._left_out: Counter[str] = Counter()
        self._examples: list[FailedRecord] = []

    def count(self, chunk: Sequence[ImportedRecord], report: WriteReport) -> None:
        """Count what became of the records that were handed to a memory."""
        self._added += report.added
        self._skipped += report.skipped
        for failure in report.failed:
            record = chunk[failure.index]
            content = content_of(record)
            self._fail(
                FailedRecord(record.place, failure.id, failure.field, failure.message, content)
            )

    def skip(self, count: int) -> None:
        """Count records that are there already."""
        self._skipped += count

    def forget(self, count: int) -> None:
        """Count memories that were forgotten."""
        self._forgotten += count

    def leave_out(self, reason: str) -> None:
        """Count a piece that was passed over on purpose."""
        self._left_out[reason] += 1

    def fail(self, unreadable: Unreadable) -> None:
        """Count and list a place that could not be read."""
        self._fail(
            FailedRecord(
                unreadable.place, None, unreadable.field, unreadable.message, unreadable.content
            )
        )

    def report(self) -> ImportReport:
        """Give the counts so far."""
        return ImportReport(
            added=self._added,
            skipped=self._skipped,
            failed=self._failed,
            failures_path=self._failures.path,
            examples=tuple(self._examples),
            forgotten=self._forgotten,
            left_out=dict(self._left_out.most_common()),
        )

    def _fail(self, failure: FailedRecord) -> None:
        self._failures.append(failure)
        self._failed += 1
        if len(self._examples) < _EXAMPLES:
            self._examples.append(failure)
