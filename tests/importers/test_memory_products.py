import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.cases import read_tables

from ekphory.importers.memory_products import read_langmem, read_mem0, read_zep
from ekphory.importers.run import import_path

from .foreign_exports import EXPORTS, copied, split

EXPECTED = read_tables(__file__)


@pytest.fixture
def given(file):
    """Reads a file, and returns the records, and where and in which field others broke."""

    def give(read, content, name="m.json"):
        text = content if isinstance(content, str) else json.dumps(content)
        records, broken = split(list(read(file(name, text))))
        return records, [(entry.place, entry.field) for entry in broken]

    return give


def exported(read, name):
    return split(list(read(EXPORTS / name)))


def test_a_memory_keeps_its_id_its_owner_its_moment_and_its_metadata():
    (seats, peanuts), broken = exported(read_mem0, "mem0_open_source.json")
    assert broken == []
    assert seats == {**EXPECTED["seats"], "expires_at": None, "agent": None}
    assert (peanuts["user"], peanuts["producer"]) == ("ben", None)


def test_a_page_of_the_platform_is_read_with_its_categories():
    (trip,), broken = exported(read_mem0, "mem0_platform.json")
    assert (trip["agent"], trip["user"]) == ("travel-agent", "alex")
    kept = {"app_id": "web", "json:categories": '["travel", "plans"]'}
    assert trip["metadata"] == {**kept, "updated_at": "2024-07-01T12:00:00Z"}
    assert [(entry.place, entry.field) for entry in broken] == [
        ("mem0_platform.json: element 0, results 1", "expiration_date"),
        ("mem0_platform.json: element 0, results 2", "memory"),
    ]
    assert broken[0].message.startswith("expiration_date='2024-07-12': has passed.")


def test_one_memory_a_line_is_read_and_a_broken_line_is_reported_with_its_number(given):
    good = '{"id": "1", "memory": "Tea at five", "created_at": "2024-01-01T00:00:00Z"}\n'
    lines = good + "{broken\n[1]\n" + good.replace('"1"', '"2"')
    records, broken = given(read_mem0, lines, "m.jsonl")
    assert [record["id"] for record in records] == ["1", "2"]
    assert [place for place, _ in broken] == ["m.jsonl:2", "m.jsonl:3"]


def test_a_row_that_is_no_memory_is_reported_and_one_that_expires_later_will_expire(given, file):
    lasting = {"id": "1", "memory": "a", "created_at": "2024-01-01"}
    lasting["expiration_date"] = "2999-01-01"
    rows = [{"id": "1", "memory": "a"}, {"id": "2", "name": "b"}, "text", lasting]
    (record,), broken = given(read_mem0, rows)
    assert record["expires_at"] == datetime(2999, 1, 2, tzinfo=UTC)
    fields = ("created_at", "row", "row")
    assert broken == [(f"m.json: element {place}", field) for place, field in enumerate(fields)]
    # Lists within lists without end are reported and not followed.
    text = '{"results": [' * 50 + "]}" * 50
    _, (broken,) = split(list(read_mem0(file("m.json", text))))
    assert broken.message.startswith("no memory here, nor a list of such under results, memories")


@pytest.mark.parametrize(
    ("name", "added", "failed"),
    [("mem0_open_source.json", 2, 0), ("zep_graph.json", 4, 1), ("langmem_items.json", 3, 1)],
)
def test_a_second_import_adds_nothing(open_memory, tmp_path, name, added, failed):
    memory, path = open_memory(), copied(name, tmp_path)
    report, again = import_path(memory, path), import_path(memory, path)
    assert (report.added, report.failed, report.skipped) == (added, failed, 0)
    assert (again.added, again.skipped) == (0, added)


def test_every_user_finds_only_what_is_theirs(open_memory, tmp_path):
    import_path(open_memory(), copied("mem0_open_source.json", tmp_path))
    found = open_memory(user="ben").search("peanuts")
    assert [hit.text for hit in found] == ["Ben is allergic to peanuts"]


@pytest.mark.parametrize("read", [read_mem0, read_zep])
def test_a_memory_keeps_the_number_of_its_user_and_is_refused_where_that_is_no_name(given, read):
    told = {"memory": "I keep bees", "content": "I keep bees", "created_at": "2026-01-01"}
    records, broken = given(
        read,
        [
            {**told, "id": "1", "user_id": 7},
            {**told, "id": "2", "user_id": ["mara"]},
            {**told, "id": "3", "user_id": ""},
        ],
    )
    assert [record["user"] for record in records] == ["7", None]
    assert broken == [("m.json: element 1", "user_id")]


def test_messages_keep_thread_user_speaker_and_moment_and_empty_ones_are_left_out():
    (said, answered), broken = exported(read_zep, "zep_thread.json")
    assert broken == []
    assert said == EXPECTED["said"]
    assert (answered["role"], answered["producer"]) == ("assistant", "assistant")


