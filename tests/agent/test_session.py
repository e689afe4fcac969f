"""The one tool of a session, and what it may spend."""

from dataclasses import replace

import pytest
from tests.prompting.hits import hit

from ekphory.agent.provider import Budget, QueryHits, QueryRefused, SearchTool, SessionFault
from ekphory.agent.session import keep_first, merge_hits
from ekphory.agent_trace import AgentEvent, EventLog, HopResolved, RouteChosen
from ekphory.errors import StoreError


def tool(search=lambda query: [hit(query)], calls=10, seconds=60.0):
    return SearchTool(search, Budget(most_calls=calls, seconds=seconds), EventLog())


def test_a_query_is_searched_within_the_budget():
    # A query is searched and what it found is kept.
    searching = tool()
    (found,) = searching("the keys")
    assert found.text == "the keys"
    assert [each.query for each in searching.found] == ["the keys"]
    # Refused queries count towards the budget.
    searching = tool(calls=2)
    searching("the keys")
    with pytest.raises(QueryRefused):
        searching("the keys")
    with pytest.raises(SessionFault, match="session_call_budget_exceeded"):
        searching("the roof")
    # Without time nothing is searched.
    with pytest.raises(SessionFault, match="global_timeout"):
        tool(seconds=0.0)("the keys")


@pytest.mark.parametrize("again", ["the keys", "The  KEYS?", "thé keys!", "«the» keys…"])
def test_a_query_that_differs_only_in_its_writing_is_refused(again):
    searching = tool()
    searching("the keys")
    with pytest.raises(QueryRefused, match="searched already"):
        searching(again)


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("books on C++", "books on C#"),
        ("दिन कब", "दान कब"),
        ("ปีนี้", "ปูนี้"),
        ("かきは", "がきは"),
        ("мой дом", "мои дом"),
        ("below $5", "below €5"),
    ],
)
def test_a_query_of_another_word_is_searched(query, other):
    searching = tool()
    searching(query)
    assert searching(other)[0].text == other


@pytest.mark.parametrize("query", ["", "  ", "a" * 2001])
def test_a_query_that_cannot_be_searched_is_refused(query):
    with pytest.raises(QueryRefused):
        tool()(query)


def test_a_search_that_fails_ends_the_session_and_is_told():
    def fails(query):
        raise StoreError("the disk is gone")

    searching = tool(fails)
    with pytest.raises(SessionFault, match="downstream_tool_failure: the disk is gone"):
        searching("the keys")
    assert searching.log.events[-1].body.status == "failed"


def hop(number, memory, confidence, branch=1):
    body = HopResolved(
        branch=branch, hop=number, query="q", answer="", confidence=confidence, reason="",
        memory_ids=(memory.id,),
    )  # fmt: skip
    return AgentEvent(1, 0.0, "coq", body)


A, B, C, D = (hit(text, score=0.1) for text in "abcd")


def order(hits):
    return [each.text for each in hits]


def test_the_chain_comes_first_and_every_memory_once():
    # The chain comes first and every memory once.
    hits = merge_hits([A, B], [QueryHits("q", (C, A))], [hop(1, C, 0.9), hop(2, D, 0.9)])
    assert order(hits) == ["c", "a", "b"]
    # The first hops of all threads come before the second.
    events = [hop(1, A, 0.9), hop(2, B, 0.9), hop(1, C, 0.9, branch=2), hop(2, D, 0.9, branch=2)]
    assert order(merge_hits([A, B, C, D], [], events)) == ["a", "c", "b", "d"]
    # Evidence that is more likely wrong stays in its place.
    assert order(merge_hits([A, B], [QueryHits("q", (C,))], [hop(1, C, 0.4)])) == ["a", "b", "c"]
    # What a sure chain finds comes by its probability.
    likely = replace(D, score=0.9)
    hits = merge_hits([A, B], [QueryHits("q", (C, likely))], [hop(1, C, 0.9)])
    assert order(hits) == ["c", "d", "a", "b"]
    # Plain search keeps its order.
    assert order(merge_hits([A, replace(B, score=0.9)], [], [])) == ["a", "b"]


def test_a_score_is_the_probability_that_plain_search_gave():
    # A score is the probability that plain search gave.
    first, second = merge_hits([A, B], [QueryHits("q", (replace(B, score=0.7),))], [hop(1, A, 0.8)])
    assert (first.score, second.score) == (0.1, 0.1)
    assert first.scores["hop"] == 0.8
    # What only a hop found scores at most the least of plain search.
    plain = [replace(A, score=0.6), replace(B, score=0.3)]
    hits = merge_hits(plain, [QueryHits("q", (replace(C, score=0.9), replace(D, score=0.2)))], [])
    assert {each.text: each.score for each in hits} == {"a": 0.6, "b": 0.3, "c": 0.3, "d": 0.2}


def test_the_first_hit_of_plain_search_gives_way_only_to_a_chain_that_leads_over_it():
    sure = replace(A, scores={"hop": 0.9})
    assert order(keep_first([B, A], [sure, B, C], [])) == ["b", "a", "c"]
    assert order(keep_first([A, B], [C, sure, B], [])) == ["c", "a", "b"]
    assert keep_first([], [], []) == []


def test_the_first_hit_stays_where_several_things_are_looked_up_beside_each_other():
    log = EventLog()
    log.add(RouteChosen(route="coq", reason_code="parallel", reason_note="", branches=2))
    sure = replace(A, scores={"hop": 0.9})
    assert order(keep_first([A, B], [C, sure, B], log.events)) == ["a", "c", "b"]
