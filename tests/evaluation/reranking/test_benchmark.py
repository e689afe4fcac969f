"""The whole benchmark over a small set."""

import json
from dataclasses import replace

import pytest

from ekphory.testing.models import HashEmbedder, OverlapReranker
from ekphory_lab.evaluation.reranking.benchmark import OwnSets, RerankOptions, run_benchmark
from ekphory_lab.evaluation.reranking.contenders import load_contenders
from ekphory_lab.evaluation.reranking.questions import load_dialogue_set, load_language_set
from ekphory_lab.evaluation.reranking.report import (
    published_rows,
    ranking_table,
    report_json,
    rerank_tables,
    write_markdown,
)


@pytest.fixture(scope="module")
def dialogue():
    """Two of the questions, and of the conversations theirs alone."""
    whole = load_dialogue_set()
    queries = whole.dataset.queries[:2]
    pools = {queries[0].pool: whole.dataset.pools[queries[0].pool]}
    return replace(whole, dataset=replace(whole.dataset, queries=queries, pools=pools))


@pytest.fixture(scope="module")
def report(dataset, dialogue):
    contenders = load_contenders(["bm25", "overlap"], load=lambda _: OverlapReranker())
    options = RerankOptions(embedder=HashEmbedder(dimension=64), top=3)
    *_, last = run_benchmark([dataset], OwnSets(dialogue, load_language_set()), contenders, options)
    return last


def test_every_contender_is_measured_beside_the_first_stage(report):
    results = report.sets[0].results
    assert [result.name for result in results] == ["none", "bm25", "overlap-reranker"]
    assert results[0].against_first_stage is None
    assert results[1].against_first_stage.queries == 3
    assert results[1].report.overall.estimates["NDCG@1"].mean == 1.0
    assert results[0].answerable.mean > 0.5
    assert [scores.contender for scores in report.dialogue] == ["none", "bm25", "overlap-reranker"]


def test_the_report_is_written_as_json_and_as_markdown_with_pictures(report, tmp_path):
    content = json.loads(json.dumps(report_json(report)))
    assert content["sets"][0]["candidates"]["top"] == 3
    pictures = write_markdown(report, tmp_path / "out.md", command="ekphory eval rerank")
    assert [picture.name for picture in pictures] == [
        "out-chats-none.svg",
        "out-chats-bm25.svg",
        "out-chats-overlap-reranker.svg",
    ]
    text = (tmp_path / "out.md").read_text()
    assert all(f"]({picture.name})" in text for picture in pictures)
    for table in rerank_tables(report):
        assert f"## {table.title}" in text
        assert {len(row) for row in table.rows} <= {len(table.headers)}


def test_published_rows_stand_beside_locomo_alone(report):
    assert ranking_table(report.sets[0]).note == ""
    assert published_rows("realtalk") == {}
    assert published_rows("locomo_dev")["MemReranker-4B"]["MAP"] == 0.737
