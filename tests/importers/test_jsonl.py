from ekphory.importers import source
from ekphory.importers.source import ImportedRecord, Unreadable
from ekphory.importers.text import read_jsonl


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
