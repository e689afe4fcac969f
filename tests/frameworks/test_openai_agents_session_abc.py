"""The base class of the SDK's sessions."""

from agents.memory.session import SessionABC

from ekphory.frameworks.openai_agents import EkphorySession


def test_a_session_is_one_of_the_sdk(open_memory):
    session = EkphorySession(open_memory(user="mara", session="monday"))
    assert isinstance(session, SessionABC)
    assert session.session_id == "monday"