def test_a_fact_is_a_semantic_memory_of_when_it_became_true():
    (loves, likes, episode, ended), broken = exported(read_zep, "zep_graph.json")
    assert loves == ended == EXPECTED["loves"]
    assert likes["at"] == datetime(2025, 3, 1, 9, 1, tzinfo=UTC)
    assert episode["text"] == '{"order": 17, "item": "Puma Speedcat"}'
    (entry,) = broken
    assert (entry.place, entry.field) == ("zep_graph.json: element 0, edges 2", "created_at")


def test_a_message_takes_the_time_it_is_about_and_an_older_one_its_role_from_role_type(given):
    row = {"uuid": "1", "role": "user", "content": "hello", "created_at": "2026-01-02T00:00:00Z"}
    row["reference_time"] = "2025-12-24T18:00:00Z"
    (record,), _ = given(read_zep, {"messages": [row]})
    assert record["at"] == datetime(2025, 12, 24, 18, tzinfo=UTC)
    (said,), _ = exported(read_zep, "zep_session_v2.json")
    assert (said["role"], said["producer"]) == ("user", "Kai")
    assert (said["session"], said["user"]) == ("s-1", "kai")
    assert said["id"] == "11111111-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("told", "role", "producer"),
    [
        ({"role": "Kai"}, None, "Kai"),
        ({"role": "Human"}, "Human", "Human"),
        ({"role": "tool"}, "tool", "tool"),
        ({"role": "Kai", "role_type": "user"}, "user", "Kai"),
        ({"role": "user", "name": "Kai"}, "user", "Kai"),
    ],
)
def test_a_name_that_stands_for_a_role_is_a_speakers_name(given, told, role, producer):
    row = {"uuid": "1", "content": "hello", "created_at": "2026-01-02T00:00:00Z", **told}
    (said,), _ = given(read_zep, {"messages": [row]})
    assert (said.get("role"), said["producer"]) == (role, producer)


def test_a_second_import_adds_nothing_even_without_ids(memory, file):
    row = {"role": "user", "content": "hello", "created_at": "2026-01-02T00:00:00Z"}
    path = file("m.jsonl", json.dumps(row) + "\n")
    assert (import_path(memory, path).added, import_path(memory, path).skipped) == (1, 1)


def test_facts_that_still_hold_and_kinds_of_memories_can_be_told_by_a_filter(memory, tmp_path):
    for name in ("zep_graph.json", "langmem_items.json"):
        import_path(memory, copied(name, tmp_path))
    holds = "source = 'zep' AND type = 'semantic' AND m.invalid_at IS NULL"
    triples = "m.kind = 'Triple' AND m.object = 'ML team'"
    for condition, text in ((holds, "Jane likes Puma shoes"), (triples, TRIPLE)):
        assert [record.text for record in memory.list(filter=condition)] == [text]


def edge(name, fact, since, until=None, relation="WORKS_AT"):
    moments = {"created_at": since, "valid_at": since, "invalid_at": until}
    return {"uuid": name, "name": relation, "fact": fact, "source_node_uuid": "jane", **moments}


KESTREL = edge("1", "Jane works at Kestrel", "2024-01-01T00:00:00Z", "2025-03-01T09:00:00Z")
MARLOW = edge("2", "Jane works at Marlow", "2025-03-01T00:00:00Z")
BERN = edge("3", "Jane lives in Bern", "2024-01-01T00:00:00Z", "2025-05-01T00:00:00Z", "LIVES_IN")


def graph(file, *edges):
    return file("zep.json", json.dumps({"user_id": "jane", "edges": edges}))


def test_a_fact_that_another_one_replaced_stands_below_it_and_says_since_when(memory, file):
    path = graph(file, MARLOW, KESTREL)
    report = import_path(memory, path)
    assert (report.added, report.failed) == (2, 0)
    marlow, kestrel = memory.search("Where does Jane work?", k=2)
    assert (marlow.text, marlow.superseded_by) == ("Jane works at Marlow", None)
    assert (kestrel.text, kestrel.superseded_by) == ("Jane works at Kestrel", "2")
    assert kestrel.since == datetime(2025, 3, 1, 9, tzinfo=UTC)
    (pair,) = memory.revisions()
    assert (pair.revision.kind, pair.revision.decided_by) == ("replaces", "caller")
    # Again it notes nothing anew, also where the decision was taken back.
    memory.unsupersede(revision=pair.revision.id)
    again = import_path(memory, path)
    assert (again.added, again.updated, again.skipped) == (0, 0, 2)
    assert memory.revisions() == ()


def test_a_fact_that_ended_without_a_successor_is_followed_by_a_memory_that_says_so(memory, file):
    path = graph(file, BERN)
    assert import_path(memory, path).added == 2
    ended, bern = memory.search("Where does Jane live?", k=2)
    assert ended.text == "No longer holds since 2025-05-01: Jane lives in Bern"
    assert (bern.superseded_by, ended.superseded_by) == ("3/ended", None)
    found = memory.search("Where does Jane live?", superseded="hide")
    assert [hit.id for hit in found] == ["3/ended"]
    assert import_path(memory, path).added == 0


