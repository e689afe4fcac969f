import os

from ekphory.importers import source, text
from ekphory.importers.source import ImportedRecord, Unreadable
from ekphory.importers.text import read_jsonl, read_text


def test_a_broken_line_in_the_middle_is_reported_with_its_number_and_the_rest_is_read(file):
    path = file(
        "notes.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "te\n{"id": "c", "text": "3"}\n'
    )
    first, broken, last = read_jsonl(path)
    assert first == ImportedRecord({"id": "a", "text": "one"}, "notes.jsonl:1")
    assert isinstance(broken, Unreadable)
    assert broken.place == "notes.jsonl:2"
    assert broken.message.startswith("not valid JSON: Unterminated string")
    assert broken.content == '{"id": "b", "te'
    assert last.fields["id"] == "c"


def test_blank_lines_a_bom_and_a_missing_last_newline_do_no_harm(file):
    path = file(
        "notes.jsonl", b'\xef\xbb\xbf{"id": "a", "text": "x"}\r\n\r\n{"id": "b", "text": "y"}'
    )
    assert [record.fields["id"] for record in read_jsonl(path)] == ["a", "b"]


def test_a_line_that_is_not_an_object_is_refused(file):
    (refused,) = read_jsonl(file("n.jsonl", "[1, 2]\n"))
    assert refused.message == "a list in place of an object. Write {...} on each line."


def test_a_line_that_is_not_utf8_is_refused_alone(file):
    refused, kept = read_jsonl(file("n.jsonl", b'{"text": "caf\xe9"}\n{"id": "k", "text": "ok"}\n'))
    assert refused.message == "byte 14 of the line is not UTF-8. Save the file as UTF-8."
    assert kept.place == "n.jsonl:2"


def test_json_nested_too_deeply_is_refused(file):
    (refused,) = read_jsonl(file("n.jsonl", '{"text": ' + "[" * 100_000 + "\n"))
    assert refused.message.startswith("not usable JSON")


def test_a_line_longer_than_the_limit_is_refused_without_ending_the_import(file, monkeypatch):
    monkeypatch.setattr(source, "MAX_UNIT_BYTES", 40)
    path = file("n.jsonl", '{"text": "' + "x" * 500 + '"}\n{"id": "k", "text": "short"}\n')
    refused, kept = read_jsonl(path)
    assert refused.place == "n.jsonl:1"
    assert refused.message == "the line is longer than 20 MB. Split it into several lines."
    assert kept.place == "n.jsonl:2"


def test_a_listing_can_be_imported_again_without_what_the_store_sets(file):
    row = '{"id": "a", "text": "x", "created_at": "2026-01-02", "supersedes": "a1"}'
    (record,) = read_jsonl(file("n.jsonl", row))
    assert record.fields == {"id": "a", "text": "x"}


def test_an_earlier_version_is_refused(file):
    (refused,) = read_jsonl(file("n.jsonl", '{"id": "a1", "text": "x", "superseded_by": "a"}'))
    assert refused.field == "superseded_by"


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
