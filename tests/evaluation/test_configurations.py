import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import numpy as np
import pytest
from tests.evaluation.conftest import SETS

from ekphory.errors import InvalidInput, ServiceError
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker
from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.retrieval.pipeline import OptionalModels
from ekphory.testing import HashEmbedder, OverlapReranker, ScriptedChat
from ekphory.types import to_plain_data
from ekphory_lab.evaluation.configurations import (
    BASELINE,
    CONFIGURATIONS,
    RememberingReranker,
    choose_configurations,
    configuration_table,
    run_configurations,
    runs_json,
)
from ekphory_lab.evaluation.loaders import load_retrieval
from ekphory_lab.evaluation.runner import Means

PUBLISHED_GATES = {
    "O": ("hard", 0.0, 0.15),
    "GATE-A": ("hard", 0.02, 0.08),
    "GATE-B": ("soft", 0.02, 0.08),
    "GATE-C": ("soft", 0.02, 0.12),
    "GATE-D": ("soft", 0.02, 0.08),
}


def stages(configuration_id):
    return {stage.name: stage for stage in CONFIGURATIONS[configuration_id].pipeline().stages}


def test_there_are_thirty_six_of_upstreams_names_in_any_case_and_order():
    letters = [*"ABCDEFGHIJKLMNOPQRSTUVWX"]
    families = [f"{family}-{letter}" for family in ("MQ", "RRF", "GATE") for letter in "ABCD"]
    assert list(CONFIGURATIONS) == letters + families
    chosen = choose_configurations(["gate-a", " c ", "A"])
    assert [each.id for each in chosen] == ["A", "C", "GATE-A"]
    assert choose_configurations(["all"]) == tuple(CONFIGURATIONS.values())
    assert BASELINE.id == "A"


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


def test_the_switches_decide_arms_gates_and_what_is_the_same():
    # Vector only searches no words, words only no vectors.
    assert stages("A")["search pools"].arms == "dense"
    assert stages("B")["search pools"].arms == "lexical"
    assert stages("C")["search pools"].arms == "both"
    # The gates have the published thresholds.
    gates = {each: stages(each)["reranker gate"] for each in PUBLISHED_GATES}
    assert {
        name: (gate.mode, gate.thresholds.low, gate.thresholds.high) for name, gate in gates.items()
    } == PUBLISHED_GATES
    # What is the same in other words has the same switches.
    same = {each.id: each.same_as for each in CONFIGURATIONS.values() if each.same_as}
    assert same == {"Q": "N", "R": "H", "S": "O", "T": "M"}
    for one, other in same.items():
        first, second = CONFIGURATIONS[one], CONFIGURATIONS[other]
        assert (first.fusion, first.blend, first.gate) == (second.fusion, second.blend, second.gate)


@pytest.mark.parametrize("names", [["A", "Z"], [""], []])
def test_an_unknown_configuration_is_refused(names):
    with pytest.raises(InvalidInput, match="configs="):
        choose_configurations(names)


DOCUMENT = "The grey cat that was adopted lives by the harbour, where the boat sank last year."


class CountingReranker(OverlapReranker):
    """Keeps every pair of query and passage that it reads."""

    def __init__(self):
        super().__init__()
        self.pairs = []

    def score(self, query, passages, /):
        self.pairs += [(query, passage) for passage in passages]
        return super().score(query, passages)


def run_with(*names, **models):
    return run_configurations(
        load_retrieval(SETS / "pets"),
        choose_configurations(names),
        Means(embedder=HashEmbedder(dimension=64), models=OptionalModels(**models)),
    )


def test_all_thirty_six_run_with_their_models():
    chat = ScriptedChat(repeat(DOCUMENT))
    runs = run_with("all", reranker=OverlapReranker(), chat=chat)
    assert [run.configuration.id for run in runs] == list(CONFIGURATIONS)
    assert all(run.report.mean("R@10") == 1.0 for run in runs)
    assert {run.report.depth for run in runs} == {10}
    assert all(run.report.index_seconds < runs[0].report.index_seconds / 5 for run in runs[1:])


def test_what_lacks_its_model_says_which_and_vector_only_search_comes_first():
    runs = run_with("B", "F", "MQ-B", "GATE-A")
    assert [(run.configuration.id, run.missing) for run in runs] == [
        ("A", ()),
        ("B", ()),
        ("F", ("language model",)),
        ("MQ-B", ("language model", "reranker")),
        ("GATE-A", ("reranker",)),
    ]
    assert runs[0].against_baseline is None
    assert (runs[1].against_baseline.first, runs[1].against_baseline.second) == ("A", "B")
    assert [each["system"] for each in runs_json(runs)["reports"]] == ["A", "B"]
    labels = [row[1] for row in configuration_table(runs).rows]
    assert labels[3].endswith("needs a language model and a reranker; unmeasured")
    # The table shows label, baseline, difference and what is the same.
    runs = run_with("C", "Q", reranker=OverlapReranker())
    table = configuration_table(runs)
    assert table.title.startswith(
        "Memory-Spark's configurations on pets: 2 queries, 12 passages; published"
    )
    _, hybrid, blended = table.rows
    assert hybrid[:2] == ("C", "Hybrid")
    assert blended[1].endswith("the same as N; upstream now runs GATE-A for it")
    assert ".786" in blended


