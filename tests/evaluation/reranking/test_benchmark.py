import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.gate import GateThresholds, gate_feature
from ekphory.testing import HashEmbedder, OverlapReranker
from ekphory.types import to_plain_data
from ekphory_lab.evaluation.options import RerankOptions
from ekphory_lab.evaluation.reranking.benchmark import (
    GateCases,
    RerankRun,
    auroc,
    calibration_error,
    gate_cases,
    gate_outcome,
    passes,
    precision_threshold,
    reliability,
)
from ekphory_lab.evaluation.reranking.candidates import Judge, load_contenders, model_contender
from ekphory_lab.evaluation.reranking.questions import load_dialogue_set, load_language_set
from ekphory_lab.evaluation.reranking.report import (
    published_rows,
    reliability_svg,
    report_json,
    rerank_tables,
    set_tables,
    write_report,
)


@pytest.fixture(scope="module")
def report(dataset):
    # Two of the questions in a dialogue, and of the conversations theirs alone.
    whole = load_dialogue_set()
    queries = whole.dataset.queries[:2]
    pools = {queries[0].pool: whole.dataset.pools[queries[0].pool]}
    dialogue = replace(whole, dataset=replace(whole.dataset, queries=queries, pools=pools))
    contenders = load_contenders(["bm25", "overlap"], load=lambda _: OverlapReranker())
    run = RerankRun(
        asked=RerankOptions(top=3), contenders=contenders, embedder=HashEmbedder(dimension=64)
    )
    *_, last = run.measure([dataset], dialogue, load_language_set())
    return last


def test_every_contender_is_measured_beside_the_first_stage(report):
    results = report.sets[0].results
    assert [result.name for result in results] == ["none", "bm25", "overlap-reranker"]
    assert results[0].against_first_stage is None
    assert results[1].against_first_stage.queries == 3
    assert results[1].report.overall.scores["NDCG@1"].mean == 1.0
    assert results[0].answerable.mean > 0.5
    assert [scores.contender for scores in report.dialogue] == ["none", "bm25", "overlap-reranker"]


def test_a_set_without_categories_has_no_table_of_them(report):
    measured = report.sets[0]
    alike = [replace(each, report=replace(each.report, categories={})) for each in measured.results]
    titles = [table.title for table in set_tables(replace(measured, results=tuple(alike)))]
    assert "chats: MAP by category" in [table.title for table in set_tables(measured)]
    assert [title for title in titles if "category" in title] == []
    assert len(titles) == 5


def test_the_report_is_written_as_json_and_as_markdown_with_pictures(report, tmp_path):
    content = json.loads(json.dumps(to_plain_data(report_json(report))))
    assert content["sets"][0]["candidates"]["top"] == 3
    pictures = write_report(report, tmp_path / "out.md", command="ekphory eval rerank")
    assert [picture.name for picture in pictures] == [
        "out-chats-none.svg",
        "out-chats-bm25.svg",
        "out-chats-overlap-reranker.svg",
    ]
    text = (tmp_path / "out.md").read_text()
    assert all(f"]({picture.name})" in text for picture in pictures)
    for table in rerank_tables(report):
        assert f"## {table.title}" in text
        assert {len(row) for row in table.rows} <= {len(table.header)}
    # Published rows stand beside LoCoMo alone.
    assert "Published" not in next(set_tables(report.sets[0])).note
    assert published_rows("realtalk") == {}
    assert published_rows("locomo_dev")["MemReranker-4B"]["MAP"] == 0.737


VALUES = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9]), min_size=1, max_size=8)


@given(VALUES, VALUES)
def test_it_is_the_share_of_pairs_in_the_right_order(positive, negative):
    pairs = [(own > other) + (own == other) / 2 for own in positive for other in negative]
    assert auroc(np.array(positive), np.array(negative)) == pytest.approx(np.mean(pairs))


SCORES = {
    "cosine": np.array([0.3, 0.9, 0.8, 0.7, 0.6, 0.5]),
    "probability": np.array([0.1, 0.6, 0.2]),
}


