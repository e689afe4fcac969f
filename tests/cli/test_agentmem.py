import json

import pytest


def test_generated_cases_are_ranked_and_shown(ekphory, tmp_path):
    file = tmp_path / "report.json"
    result = ekphory.run("eval", "agentmem", "--count", "8", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert "generated: 8 queries, 8 candidates, 1 relevant" in result.stdout
    report = json.loads(file.read_text())
    assert "all-MiniLM-L6-v2" in result.stdout  # measured, or named as missing
    assert all(note in " ".join(result.stdout.split()) for note in report["notes"])
    assert {each["system"] for each in report["rankings"]} >= {"bundled", "bm25"}
    assert set(report["rankings"][0]["scores"]) == {"MRR", "R@1", "R@5", "NDCG@10"}


def test_a_conversation_that_gives_no_case_is_named(ekphory, tmp_path):
    turn = {"pool": "p", "id": "1", "text": "Ann has a boat", "speaker": "Ann"}
    query = {"pool": "p", "id": "q", "text": "Who has a boat?", "category": "x"}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(turn))
    (tmp_path / "queries.jsonl").write_text(json.dumps(query))
    (tmp_path / "qrels.tsv").write_text("pool\tquery-id\tcorpus-id\tscore\np\tq\t1\t1\n")
    sentence = ekphory.failure("eval", "agentmem", "--count", "8", "--data", str(tmp_path))
    assert "it gives no case" in sentence


@pytest.mark.slow
def test_hints_are_worth_eight_points_where_queries_ask_for_type_or_importance(ekphory):
    printed = ekphory.run("eval", "cues", "--json", "-")
    assert printed.exit_code == 0, printed.output
    overall = json.loads(printed.stdout)["scores"][0]
    assert overall["queries"] == 100
    assert overall["difference"]["difference"] >= 0.08
