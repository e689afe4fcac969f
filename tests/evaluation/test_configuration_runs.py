"""Configurations run over one store and shown beside vector-only search."""

import json
from itertools import repeat

import pytest
from rich.console import Console

from ekphory.retrieval.pipeline import OptionalModels
from ekphory.testing.models import OverlapReranker, ScriptedChat
from ekphory_lab.evaluation.configurations import (
    CONFIGURATIONS,
    ConfigurationOptions,
    configuration_markdown,
    configuration_table,
    configurations,
    run_configurations,
    runs_json,
)

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


def run_with(reranker, folder, embedder, *names):
    options = ConfigurationOptions(embedder=embedder, models=OptionalModels(reranker=reranker))
    return run_configurations(folder, configurations(names), options=options)


def shown(runs):
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(configuration_table(runs))
    return capture.get()


def test_all_thirty_six_run_with_their_models(folder, embedder):
    models = OptionalModels(reranker=OverlapReranker(), chat=ScriptedChat(repeat(DOCUMENT)))
    options = ConfigurationOptions(embedder=embedder, models=models)
    runs = run_configurations(folder, CONFIGURATIONS, options=options)
    assert [run.configuration.id for run in runs] == [each.id for each in CONFIGURATIONS]
    assert all(run.report.overall.estimates["R@10"].mean == 1.0 for run in runs)


def test_what_lacks_its_model_says_which(folder, embedder):
    chosen = configurations(["F", "MQ-B", "GATE-A"])
    runs = run_configurations(folder, chosen, options=ConfigurationOptions(embedder=embedder))
    assert [(run.configuration.id, run.missing) for run in runs] == [
        ("A", ()),
        ("F", ("language model",)),
        ("MQ-B", ("language model", "reranker")),
        ("GATE-A", ("reranker",)),
    ]
    assert "needs a language model and a reranker" in shown(runs)


def test_vector_only_search_is_measured_first_in_any_case(folder, embedder):
    options = ConfigurationOptions(embedder=embedder)
    runs = run_configurations(folder, configurations(["B"]), options=options)
    assert [run.configuration.id for run in runs] == ["A", "B"]
    assert runs[0].against_baseline is None
    assert (runs[1].against_baseline.first, runs[1].against_baseline.second) == ("A", "B")


def test_the_store_is_filled_once_for_all(folder, embedder):
    options = ConfigurationOptions(embedder=embedder)
    runs = run_configurations(folder, configurations(["A", "B", "C"]), options=options)
    assert all(run.report.index_seconds < runs[0].report.index_seconds / 5 for run in runs[1:])


def test_ten_hits_are_asked_for(folder, embedder):
    (run,) = run_configurations(
        folder, configurations(["A"]), options=ConfigurationOptions(embedder=embedder)
    )
    assert (run.report.depth, len(run.report.outcomes[0].ranking)) == (10, 10)


def test_the_table_shows_label_baseline_difference_and_what_is_the_same(folder, embedder):
    models = OptionalModels(reranker=OverlapReranker())
    options = ConfigurationOptions(embedder=embedder, models=models)
    table = shown(run_configurations(folder, configurations(["C", "Q"]), options=options))
    assert "Hybrid" in table
    assert "the same as N; upstream now runs GATE-A for it" in " ".join(table.split()).replace(
        "│ ", ""
    )
    assert ".7863" in table


def test_the_reports_can_be_written(folder, embedder, tmp_path):
    file = tmp_path / "out" / "report.json"
    options = ConfigurationOptions(embedder=embedder, json_file=file)
    run_configurations(folder, configurations(["B", "GATE-A"]), options=options)
    assert [each["system"] for each in json.loads(file.read_text())["reports"]] == ["A", "B"]


def test_each_pair_is_read_once_over_all_configurations(folder, embedder):
    reranker = CountingReranker()
    run_with(reranker, folder, embedder, "D", "H", "J", "N", "GATE-B")
    texts = [(query.text, passage.text) for query, passage in reranker.pairs]
    assert len(texts) == len(set(texts)) == 2 * 12


def test_remembered_scores_rank_as_those_that_are_read(folder, embedder):
    together = run_with(OverlapReranker(), folder, embedder, "D", "N", "RRF-A")
    alone = [run_with(OverlapReranker(), folder, embedder, name)[1] for name in ("N", "RRF-A")]
    assert [run.remembered for run in alone] == [0, 0]
    for run, by_itself in zip(together[2:], alone, strict=True):
        assert run.remembered == 24
        assert [each.ranking for each in run.report.outcomes] == [
            each.ranking for each in by_itself.report.outcomes
        ]


def test_passages_without_a_time_have_the_same_one_in_every_run(folder, embedder):
    reranker = CountingReranker()
    run_with(reranker, folder, embedder, "H")
    moments = {(query.now.isoformat(), passage.at.isoformat()) for query, passage in reranker.pairs}
    assert moments == {("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00")}


def test_latency_is_a_dash_where_scores_were_remembered(folder, embedder):
    table = shown(run_with(OverlapReranker(), folder, embedder, "H", "N")).splitlines()
    read, remembered = (next(line for line in table if f"│ {name} " in line) for name in "HN")
    assert "–" not in read
    assert remembered.count("–") == 2


def test_one_line_says_why_latency_is_a_dash(folder, embedder):
    runs = run_with(OverlapReranker(), folder, embedder, "H", "N")
    assert "run that one alone to measure them" in " ".join(shown(runs).split())
    assert "run that one alone" not in shown(runs[:2])


def test_times_are_null_in_json_where_scores_were_remembered(folder, embedder):
    runs = run_with(OverlapReranker(), folder, embedder, "H", "N")
    _, read, remembered = runs_json(runs)["reports"]
    assert (read["remembered_scores"], remembered["remembered_scores"]) == (0, 24)
    assert read["latency_ms"]["p50"] > 0
    assert remembered["latency_ms"] is None
    assert [row["milliseconds"] for row in remembered["queries"]] == [None, None]


def test_the_markdown_has_the_figures_of_the_table(folder, embedder):
    title, _, header, rule, *lines = configuration_markdown(
        run_with(OverlapReranker(), folder, embedder, "H", "N")
    ).splitlines()
    assert title.startswith("## Memory-Spark's configurations on pets: 2 queries, 12 passages")
    assert header.startswith("|  | configuration | NDCG@10 | A | difference | p |")
    assert rule.count("---") == 11
    assert [line.split(" | ")[0] for line in lines[:3]] == ["| A", "| H", "| N"]
    assert lines[2].endswith("| – | – |")
    assert lines[4].startswith("– under p50 ms: ")
