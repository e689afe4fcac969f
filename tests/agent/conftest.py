"""A store about Rembrandt, and searches of it by the local agent."""

import pytest

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

from .rembrandt import NOW, records


@pytest.fixture(scope="session")
def facts(tmp_path_factory):
    """Twelve memories that are only read."""
    with Memory(tmp_path_factory.mktemp("facts"), embedder=HashEmbedder()) as memory:
        memory.add_many(records())
        yield memory


@pytest.fixture
def ask(facts):
    """Asks the local agent; keyword arguments are settings of the session."""

    def ask(question, *, k=5, min_score=None, on_event=None, stage_results="none", **settings):
        options = AgentOptions(
            settings=AgentSettings(agent_session_provider="local", **settings),
            stage_results=stage_results,
            on_event=on_event,
        )
        return facts.search(
            question, k=k, now=NOW, min_score=min_score, agent_mode=True, agent_options=options
        )

    return ask
