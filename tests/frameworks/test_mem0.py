"""Calls as they stand in code that was written for mem0, of its versions 1 and 2."""

import asyncio
import hashlib
import uuid
from contextlib import closing
from datetime import UTC, datetime

import pytest
from tests.cases import read_tables
from tests.importers.foreign_exports import copied
from tests.server.running import running_server

from ekphory.errors import FilterError, InvalidInput, StoreClosed
from ekphory.frameworks.mem0 import AsyncMemory, Memory
from ekphory.importers.run import import_path
from ekphory.testing import HashEmbedder

DIALOGUE = [
    {"role": "system", "content": "Be brief"},
    {"role": "user", "content": "I am a vegetarian", "name": "Mara"},
    {"role": "assistant", "content": "Noted"},
]


@pytest.fixture
def mem0(store_path):
    memory = Memory(path=store_path, embedder=HashEmbedder())
    yield memory
    memory.close()


@pytest.fixture
def added(mem0):
    """Adds one memory, and returns its id."""
    return lambda text, **given: mem0.add(text, **given)["results"][0]["id"]


def texts(found):
    return [entry["memory"] for entry in found["results"]]


def test_messages_are_stored_as_they_are_but_for_those_of_the_system(mem0, added):
    first, second = mem0.add(DIALOGUE, user_id="mara")["results"]
    names = ("memory", "event", "role", "actor_id")
    assert [first[name] for name in names] == ["I am a vegetarian", "ADD", "user", "Mara"]
    assert [second[name] for name in names] == ["Noted", "ADD", "assistant", None]
    assert texts(mem0.get_all(user_id="mara")) == ["Noted", "I am a vegetarian"]
    # Of a growing dialogue that is given whole, what is new is added.
    grown = mem0.add([*DIALOGUE, {"role": "user", "content": "Thanks"}], user_id="mara")
    assert texts(grown) == ["Thanks"]
    # A text, a message and parts of a content are messages, and what has no words is not.
    parts = [{"type": "text", "text": "three"}, {"type": "image_url", "image_url": {"url": "x"}}]
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    two, three = ({"role": "user", "content": content} for content in ("two", parts))
    for messages in ("one", two, [three, calls]):
        mem0.add(messages, user_id="ben")
    assert set(texts(mem0.get_all(user_id="ben"))) == {"one", "two", "three"}
    # Without inference every message is a memory of its own.
    first, second = (added("again", user_id="ben", infer=False) for _ in range(2))
    assert str(uuid.UUID(first)) == first != second


def test_what_a_user_says_without_a_name_is_said_by_the_user(mem0, open_memory):
    mem0.add([{"role": "user", "content": "I eat no meat"}, DIALOGUE[2]], user_id="mara")
    mem0.add("I eat fish", agent_id="cook")
    said = {each.text: each.producer for each in open_memory().list()}
    assert said == {"I eat no meat": "mara", "Noted": "assistant", "I eat fish": "user"}
    # mem0 tells who acted only where a message had a name.
    found = mem0.get_all(user_id="mara")["results"]
    assert [each["role"] for each in found] == ["assistant", "user"]
    assert not any("actor_id" in each for each in found)


def test_a_memory_comes_in_the_form_of_mem0(mem0, added):
    metadata = {"food": True, "tags": ["diet", "home"], "project": "autumn", "note": None}
    names = {"user_id": "mara", "agent_id": "cook", "run_id": "r1"}
    known = added("I am a vegetarian", **names, metadata=metadata, timestamp=1767225600)
    (found,) = mem0.search("vegetarian", user_id="mara", threshold=None)["results"]
    score = found.pop("score")
    assert found == {
        "id": known,
        "memory": "I am a vegetarian",
        "hash": hashlib.md5(b"I am a vegetarian").hexdigest(),
        "metadata": metadata,
        "created_at": "2026-01-01T00:00:00+00:00",
        "updated_at": "2026-01-01T00:00:00+00:00",
        **names,
        "role": "user",
    }
    assert 0 <= score <= 1
    assert mem0.get(known) == found
    assert mem0.get_all(filters={"user_id": "mara"})["results"] == [found]


