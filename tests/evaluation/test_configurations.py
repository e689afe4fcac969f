import json
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import numpy as np
import pytest

from ekphory.errors import InvalidInput, ServiceError
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker
from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.retrieval.pipeline import OptionalModels
from ekphory.testing.models import OverlapReranker, ScriptedChat
from ekphory_lab.evaluation.configurations import (
    BASELINE,
    CONFIGURATIONS,
    RememberingReranker,
    choose_configurations,
    configuration_table,
    run_configurations,
    runs_json,
)
from ekphory_lab.evaluation.loaders import load_beir


def stages(configuration_id):
    return {stage.name: stage for stage in CONFIGURATIONS[configuration_id].pipeline().stages}


def test_there_are_thirty_six_of_upstreams_names():
    letters = [*"ABCDEFGHIJKLMNOPQRSTUVWX"]
    families = [f"{family}-{letter}" for family in ("MQ", "RRF", "GATE") for letter in "ABCD"]
    assert list(CONFIGURATIONS) == letters + families


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
    same = {each.id: each.same_as for each in CONFIGURATIONS.values() if each.same_as}
    assert same == {"Q": "N", "R": "H", "S": "O", "T": "M"}
    for one, other in same.items():
        first, second = CONFIGURATIONS[one], CONFIGURATIONS[other]
        assert (first.fusion, first.blend, first.gate) == (second.fusion, second.blend, second.gate)


def test_configurations_are_named_in_any_case_and_order():
    assert [each.id for each in choose_configurations(["gate-a", " c ", "A"])] == [
        "A",
        "C",
        "GATE-A",
    ]
    assert choose_configurations(["all"]) == tuple(CONFIGURATIONS.values())
    assert BASELINE.id == "A"


@pytest.mark.parametrize("names", [["A", "Z"], [""], []])
def test_an_unknown_configuration_is_refused(names):
    with pytest.raises(InvalidInput, match="configs="):
        choose_configurations(names)


DOCUMENT = "The grey cat that was adopted lives by the harbour, where the boat sank last year."


