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


def drawn(make_table, **fields):
    """Draw a table of one memory, and return its lines."""
    record = MemoryRecord(**{"id": "a", "text": "hello", "at": AT, "created_at": AT, **fields})
    console = Console(width=120, file=StringIO())
    console.print(make_table(record))
    return console.file.getvalue().splitlines()


def listed(record):
    return make_memory_table([record])


def test_control_characters_are_shown_escaped_and_line_breaks_stay():
    assert make_printable("a\x1b[2Jb\x9b\x00c\n\td") == "a\\x1b[2Jb\\x9b\\x00c\n\td"


def test_a_moment_is_shown_in_utc_to_the_minute_and_before_the_year_1000_whole():
    assert format_timestamp(AT) == "2026-03-01 10:05Z"
    assert format_timestamp(datetime(44, 3, 15, tzinfo=UTC)) == "0044-03-15T00:00:00+00:00"


def test_a_long_text_is_cut_for_people():
    shown = "".join(drawn(listed, text="word " * 300))
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
            {"session": "c1", "metadata": {"title": "Sourdough"}},
            "“Sourdough” · session c1 · ",
        ),
        (
            {"session": "c1", "metadata": {"title": 7}},
            "session c1 · ",
        ),
        (
            {"path": "b/a.md", "lines": "3-5", "heading": "Roof", "session": "handbook/b/a.md"},
            "b/a.md (3-5) · Roof · ",
        ),
    ],
)
def test_what_is_not_as_usual_is_told_of_a_memory(fields, shown):
    assert drawn(listed, **fields)[1].strip() == f"2026-03-01 10:05Z · {shown}id a"


def test_a_whole_memory_marks_what_was_predicted_where_it_stands():
    predicted = frozenset({"type", "importance"})
    lines = drawn(make_record_table, importance=0.42, predicted=predicted)
    rows = dict(line.rstrip().split(maxsplit=1) for line in lines)
    assert (rows["type"], rows["importance"]) == ("unknown (predicted)", "0.42 (predicted)")
    assert "predicted" not in rows


def test_dataclasses_moments_and_tuples_become_plain_values():
    report = WriteReport(1, 0, [Failure(3, None, "at", "bad")], ("a",))
    failure = {"index": 3, "id": None, "field": "at", "message": "bad"}
    counts = {"added": 1, "skipped": 0, "failed": [failure], "ids": ["a"], "sampled": []}
    assert to_plain_data({"report": report, "now": AT}) == {
        "report": counts,
        "now": "2026-03-01T10:05:00+00:00",
    }


def test_numbers_that_json_lacks_become_null_and_sets_sorted_lists():
    assert to_plain_data([1.5, math.nan, -math.inf, True, "a"]) == [1.5, None, None, True, "a"]
    assert to_plain_data(frozenset({"type", "importance"})) == ["importance", "type"]
