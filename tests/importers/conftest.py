"""A writer that obeys the contract of `Memory.add_many`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.documents.conftest import file  # noqa: F401  a fixture

from ekphory.filters.lance_sql import matches
from ekphory.filters.tree import Filter
from ekphory.scope import Scope
from ekphory.types import Failure, MemoryRecord, WriteReport, now_utc
from ekphory.write import make_draft


class DictionaryWriter:
    """Keeps records in a dictionary: idempotent by (project, id), refuses blank text."""

    def __init__(self) -> None:
        self.scope = Scope()
        self.records: dict[tuple[object, object], dict[str, object]] = {}
        self.chunk_sizes: list[int] = []

    @property
    def texts(self) -> list[object]:
        return [record["text"] for record in self.records.values()]

    def add_many(
        self,
        records: Iterable[dict[str, object]],
        *,
        redact: bool = False,  # noqa: ARG002  as Memory's
    ) -> WriteReport:
        given = list(records)
        self.chunk_sizes.append(len(given))
        added = skipped = 0
        failed: list[Failure] = []
        for index, record in enumerate(given):
            key = (record.get("project"), record.get("id", record["text"]))
            if not str(record["text"]).strip():
                failed.append(Failure(index, str(record.get("id")), "text", "empty. Give text."))
            elif key in self.records:
                skipped += 1
            else:
                self.records[key] = record
                added += 1
        return WriteReport(added=added, skipped=skipped, failed=failed)

    def list(
        self,
        *,
        filter: Filter,  # noqa: A002  as Memory's
        limit: int,
        order: str,
    ) -> list[MemoryRecord]:
        assert order == "written"
        stored = self.records.values()
        drafts = (make_draft(record, scope=self.scope, now=now_utc()) for record in stored)
        return [draft.record for draft in drafts if matches(filter, draft.record)][:limit]


@pytest.fixture
def writer() -> DictionaryWriter:
    return DictionaryWriter()
