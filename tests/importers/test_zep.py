import json
from datetime import UTC, datetime

from ekphory.importers.memory_products import read_zep
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

from .foreign_exports import EXPORTS, copied, split


def test_messages_keep_thread_user_speaker_and_moment_and_empty_ones_are_left_out():
    (said, answered), broken = split(list(read_zep(EXPORTS / "zep_thread.json")))
    assert broken == []
    assert said == {
        "id": "4f6e0d5a-0f4f-4d3e-9a39-0d6a3b1f0001",
        "text": "My Adidas shoes broke on Saturday",
        "at": datetime(2025, 3, 1, 9, 0, 0, 123_456, tzinfo=UTC),
        "user": "jane",
        "session": "support-17",
        "role": "user",
        "producer": "Jane",
        "source": "zep",
        "metadata": {"channel": "phone"},
    }
    assert (answered["role"], answered["producer"]) == ("assistant", "assistant")


def test_older_messages_name_the_role_in_role_type_and_lie_in_their_session():
    (said,), _ = split(list(read_zep(EXPORTS / "zep_session_v2.json")))
    assert (said["role"], said["producer"]) == ("user", "Kai")
    assert (said["session"], said["user"]) == ("s-1", "kai")
    assert said["id"] == "11111111-0000-4000-8000-000000000001"


def test_a_fact_is_a_semantic_memory_of_when_it_became_true():
    (loves, likes, episode), broken = split(list(read_zep(EXPORTS / "zep_graph.json")))
    assert loves == {
        "id": "9a1e6a4e-2b1f-4f55-8f10-a1b2c3d40001",
        "text": "Jane loves Adidas shoes",
        "at": datetime(2024, 5, 31, tzinfo=UTC),
        "type": "semantic",
        "user": "jane",
        "source": "zep",
        "metadata": {
            "relation": "LOVES",
            "invalid_at": "2025-03-01T09:00:00Z",
            "expired_at": "2025-03-01T09:01:00Z",
            "source_node_uuid": "n1",
            "target_node_uuid": "n2",
            "json:episodes": '["e1"]',
            "strength": 3,
        },
    }
    assert likes["at"] == datetime(2025, 3, 1, 9, 1, tzinfo=UTC)
    assert episode["text"] == '{"order": 17, "item": "Puma Speedcat"}'
    assert [(entry.place, entry.field) for entry in broken] == [
        ("zep_graph.json: element 0, edges 2", "created_at")
    ]


def test_a_message_of_a_later_time_than_it_was_sent_takes_the_time_it_is_about(file):
    row = {
        "uuid": "1",
        "role": "user",
        "content": "hello",
        "created_at": "2026-01-02T00:00:00Z",
        "reference_time": "2025-12-24T18:00:00Z",
    }
    (record,), _ = split(list(read_zep(file("m.json", json.dumps({"messages": [row]})))))
    assert record["at"] == datetime(2025, 12, 24, 18, tzinfo=UTC)


def test_a_second_import_adds_nothing_even_without_ids(file, tmp_path):
    row = {"role": "user", "content": "hello", "created_at": "2026-01-02T00:00:00Z"}
    path = file("m.jsonl", json.dumps(row) + "\n")
    exported = copied("zep_graph.json", tmp_path)
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        assert import_path(memory, path).added == 1
        assert import_path(memory, path).skipped == 1
        report = import_path(memory, exported)
        assert (report.added, report.failed) == (3, 1)
        assert import_path(memory, exported).skipped == 3
        holds = memory.list(filter="source = 'zep' AND type = 'semantic' AND m.invalid_at IS NULL")
        assert [record.text for record in holds] == ["Jane likes Puma shoes"]
