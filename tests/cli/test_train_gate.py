"""`ekphory train gate`, as an application of its own."""

import pytest
import typer
from tests.services.wire import running_service, says
from typer.testing import CliRunner

from ekphory.models.loading import load_embedder
from ekphory.retrieval.calibration import read_fitted
from ekphory_lab.cli.fit_commands import gate
from ekphory_lab.training.gates import gate_conversations


def run(*arguments):
    application = typer.Typer()
    application.command()(gate)
    return CliRunner().invoke(application, list(map(str, arguments)), env={"COLUMNS": "200"})


def knowing_the_answers(dataset):
    """Return a reranking service that scores what answers with 1 and everything else with 0."""
    texts = {
        (pool, passage.id): passage.indexed_text
        for pool, passages in dataset.pools.items()
        for passage in passages
    }
    answers = {}
    for query in dataset.queries:
        found = {texts[query.pool, answer] for answer in dataset.qrels[query.key]}
        answers.setdefault(query.text, set()).update(found)

    def answer(request):
        right = answers[request.body["query"]]
        scores = [float(text in right) for text in request.body["documents"]]
        rows = [{"index": place, "relevance_score": each} for place, each in enumerate(scores)]
        return says({"results": rows})

    return running_service(answer)


@pytest.mark.slow
def test_a_gate_is_learned_on_each_feature_and_written(training_folder, tmp_path):
    target = tmp_path / "gate.json"
    with knowing_the_answers(gate_conversations(training_folder)) as service:
        result = run("--data", training_folder, "--reranker", service.host, "--target", target)
    assert result.exit_code == 0, result.output
    for feature in ("cosine_spread", "probability_spread", "probability_gap", "best_probability"):
        assert feature in result.stdout
    file = read_fitted(target, kind="gate")
    assert file.models["embedder"] == load_embedder(None).identity.model_id
    assert file.values["feature"] == "best_probability"
    assert 0 <= file.values["low"] < file.values["high"]
    assert len(file.data) == 4
    assert file.measured["other training conversations, questions"] > 0


def test_a_feature_that_no_gate_compares_is_refused_at_once(tmp_path):
    result = run("--data", tmp_path, "--feature", "length", "--target", tmp_path / "gate.json")
    assert result.exit_code == 1
    assert "must be a feature of a gate" in result.stderr


def test_a_missing_model_is_named(tmp_path):
    result = run("--data", tmp_path, "--reranker", tmp_path / "nowhere",
                 "--target", tmp_path / "gate.json")  # fmt: skip
    assert result.exit_code == 1
    assert "no such model directory" in result.stderr