FEATURES = {
    "cosine_spread": 0.4,
    "probability_spread": 0.5,
    "probability_gap": 0.4,
    "best_probability": 0.6,
}


def test_a_feature_is_taken_from_the_largest_scores():
    assert {name: gate_feature(name, SCORES) for name in FEATURES} == pytest.approx(FEATURES)
    # Without candidates it is zero.
    assert gate_feature("probability_gap", {"probability": np.empty(0)}) == 0.0


def test_a_gate_keeps_the_gain_of_what_it_reranks():
    cases = GateCases(
        pools=np.array(["a", "a", "b", "b"]),
        features={"best_probability": np.array([0.1, 0.5, 0.6, 0.9])},
        first_stage=np.array([0.2, 0.2, 0.5, 1.0]),
        reranked=np.array([0.2, 0.6, 0.7, 0.9]),
    )
    reranked = passes(cases, "best_probability", GateThresholds(0.5, 0.6))
    outcome = gate_outcome(cases, reranked)
    assert reranked.tolist() == [False, True, True, False]
    assert outcome.skipped == 0.5
    assert outcome.gain_kept == pytest.approx(0.6 / 0.5)
    assert (outcome.first_stage, outcome.always) == (pytest.approx(0.475), pytest.approx(0.6))
    assert outcome.gated == pytest.approx(0.625)


def test_every_question_becomes_a_case(dataset, candidates):
    judge = Judge(model_contender(OverlapReranker()), candidates, dataset.pools)
    cases = gate_cases(dataset, judge, read=2)
    assert cases.pools.tolist() == ["a", "a", "b"]
    assert cases.first_stage[1] == 1.0
    assert set(cases.features) == set(FEATURES)


def array(*values):
    return np.array(values, np.float64)


def test_bins_of_equal_width_average_what_lies_close_together():
    # .9 and .91 share a bin: said .905, right .5; .1 has its own: said .1, right 0.
    found = calibration_error(array(0.9, 0.91, 0.1, 0.1), array(1, 0, 0, 0))
    assert found.equal_width == pytest.approx(0.405 / 2 + 0.1 / 2)
    # Bins of equal mass are finer where most probabilities are.
    said = array(*[0.001] * 15, *[0.06] * 15)
    right = array(*[0] * 15, *[0, 1] * 7, 0)
    found = calibration_error(said, right)
    assert found.equal_width < found.equal_mass


def test_a_threshold_is_the_least_probability_that_gives_the_precision():
    # 20 at .9, of which 18 answer; 20 at .5, of which 4 answer.
    said = array(*[0.9] * 20, *[0.5] * 20)
    right = array(*[1] * 18, 0, 0, *[1] * 4, *[0] * 16)
    assert precision_threshold(said, right, 0.9).threshold == 0.9
    assert precision_threshold(said, right, 0.9).recall == pytest.approx(18 / 22)
    assert precision_threshold(said, right, 0.5).threshold == 0.5
    assert precision_threshold(said, right, 0.95).threshold is None
    # Few candidates give no threshold.
    assert precision_threshold(array(0.9, 0.8), array(1, 1), 0.5).threshold is None


def test_the_best_candidate_of_each_question_is_looked_at_alone():
    found = reliability(
        [(array(0.2, 0.8), array(0, 1)), (array(0.8, 0.1), array(0, 0)), (array(), array())]
    )
    assert (found.candidates, found.relevant) == (4, 1)
    assert found.best.equal_width == pytest.approx(0.3)
    assert reliability([(array(), array())]) is None


def test_the_picture_has_a_circle_for_each_bin_and_escapes_its_title():
    found = reliability([(array(0.05, 0.5, 0.95), array(0, 1, 1))])
    drawn = ElementTree.fromstring(reliability_svg(found, title="a <b> & c"))
    kinds = [each.tag.rpartition("}")[2] for each in drawn.iter()]
    assert kinds.count("circle") == 3
    assert "a <b> & c" in [each.text for each in drawn.iter()]
