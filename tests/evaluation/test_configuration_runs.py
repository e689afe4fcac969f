"""Configurations run over one store and shown beside vector-only search."""

import json
from itertools import repeat

import pytest
from rich.console import Console

from recollect.evaluation.configuration_runs import ConfigurationOptions, run_configurations
from recollect.evaluation.configuration_table import configuration_table
from recollect.evaluation.configurations import CONFIGURATIONS, configurations
from recollect.retrieval.resources import OptionalModels
from recollect.testing.overlap_reranker import OverlapReranker
from recollect.testing.scripted_chat import ScriptedChat

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
