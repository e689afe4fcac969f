import json

import pytest

from ekphory_lab.evaluation.commands import RunOptions, run_conversation
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import EkphorySystem


@pytest.fixture
def dataset(conversation_folder):
    return load_conversation(conversation_folder)


def test_ekphory_finds_the_evidence_in_each_pool(dataset, embedder):
    with EkphorySystem(embedder=embedder) as system:
        report = evaluate(dataset, system)
    assert report.overall.estimates["R@5"].mean == 1.0


def test_a_search_never_leaves_its_pool(dataset, embedder):
    with EkphorySystem(embedder=embedder) as system:
        report = evaluate(dataset, system)
    sizes = {outcome.query.key: len(outcome.ranking) for outcome in report.outcomes}
    assert sizes == {("a", "0"): 3, ("a", "1"): 3, ("b", "0"): 2}


def test_the_observer_sees_the_trace_of_every_search(dataset, embedder):
    seen = []

    def observe(query, result):
        seen.append((query.key, result.trace is not None))

    with EkphorySystem(embedder=embedder, observer=observe) as system:
        evaluate(dataset, system)
    assert seen == [(("a", "0"), True), (("a", "1"), True), (("b", "0"), True)]


def test_the_store_is_deleted_afterwards(dataset, embedder):
    with EkphorySystem(embedder=embedder) as system:
        evaluate(dataset, system)
        directory = system._directory
        assert directory.is_dir()
    assert not directory.exists()


def test_traces_asked_for_are_written_a_line_per_search(conversation_folder, embedder, tmp_path):
    file = tmp_path / "traces.jsonl"
    run_conversation(conversation_folder, options=RunOptions(embedder=embedder, trace_file=file))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["pool"], row["query"]) for row in rows] == [("a", "0"), ("a", "1"), ("b", "0")]
    assert all(row["trace"]["stages"] for row in rows)
