import json
from pathlib import Path

import pytest

from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.report import ImportInterrupted
from ekphory.importers.run import import_path


def lines(count):
    return "".join(json.dumps({"id": str(n), "text": f"memory {n}"}) + "\n" for n in range(count))


def listed(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_are_written_in_chunks_and_counted(file, writer):
    seen = []
    report = import_path(writer, file("m.jsonl", lines(600)), on_progress=seen.append)
    assert (report.added, report.skipped, report.failed) == (600, 0, 0)
    assert writer.chunk_sizes == [256, 256, 88]
    assert [now.added for now in seen] == [256, 512, 600]
    assert report.failures_path is None


def test_failures_are_listed_beside_the_input_with_place_and_reason(file, writer):
    path = file("m.jsonl", '{"id": "a", "text": "ok"}\nnonsense\n{"id": "b", "text": " "}\n')
    report = import_path(writer, path)
    assert (report.added, report.failed) == (1, 2)
    assert report.failures_path == path.parent / "ekphory-failed" / "m.jsonl"
    unreadable, refused = listed(report.failures_path)
    assert (unreadable["place"], unreadable["content"]) == ("m.jsonl:2", "nonsense")
    assert (refused["place"], refused["id"], refused["field"]) == ("m.jsonl:3", "b", "text")
    assert refused["message"] == "empty. Give text."
    assert refused["content"] == {"id": "b", "text": " "}
    assert [example.place for example in report.examples] == ["m.jsonl:2", "m.jsonl:3"]


def test_a_wanted_failures_file_lists_each_failure_once(file, writer, tmp_path, monkeypatch):
    path = file("data/m.jsonl", '{"id": "a", "text": "ok"}\nnonsense\n')
    # One that cannot be a file is refused before anything is written.
    with pytest.raises(InvalidInput, match="failures_path"):
        import_path(writer, path, failures_path=tmp_path)
    assert writer.records == {}
    # Those of other inputs stay.
    wanted = tmp_path / "out.jsonl"
    import_path(writer, file("other.jsonl", '{"text": "ok"}\nnonsense\n'), failures_path=wanted)
    for _ in range(2):
        import_path(writer, path, failures_path=wanted)
    assert [row["place"] for row in listed(wanted)] == ["other.jsonl:2", "m.jsonl:2"]
    # Failures go to the current folder where the place beside the input is taken.
    path.with_name("ekphory-failed").write_text("a file")
    monkeypatch.chdir(tmp_path)
    assert import_path(writer, path).failures_path == tmp_path / "ekphory-failed" / "m.jsonl"
    # A lone surrogate and a very long text can be listed.
    row = {"id": "a", "text": " ", "heading": "\ud800", "path": "x" * 5_000}
    report = import_path(writer, file("n.jsonl", json.dumps(row) + "\n"))
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
    said = {"uuid": "m", "sender": "human", "text": "kept", "content": []}
    good = {"uuid": "c", "created_at": "2026-01-01", "chat_messages": [said]}
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


def locomo(name, pet):
    """A conversation of two turns."""
    turns = [
        {"dia_id": "D1:1", "speaker": "Ann", "text": f"I keep {pet} at home."},
        {"dia_id": "D1:2", "speaker": "Bo", "text": "The weather is dreadful."},
    ]
    session = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    talk = {"speaker_a": "Ann", "speaker_b": "Bo", **session}
    return {"sample_id": name, "conversation": talk}


LOCOMO = json.dumps([locomo("conv-1", "two goats"), locomo("conv-2", "an owl")])


def test_an_imported_line_is_found_and_a_refused_one_is_listed(file, memory):
    rows = [
        {"text": "The spare key hangs behind the boiler", "importance": 0.9},
        {"id": "b", "text": "Too important", "importance": 7},
        {"text": "Lunch was soup", "at": "2026-02-03T12:00:00+01:00"},
        {"text": "x", "importence": 0.5},
    ]
    path = file("m.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    report = import_path(memory, path)
    assert (report.added, report.skipped, report.failed) == (2, 0, 2)
    first, second = report.examples
    assert (first.place, first.field, second.place) == ("m.jsonl:2", "importance", "m.jsonl:4")
    assert "Did you mean 'importance'?" in second.message
    # Lines without id and moment are not written twice.
    assert import_path(memory, path).skipped == 2
    found = memory.search("Where is the spare key?", k=1).hits[0]
    assert found.text == "The spare key hangs behind the boiler"


def test_equal_ids_of_two_locomo_conversations_do_not_meet(file, open_memory):
    path = file("locomo.json", LOCOMO)
    assert import_path(open_memory(), path).added == 4
    hits = open_memory(project="conv-2").search("Which animals does Ann keep?", k=10).hits
    assert (len(hits), hits[0].text) == (2, "I keep an owl at home.")
    # A bound project takes the conversation that is selected.
    assert import_path(open_memory(project="mine"), path, conversation="conv-1").added == 2


def sessions(*names):
    rows = ({"text": f"note {n}", "session": name} for n, name in enumerate(names))
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_records_that_all_lie_outside_the_bound_session_stop_the_import(file, open_memory):
    path, memory = file("m.jsonl", sessions(*["monday"] * 600)), open_memory(session="mine")
    said = r"session='monday': no record fits the bound session='mine' \(256"
    with pytest.raises(ScopeError, match=said):
        import_path(memory, path)
    assert memory.count() == 0
    assert not path.with_name("ekphory-failed").exists()


@pytest.mark.parametrize(
    ("lines", "added", "field"),
    [
        (sessions("monday", "mine", "tuesday"), 1, "session"),
        ('{"text": "a", "importance": 7}\n{"text": "b", "importance": 8}\n', 0, "importance"),
    ],
)
def test_records_of_which_some_fit_the_session_are_listed(file, open_memory, lines, added, field):
    report = import_path(open_memory(session="mine"), file("m.jsonl", lines))
    assert (report.added, report.failed) == (added, 2)
    assert {example.field for example in report.examples} == {field}
