import json
from pathlib import Path

import pytest

from ekphory.errors import InvalidInput
from ekphory.importers.report import ImportInterrupted
from ekphory.importers.run import import_path


def lines(count):
    return "".join(json.dumps({"id": str(n), "text": f"memory {n}"}) + "\n" for n in range(count))


def listed(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_are_written_in_chunks_and_counted(file, writer):
    seen = []
    report = import_path(
        writer, file("m.jsonl", lines(600)), on_progress=lambda now: seen.append(now.added)
    )
    assert (report.added, report.skipped, report.failed) == (600, 0, 0)
    assert writer.chunk_sizes == [256, 256, 88]
    assert seen == [256, 512, 600]
    assert report.failures_path is None


def test_a_second_import_adds_nothing(file, writer):
    path = file("m.jsonl", lines(3))
    import_path(writer, path)
    report = import_path(writer, str(path))
    assert (report.added, report.skipped) == (0, 3)


def test_failures_are_listed_beside_the_input_with_place_and_reason(file, writer):
    path = file("m.jsonl", '{"id": "a", "text": "ok"}\nnonsense\n{"id": "b", "text": " "}\n')
    report = import_path(writer, path)
    assert (report.added, report.failed) == (1, 2)
    assert report.failures_path == path.with_name("m.jsonl.failed.jsonl")
    unreadable, refused = listed(report.failures_path)
    assert (unreadable["place"], unreadable["content"]) == ("m.jsonl:2", "nonsense")
    assert (refused["place"], refused["id"], refused["field"]) == ("m.jsonl:3", "b", "text")
    assert refused["message"] == "empty. Give text."
    assert refused["content"] == {"id": "b", "text": " "}
    assert [example.place for example in report.examples] == ["m.jsonl:2", "m.jsonl:3"]


def test_a_wanted_failures_file_is_appended_to(file, writer, tmp_path):
    path = file("m.jsonl", '{"id": "a", "text": "ok"}\nnonsense\n')
    wanted = tmp_path / "out.jsonl"
    import_path(writer, path, failures_path=wanted)
    import_path(writer, path, failures_path=wanted)
    assert [row["place"] for row in listed(wanted)] == ["m.jsonl:2", "m.jsonl:2"]


def test_failures_go_to_the_current_folder_where_the_place_beside_the_input_is_taken(
    file, writer, tmp_path, monkeypatch
):
    path = file("data/m.jsonl", '{"id": "a", "text": "ok"}\nnonsense\n')
    path.with_name("m.jsonl.failed.jsonl").mkdir()
    monkeypatch.chdir(tmp_path)
    report = import_path(writer, path)
    assert report.failures_path == tmp_path / "m.jsonl.failed.jsonl"


def test_a_failures_path_that_cannot_be_a_file_is_refused_before_anything_is_written(
    file, writer, tmp_path
):
    with pytest.raises(InvalidInput, match="failures_path"):
        import_path(writer, file("m.jsonl", lines(1)), failures_path=tmp_path)
    assert writer.records == {}


def test_a_lone_surrogate_and_a_very_long_text_can_be_listed(file, writer):
    row = {"id": "a", "text": " ", "heading": "\ud800", "path": "x" * 5_000}
    report = import_path(writer, file("m.jsonl", json.dumps(row) + "\n"))
    content = listed(report.failures_path)[0]["content"]
    assert content["heading"] == "\ud800"
    assert content["path"].endswith("… (5000 characters)")


def test_ctrl_c_keeps_what_was_written_and_says_how_to_go_on(file, writer):
    path = file("m.jsonl", lines(600))

    def stop(now):
        if now.added == 512:
            raise KeyboardInterrupt

    with pytest.raises(ImportInterrupted, match="Run the same import again") as interrupted:
        import_path(writer, path, on_progress=stop)
    assert interrupted.value.report.added == 512
    again = import_path(writer, path)
    assert (again.added, again.skipped) == (88, 512)


def test_what_was_read_before_the_input_broke_is_written(file, writer):
    good = {
        "uuid": "c",
        "created_at": "2026-01-01",
        "chat_messages": [{"uuid": "m", "sender": "human", "text": "kept", "content": []}],
    }
    padding = b" " * 200_000
    path = file("c.json", b"[" + json.dumps(good).encode() + b"," + padding + b'{"a": "\xff"}]')
    with pytest.raises(InvalidInput, match="line 1 is not UTF-8"):
        import_path(writer, path)
    assert writer.texts == ["kept"]


def test_a_selected_conversation_is_refused_where_the_format_has_none(file, writer):
    with pytest.raises(InvalidInput, match="jsonl has no selection"):
        import_path(writer, file("m.jsonl", lines(1)), conversation="conv-26")


def test_a_text_folder_is_imported_and_only_what_changed_is_added_later(file, writer):
    folder = file("notes/a.md", "one\n\ntwo\n").parent
    assert import_path(writer, folder, format="text").added == 2
    file("notes/a.md", "one\n\nthree\n")
    report = import_path(writer, folder, format="text")
    assert (report.added, report.skipped) == (1, 1)
