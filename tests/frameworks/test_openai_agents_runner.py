"""The real Agents SDK, talking to a local service that speaks OpenAI's protocol."""

import asyncio
import runpy
from pathlib import Path

import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI
from tests.services.wire import running_service

from ekphory.frameworks.openai_agents import EkphorySession

from .openai_service import called, response, said, thought

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "openai_agents_session.py"


@pytest.fixture
def wire():
    with running_service() as service:
        yield service


@function_tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: 19 degrees"


def asked(wire, memory, *questions):
    """Ask an agent one question after the other, each in a run of its own; give the answers."""

    async def run_all():
        async with AsyncOpenAI(api_key="any", base_url=f"{wire.host}/v1") as client:
            agent = Agent(
                "Helper",
                model=OpenAIResponsesModel("m", client),
                tools=[weather],
                model_settings=ModelSettings(),
            )
            session = EkphorySession(memory)
            config = RunConfig(tracing_disabled=True)
            return [
                (await Runner.run(agent, one, session=session, run_config=config)).final_output
                for one in questions
            ]

    return asyncio.run(run_all())


def kinds(body):
    return [item.get("type", "message") for item in body["input"]]


def test_a_run_carries_on_the_dialogue_with_its_calls_and_reasoning(wire, open_memory):
    wire.replies = [
        response(thought("I need the weather"), called("weather", '{"city": "Lisbon"}')),
        response(said("19 degrees in Lisbon")),
        response(said("Take a light coat")),
    ]
    memory = open_memory(user="mara", session="trip")
    answers = asked(wire, memory, "How warm is Lisbon?", "What shall I wear?")
    assert answers == ["19 degrees in Lisbon", "Take a light coat"]
    dialogue = ["message", "reasoning", "function_call", "function_call_output", "message"]
    assert kinds(wire.bodies[2]) == [*dialogue, "message"]
    assert wire.bodies[2]["input"][3]["output"] == "Lisbon: 19 degrees"
    assert wire.bodies[2]["input"][5] == {"content": "What shall I wear?", "role": "user"}


def test_a_dialogue_goes_on_with_another_handle_on_the_store(wire, open_memory):
    wire.replies = [response(said("Hello Mara")), response(said("You are Mara"))]
    asked(wire, open_memory(user="mara", session="trip"), "I am Mara")
    asked(wire, open_memory(user="mara", session="trip"), "Who am I?")
    assert [item["role"] for item in wire.bodies[1]["input"]] == ["user", "assistant", "user"]
    found = open_memory(user="mara").search("Who is there?", k=9)
    assert {hit.text for hit in found} == {"I am Mara", "Hello Mara", "Who am I?", "You are Mara"}


def test_the_example_finds_in_a_later_dialogue_what_was_said_in_an_earlier_one(
    wire, monkeypatch, capsys
):
    wire.replies = [
        response(said("How nice!")),
        response(said("Ines.")),
        response(called("recall", '{"question": "sister"}')),
        response(said("Bees.")),
    ]
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.host}/v1")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "monday: My sister Ines keeps bees How nice!",
        "monday: What is her name? Ines.",
        "monday: 4 items",
        "friday: What does my sister keep? Bees.",
        "friday: 4 items",
    ]
    recalled = wire.bodies[3]["input"][2]["output"]
    assert "My sister Ines keeps bees" in recalled
