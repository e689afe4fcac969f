"""Every argument of mem0's classes is taken, in its place and with its default, or refused."""

import ast
import asyncio
import inspect
import re
import textwrap
from datetime import UTC, datetime, timedelta

import pytest
from tests.cases import read_tables

from ekphory.errors import InvalidInput
from ekphory.frameworks import mem0 as ours
from ekphory.testing import HashEmbedder

CLEAR = "..."
"""Stands for a default that says "not given"."""
TABLES = read_tables(__file__)
MEMORY, ATTRIBUTES = TABLES["memory"], TABLES["attributes"]
SIGNATURES = {"Memory": MEMORY, "AsyncMemory": MEMORY | {"add": MEMORY["add"] + ", llm=None"}}
AT_ONCE = {"close", "from_config"}
"""What is not awaited, in `AsyncMemory` either."""
VERBS = [(owner, verb) for owner, verbs in SIGNATURES.items() for verb in verbs]


def read_signature(owner, verb):
    found = inspect.signature(getattr(owner, verb)).parameters.values()
    bare = [each.replace(annotation=each.empty) for each in found if each.name != "self"]
    shown = str(inspect.Signature(bare)).strip("()")
    return re.sub("<object object at [^>]+>", CLEAR, shown)


@pytest.mark.parametrize(("owner", "verb"), VERBS)
@pytest.mark.parametrize(
    "package", ["ekphory.frameworks.mem0", pytest.param("mem0", marks=pytest.mark.slow)]
)
def test_a_verb_has_the_arguments_and_defaults_of_mem0_and_is_awaited_as_there(
    package, owner, verb
):
    found = getattr(pytest.importorskip(package, reason="mem0ai is not installed"), owner)
    assert read_signature(found, verb) == SIGNATURES[owner][verb]
    is_awaited = inspect.iscoroutinefunction(getattr(found, verb))
    assert is_awaited == (owner == "AsyncMemory" and verb not in AT_ONCE)


@pytest.mark.slow
@pytest.mark.parametrize("owner", SIGNATURES)
def test_the_table_has_all_that_an_object_of_mem0_has(owner):
    found = getattr(pytest.importorskip("mem0", reason="mem0ai is not installed"), owner)
    source = ast.parse(textwrap.dedent(inspect.getsource(found)))
    nodes = [node for node in ast.walk(source) if isinstance(node, ast.Attribute)]
    own = [node for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "self"]
    given = {node.attr for node in own if isinstance(node.ctx, ast.Store)}
    assert sorted(name for name in given if not name.startswith("_")) == ATTRIBUTES
    offered = {name for name in dir(found) if not name.startswith("_")}
    assert offered == {*MEMORY, *TABLES["also"]}


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("owner", SIGNATURES)
def test_an_attribute_that_is_not_offered_says_why(store_path, owner, name):
    memory = getattr(ours, owner)(path=store_path, embedder=HashEmbedder())
    with pytest.raises(AttributeError, match=rf"{owner}' object has no attribute '{name}': \w+"):
        getattr(memory, name)
    assert getattr(memory, name, None) is None
    with pytest.raises(AttributeError, match=r"no attribute 'colour'$"):
        _ = memory.colour
    memory.close()


@pytest.fixture
def memory(store_path):
    with ours.Memory(path=store_path, embedder=HashEmbedder()) as memory:
        yield memory


def test_a_memory_holds_until_the_end_of_its_day_and_tells_it(memory):
    today = datetime.now(UTC).date()
    added = memory.add("I like tea", user_id="mara", expiration_date=today)["results"][0]["id"]
    assert memory.get(added)["expiration_date"] == today.isoformat()
    memory.update(added, expiration_date="2999-12-31")
    assert memory.get(added)["expiration_date"] == "2999-12-31"
    memory.update(added, expiration_date=None)
    assert "expiration_date" not in memory.get(added)


@pytest.mark.parametrize("day", ["soon", 5, datetime.now(UTC) - timedelta(days=1)])
def test_a_day_that_is_none_or_has_passed_is_refused(memory, day):
    with pytest.raises(ValueError, match=r"expiration_date=.*(must be a date|has passed)"):
        memory.add("I like tea", user_id="mara", expiration_date=day)


def test_a_text_and_metadata_are_updated_by_themselves(memory):
    added = memory.add("I like tea", user_id="mara", metadata={"n": 1})["results"][0]["id"]
    memory.update(added, text="I like milk")
    memory.update(added, metadata={"m": 2})
    found = memory.get(added)
    assert (found["memory"], found["metadata"]) == ("I like milk", {"n": 1, "m": 2})
    with pytest.raises(ValueError, match="nothing to change"):
        memory.update(added)


def test_a_question_is_asked_at_its_moment(memory):
    for day in ("2026-01-05", "2026-02-05"):
        memory.add(f"I swam on {day}", user_id="mara", timestamp=day)
    asked = {"filters": {"user_id": "mara"}, "threshold": None, "reference_date": "2026-01-06"}
    found = memory.search("What did I do yesterday?", **asked)["results"]
    assert found[0]["memory"] == "I swam on 2026-01-05"


def test_what_is_not_offered_says_why(memory):
    for call, reason in (
        (lambda: memory.search("x", user_id="mara", show_expired=True), "shown. Leave it out"),
        (lambda: memory.get_all(user_id="mara", show_expired=True), "shown. Leave it out"),
        (lambda: memory.get_all(user_id="mara", page=2), "no such argument"),
        (lambda: memory.project.update(decay=True), "has no effect here"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            call()
    with pytest.raises(NotImplementedError, match="no language model is asked"):
        memory.chat("x")


def test_the_clients_of_the_hosted_service_are_refused_by_name():
    with pytest.raises(ImportError, match="Import Memory, which asks none"):
        from ekphory.frameworks.mem0 import MemoryClient  # noqa: F401
    assert not hasattr(ours, "Project")


def test_no_language_model_is_taken_to_add_with(store_path):
    async def use():
        async with ours.AsyncMemory(path=store_path, embedder=HashEmbedder()) as memory:
            await memory.add("I like tea", user_id="mara", expiration_date="2999-12-31")
            with pytest.raises(InvalidInput, match="no language model is asked"):
                await memory.add("x", user_id="mara", llm=object())
            with pytest.raises(InvalidInput, match="has no effect here"):
                await memory.project.update(decay=True)

    asyncio.run(use())
