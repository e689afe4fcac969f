"""Memory-Spark's thirty-six configurations, as data and as pipelines."""

import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.evaluation.configurations import BASELINE, CONFIGURATIONS, configurations

BY_ID = {each.id: each for each in CONFIGURATIONS}


def stages(configuration_id):
    return {stage.name: stage for stage in BY_ID[configuration_id].pipeline().stages}


def test_there_are_thirty_six_of_upstreams_names():
    letters = [*"ABCDEFGHIJKLMNOPQRSTUVWX"]
    families = [f"{family}-{letter}" for family in ("MQ", "RRF", "GATE") for letter in "ABCD"]
    assert list(BY_ID) == letters + families


@pytest.mark.parametrize("configuration_id", BY_ID)
def test_each_can_be_built(configuration_id):
    assert BY_ID[configuration_id].pipeline().name == configuration_id


@pytest.mark.parametrize(
    ("configuration_id", "names"),
    [
        ("A", ["clean query", "search pools", "fuse", "cut"]),
        ("F", ["clean query", "hyde", "search pools", "fuse", "cut"]),
        ("G", ["clean query", "search pools", "fuse", "rerank", "diversify", "cut"]),
        ("MQ-A", ["clean query", "multi-query", "search pools", "fuse", "cut"]),
        ("GATE-A", ["clean query", "search pools", "fuse", "reranker gate", "rerank", "cut"]),
    ],
)
def test_the_switches_decide_the_stages(configuration_id, names):
    assert list(stages(configuration_id)) == names


def test_vector_only_searches_no_words_and_words_only_no_vectors():
    assert stages("A")["search pools"].arms == "dense"
    assert stages("B")["search pools"].arms == "lexical"
    assert stages("C")["search pools"].arms == "both"


def test_the_hypothetical_document_replaces_the_query_as_published():
    assert stages("F")["hyde"].use == "replace"


@pytest.mark.parametrize(
    ("configuration_id", "share"),
    [("M", 0.3), ("N", 0.5), ("R", 0), ("U", 0.4), ("V", 0.6), ("W", 0.7), ("X", 0.8)],
)
def test_alpha_is_the_first_stages_share(configuration_id, share):
    blend = stages(configuration_id)["rerank"].blend
    assert (blend.method, blend.first_stage_share) == ("scores", share)


@pytest.mark.parametrize(
    ("configuration_id", "weights"),
    [
        ("RRF-A", (60, 1, 1)),
        ("RRF-B", (60, 1.5, 1)),
        ("RRF-C", (60, 1, 1.5)),
        ("RRF-D", (20, 1, 1)),
    ],
)
def test_ranks_are_blended_with_the_published_weights(configuration_id, weights):
    blend = stages(configuration_id)["rerank"].blend
    assert (blend.constant, blend.first_stage_weight, blend.reranker_weight) == weights


@pytest.mark.parametrize(
    ("configuration_id", "gate"),
    [
        ("O", ("hard", 0.0, 0.15)),
        ("GATE-A", ("hard", 0.02, 0.08)),
        ("GATE-B", ("soft", 0.02, 0.08)),
        ("GATE-C", ("soft", 0.02, 0.12)),
        ("GATE-D", ("soft", 0.02, 0.08)),
    ],
)
def test_the_gates_have_the_published_thresholds(configuration_id, gate):
    stage = stages(configuration_id)["reranker gate"]
    assert (stage.mode, stage.thresholds.low, stage.thresholds.high) == gate


def test_what_is_the_same_in_other_words_has_the_same_switches():
    same = {each.id: each.same_as for each in CONFIGURATIONS if each.same_as}
    assert same == {"Q": "N", "R": "H", "S": "O", "T": "M"}
    for one, other in same.items():
        first, second = BY_ID[one], BY_ID[other]
        assert (first.fusion, first.blend, first.gate) == (second.fusion, second.blend, second.gate)


def test_what_upstream_really_runs_is_marked():
    at_head = [each.id for each in CONFIGURATIONS if each.at_head == "GATE-A"]
    assert at_head == [*"HMNOQRSTUVWX", "RRF-A"]


@pytest.mark.parametrize(
    ("configuration_id", "needs"),
    [
        ("A", ()),
        ("F", ("language model",)),
        ("H", ("reranker",)),
        ("MQ-B", ("language model", "reranker")),
    ],
)
def test_a_configuration_says_which_models_it_needs(configuration_id, needs):
    assert BY_ID[configuration_id].needs == needs


def test_configurations_are_named_in_any_case_and_order():
    assert [each.id for each in configurations(["gate-a", " c ", "A"])] == ["A", "C", "GATE-A"]
    assert configurations(["all"]) == CONFIGURATIONS
    assert BASELINE.id == "A"


@pytest.mark.parametrize("names", [["A", "Z"], [""], []])
def test_an_unknown_configuration_is_refused(names):
    with pytest.raises(InvalidInput, match="configs="):
        configurations(names)
