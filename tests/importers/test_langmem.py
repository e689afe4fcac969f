import json
from datetime import UTC, datetime

from ekphory.importers.memory_products import read_langmem
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

from .foreign_exports import EXPORTS, copied, split


def test_an_item_keeps_its_namespace_its_key_and_its_moments():
    (dogs, _, _), _ = split(list(read_langmem(EXPORTS / "langmem_items.json")))
    assert dogs == {
        "id": "memories/user124/0145905e-2b78-4675-9a54-4cb13099bd0b",
        "text": "User likes dogs as pets",
        "at": datetime(2025, 2, 6, 18, 54, 32, 568_595, tzinfo=UTC),
        "source": "langmem",
        "metadata": {
            "namespace": "memories.user124",
            "key": "0145905e-2b78-4675-9a54-4cb13099bd0b",
            "kind": "Memory",
            "updated_at": "2025-02-07T08:00:00+00:00",
        },
    }


def test_a_memory_of_a_schema_and_any_other_value_are_written_out():
    (_, triple, food), _ = split(list(read_langmem(EXPORTS / "langmem_items.json")))
    assert triple["text"] == "subject: Alice\npredicate: manages\nobject: ML team"
    assert triple["metadata"]["predicate"] == "manages"
    assert food["text"] == "food_preference: I like pizza"
    assert food["id"] == "1/memories/07e0caf4-1631-47b7-b15f-65515d4c1843"


def test_what_the_tool_of_langmem_stores_is_read_from_a_dump_of_the_table(file):
    row = {
        "prefix": "memories.mara",
        "key": "k",
        "value": {"content": "Tea at five"},
        "created_at": "2025-02-06 18:54:32+00",
        "updated_at": "2025-02-06 18:54:32+00",
    }
    (record,), _ = split(list(read_langmem(file("store.jsonl", json.dumps(row) + "\n"))))
    assert (record["id"], record["text"]) == ("memories/mara/k", "Tea at five")
    assert record["at"] == datetime(2025, 2, 6, 18, 54, 32, tzinfo=UTC)


def test_a_value_that_is_no_object_and_a_namespace_that_is_none_are_reported(file):
    _, (broken,) = split(list(read_langmem(EXPORTS / "langmem_items.json")))
    assert (broken.place, broken.field) == ("langmem_items.json: element 2", "value")
    row = {"namespace": [1], "key": "k", "value": {}, "created_at": "2025-02-06"}
    _, (broken,) = split(list(read_langmem(file("i.json", json.dumps({"items": [row]})))))
    assert (broken.place, broken.field) == ("i.json: element 0, items 0", "namespace")


def test_a_slash_in_a_label_or_a_key_makes_no_other_items_id(file):
    rows = [
        {"namespace": names, "key": key, "value": {"content": "x"}, "created_at": "2025-02-06"}
        for names, key in ((["a/b"], "c"), (["a"], "b/c"), (["a", "b"], "c"))
    ]
    records, _ = split(list(read_langmem(file("i.json", json.dumps(rows)))))
    assert [record["id"] for record in records] == ["a%2Fb/c", "a/b%2Fc", "a/b/c"]


def test_a_second_import_adds_nothing(tmp_path):
    exported = copied("langmem_items.json", tmp_path)
    with Memory(tmp_path / "store", user="u", embedder=HashEmbedder()) as memory:
        report = import_path(memory, exported)
        assert (report.added, report.failed) == (3, 1)
        assert import_path(memory, exported).skipped == 3
        (record,) = memory.list(filter="m.kind = 'Triple' AND m.object = 'ML team'")
        assert record.user == "u"
