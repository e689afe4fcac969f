import os

from ekphory.importers import text
from ekphory.importers.text import read_text


def fields_of(path):
    return [record.fields for record in read_text(path)]


def test_paragraphs_become_memories_with_their_lines(file):
    first, second = fields_of(file("log.txt", "One line.\nAnd another.\n\n\nSecond paragraph.\n"))
    assert (first["text"], first["lines"]) == ("One line.\nAnd another.", "1-2")
    assert (second["text"], second["lines"]) == ("Second paragraph.", "5-5")
    assert (first["path"], first["source"], second["sequence"]) == ("log.txt", "text", 1)


def test_a_markdown_heading_belongs_to_the_paragraphs_below_it(file):
    records = fields_of(
        file("a.md", "intro\n# Kitchen\noak shelves\n\ndeep sink\n## Floor ##\nparquet\n")
    )
    assert [(r["heading"], r["text"]) for r in records] == [
        (None, "intro"),
        ("Kitchen", "oak shelves"),
        ("Kitchen", "deep sink"),
        ("Floor", "parquet"),
    ]


def test_a_hash_in_plain_text_is_no_heading(file):
    (record,) = fields_of(file("a.txt", "# not a heading\n"))
    assert (record["text"], record["heading"]) == ("# not a heading", None)


def test_a_fenced_code_block_with_blank_lines_stays_whole(file):
    (record,) = fields_of(file("a.md", "Run this:\n```\nfirst\n\n# second\n```\n"))
    assert record["text"] == "Run this:\n```\nfirst\n\n# second\n```"


def test_a_folder_is_read_at_any_depth_in_the_order_of_its_paths(file, tmp_path):
    file("notes/b.md", "beta")
    file("notes/a/deep.txt", "alpha")
    file("notes/.git/config.txt", "hidden")
    file("notes/picture.png", b"\x00\x01")
    assert [r["path"] for r in fields_of(tmp_path / "notes")] == ["a/deep.txt", "b.md"]


def test_ids_survive_an_edit_elsewhere_in_the_file(file):
    before = fields_of(file("a.txt", "keep\n\nold\n"))
    after = fields_of(file("a.txt", "new\n\nkeep\n"))
    assert before[0]["id"] == after[1]["id"]
    assert before[1]["id"] != after[0]["id"]


def test_a_paragraph_that_occurs_twice_is_two_memories(file):
    first, second = fields_of(file("a.txt", "todo\n\ntodo\n"))
    assert first["id"] != second["id"]


def test_the_moment_is_the_last_change_of_the_file(file):
    path = file("a.txt", "x")
    os.utime(path, (1_767_225_600, 1_767_225_600))
    assert fields_of(path)[0]["at"].isoformat() == "2026-01-01T00:00:00+00:00"


def test_a_paragraph_that_is_not_utf8_is_reported_with_its_line_and_the_others_are_read(file):
    good, bad, last = read_text(file("a.txt", b"good\n\ncaf\xe9\n\nlast\n"))
    assert good.fields["text"] == "good"
    assert (bad.place, bad.field) == ("a.txt:3", "paragraph")
    assert bad.message == "a line of this paragraph is not UTF-8. Save the file as UTF-8."
    assert last.fields["text"] == "last"


def test_a_paragraph_longer_than_the_limit_is_reported(file, monkeypatch):
    monkeypatch.setattr(text, "MAX_UNIT_BYTES", 10)
    long, short = read_text(file("a.txt", "twelve bytes\nand more\n\nshort\n"))
    assert long.message == "the paragraph is longer than 20 MB. Split it into several paragraphs."
    assert short.fields["text"] == "short"
