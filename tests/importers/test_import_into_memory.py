import json

import pytest

from ekphory.errors import ScopeError
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

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