def test_nobody_finds_what_another_user_agent_or_run_has_said(mem0):
    mem0.add("I like tea", user_id="mara", agent_id="a")
    mem0.add("I like coffee", user_id="ben", run_id="r")
    found = mem0.search("What do I like?", filters={"user_id": "mara"}, threshold=None)
    assert texts(found) == ["I like tea"]
    assert texts(mem0.search("What do I like?", run_id="r", limit=5)) == ["I like coffee"]
    assert texts(mem0.search("What?", filters={"user_id": "mara", "agent_id": "b"})) == []


def test_the_number_of_a_user_names_it_in_filters_as_in_arguments(mem0):
    mem0.add("I keep bees", user_id=7)
    for asked in ({"filters": {"user_id": 7}}, {"filters": {"user_id": "7"}, "user_id": 7}):
        assert [each["memory"] for each in mem0.get_all(**asked)["results"]] == ["I keep bees"]
    with pytest.raises(InvalidInput, match="the call names '7'"):
        mem0.get_all(user_id=7, filters={"user_id": 8})


def test_shared_memories_of_the_project_are_not_a_users_own(mem0, open_memory):
    whole = open_memory()
    whole.add("Rules for everybody", id="rules", pool="shared_rules")
    mem0.add("I like tea", user_id="mara")
    assert texts(mem0.get_all(user_id="mara")) == ["I like tea"]
    assert texts(mem0.search("rules", user_id="mara", threshold=None)) == ["I like tea"]
    # Nor are they seen, changed or deleted by their ids.
    assert (mem0.get("rules"), mem0.history("rules")) == (None, [])
    for call in (lambda: mem0.update("rules", "None"), lambda: mem0.delete("rules")):
        with pytest.raises(InvalidInput, match="no such memory"):
            call()
    # All memories of one user are forgotten, or those of everybody.
    mem0.add("b", user_id="ben")
    mem0.delete_all(user_id="mara")
    assert texts(mem0.get_all(user_id="mara")) == []
    assert texts(mem0.get_all(user_id="ben")) == ["b"]
    mem0.reset()
    assert texts(mem0.get_all(user_id="ben")) == []
    assert whole.get("rules").text == "Rules for everybody"


def test_a_call_that_names_nobody_is_refused(mem0):
    for call in (
        lambda: mem0.add("x"),
        lambda: mem0.search("x"),
        lambda: mem0.get_all(filters={"category": "a"}),
        lambda: mem0.delete_all(),
        lambda: mem0.delete_all(user_id=" "),
    ):
        with pytest.raises(ValueError, match=r"nobody is named|must be a name"):
            call()
    # Names in the call and in the filters must agree.
    with pytest.raises(InvalidInput, match="user_id='ben': the call names 'mara'"):
        mem0.search("x", user_id="mara", filters={"user_id": "ben"})


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """Three days of Mara's, which no test changes."""
    memory = Memory(path=tmp_path_factory.mktemp("week") / "store", embedder=HashEmbedder())
    days = (
        {"day": "monday", "place": "Rome"},
        {"day": "tuesday", "place": "Oslo"},
        {"day": "friday"},
    )
    for number, known in enumerate(days):
        said, at = f"It was {known['day']}", f"2026-01-0{number + 1}"
        memory.add(said, user_id="mara", metadata={"number": number, **known}, timestamp=at)
    yield memory
    memory.close()


