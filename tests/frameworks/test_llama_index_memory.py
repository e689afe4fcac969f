"""A memory as a block of LlamaIndex's own `Memory`."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.utils import get_tokenizer
from sqlalchemy.ext.asyncio import create_async_engine

from ekphory.frameworks.llama_index import EkphoryMemoryBlock


@pytest.fixture
def block(open_memory):
    return EkphoryMemoryBlock(memory=open_memory(user="mara"), k=3)


def say(text, role="user"):
    return ChatMessage(role=role, content=text)


def test_what_the_short_term_memory_lets_go_of_is_remembered_in_its_session(block):
    said = [say("My sister Ines keeps bees"), say("Noted", "assistant"), say("Go", "system")]
    asyncio.run(block.aput(said, from_short_term_memory=True, session_id="monday"))
    kept = block.memory.list(order="written")
    assert [(each.text, each.role, each.session) for each in kept] == [
        ("My sister Ines keeps bees", "user", "monday"),
        ("Noted", "assistant", "monday"),
    ]


def test_a_message_without_words_keeps_out_none_of_the_others(block):
    said = [say("My sister Ines keeps bees"), say("\n\n", "assistant"), say("\x00", "assistant")]
    asyncio.run(block.aput([*said, say("a" * 1_000_001), say("She has \ud800 two hives\x00")]))
    kept = [each.text for each in block.memory.list(order="written")]
    assert kept == ["My sister Ines keeps bees", "a" * 1_000_000, "She has  two hives"]


def test_a_model_is_shown_what_answers_the_last_question(block):
    block.memory.add("My sister Ines keeps bees")

    async def ask():
        engine = create_async_engine("sqlite+aiosqlite:///:memory:")
        chat = Memory.from_defaults("tuesday", memory_blocks=[block], async_engine=engine)
        shown = await chat.aget(input="What does Ines keep?")
        await engine.dispose()
        return shown

    assert "My sister Ines keeps bees" in asyncio.run(ask())[0].content


def test_a_block_that_is_too_long_loses_memories_before_it_is_dropped(block):
    for number in range(3):
        block.memory.add(f"Bees of hive {number} make {'honey ' * 40}")

    async def shorten(count):
        content = await block.aget([say("Which bees make honey?")])
        return content, await block.atruncate(content, count)

    whole, shorter = asyncio.run(shorten(60))
    assert (whole.count("Bees of hive"), shorter.count("Bees of hive")) == (3, 2)
    assert asyncio.run(shorten(100_000))[1] is None
    # What is left has the room that LlamaIndex counts, which is less than our estimate says.
    counted = len(get_tokenizer()(whole))
    assert len(get_tokenizer()(asyncio.run(shorten(counted // 3))[1])) <= counted - counted // 3
    assert asyncio.run(block.atruncate("of another question", 1)) is None
