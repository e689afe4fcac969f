"""The one tool of a session, and what it may spend."""

import pytest
from tests.prompting.hits import hit

from ekphory.agent.provider import Budget, QueryRefused, SearchTool, SessionFault
from ekphory.agent_trace import EventLog
from ekphory.errors import StoreError


def tool(search=lambda query: [hit(query)], calls=10, seconds=60.0):
    return SearchTool(search, Budget(most_calls=calls, seconds=seconds), EventLog())


def test_a_query_is_searched_and_what_it_found_is_kept():
    searching = tool()
    (found,) = searching("the keys")
    assert found.text == "the keys"
    assert [each.query for each in searching.found] == ["the keys"]


@pytest.mark.parametrize("again", ["the keys", "The  KEYS?", "thé keys!"])
def test_a_query_that_differs_only_in_its_writing_is_refused(again):
    searching = tool()
    searching("the keys")
    with pytest.raises(QueryRefused, match="searched already"):
        searching(again)


@pytest.mark.parametrize("query", ["", "  ", "a" * 2001])
def test_a_query_that_cannot_be_searched_is_refused(query):
    with pytest.raises(QueryRefused):
        tool()(query)


def test_refused_queries_count_towards_the_budget():
    searching = tool(calls=2)
    searching("the keys")
    with pytest.raises(QueryRefused):
        searching("the keys")
    with pytest.raises(SessionFault, match="session_call_budget_exceeded"):
        searching("the roof")


def test_without_time_nothing_is_searched():
    with pytest.raises(SessionFault, match="global_timeout"):
        tool(seconds=0.0)("the keys")


def test_a_search_that_fails_ends_the_session_and_is_told():
    def fails(query):
        raise StoreError("the disk is gone")

    searching = tool(fails)
    with pytest.raises(SessionFault, match="downstream_tool_failure: the disk is gone"):
        searching("the keys")
    assert searching.log.events[-1].body.status == "failed"