@pytest.mark.parametrize(
    ("condition", "expected"), [*read_tables(__file__)["filters"], ({"place": None}, ["friday"])]
)
def test_filters_of_mem0_let_through_what_they_say(week, condition, expected):
    filters = {"user_id": "mara", **condition}
    for found in (week.search("It was", filters=filters), week.get_all(filters=filters)):
        assert {entry["metadata"]["day"] for entry in found["results"]} == set(expected)
    # Filters of the platform may name the user in their AND.
    found = week.get_all(filters={"AND": [{"user_id": "mara"}, {"day": "monday"}]})
    assert texts(found) == ["It was monday"]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"day": {"icontains": "MON"}}, "no such operator here. Use one of eq, ne, gt"),
        ({"day": {"in": "monday"}}, "in and nin take a list"),
        ({"OR": []}, "OR takes a list"),
        ({"OR": ["monday"]}, "must be a mapping"),
        ({"day": ["monday"]}, "metadata holds texts, numbers and booleans only"),
        ("day = 'monday'", "must be a mapping"),
    ],
)
def test_filters_that_cannot_be_read_are_refused(week, filters, message):
    with pytest.raises(FilterError, match=message):
        week.search("x", user_id="mara", filters=filters)


def test_as_many_are_given_as_wanted_and_likely(week):
    assert len(week.search("It was monday", user_id="mara", limit=2, threshold=0)["results"]) == 2
    assert (
        len(week.search("It was", filters={"user_id": "mara"}, top_k=1, threshold=0)["results"])
        == 1
    )
    assert week.search("It was", user_id="mara", top_k=0) == {"results": []}
    assert week.search("unheard of", user_id="mara", threshold=0.999) == {"results": []}
    assert texts(week.get_all(user_id="mara", limit=1)) == ["It was friday"]
    assert week.get_all(user_id="mara", top_k=0) == {"results": []}
    # A score is explained on request.
    asked = {"user_id": "mara", "limit": 1, "threshold": None, "explain": True}
    (found,) = week.search("tuesday", **asked)["results"]
    assert {"cosine", "lexical"} <= found["score_details"].keys()


def test_an_updated_memory_keeps_its_id_and_its_history(mem0, added):
    memory_id = added("I like tea", user_id="mara", metadata={"n": 1})
    answer = mem0.update(memory_id, "I like coffee", metadata={"m": [2]})
    assert answer == {"message": "Memory updated successfully!"}
    found = mem0.get(memory_id)
    assert (found["memory"], found["metadata"]) == ("I like coffee", {"n": 1, "m": [2]})
    assert found["updated_at"] > found["created_at"]
    first, second = mem0.history(memory_id)
    assert (first["event"], first["old_memory"], first["new_memory"]) == ("ADD", None, "I like tea")
    assert (second["event"], second["old_memory"]) == ("UPDATE", "I like tea")
    assert (second["new_memory"], second["memory_id"]) == ("I like coffee", memory_id)
    # A deleted memory is gone with its history.
    assert mem0.delete(memory_id) == {"message": "Memory deleted successfully!"}
    assert (mem0.get(memory_id), mem0.history(memory_id)) == (None, [])
    for verb in (mem0.delete, lambda known: mem0.update(known, "x")):
        with pytest.raises(ValueError, match="no such memory"):
            verb(memory_id)


def test_the_moment_of_change_is_filtered_as_it_is_shown(mem0, added):
    _, changed = (
        added(text, user_id="mara", timestamp="2020-01-01")
        for text in ("I like tea", "I like milk")
    )
    mem0.update(changed, "I like coffee")
    for operator, expected in (("lt", "I like tea"), ("gte", "I like coffee")):
        filters = {"updated_at": {operator: "2021-01-01"}}
        assert texts(mem0.get_all(user_id="mara", filters=filters)) == [expected]


def test_a_procedure_is_a_procedural_memory_and_other_types_are_refused(mem0, open_memory):
    mem0.add("First dig, then water", agent_id="gardener", memory_type="procedural_memory")
    assert open_memory(agent="gardener").list()[0].type == "procedural"
    with pytest.raises(InvalidInput, match="memory_type='x': no such type"):
        mem0.add("y", user_id="mara", memory_type="x")


