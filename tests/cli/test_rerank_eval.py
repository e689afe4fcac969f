"""`ekphory eval rerank` and `ekphory train gate`, each as an application of its own."""

import json

import pytest
import typer
from tests.evaluation.conftest import conversation_folder  # noqa: F401  a fixture
from typer.testing import CliRunner

from ekphory_lab.cli.rerank_commands import rerank


def run(*arguments):
    application = typer.Typer()
    application.command()(rerank)
    return CliRunner().invoke(application, list(map(str, arguments)), env={"COLUMNS": "200"})


@pytest.mark.slow
def test_candidates_tables_and_reports_are_written(conversation_folder, tmp_path):  # noqa: F811
    candidates, report, page = (tmp_path / name for name in ("c.jsonl", "r.json", "r.md"))
    result = run(
        *("--data", conversation_folder, "--rerankers", "bm25", "--top", 3),
        *("--candidates", candidates, "--json", report, "--markdown", page),
    )
    assert result.exit_code == 0, result.output
    assert "chats: 3 questions, the best 3 candidates of each" in result.stdout
    assert "questions in a dialogue" in result.stdout
    names = [each["name"] for each in json.loads(report.read_text())["sets"][0]["contenders"]]
    assert names == ["none", "bm25"]
    assert "ekphory eval rerank --data chats --rerankers bm25 --top 3" in page.read_text()
    assert candidates.exists()


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [("--top", "0", "must be 1 or more"), ("--share", "2", "must be between 0 and 1")],
)
def test_a_number_that_nothing_can_be_measured_with_is_refused(tmp_path, option, value, problem):
    result = run("--data", tmp_path, option, value)
    assert result.exit_code == 1
    assert problem in result.stderr
