"""LangChain's own tests of retrievers, and the history of a chat."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests

from ekphory.errors import InvalidInput
from ekphory.frameworks.langchain import EkphoryChatHistory, EkphoryRetriever


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
class TestEkphoryRetriever(RetrieversIntegrationTests):
    retriever_constructor = EkphoryRetriever
    retriever_query_example = "Where is the key?"
    retriever_constructor_params = {}  # noqa: RUF012  the fixture below fills it

    @pytest.fixture(autouse=True)
    def house(self, memory, monkeypatch):
        for place in ("boiler", "door", "mat", "pot"):
            memory.add(f"A key lies at the {place}")
        monkeypatch.setattr(type(self), "retriever_constructor_params", {"memory": memory})


def test_a_setting_holds_for_one_question_and_another_name_is_refused(memory):
    memory.add("The key is here", pool="house")
    memory.add("The key is there")
    retriever = EkphoryRetriever(memory=memory)
    assert len(retriever.invoke("key", pools=("house",))) == 1
    assert len(retriever.invoke("key")) == 2
    with pytest.raises(InvalidInput, match=r"limit=3: no such setting\. Give k, filter"):
        retriever.invoke("key", limit=3)


CALL = {"name": "look", "args": {"at": "sky"}, "id": "1", "type": "tool_call"}
DIALOGUE = [
    SystemMessage("Be brief"),
    HumanMessage("My sister Ines keeps bees"),
    AIMessage("", tool_calls=[CALL]),
    ToolMessage("blue", tool_call_id="1"),
    AIMessage([{"type": "text", "text": "Noted"}], id="m1"),
    HumanMessage("Yes"),
    HumanMessage("Yes"),
]


@pytest.fixture
def history(open_memory):
    return EkphoryChatHistory(open_memory(user="mara", session="monday"))


def test_messages_of_all_kinds_come_back_equal_and_in_order(history):
    history.add_messages(DIALOGUE[:3])
    asyncio.run(history.aadd_messages(DIALOGUE[3:]))
    assert history.messages == DIALOGUE


def test_what_was_said_is_found_by_the_user_in_any_session(history, open_memory):
    history.add_messages(DIALOGUE)
    found = open_memory(user="mara").search("What does Ines do?", k=1)
    assert (found[0].text, found[0].memory.role) == ("My sister Ines keeps bees", "user")


def test_a_history_is_cleared_without_those_of_others(history, open_memory):
    other = EkphoryChatHistory(open_memory(user="ben", session="monday"))
    for one in (history, other):
        one.add_user_message("Hello")
    history.clear()
    assert (history.messages, other.messages) == ([], [HumanMessage("Hello")])


def test_a_history_needs_a_session_and_messages_that_can_be_kept(history, memory):
    with pytest.raises(InvalidInput, match="is bound to no session"):
        EkphoryChatHistory(memory)
    with pytest.raises(InvalidInput, match="cannot be kept"):
        history.add_messages([HumanMessage("a"), HumanMessage("b", additional_kwargs={"x": {1}})])
    assert history.messages == []
