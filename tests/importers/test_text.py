import os

from ekphory.importers import source, text
from ekphory.importers.source import ImportedRecord
from ekphory.importers.text import read_jsonl, read_text


def test_a_broken_line_is_reported_with_its_number_and_the_rest_is_read(file):
    def read(content):
        return list(read_jsonl(file("n.jsonl", content)))

    first, broken, last = read('{"id": "a", "text": "one"}\n{"id": "b", "te\n{"id": "c"}\n')
    assert first == ImportedRecord({"id": "a", "text": "one"}, "n.jsonl:1")
    assert (broken.place, broken.content) == ("n.jsonl:2", '{"id": "b", "te')
    assert broken.message.startswith("not valid JSON: Unterminated string")
    assert last.fields["id"] == "c"
    # Blank lines, a BOM and a missing last newline do no harm.
    odd = read(b'\xef\xbb\xbf{"id": "a", "text": "x"}\r\n\r\n{"id": "b", "text": "y"}')
    assert [record.fields["id"] for record in odd] == ["a", "b"]
    # A line that is not an object is refused.
    (refused,) = read("[1, 2]\n")
    assert refused.message == "a list in place of an object. Write {...} on each line."
    # A line that is not UTF-8 is refused alone.
    refused, kept = read(b'{"text": "caf\xe9"}\n{"id": "k", "text": "ok"}\n')
    assert refused.message == "byte 14 of the line is not UTF-8. Save the file as UTF-8."
    assert kept.place == "n.jsonl:2"
    # JSON that is nested too deeply is refused.
    (refused,) = read('{"text": ' + "[" * 100_000 + "\n")
    assert refused.message.startswith("not usable JSON")
    # A listing can be imported again without what the store sets.
    row = '{"id": "a", "text": "x", "created_at": "2026-01-02", "supersedes": "a1"}'
    assert [record.fields for record in read(row)] == [{"id": "a", "text": "x"}]
    # An earlier version is refused.
    (refused,) = read('{"id": "a1", "text": "x", "superseded_by": "a"}')
    assert refused.field == "superseded_by"


def test_what_is_longer_than_the_limit_is_refused_without_ending_the_import(file, monkeypatch):
    monkeypatch.setattr(source, "MAX_UNIT_BYTES", 40)
    path = file("n.jsonl", '{"text": "' + "x" * 500 + '"}\n{"id": "k", "text": "short"}\n')
    refused, kept = read_jsonl(path)
    assert (refused.place, kept.place) == ("n.jsonl:1", "n.jsonl:2")
    assert refused.message == "the line is longer than 20 MB. Split it into several lines."
    # So is a paragraph.
    monkeypatch.setattr(text, "MAX_UNIT_BYTES", 10)
    long, short = read_text(file("a.txt", "twelve bytes\nand more\n\nshort\n"))
    assert long.message == "the paragraph is longer than 20 MB. Split it into several paragraphs."
    assert short.fields["text"] == "short"


def fields_of(path):
    return [record.fields for record in read_text(path)]


def test_paragraphs_become_memories_with_their_lines(file, tmp_path):
    path = file("log.txt", "One line.\nAnd another.\n\n\nSecond paragraph.\n")
    os.utime(path, (1_767_225_600, 1_767_225_600))
    first, second = fields_of(path)
    assert (first["text"], first["lines"]) == ("One line.\nAnd another.", "1-2")
    assert (second["text"], second["lines"]) == ("Second paragraph.", "5-5")
    assert (first["path"], first["source"], second["sequence"]) == ("log.txt", "text", 1)
    # The moment is the last change of the file.
    assert first["at"].isoformat() == "2026-01-01T00:00:00+00:00"
    # A paragraph that is not UTF-8 is reported with its line and the others are read.
    good, bad, last = read_text(file("a.txt", b"good\n\ncaf\xe9\n\nlast\n"))
    assert (good.fields["text"], last.fields["text"]) == ("good", "last")
    assert (bad.place, bad.field) == ("a.txt:3", "paragraph")
    assert bad.message == "a line of this paragraph is not UTF-8. Save the file as UTF-8."
    # A folder is read at any depth in the order of its paths.
    for name, content in (("b.md", "b"), ("a/deep.txt", "a"), (".git/c.txt", "c"), ("p.png", "\0")):
        file(f"notes/{name}", content)
    assert [r["path"] for r in fields_of(tmp_path / "notes")] == ["a/deep.txt", "b.md"]


def test_a_markdown_heading_belongs_to_the_paragraphs_below_it(file):
    def read(name, content):
        return [(r["heading"], r["text"]) for r in fields_of(file(name, content))]

    assert read("a.md", "intro\n# Kitchen\noak\n\nsink\n## Floor ##\nparquet\n") == [
        # What stands above all headings has the name of the note.
        ("a", "intro"),
        *(("Kitchen", "oak"), ("Kitchen", "sink")),
        ("Floor", "parquet"),
    ]
    # A hash in plain text is not a heading.
    assert read("a.txt", "# not a heading\n") == [(None, "# not a heading")]
    # A fenced code block with blank lines stays whole.
    code = "Run this:\n```\nfirst\n\n# second\n```"
    assert read("a.md", f"{code}\n") == [("a", code)]


def test_ids_survive_an_edit_elsewhere_in_the_file(file):
    before = fields_of(file("a.txt", "keep\n\nold\n"))
    after = fields_of(file("a.txt", "new\n\nkeep\n"))
    assert before[0]["id"] == after[1]["id"]
    assert before[1]["id"] != after[0]["id"]
    # A paragraph that occurs twice is two memories.
    first, second = fields_of(file("a.txt", "todo\n\ntodo\n"))
    assert first["id"] != second["id"]