@pytest.fixture
def folder(tmp_path):
    """Twelve passages and two questions in BEIR's form."""
    folder = tmp_path / "pets"
    (folder / "qrels").mkdir(parents=True)
    texts = [
        "I adopted a grey cat",
        "My boat sank in the harbour",
        *(f"row {n}" for n in range(10)),
    ]
    rows = [{"_id": str(n), "title": "", "text": text} for n, text in enumerate(texts)]
    queries = [
        {"_id": "q0", "text": "who has a grey cat"},
        {"_id": "q1", "text": "the boat that sank"},
    ]
    for name, lines in (("corpus", rows), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\t0\t1\nq1\t1\t1\n")
    return folder


class CountingReranker(OverlapReranker):
    """Keeps every pair of query and passage that it reads."""

    def __init__(self):
        super().__init__()
        self.pairs = []

    def score(self, query, passages, /):
        self.pairs += [(query, passage) for passage in passages]
        return super().score(query, passages)


def run_with(folder, embedder, *names, **models):
    return run_configurations(
        load_beir(folder),
        choose_configurations(names),
        embedder=embedder,
        models=OptionalModels(**models),
    )


def test_all_thirty_six_run_with_their_models(folder, embedder):
    chat = ScriptedChat(repeat(DOCUMENT))
    runs = run_with(folder, embedder, "all", reranker=OverlapReranker(), chat=chat)
    assert [run.configuration.id for run in runs] == list(CONFIGURATIONS)
    assert all(run.report.mean("R@10") == 1.0 for run in runs)
    assert {run.report.depth for run in runs} == {10}
    assert all(run.report.index_seconds < runs[0].report.index_seconds / 5 for run in runs[1:])


def test_what_lacks_its_model_says_which_and_vector_only_search_comes_first(folder, embedder):
    runs = run_with(folder, embedder, "B", "F", "MQ-B", "GATE-A")
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
    assert labels[3].endswith("needs a language model and a reranker")


def test_the_table_shows_label_baseline_difference_and_what_is_the_same(folder, embedder):
    runs = run_with(folder, embedder, "C", "Q", reranker=OverlapReranker())
    table = configuration_table(runs)
    assert table.title.startswith(
        "Memory-Spark's configurations on pets: 2 queries, 12 passages; published"
    )
    _, hybrid, blended = table.rows
    assert hybrid[:2] == ("C", "Hybrid")
    assert blended[1].endswith("the same as N; upstream now runs GATE-A for it")
    assert ".7863" in blended


def test_each_pair_is_read_once_over_all_configurations(folder, embedder):
    reranker = CountingReranker()
    run_with(folder, embedder, "D", "H", "J", "N", "GATE-B", reranker=reranker)
    texts = [(query.text, passage.text) for query, passage in reranker.pairs]
    assert len(texts) == len(set(texts)) == 2 * 12


def test_passages_without_a_time_have_the_same_one_in_every_run(folder, embedder):
    reranker = CountingReranker()
    run_with(folder, embedder, "H", reranker=reranker)
    moments = {(query.now.isoformat(), passage.at.isoformat()) for query, passage in reranker.pairs}
    assert moments == {("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00")}


def test_times_are_left_out_where_scores_were_remembered(folder, embedder):
    runs = run_with(folder, embedder, "H", "N", reranker=OverlapReranker())
    _, read, remembered = configuration_table(runs).rows
    assert "–" not in read
    assert remembered[-2:] == ("–", "–")
    assert "run that one alone to measure them" in configuration_table(runs).note
    assert configuration_table(runs[:2]).note == ""
    _, read, remembered = runs_json(runs)["reports"]
    assert (read["remembered_scores"], remembered["remembered_scores"]) == (0, 24)
    assert read["latency_ms"]["p50"] > 0
    assert remembered["latency_ms"] is None
    assert [row["milliseconds"] for row in remembered["queries"]] == [None, None]


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


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        (RerankQuery(QUERY.text, context=("Ann: I like cats",)), CAT),
        (RerankQuery(QUERY.text, instruction="names count"), CAT),
        (QUERY, RerankPassage(CAT.text, before=BOAT.text)),
        (QUERY, RerankPassage(CAT.text, type="semantic")),
    ],
)
def test_whatever_a_model_reads_beside_the_texts_makes_another_pair(query, passage):
    reranker = RememberingReranker(OverlapReranker())
    reranker.score(QUERY, [CAT])
    reranker.score(query, [passage])
    assert reranker.remembered == 0


def test_threads_that_ask_for_the_same_pairs_have_them_read_once():
    model = CountingReranker()
    reranker = RememberingReranker(model)
    passages = [RerankPassage(f"row {n}") for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: reranker.score(QUERY, passages), range(16)))
    assert len(model.pairs) == 50
    assert reranker.remembered == 15 * 50


def test_what_a_failed_call_asked_for_is_read_the_next_time():
    reranker = RememberingReranker(FailingOnce())
    with pytest.raises(ServiceError):
        reranker.score(QUERY, [CAT])
    assert reranker.score(QUERY, [CAT]).tolist() == pytest.approx([3 / 5])
    assert reranker.remembered == 0


def test_the_bundled_reranker_gives_the_same_probabilities_and_raw_scores():
    bundled = bundled_reranker()
    reranker = RememberingReranker(bundled)
    reranker.score(QUERY, [BOAT])
    judged, expected = (each.judge(QUERY, [CAT, BOAT, TRAIN]) for each in (reranker, bundled))
    assert (judged.scores == expected.scores).all()
    assert (judged.raw == expected.raw).all()
    assert judged.scores.dtype == np.float32


def test_scores_stay_probabilities_only_where_the_model_was_calibrated():
    scores = np.array([0.25], np.float32)
    calibrated = RememberingReranker(bundled_reranker())
    assert reranker_probabilities(calibrated, scores).tolist() == [0.25]
    assert reranker_probabilities(RememberingReranker(OverlapReranker()), scores) is None
