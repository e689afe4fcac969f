"""`ekphory train reranker-calibration`, as an application of its own."""

import json

import pytest
import typer
from tests.cli.test_train_gate import knowing_the_answers
from tests.services.wire import running_service, says
from typer.testing import CliRunner

from ekphory.models.loading import read_calibration
from ekphory_lab.cli.fit_commands import reranker_calibration
from ekphory_lab.training.gates import gate_conversations


def run(*arguments):
    application = typer.Typer()
    application.command()(reranker_calibration)
    return CliRunner().invoke(application, list(map(str, arguments)), env={"COLUMNS": "200"})


@pytest.mark.slow
def test_a_service_that_knows_the_answers_gets_a_steep_curve_and_a_picture(
    training_folder,
    tmp_path,
):
    target = tmp_path / "card.json"
    with knowing_the_answers(gate_conversations(training_folder)) as service:
        result = run(
            "--data", training_folder, "--reranker", service.host, "--target", target, "--json"
        )
    assert result.exit_code == 0, result.output
    told, fitted = json.loads(result.stdout), read_calibration(target)
    assert told["reranker"] == fitted.reranker
    assert fitted.card.slope > 0
    assert fitted.card.thresholds["0.9"] > 0.5
    assert target.with_suffix(".svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_a_service_that_tells_nothing_apart_gets_no_curve(training_folder, tmp_path):
    def alike(request):
        count = len(request.body["documents"])
        return says({"results": [{"index": n, "relevance_score": 0.5} for n in range(count)]})

    target = tmp_path / "card.json"
    with running_service(alike) as service:
        result = run("--data", training_folder, "--reranker", service.host, "--target", target)
    assert result.exit_code == 1
    assert "do not rise with what answers" in result.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--target", "card.svg"], 1, "is where the picture goes"),
        (["--target", "/dev/null/card.json"], 1, "must be a file that can be written"),
        (["--target", "/"], 1, "must be a file that can be written"),
        (["--target", "card.json", "--read", "0"], 2, "read"),
    ],
)
def test_what_cannot_be_fitted_is_told_before_anything_is_scored(
    tmp_path, arguments, code, problem
):
    result = run("--data", tmp_path, "--reranker", "bundled", *arguments)
    assert (result.exit_code, problem in result.stderr) == (code, True)


def test_a_missing_model_is_named(tmp_path):
    target = tmp_path / "card.json"
    result = run("--data", tmp_path, "--reranker", tmp_path / "nowhere", "--target", target)
    assert result.exit_code == 1
    assert "no such model directory" in result.stderr