def test_a_gate_tells_how_often_it_lets_the_reranker_rest():
    runs = run_with("RRF-A", "GATE-A", "GATE-B", reranker=OverlapReranker())
    told = {run.configuration.id: run.report.configuration.get("gate_skipped") for run in runs}
    # Of two questions the spread of the cosines is wide, as it always is with this embedder.
    assert told == {"A": None, "RRF-A": None, "GATE-A": 1.0, "GATE-B": 0.0}
    labels = [row[1] for row in configuration_table(runs).rows]
    assert labels[2].endswith("; skips 100%")


def test_each_pair_is_read_once_over_all_configurations_at_the_same_moment():
    reranker = CountingReranker()
    run_with("D", "H", "J", "N", "GATE-B", reranker=reranker)
    texts = [(query.text, passage.text) for query, passage in reranker.pairs]
    assert len(texts) == len(set(texts)) == 2 * 12
    # Passages without a time have the same one in every run.
    moments = {(query.now.isoformat(), passage.at.isoformat()) for query, passage in reranker.pairs}
    assert moments == {("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00")}


class SlowReranker(OverlapReranker):
    """Takes its time over every call."""

    def score(self, query, passages, /):
        time.sleep(0.1)
        return super().score(query, passages)


def test_a_remembered_score_takes_as_long_as_it_was_read_for():
    runs = run_with("H", "N", reranker=SlowReranker())
    assert "is counted again" in configuration_table(runs).note
    plain, read, remembered = to_plain_data(runs_json(runs))["reports"]
    assert plain["latency_ms"]["p50"] < 100
    assert read["latency_ms"]["p50"] > 100
    assert min(row["milliseconds"] for row in remembered["queries"]) > 100


def test_the_json_has_each_difference_to_vector_only_search():
    plain, lexical = to_plain_data(runs_json(run_with("B")))["reports"]
    assert plain["against_baseline"] is None
    assert lexical["against_baseline"]["first"] == "A"
    test = lexical["against_baseline"]["tests"]["NDCG@10"]
    assert test["low"] <= test["difference"] <= test["high"]
    assert 0 < test["p_value"] <= 1


QUERY = RerankQuery("who has a grey cat")
CAT, BOAT, TRAIN = (
    RerankPassage("I adopted a grey cat"),
    RerankPassage("My boat sank in the harbour"),
    RerankPassage("The train to Lisbon was late"),
)


class FailingOnce(OverlapReranker):
    """Fails the first time that it is asked."""

    failed = False

    def score(self, query, passages, /):
        if not self.failed:
            self.failed = True
            raise ServiceError("the service is gone")
        return super().score(query, passages)


def test_whatever_a_model_reads_beside_the_texts_makes_another_pair():
    model = CountingReranker()
    reranker = RememberingReranker(model)
    reranker.score(QUERY, [CAT])
    reranker.score(RerankQuery(QUERY.text, context=("Ann: I like cats",)), [CAT])
    reranker.score(RerankQuery(QUERY.text, instruction="names count"), [CAT])
    reranker.score(QUERY, [RerankPassage(CAT.text, before=BOAT.text)])
    reranker.score(QUERY, [RerankPassage(CAT.text, type="semantic")])
    assert len(model.pairs) == 5


def test_threads_that_ask_for_the_same_pairs_have_them_read_once():
    model = CountingReranker()
    reranker = RememberingReranker(model)
    passages = [RerankPassage(f"row {n}") for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: reranker.score(QUERY, passages), range(16)))
    assert len(model.pairs) == 50


def test_what_a_failed_call_asked_for_is_read_the_next_time():
    reranker = RememberingReranker(FailingOnce())
    with pytest.raises(ServiceError):
        reranker.score(QUERY, [CAT])
    assert reranker.score(QUERY, [CAT]).tolist() == pytest.approx([3 / 5])


def test_the_bundled_reranker_gives_the_same_probabilities_and_raw_scores():
    bundled = bundled_reranker()
    reranker = RememberingReranker(bundled)
    reranker.score(QUERY, [BOAT])
    judged, expected = (each.judge(QUERY, [CAT, BOAT, TRAIN]) for each in (reranker, bundled))
    assert (judged.scores == expected.scores).all()
    assert (judged.raw == expected.raw).all()
    assert judged.scores.dtype == np.float32
    # Scores stay probabilities only where the model was calibrated.
    scores = np.array([0.25], np.float32)
    assert reranker_probabilities(reranker, scores).tolist() == [0.25]
    assert reranker_probabilities(RememberingReranker(OverlapReranker()), scores) is None