def test_a_fact_ends_with_a_newer_export_and_by_expired_at_alone(memory, file):
    import_path(memory, graph(file, KESTREL | {"invalid_at": None}))
    ended = KESTREL | {"invalid_at": None, "expired_at": "2025-06-01T00:00:00Z"}
    report = import_path(memory, graph(file, ended))
    assert (report.added, report.updated) == (1, 1)
    assert memory.get("1/ended").text.startswith("No longer holds since 2025-06-01: ")
    (pair,) = memory.revisions()
    assert (pair.older.id, pair.newer.id, pair.revision.kind) == ("1", "1/ended", "ends")


@pytest.mark.parametrize(
    "other",
    [
        MARLOW | {"valid_at": "2025-03-04T00:00:00Z"},
        MARLOW | {"source_node_uuid": "otto"},
        MARLOW | {"name": "VISITS"},
        MARLOW | {"source_node_uuid": None},
    ],
    ids=["begins days later", "is of another node", "is another relation", "is of no node"],
)
def test_a_fact_is_no_successor_that(memory, file, other):
    import_path(memory, graph(file, KESTREL | {"source_node_uuid": other["source_node_uuid"]}))
    import_path(memory, graph(file, KESTREL, other))
    assert [pair.revision.newer for pair in memory.revisions()] == ["1/ended"]


def test_a_fact_that_ends_in_the_future_expires_then(given):
    (record,), broken = given(read_zep, {"edges": [BERN | {"invalid_at": "2999-01-01T00:00:00Z"}]})
    assert record["expires_at"] == datetime(2999, 1, 1, tzinfo=UTC)
    assert broken == []


def test_what_an_export_decides_takes_the_place_of_what_was_detected_meanwhile(memory, file):
    import_path(memory, graph(file, KESTREL | {"invalid_at": None}, MARLOW))
    memory.supersede("1", by="2")
    (entry,) = memory._engine.ledger.read().entries.values()
    unsure = replace(entry.revision, state="conflict", probability=0.4, decided_by="a model")
    memory._engine.ledger.append([replace(entry, revision=unsure)])
    import_path(memory, graph(file, KESTREL, MARLOW))
    assert [pair.revision.state for pair in memory.revisions()] == ["active"]


TRIPLE = "subject: Alice\npredicate: manages\nobject: ML team"


def test_an_item_keeps_its_namespace_its_key_and_its_moments(given):
    (dogs, triple, food), (broken,) = exported(read_langmem, "langmem_items.json")
    assert dogs == EXPECTED["dogs"]
    # A memory of a schema and any other value are written out.
    assert (triple["text"], triple["metadata"]["predicate"]) == (TRIPLE, "manages")
    assert food["text"] == "food_preference: I like pizza"
    assert food["id"] == "1/memories/07e0caf4-1631-47b7-b15f-65515d4c1843"
    # A value that is not an object and a namespace that is not a list are reported.
    assert (broken.place, broken.field) == ("langmem_items.json: element 2", "value")
    row = {"namespace": [1], "key": "k", "value": {}, "created_at": "2025-02-06"}
    _, broken = given(read_langmem, {"items": [row]})
    assert broken == [("m.json: element 0, items 0", "namespace")]
    # A slash in a label or a key makes no other item's id.
    rows = [
        {"namespace": names, "key": key, "value": {"content": "x"}, "created_at": "2025-02-06"}
        for names, key in ((["a/b"], "c"), (["a"], "b/c"), (["a", "b"], "c"))
    ]
    records, _ = given(read_langmem, rows)
    assert [record["id"] for record in records] == ["a%2Fb/c", "a/b%2Fc", "a/b/c"]


def test_what_the_tool_of_langmem_stores_is_read_from_a_dump_of_the_table(given):
    moment = "2025-02-06 18:54:32+00"
    row = {"prefix": "memories.mara", "key": "k", "value": {"content": "Tea at five"}}
    row |= {"created_at": moment, "updated_at": moment}
    (record,), _ = given(read_langmem, json.dumps(row) + "\n", "store.jsonl")
    assert (record["id"], record["text"]) == ("memories/mara/k", "Tea at five")
    assert record["at"] == datetime(2025, 2, 6, 18, 54, 32, tzinfo=UTC)


@pytest.mark.parametrize("levels", [1_000, 5_000, 100_000])
def test_what_is_nested_too_deeply_is_reported_and_what_stands_before_it_is_read(given, levels):
    tea = '{"id": "1", "memory": "Tea at five", "created_at": "2024-01-01"}'
    nested = '{"a": ' * levels + "1" + "}" * levels
    records, broken = given(read_mem0, f"[{tea}, {nested}, {tea}]")
    assert [record["text"] for record in records] == ["Tea at five"]
    assert broken == [("m.json: element 1", "conversation")]
