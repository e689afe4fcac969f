"""Stage 12 reads the best candidates with a reranker."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from ekphory.errors import ServiceError
from ekphory.retrieval.gate import GateDecision
from ekphory.retrieval.pipeline import RememberedRecords
from ekphory.retrieval.query import classify_query
from ekphory.retrieval.rerank import Blend
from ekphory.retrieval.stages.rerank import Rerank
from ekphory.testing.models import OverlapReranker
from retrieval.states import records, rows, state_of, with_candidates

ALONE = Blend(method="scores")
TEXTS = ("a cat", "a dog", "the red dog", "a red cat")


class Broken(OverlapReranker):
    def score(self, _query, _passages):
        raise ServiceError("https://rerank.example: refused the connection")


class Listening(OverlapReranker):
    def __init__(self):
        super().__init__()
        self.asked = []

    def score(self, query, passages):
        self.asked.append((query, list(passages)))
        return super().score(query, passages)


class Indifferent(OverlapReranker):
    def score(self, _query, passages):
        return np.full(len(passages), 0.9, np.float32)


class Sluggish(OverlapReranker):
    def score(self, query, passages):
        time.sleep(0.05)
        return super().score(query, passages)


def state(reranker=None, query="red dog", **scores):
    given = state_of(*records(*TEXTS), query=query, reranker=reranker)
    return with_candidates(given, [0.9, 0.8, 0.7, 0.6], **scores)


def test_the_best_by_the_reranker_come_first():
    reranked = Rerank(blend=ALONE).run(state(OverlapReranker()))
    assert rows(reranked) == [2, 1, 3, 0]
    assert reranked.candidates.scores["reranker"].tolist() == [1.0, 0.5, 0.5, 0.0]


def test_by_default_ranks_of_both_add_up():
    reranked = Rerank().run(state(OverlapReranker()))
    # First stage 1, 2, 3, 4; the reranker 4, 2, 1, 3.
    sums = {0: 1 / 61 + 1 / 64, 1: 1 / 62 + 1 / 62, 2: 1 / 63 + 1 / 61, 3: 1 / 64 + 1 / 63}
    assert rows(reranked) == sorted(sums, key=lambda row: -sums[row])
    assert reranked.candidates.ranking.tolist() == pytest.approx(sorted(sums.values())[::-1])


def test_those_after_the_best_keep_their_order_and_follow():
    reranked = Rerank(candidates=2, blend=ALONE).run(state(OverlapReranker()))
    assert rows(reranked) == [1, 0, 2, 3]
    assert np.isnan(reranked.candidates.scores["reranker"][2:]).all()


def test_no_reranker_means_no_reranking_and_says_so():
    assert Rerank().skip_reason(state()) == "no reranker"


def test_a_gate_that_is_shut_leaves_the_order():
    shut = replace(state(OverlapReranker()), gate=GateDecision(False, 1.0, "hard-gate-low: …"))
    assert Rerank().skip_reason(shut) == "hard-gate-low: …"


def test_a_soft_gate_weighs_the_first_stage():
    opened = replace(state(OverlapReranker()), gate=GateDecision(True, 0.5, "soft-gate: …"))
    reranked = Rerank().run(opened)
    assert reranked.candidates.ranking.max() == pytest.approx(0.5 / 63 + 1 / 61)


def test_a_reranker_that_fails_leaves_the_order_and_says_why():
    failed = Rerank().run(state(Broken()))
    assert rows(failed) == [0, 1, 2, 3]
    assert failed.degraded == "overlap-reranker: https://rerank.example: refused the connection"


def test_scores_too_close_to_tell_apart_leave_the_order():
    undecided = Rerank().run(state(Indifferent()))
    assert rows(undecided) == [0, 1, 2, 3]
    assert undecided.notes == {"reranker": "overlap-reranker", "read": 4, "undecided": True}


def test_when_the_time_is_spent_the_rest_keeps_its_order_and_the_stage_is_degraded():
    late = Rerank(blend=ALONE, seconds=0.01).run(state(Sluggish(batch_size=2)))
    assert rows(late) == [1, 0, 2, 3]
    assert late.degraded == "time for 2 of 4 candidates"


def test_the_passage_is_read_with_its_producer():
    reranker = Listening()
    given = state_of(*records("I like tea", producer="Anna"), query="tea", reranker=reranker)
    Rerank().run(with_candidates(given, [0.5]))
    ((query, passages),) = reranker.asked
    assert (query.text, [passage.text for passage in passages]) == ("tea", ["Anna: I like tea"])


@pytest.mark.parametrize(
    ("form", "asked"), [("as asked", "Zinc helps."), ("question", "Is it true that zinc helps?")]
)
def test_a_statement_can_be_put_as_a_question(form, asked):
    reranker = Listening()
    Rerank(query_form=form).run(state(reranker, query="Zinc helps."))
    assert reranker.asked[0][0].text == asked


IMPORTANT = "what is the most important red thing"


@pytest.mark.parametrize(
    ("boosts", "query", "first"),
    [("before", IMPORTANT, 2), ("as asked", "red", 2), ("as asked", IMPORTANT, 3)],
)
def test_boosts_come_after_the_reranker_where_the_query_asks_for_what_is_important(
    boosts, query, first
):
    # The reranker scores rows 2 and 3 alike but for the boost of row 3.
    boosted = state(OverlapReranker(), query="red", boost=[1.0, 1.0, 1.0, 1.1])
    boosted = replace(boosted, query_class=classify_query(query))
    assert rows(Rerank(blend=ALONE, boosts=boosts).run(boosted))[0] == first


def test_without_a_calibration_the_reranker_changes_no_probability():
    reranked = Rerank(blend=ALONE).run(state(OverlapReranker()))
    by_row = dict(zip(rows(reranked), reranked.candidates.scores["probability"], strict=True))
    assert [by_row[row] for row in range(4)] == pytest.approx([0.9, 0.8, 0.7, 0.6])


def test_a_memory_that_is_gone_is_left_out():
    given = state(OverlapReranker())
    known = given.resources.records
    gone = replace(given.resources, records=lambda keys: known([key for key in keys if key != 1]))
    assert sorted(rows(Rerank().run(replace(given, resources=gone)))) == [1, 2, 3]


def session(*texts, **fields):
    """Records of one session, in order."""
    turns = records(*texts, session="s", **fields)
    return [replace(turn, sequence=place) for place, turn in enumerate(turns)]


def heard(given, **request):
    """What the reranker got: the question and the passages, in the order of the candidates."""
    reranker = given.resources.reranker
    asked = replace(given.request, **request)
    found = with_candidates(replace(given, request=asked), [0.9] * len(given.snapshot))
    Rerank().run(found)
    ((query, passages),) = reranker.asked
    return query, sorted(passages, key=lambda passage: passage.text)


def test_a_turn_is_read_with_the_turns_before_and_after_it():
    given = state_of(*session("a", "bb", "ccc", producer="Anna"), reranker=Listening())
    _, passages = heard(given)
    assert [(each.text, each.before, each.after) for each in passages] == [
        ("Anna: a", None, "Anna: bb"),
        ("Anna: bb", "Anna: a", "Anna: ccc"),
        ("Anna: ccc", "Anna: bb", None),
    ]


def test_a_neighbour_that_has_expired_is_not_read():
    turns = session("a", "bb", "ccc")
    turns[1] = replace(turns[1], expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    given = state_of(*turns, reranker=Listening())
    Rerank(candidates=1).run(with_candidates(given, [0.9]))
    assert given.resources.reranker.asked[0][1][0].after is None


def test_turns_of_another_session_are_no_neighbours():
    first, second = session("a", "b")
    given = state_of(first, replace(second, session="t"), reranker=Listening())
    _, passages = heard(given)
    assert {each.after for each in passages} == {None}


def test_all_records_are_read_in_one_take():
    given = state_of(*session("a", "bb", "ccc"), reranker=Listening())
    takes = []

    def read(keys):
        takes.append(list(keys))
        return given.resources.records(keys)

    counted = replace(given.resources, records=RememberedRecords(read))
    Rerank(candidates=1).run(with_candidates(replace(given, resources=counted), [0.9, 0.8, 0.7]))
    assert takes == [[1, 2]]


def test_the_reranker_is_told_when_a_memory_happened_and_of_what_type_it_is():
    moment = datetime(2023, 5, 8, tzinfo=UTC)
    given = state_of(*records("a", "b", at=moment, type="semantic"), reranker=Listening())
    _, passages = heard(given)
    assert {(each.at, each.type) for each in passages} == {(moment, "semantic")}


@pytest.mark.parametrize(
    "fields", [{"type": "unknown"}, {"type": "semantic", "predicted": frozenset({"type"})}]
)
def test_a_type_that_nobody_said_is_not_told(fields):
    given = state_of(*records("a", **fields), reranker=Listening())
    _, passages = heard(given)
    assert {each.type for each in passages} == {None}


def test_the_reranker_is_told_the_dialogue_and_the_moment_of_asking():
    given = state_of(*records("a"), reranker=Listening())
    query, _ = heard(given, context=("Anna: I ran",), now=1_700_000_000_000_000)
    assert query.context == ("Anna: I ran",)
    assert query.now == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_without_a_reranker_the_trace_says_that_the_context_was_not_read():
    asked = replace(state().request, context=("Anna: I ran",))
    reason = Rerank().skip_reason(replace(state(), request=asked))
    assert reason == "no reranker; none reads the context"
