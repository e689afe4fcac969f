from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from ekphory.cli.output import format_timestamp, make_printable, memory_table, record_table
from ekphory.types import MemoryRecord

AT = datetime(2026, 3, 1, 10, 5, tzinfo=UTC)


def drawn(record):
    console = Console(width=120, file=StringIO())
    console.print(memory_table([record]))
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


def test_what_is_as_usual_is_not_mentioned():
    plain = MemoryRecord(id="a", text="hello", at=AT, created_at=AT)
    assert drawn(plain).split("\n")[1].strip() == "2026-03-01 10:05Z · id a"


def test_what_is_unusual_is_mentioned():
    record = MemoryRecord(
        id="a", text="hello", at=AT, created_at=AT, type="semantic", pool="shared_rules",
        importance=0.9, session="s1",
    )  # fmt: skip
    assert drawn(record).split("\n")[1].strip() == (
        "2026-03-01 10:05Z · semantic · shared_rules · importance 0.9 · session s1 · id a"
    )


def test_a_predicted_value_is_told_from_a_given_one():
    record = MemoryRecord(
        id="a", text="hello", at=AT, created_at=AT, type="semantic", importance=0.42,
        predicted=frozenset({"importance"}),
    )  # fmt: skip
    assert drawn(record).split("\n")[1].strip() == (
        "2026-03-01 10:05Z · semantic · importance 0.42 (predicted) · id a"
    )


def test_a_whole_memory_marks_what_was_predicted_where_it_stands():
    record = MemoryRecord(
        id="a", text="hello", at=AT, created_at=AT, importance=0.42,
        predicted=frozenset({"type", "importance"}),
    )  # fmt: skip
    console = Console(width=120, file=StringIO())
    console.print(record_table(record))
    rows = dict(line.split(maxsplit=1) for line in console.file.getvalue().splitlines())
    assert (rows["type"].strip(), rows["importance"].strip()) == (
        "unknown (predicted)", "0.42 (predicted)",
    )  # fmt: skip
    assert "predicted" not in rows


def test_a_passage_of_a_document_is_shown_with_its_place_and_without_its_session():
    record = MemoryRecord(
        id="a", text="It is new.", at=AT, created_at=AT, path="sub/guide.md", lines="3-5",
        heading="House > Roof", session="handbook/sub/guide.md",
    )  # fmt: skip
    assert drawn(record).split("\n")[1].strip() == (
        "2026-03-01 10:05Z · sub/guide.md (3-5) · House > Roof · id a"
    )
