"""An agent of OpenAI's Agents SDK whose dialogues are kept, and found again in later ones.

pip install 'ekphory[openai-agents]'
OPENAI_API_KEY=sk-… python examples/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from agents import Agent, Runner, function_tool, set_tracing_disabled

from ekphory.frameworks.openai_agents import EkphorySession
from ekphory.memory import Memory


async def talk(store: str) -> None:
    """Have two dialogues with one user; the second knows what was said in the first."""
    with Memory(store, user="mara") as everything:

        @function_tool
        def recall(question: str) -> str:
            """Look up what the user has said in any dialogue."""
            return everything.search(question, k=3, pools=["agent_memory"]).to_prompt()

        agent = Agent(
            "Helper", instructions="Look up what you do not know about the user.", tools=[recall]
        )
        for name, questions in (
            ("monday", ("My sister Ines keeps bees", "What is her name?")),
            ("friday", ("What does my sister keep?",)),
        ):
            with Memory(store, user="mara", session=name) as memory:
                session = EkphorySession(memory)
                for question in questions:
                    result = await Runner.run(agent, question, session=session)
                    print(f"{name}: {question} {result.final_output}")
                print(f"{name}: {len(await session.get_items())} items")


def main() -> None:
    """Talk, and keep nothing."""
    # Otherwise the SDK sends what is said to OpenAI a second time, for its traces.
    set_tracing_disabled(True)
    with TemporaryDirectory() as store:
        asyncio.run(talk(store))


if __name__ == "__main__":
    main()
