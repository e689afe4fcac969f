"""`AsyncMemory` has the same verbs as `Memory`, awaitable."""

import asyncio
import inspect

import pytest

from ekphory.errors import InvalidInput, MemoryNotFound, StoreClosed
from ekphory.memory import AsyncMemory, Memory
from ekphory.testing.models import HashEmbedder

VERBS = sorted(
    name
    for name, member in inspect.getmembers(Memory, inspect.isfunction)
    if not name.startswith("_")
)


def test_both_have_the_same_verbs():
    awaitable = inspect.getmembers(AsyncMemory, inspect.iscoroutinefunction)
    assert sorted(name for name, _ in awaitable if not name.startswith("_")) == VERBS


@pytest.mark.parametrize("name", [*VERBS, "__init__"])
def test_a_verb_takes_the_same_arguments(name):
    own, plain = (inspect.signature(getattr(cls, name)) for cls in (AsyncMemory, Memory))
    assert list(own.parameters.values())[1:] == list(plain.parameters.values())[1:]


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_documented_alike(name):
    assert getattr(AsyncMemory, name).__doc__ == getattr(Memory, name).__doc__


def run(store_path, use):
    async def session():
        async with AsyncMemory(store_path, embedder=HashEmbedder(), user="alice") as memory:
            return await use(memory)

    return asyncio.run(session())


def test_every_verb_does_what_its_twin_does(store_path):
    async def use(memory):
        assert (await memory.add("Anna drinks tea", id="tea")).added == 1
        chat = [{"role": "user", "content": "hello"}]
        assert (await memory.add_messages(chat, session="s1")).added == 1
        assert (await memory.add_many([{"text": "row"}, {"text": " "}])).added == 1
        assert (await memory.search("tea", k=1)).hits[0].id == "tea"
        assert (await memory.update("tea", text="Anna drinks coffee")).text == "Anna drinks coffee"
        assert (await memory.get("tea")).text == "Anna drinks coffee"
        assert len(await memory.history("tea")) == 2
        assert len(await memory.list(limit=2)) == 2
        assert await memory.count() == 3
        assert (await memory.health()).memories == 3
        await memory.repair()
        assert await memory.forget("tea", purge=True) == 1
        return await memory.count(filter="user = 'alice'")

    assert run(store_path, use) == 2


@pytest.mark.slow
def test_many_tasks_may_share_one_handle(store_path):
    async def use(memory):
        await asyncio.gather(*(memory.add(f"row {n}", id=f"{n}") for n in range(30)))
        results = await asyncio.gather(*(memory.search(f"row {n}", k=5) for n in range(30)))
        return {len(result) for result in results}

    assert run(store_path, use) == {5}


def test_errors_reach_the_one_who_awaits(store_path):
    async def use(memory):
        with pytest.raises(MemoryNotFound):
            await memory.get("nobody")
        with pytest.raises(InvalidInput, match=r"^k="):
            await memory.search("x", k=0)
        return True

    assert run(store_path, use)


def test_the_event_loop_is_free_while_a_verb_runs(store_path):
    async def use(memory):
        ticks = 0
        task = asyncio.create_task(memory.add_many({"text": f"row {n}"} for n in range(2_000)))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return ticks

    assert run(store_path, use) > 10


def test_a_block_that_ended_has_closed_the_handle(store_path):
    async def session():
        async with AsyncMemory(store_path, embedder=HashEmbedder()) as memory:
            await memory.add("hello")
        with pytest.raises(StoreClosed):
            await memory.count()

    asyncio.run(session())


def test_both_kinds_of_handle_share_one_store(store_path):
    async def use(memory):
        await memory.add("hello", id="1")
        with Memory(store_path, embedder=HashEmbedder()) as plain:
            return plain.get("1").user

    assert run(store_path, use) == "alice"
