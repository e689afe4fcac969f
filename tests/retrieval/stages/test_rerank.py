"""Stage 11 decides from raw cosine whether to rerank."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from ekphory.errors import ServiceError
from ekphory.retrieval.calibration import FittedFile, FittedGate, GateBand
from ekphory.retrieval.fusion import Blend
from ekphory.retrieval.gate import GateDecision, GateThresholds
from ekphory.retrieval.pipeline import RememberedRecords
from ekphory.retrieval.query import classify_query
from ekphory.retrieval.stages.rerank import GateReranker, Rerank
from ekphory.testing import HashEmbedder, OverlapReranker
from retrieval.states import records, rows, state_of, with_candidates


def state(cosine, reranker=None):
    given = state_of(*records(*map(str, cosine)), reranker=reranker or OverlapReranker())
    # Fused ranks hardly differ, whatever the cosine.
    return with_candidates(given, [1.0, 0.984, 0.969][: len(cosine)], cosine=cosine)


@pytest.mark.parametrize(
    ("cosine", "decision"),
    [([0.6, 0.5, 0.4], False), ([0.35, 0.32, 0.3], True), ([0.301, 0.3, 0.3], False)],
)
def test_a_hard_gate_looks_at_cosine_and_not_at_the_ranking(cosine, decision):
    assert GateReranker().run(state(cosine)).gate.rerank is decision


def test_the_gate_looks_at_the_five_nearest_and_leaves_them_in_their_order():
    # The five nearest count in whatever order they stand.
    gated = GateReranker().run(state([0.3, 0.6, 0.32]))
    assert gated.notes == {"decision": "hard-gate-high: spread=0.3000 > 0.08 (vector confident)"}
    # A soft gate gives a weight.
    gate = GateReranker(mode="soft").run(state([0.35, 0.32, 0.3])).gate
    assert (gate.rerank, gate.first_stage_weight) == (True, pytest.approx(0.75, abs=1e-6))
    # The candidates stay as they are.
    assert rows(GateReranker().run(state([0.3, 0.6]))) == [0, 1]


class KnownReranker(OverlapReranker):
    """States a revision, as rerankers of a directory do."""

    model_id = "overlap-reranker@1"


HASH_EMBEDDER = HashEmbedder().identity.model_id


def learned(embedder=HASH_EMBEDDER):
    """A gate for the embedder and the reranker of these tests."""
    file = FittedFile(
        kind="gate",
        command="ekphory train gate --data DIR",
        models={"embedder": embedder, "reranker": "overlap-reranker@1"},
        data={},
        seed=0,
    )
    return FittedGate(file, GateBand("probability_gap", GateThresholds(low=0.01, high=0.5)))


@pytest.mark.parametrize(
    ("probability", "decision", "reason"),
    [
        ([0.9, 0.3], False, "auto-gate-skip: probability_gap=0.6000 outside [0.0100, 0.5000]"),
        ([0.6, 0.3], True, "auto-gate-pass: probability_gap=0.3000 within [0.0100, 0.5000]"),
    ],
)
def test_a_gate_is_learned_for_an_embedder_and_a_reranker(probability, decision, reason):
    given = state([0.6, 0.4], KnownReranker())
    given = with_candidates(given, [1.0, 0.9], probability=probability)
    gated = GateReranker(mode="auto", learned=learned()).run(given)
    assert (gated.gate.rerank, gated.gate.reason) == (decision, reason)


def test_without_a_reranker_or_a_gate_for_it_there_is_nothing_to_decide():
    # A pair for which none was learned is not gated.
    stage = GateReranker(mode="auto", learned=learned("ekphory-small@1f"))
    assert (
        stage.skip_reason(state([0.6, 0.4]))
        == "no gate was learned for overlap-reranker with hash-embedder"
    )
    # Without a reranker there is nothing to decide.
    given = with_candidates(state_of(*records("a")), [0.5], cosine=[0.5])
    assert GateReranker().skip_reason(given) == "no reranker"


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


def four(reranker=None, query="red dog", **scores):
    given = state_of(*records(*TEXTS), query=query, reranker=reranker)
    return with_candidates(given, [0.9, 0.8, 0.7, 0.6], **scores)


def test_the_best_by_the_reranker_come_first_and_keep_their_probability():
    # The best by the reranker come first.
    reranked = Rerank(blend=ALONE).run(four(OverlapReranker()))
    assert rows(reranked) == [2, 1, 3, 0]
    assert reranked.candidates.scores["reranker"].tolist() == [1.0, 0.5, 0.5, 0.0]
    # Without a calibration the reranker changes no probability.
    by_row = dict(zip(rows(reranked), reranked.candidates.scores["probability"], strict=True))
    assert [by_row[row] for row in range(4)] == pytest.approx([0.9, 0.8, 0.7, 0.6])
    # Those after the best keep their order and follow.
    reranked = Rerank(candidates=2, blend=ALONE).run(four(OverlapReranker()))
    assert rows(reranked) == [1, 0, 2, 3]
    assert np.isnan(reranked.candidates.scores["reranker"][2:]).all()


def test_what_lies_in_the_time_named_has_the_odds_of_its_score_multiplied():
    named = {"boost_time": np.array([1.0, 1.0, 1.0, 7.0], np.float32)}
    lifted = Rerank(blend=ALONE).run(four(OverlapReranker(), **named))
    # Without a time 2, 1, 3, 0: the scores of 1 and 3 are equal.
    assert rows(lifted) == [2, 3, 1, 0]
    # The reranker's own scores stay as they were given.
    assert lifted.candidates.scores["reranker"].tolist() == [1.0, 0.5, 0.5, 0.0]
    # Published blends of ranks do without.
    assert rows(Rerank().run(four(OverlapReranker(), **named))) == rows(
        Rerank().run(four(OverlapReranker()))
    )


def test_by_default_ranks_of_both_add_up():
    reranked = Rerank().run(four(OverlapReranker()))
    # First stage 1, 2, 3, 4; the reranker 4, 2, 1, 3.
    sums = {0: 1 / 61 + 1 / 64, 1: 1 / 62 + 1 / 62, 2: 1 / 63 + 1 / 61, 3: 1 / 64 + 1 / 63}
    assert rows(reranked) == sorted(sums, key=lambda row: -sums[row])
    assert reranked.candidates.ranking.tolist() == pytest.approx(sorted(sums.values())[::-1])


def test_without_a_reranker_or_with_the_gate_shut_nothing_is_reranked():
    # No reranker means no reranking and says so.
    assert Rerank().skip_reason(four()) == "no reranker"
    # Without a reranker the trace says that the context was not read.
    asked = replace(four().request, context=("Anna: I ran",))
    reason = Rerank().skip_reason(replace(four(), request=asked))
    assert reason == "no reranker; none reads the context"
    # A gate that is shut leaves the order.
    shut = replace(four(OverlapReranker()), gate=GateDecision(False, 1.0, "hard-gate-low: …"))
    assert Rerank().skip_reason(shut) == "hard-gate-low: …"


def test_a_soft_gate_weighs_the_first_stage_which_stays_where_scores_are_too_close():
    # A soft gate weighs the first stage.
    opened = replace(four(OverlapReranker()), gate=GateDecision(True, 0.5, "soft-gate: …"))
    reranked = Rerank().run(opened)
    assert reranked.candidates.ranking.max() == pytest.approx(0.5 / 63 + 1 / 61)
    # Scores too close to tell apart leave the order.
    undecided = Rerank().run(four(Indifferent()))
    assert rows(undecided) == [0, 1, 2, 3]
    assert undecided.notes == {"reranker": "overlap-reranker", "read": 4, "undecided": True}


def test_a_reranker_that_fails_leaves_the_order_and_says_why():
    failed = Rerank().run(four(Broken()))
    assert rows(failed) == [0, 1, 2, 3]
    assert failed.degraded == "overlap-reranker: https://rerank.example: refused the connection"


def test_when_the_time_is_spent_the_rest_keeps_its_order_and_the_stage_is_degraded():
    late = Rerank(blend=ALONE, seconds=0.01).run(four(Sluggish(batch_size=2)))
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
    Rerank(query_form=form).run(four(reranker, query="Zinc helps."))
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
    boosted = four(OverlapReranker(), query="red", boost=[1.0, 1.0, 1.0, 1.1])
    boosted = replace(boosted, query_class=classify_query(query))
    assert rows(Rerank(blend=ALONE, boosts=boosts).run(boosted))[0] == first


def test_a_memory_that_is_gone_is_left_out():
    given = four(OverlapReranker())
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


def test_turns_that_expired_or_are_of_another_session_are_no_neighbours():
    # A neighbour that has expired is not read.
    turns = session("a", "bb", "ccc")
    turns[1] = replace(turns[1], expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    given = state_of(*turns, reranker=Listening())
    Rerank(candidates=1).run(with_candidates(given, [0.9]))
    assert given.resources.reranker.asked[0][1][0].after is None
    # Turns of another session are not neighbours.
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
