"""Stage 11 decides from raw cosine whether to rerank."""

import pytest

from ekphory.retrieval.calibration import FittedFile, FittedGate, GateBand
from ekphory.retrieval.gate import GateThresholds
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.testing.models import HashEmbedder, OverlapReranker
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


def test_the_five_nearest_count_in_whatever_order_they_stand():
    gated = GateReranker().run(state([0.3, 0.6, 0.32]))
    assert gated.notes == {"decision": "hard-gate-high: spread=0.3000 > 0.08 (vector confident)"}


def test_a_soft_gate_gives_a_weight():
    gate = GateReranker(mode="soft").run(state([0.35, 0.32, 0.3])).gate
    assert (gate.rerank, gate.first_stage_weight) == (True, pytest.approx(0.75, abs=1e-6))


def test_the_candidates_stay_as_they_are():
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


def test_a_pair_for_which_none_was_learned_is_not_gated():
    stage = GateReranker(mode="auto", learned=learned("ekphory-small@1f"))
    assert (
        stage.skip_reason(state([0.6, 0.4]))
        == "no gate was learned for overlap-reranker with hash-embedder"
    )


def test_without_a_reranker_there_is_nothing_to_decide():
    given = with_candidates(state_of(*records("a")), [0.5], cosine=[0.5])
    assert GateReranker().skip_reason(given) == "no reranker"
