from datetime import UTC, datetime

import pytest

from ekphory.filters.grammar import parse_filter
from ekphory.filters.lance_sql import matches
from ekphory.types import MemoryRecord

MEMORY = MemoryRecord(
    id="m1",
    text="It's 100% sure: C:\\temp",
    at=datetime(2026, 5, 1, 10, tzinfo=UTC),
    created_at=datetime(2026, 5, 2, tzinfo=UTC),
    producer="Anna",
    importance=0.5,
    sequence=3,
    metadata={"age": 3, "height": 1.75, "city": "Rome", "done": True, "two": "2"},
)


@pytest.mark.parametrize(
    "text",
    [
        "producer = 'Anna'",
        "producer != 'Bob'",
        "producer > 'Ann' AND producer < 'Annb'",
        "text CONTAINS '100%'",
        "text CONTAINS 'it''s' OR text CONTAINS 'It''s'",
        "text CONTAINS ''",
        "at = date('2026-05-01T12:00:00+02:00')",
        "at >= '2026-05-01' AND at < '2026-05-02'",
        "sequence = 3.0 AND sequence > 2.5",
        "importance IN (0.1, 0.5)",
        "session IS NULL AND producer IS NOT NULL",
        "m.age = 3.0 AND m.age != 4",
        "m.height > 1 AND m.height <= 1.75",
        "m.done = true AND m.done != false",
        "m.two = '2'",
        "m.missing IS NULL AND m.age IS NOT NULL",
        "m.age IN ('3', 3)",
        "TRUE",
    ],
)
def test_what_is_so_matches(text):
    assert matches(parse_filter(text), MEMORY)


@pytest.mark.parametrize(
    "text",
    [
        "producer = 'anna'",
        "text CONTAINS '100_'",
        "text CONTAINS 'IT'",
        "at != date('2026-05-01T10:00:00Z')",
        "id IN ()",
        "m.city CONTAINS 'rome'",
        "FALSE",
    ],
)
def test_what_is_not_so_does_not_match(text):
    assert not matches(parse_filter(text), MEMORY)


@pytest.mark.parametrize(
    "condition",
    [
        "session = 'a'",
        "session != 'a'",
        "session > ''",
        "session IN ('a')",
        "session CONTAINS ''",
        "expires_at > '2026-01-01'",
        "m.missing != 1",
        "m.two > 1",
        "m.two != 2",
        "m.age != '3'",
        "m.age CONTAINS '3'",
        "m.done = 1",
        "m.age = true",
    ],
)
def test_a_missing_value_or_one_of_another_kind_fails_and_its_negation_holds(condition):
    assert not matches(parse_filter(condition), MEMORY)
    assert matches(parse_filter(f"NOT {condition}"), MEMORY)
