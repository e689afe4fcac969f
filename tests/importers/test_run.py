import json
from pathlib import Path

import pytest

from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.report import ImportInterrupted
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder


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


LOCOMO = json.dumps(
    [
        {
            "sample_id": name,
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Bo",
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"dia_id": "D1:1", "speaker": "Ann", "text": f"I keep {pet} at home."},
                    {"dia_id": "D1:2", "speaker": "Bo", "text": "The weather is dreadful."},
                ],
            },
        }
        for name, pet in (("conv-1", "two goats"), ("conv-2", "an owl"))
    ]
)


def test_an_imported_line_is_found_and_a_refused_one_is_listed(file, tmp_path):
    rows = [
        {"id": "a", "text": "The spare key hangs behind the boiler", "importance": 0.9},
        {"id": "b", "text": "Too important", "importance": 7},
        {"id": "c", "text": "Lunch was soup", "at": "2026-02-03T12:00:00+01:00"},
    ]
    path = file("m.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        report = import_path(memory, path)
        assert (report.added, report.skipped, report.failed) == (2, 0, 1)
        assert (report.examples[0].place, report.examples[0].field) == ("m.jsonl:2", "importance")
        assert import_path(memory, path).skipped == 2
        assert memory.search("Where is the spare key?", k=1).hits[0].id == "a"


def test_an_unknown_field_is_refused_with_the_nearest_name_and_its_line(file, tmp_path):
    path = file("m.jsonl", '{"text": "fine"}\n{"text": "x", "importence": 0.5}\n')
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        report = import_path(memory, path)
    assert (report.added, report.examples[0].place) == (1, "m.jsonl:2")
    assert "Did you mean 'importance'?" in report.examples[0].message


def test_lines_without_id_and_moment_are_not_written_twice(file, tmp_path):
    path = file("m.jsonl", '{"text": "one"}\n{"text": "two"}\n')
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        assert import_path(memory, path).added == 2
        assert import_path(memory, path).skipped == 2


def test_equal_ids_of_two_locomo_conversations_do_not_meet(file, tmp_path):
    path = file("locomo.json", LOCOMO)
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        assert import_path(memory, path).added == 4
    with Memory(tmp_path / "store", project="conv-2", embedder=HashEmbedder()) as memory:
        hits = memory.search("Which animals does Ann keep?", k=10).hits
        assert hits[0].text == "I keep an owl at home."
        assert len(hits) == 2


def test_a_bound_project_takes_the_conversation_that_is_selected(file, tmp_path):
    path = file("locomo.json", LOCOMO)
    with Memory(tmp_path / "store", project="mine", embedder=HashEmbedder()) as memory:
        report = import_path(memory, path, conversation="conv-1")
        assert (report.added, report.failed) == (2, 0)


def sessions(*names):
    return "".join(
        json.dumps({"text": f"note {n}", "session": s}) + "\n" for n, s in enumerate(names)
    )


def test_records_that_all_lie_outside_the_bound_session_stop_the_import(file, tmp_path):
    path = file("m.jsonl", sessions(*["monday"] * 600))
    with Memory(tmp_path / "store", session="mine", embedder=HashEmbedder()) as memory:
        with pytest.raises(
            ScopeError, match=r"session='monday': no record fits the bound session='mine' \(256"
        ):
            import_path(memory, path)
        assert memory.count() == 0
    assert not path.with_name("m.jsonl.failed.jsonl").exists()


def test_records_of_which_some_fit_the_bound_session_are_imported_and_the_others_listed(
    file, tmp_path
):
    path = file("m.jsonl", sessions("monday", "mine", "tuesday"))
    with Memory(tmp_path / "store", session="mine", embedder=HashEmbedder()) as memory:
        report = import_path(memory, path)
    assert (report.added, report.failed) == (1, 2)
    assert {example.field for example in report.examples} == {"session"}


def test_records_that_are_all_wrong_in_themselves_are_listed(file, tmp_path):
    path = file("m.jsonl", '{"text": "a", "importance": 7}\n{"text": "b", "importance": 8}\n')
    with Memory(tmp_path / "store", session="mine", embedder=HashEmbedder()) as memory:
        report = import_path(memory, path)
    assert (report.added, report.failed) == (0, 2)
