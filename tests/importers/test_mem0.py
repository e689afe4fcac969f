import json
from datetime import UTC, datetime

from ekphory.importers.memory_products import read_mem0
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

from .foreign_exports import EXPORTS, copied, split


def test_a_memory_keeps_its_id_its_owner_its_moment_and_its_metadata():
    (seats, peanuts), broken = split(list(read_mem0(EXPORTS / "mem0_open_source.json")))
    assert broken == []
    assert seats == {
        "id": "0b7d1c1e-3a0e-4c55-9d4c-0c9b2f6d7a11",
        "text": "Mara prefers window seats",
        "at": datetime(2025, 9, 1, 15, 30, 0, 123_456, tzinfo=UTC),
        "expires_at": None,
        "user": "mara",
        "agent": None,
        "session": "trip-1",
        "producer": "Mara",
        "role": "user",
        "source": "mem0",
        "metadata": {
            "updated_at": "2025-09-02T08:30:00.123456-07:00",
            "category": "travel",
            "json:tags": '["seat", "train"]',
            "own:project": "autumn",
        },
    }
    assert (peanuts["user"], peanuts["producer"]) == ("ben", None)


def test_a_page_of_the_platform_is_read_with_its_categories():
    (trip,), broken = split(list(read_mem0(EXPORTS / "mem0_platform.json")))
    assert (trip["agent"], trip["user"]) == ("travel-agent", "alex")
    assert trip["metadata"] == {
        "app_id": "web",
        "json:categories": '["travel", "plans"]',
        "updated_at": "2024-07-01T12:00:00Z",
    }
    assert [(entry.place, entry.field) for entry in broken] == [
        ("mem0_platform.json: element 0, results 1", "expiration_date"),
        ("mem0_platform.json: element 0, results 2", "memory"),
    ]
    assert broken[0].message.startswith("expiration_date='2024-07-12': has passed.")


def test_a_memory_that_expires_later_will_expire(file):
    rows = [{"id": "1", "memory": "a", "created_at": "2024-01-01", "expiration_date": "2999-01-01"}]
    (record,), _ = split(list(read_mem0(file("m.json", json.dumps(rows)))))
    assert record["expires_at"] == datetime(2999, 1, 1, tzinfo=UTC)


def test_one_memory_a_line_is_read_and_a_broken_line_is_reported_with_its_number(file):
    good = '{"id": "1", "memory": "Tea at five", "created_at": "2024-01-01T00:00:00Z"}\n'
    path = file("m.jsonl", good + "{broken\n[1]\n" + good.replace('"1"', '"2"'))
    records, broken = split(list(read_mem0(path)))
    assert [record["id"] for record in records] == ["1", "2"]
    assert [(entry.place, entry.content) for entry in broken] == [
        ("m.jsonl:2", "{broken"),
        ("m.jsonl:3", "[1]"),
    ]


def test_a_memory_without_a_moment_and_an_object_that_is_no_memory_are_reported(file):
    rows = [{"id": "1", "memory": "a"}, {"id": "2", "name": "b"}, "text"]
    records, broken = split(list(read_mem0(file("m.json", json.dumps(rows)))))
    assert records == []
    assert [(entry.place, entry.field) for entry in broken] == [
        ("m.json: element 0", "created_at"),
        ("m.json: element 1", "row"),
        ("m.json: element 2", "row"),
    ]


def test_lists_within_lists_without_end_are_reported_and_not_followed(file):
    text = '{"results": [' * 50 + "]}" * 50
    _, (broken,) = split(list(read_mem0(file("m.json", text))))
    assert broken.message.startswith("no memory here, nor a list of such under results, memories")


def test_a_second_import_adds_nothing_and_every_user_finds_only_what_is_theirs(tmp_path):
    exported = copied("mem0_open_source.json", tmp_path)
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        report = import_path(memory, exported)
        assert (report.added, report.skipped, report.failed) == (2, 0, 0)
        assert import_path(memory, exported).skipped == 2
    with Memory(tmp_path / "store", user="ben", embedder=HashEmbedder()) as memory:
        assert [hit.text for hit in memory.search("peanuts")] == ["Ben is allergic to peanuts"]