def test_what_cannot_be_stored_is_refused_and_nothing_is_written(mem0):
    for messages, metadata, message in (
        ([{"content": "x"}], None, r"messages\[0\]=.*must be a message with a role"),
        (7, None, "messages=7: must be a message"),
        ("x", {"when": datetime(2026, 1, 1, tzinfo=UTC)}, "metadata.when=.*cannot be kept"),
    ):
        with pytest.raises(InvalidInput, match=message):
            mem0.add(messages, user_id="mara", metadata=metadata)
    assert texts(mem0.get_all(user_id="mara")) == []


def test_an_expiration_date_that_has_passed_is_refused_by_its_own_name(mem0, added):
    known = added("x", user_id="mara")
    message = "expiration_date='2020-01-01': has passed. Give today or a later day"
    with pytest.raises(InvalidInput, match=message):
        mem0.add("past", user_id="mara", expiration_date="2020-01-01")
    with pytest.raises(InvalidInput, match=message):
        mem0.update(known, expiration_date="2020-01-01")


def test_a_configuration_and_a_prompt_of_mem0_are_taken_and_told_to_have_no_effect(
    monkeypatch, store_path
):
    monkeypatch.setenv("EKPHORY_STORE", str(store_path))
    config = {"llm": {"provider": "openai"}, "vector_store": {"provider": "qdrant"}}
    with pytest.warns(UserWarning, match=r"no effect here \(llm, vector_store\): .*are kept in"):
        memory = Memory.from_config(config)
    with pytest.warns(UserWarning, match="prompt has no effect"):
        memory.add("x", user_id="mara", prompt="Extract facts")
    memory.close()
    assert store_path.is_dir()


def test_projects_do_not_see_each_other(mem0, store_path):
    mem0.add("x", user_id="mara")
    other = Memory(path=store_path, project="p", embedder=HashEmbedder())
    other.add("y", user_id="mara")
    assert texts(other.get_all(user_id="mara")) == ["y"]
    other.reset()
    other.close()
    assert texts(mem0.get_all(user_id="mara")) == ["x"]


def test_a_closed_memory_says_so(mem0):
    mem0.close()
    for read in (lambda: mem0.get_all(user_id="mara"), lambda: mem0.get("x")):
        with pytest.raises(StoreClosed):
            read()


def test_all_verbs_can_be_awaited(store_path):
    async def use():
        memory = AsyncMemory(path=store_path, embedder=HashEmbedder())
        added = await memory.add("I like tea", user_id="mara")
        found = await memory.search("tea", filters={"user_id": "mara"}, threshold=None)
        await memory.update(added["results"][0]["id"], data="I like coffee")
        listed = await memory.get_all(user_id="mara")
        await memory.delete_all(user_id="mara")
        memory.close()
        return texts(found), texts(listed)

    assert asyncio.run(use()) == (["I like tea"], ["I like coffee"])


def test_what_was_imported_from_mem0_is_found_as_mem0_had_it(mem0, open_memory, tmp_path):
    import_path(open_memory(), copied("mem0_open_source.json", tmp_path))
    filters = {"user_id": "mara", "project": "autumn"}
    (found,) = mem0.search("seats", filters=filters, threshold=None)["results"]
    assert found["id"] == "0b7d1c1e-3a0e-4c55-9d4c-0c9b2f6d7a11"
    assert found["created_at"] == "2025-09-01T15:30:00.123456+00:00"
    assert found["metadata"]["tags"] == ["seat", "train"]
    assert (found["run_id"], found["actor_id"]) == ("trip-1", "Mara")


@pytest.mark.slow
def test_a_server_keeps_the_memories_with_models_of_its_own(store_path):
    with running_server(store_path) as server, closing(Memory(path=server.url)) as memory:
        memory.add("I am a vegetarian", user_id="mara")
        assert texts(memory.get_all(filters={"user_id": "mara"})) == ["I am a vegetarian"]
