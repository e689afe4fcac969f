import math
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from ekphory.cli.output import (
    format_timestamp,
    make_memory_table,
    make_printable,
    make_record_table,
)
from ekphory.types import Failure, MemoryRecord, WriteReport, to_plain_data

AT = datetime(2026, 3, 1, 10, 5, tzinfo=UTC)


def drawn(record):
    console = Console(width=120, file=StringIO())
    console.print(make_memory_table([record]))
    return console.file.getvalue()


def test_control_characters_are_shown_escaped_and_line_breaks_stay():
    assert make_printable("a\x1b[2Jb\x9b\x00c\n\td") == "a\\x1b[2Jb\\x9b\\x00c\n\td"


def test_a_moment_is_shown_in_utc_to_the_minute():
    assert format_timestamp(AT) == "2026-03-01 10:05Z"


def test_a_moment_before_the_year_1000_can_be_shown():
    assert format_timestamp(datetime(44, 3, 15, tzinfo=UTC)) == "0044-03-15T00:00:00+00:00"


def test_a_long_text_is_cut_for_people():
    shown = drawn(MemoryRecord(id="long", text="word " * 300, at=AT, created_at=AT))
    assert shown.count("word") == 80
    assert "…" in shown


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, ""),
        (
            {"type": "semantic", "pool": "shared_rules", "importance": 0.9, "session": "s1"},
            "semantic · shared_rules · importance 0.9 · session s1 · ",
        ),
        (
            {"importance": 0.42, "predicted": frozenset({"importance"})},
            "importance 0.42 (predicted) · ",
        ),
        (
            {"path": "b/a.md", "lines": "3-5", "heading": "Roof", "session": "handbook/b/a.md"},
            "b/a.md (3-5) · Roof · ",
        ),
    ],
)
def test_what_is_not_as_usual_is_told_of_a_memory(fields, shown):
    record = MemoryRecord(id="a", text="hello", at=AT, created_at=AT, **fields)
    assert drawn(record).split("\n")[1].strip() == f"2026-03-01 10:05Z · {shown}id a"


def test_a_whole_memory_marks_what_was_predicted_where_it_stands():
    record = MemoryRecord(
        id="a", text="hello", at=AT, created_at=AT, importance=0.42,
        predicted=frozenset({"type", "importance"}),
    )  # fmt: skip
    console = Console(width=120, file=StringIO())
    console.print(make_record_table(record))
    rows = dict(line.split(maxsplit=1) for line in console.file.getvalue().splitlines())
    assert (rows["type"].strip(), rows["importance"].strip()) == (
        "unknown (predicted)", "0.42 (predicted)",
    )  # fmt: skip
    assert "predicted" not in rows


def test_dataclasses_moments_and_tuples_become_plain_values():
    report = WriteReport(1, 0, [Failure(3, None, "at", "bad")], ("a",))
    assert to_plain_data({"report": report, "now": datetime(2026, 3, 1, tzinfo=UTC)}) == {
        "report": {
            "added": 1,
            "skipped": 0,
            "failed": [{"index": 3, "id": None, "field": "at", "message": "bad"}],
            "ids": ["a"],
            "sampled": [],
        },
        "now": "2026-03-01T00:00:00+00:00",
    }


def test_numbers_that_json_lacks_become_null():
    assert to_plain_data([1.5, math.nan, -math.inf, True, "a"]) == [1.5, None, None, True, "a"]


def test_a_set_of_names_becomes_a_sorted_list():
    assert to_plain_data(frozenset({"type", "importance"})) == ["importance", "type"]
