"""The memories that the store's contract is told with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ekphory.retrieval.terms import TERMS_VERSION, passage_terms
from ekphory.store.store import SCHEMA_VERSION, StoredMemory, StoreIdentity
from ekphory.testing.hash_embedder import HashEmbedder
from ekphory.types import MemoryRecord

CONTRACT_IDENTITY = StoreIdentity(SCHEMA_VERSION, TERMS_VERSION, HashEmbedder().identity)
"""What a store that `StoreContract` tests has to be made with."""

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def contract_record(number: int) -> MemoryRecord:
    """Give memory `m<number>`, of that day of January 2026 (the 29th is the 1st again)."""
    at = FIRST_DAY + timedelta(days=(number - 1) % 28)
    return MemoryRecord(id=f"m{number}", text=f"memory {number}", at=at, created_at=at)


def contract_row(key: int, record: MemoryRecord | None = None, *, windows: int = 1) -> StoredMemory:
    """Give the row of a record, that of `contract_record(key)` where none is given."""
    kept = record or contract_record(key)
    texts = [f"{kept.indexed_text} window {number}" for number in range(windows)]
    terms = passage_terms(kept.indexed_text)
    return StoredMemory(key, kept, 0, terms, HashEmbedder().encode(texts))


def full_record() -> MemoryRecord:
    """Give a memory in which no field is left out."""
    return MemoryRecord(
        id="full",
        text='Line one\nit\'s "quoted" 日本 😀',
        at=datetime(2026, 5, 8, 13, 56, 7, 123456, tzinfo=UTC),
        created_at=datetime(2026, 5, 9, tzinfo=UTC),
        expires_at=datetime(9998, 12, 31, tzinfo=UTC),
        org="acme",
        project="apollo",
        agent="planner",
        user="alice",
        session="s1",
        pool="shared_rules",
        type="procedural",
        importance=0.25,
        predicted=frozenset({"importance"}),
        producer="Anna",
        produced_for="Ben",
        role="user",
        sequence=-3,
        parent_id="doc",
        path="notes/a.md",
        heading="Rules",
        lines="3-9",
        source="import",
        metadata={"city": "Rome", "year": 2026, "share": 0.5, "done": False, "it's": ""},
    )


def owned_record(number: int, user: str) -> MemoryRecord:
    """Give memory `m<number>` of a user."""
    return replace(contract_record(number), user=user)


def history_record(number: int) -> MemoryRecord:
    """Give memory `m<number>` as an earlier version."""
    return replace(contract_record(number), id=f"m{number}~1", superseded_by=f"m{number}")


def successor_record(number: int) -> MemoryRecord:
    """Give the version that takes the place of memory `m<number>`."""
    return replace(contract_record(number), text="changed", supersedes=f"m{number}~1")
