"""The hits of all searches as one list."""

from dataclasses import replace

from tests.prompting.hits import hit

from ekphory.agent.provider import Found
from ekphory.agent.session import merged
from ekphory.agent_trace import AgentEvent, HopResolved


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
    hits = merged([A, B], [Found("q", (C, A))], [hop(1, C, 0.9), hop(2, D, 0.9)])
    assert order(hits) == ["c", "a", "b"]


def test_the_first_hops_of_all_threads_come_before_the_second():
    events = [hop(1, A, 0.9), hop(2, B, 0.9), hop(1, C, 0.9, branch=2), hop(2, D, 0.9, branch=2)]
    assert order(merged([A, B, C, D], [], events)) == ["a", "c", "b", "d"]


def test_evidence_that_is_more_likely_wrong_stays_in_its_place():
    assert order(merged([A, B], [Found("q", (C,))], [hop(1, C, 0.4)])) == ["a", "b", "c"]


def test_what_a_sure_chain_finds_comes_by_its_probability():
    likely = replace(D, score=0.9)
    hits = merged([A, B], [Found("q", (C, likely))], [hop(1, C, 0.9)])
    assert order(hits) == ["c", "d", "a", "b"]


def test_plain_search_keeps_its_order():
    assert order(merged([A, replace(B, score=0.9)], [], [])) == ["a", "b"]


def test_a_score_is_the_probability_that_plain_search_gave():
    first, second = merged([A, B], [Found("q", (replace(B, score=0.7),))], [hop(1, A, 0.8)])
    assert (first.score, second.score) == (0.1, 0.1)
    assert first.scores["hop"] == 0.8


def test_what_only_a_hop_found_scores_at_most_the_least_of_plain_search():
    plain = [replace(A, score=0.6), replace(B, score=0.3)]
    hits = merged(plain, [Found("q", (replace(C, score=0.9), replace(D, score=0.2)))], [])
    assert {each.text: each.score for each in hits} == {"a": 0.6, "b": 0.3, "c": 0.3, "d": 0.2}
