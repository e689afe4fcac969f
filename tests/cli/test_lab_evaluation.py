import json

import pytest
import typer
from tests.evaluation.conftest import conversation_folder  # noqa: F401  a fixture
from typer.testing import CliRunner

from ekphory_lab.cli.eval_commands import rerank


@pytest.fixture
def benchmark(tmp_path):
    """Four passages, three questions, in BEIR's form."""
    folder = tmp_path / "pets"
    (folder / "qrels").mkdir(parents=True)
    passages = [
        ("a", "I adopted a grey cat"),
        ("b", "My boat sank in the harbour"),
        ("c", "The train to Lisbon was late"),
        ("d", "Tomatoes need much water"),
    ]
    queries = [("1", "grey cat"), ("2", "boat in the harbour"), ("3", "vegetable gardening")]
    (folder / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": key, "title": "", "text": text}) + "\n" for key, text in passages
        )
    )
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in queries)
    )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n3\td\t1\n"
    )
    return str(folder)


def test_the_whole_report_is_written_to_the_file(ekphory, benchmark, tmp_path):
    file = tmp_path / "report.json"
    result = ekphory.run(
        "eval", "beir", "--data", benchmark, "--system", "bm25", "--json", str(file)
    )
    assert result.stderr == f"Written: {file}\n"
    assert "pets: 3 queries, 4 passages in 1 pools" in result.stdout
    assert "bm25 on pets" in result.stdout
    (report,) = json.loads(file.read_text())["reports"]
    assert (report["system"], report["dataset"]["queries"]) == ("bm25", 3)


def test_a_dash_writes_the_report_to_standard_output(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--system", "bm25", "--json", "-")
    (report,) = json.loads(result.stdout)["reports"]
    assert report["overall"]["scores"]["R@5"]["mean"] == pytest.approx(2 / 3)


def test_a_preset_of_the_product_is_measured(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--preset", "rrf", "--json", "-")
    assert json.loads(result.stdout)["reports"][0]["system"] == "ekphory:rrf"


def test_misses_are_shown_on_request(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--system", "bm25", "--show-misses")
    assert "1 of 3 queries miss a relevant passage in the first 10; the 1 worst:" in result.stdout
    assert "3: vegetable gardening" in result.stdout


@pytest.mark.parametrize("form", ["locomo", "conversation", "beir", "multihop"])
def test_missing_data_are_named(ekphory, form, tmp_path):
    assert "nowhere" in ekphory.failure("eval", form, "--data", str(tmp_path / "nowhere"))


def test_configurations_are_shown_beside_vector_only_search(ekphory, benchmark):
    result = ekphory.run(
        "eval", "beir", "--data", benchmark, "--configs", "B,GATE-A", EKPHORY_RERANKER="none"
    )
    assert result.exit_code == 0, result.output
    assert "Memory-Spark's configurations on pets" in result.stdout
    assert "Vector-Only" in result.stdout
    assert "needs a reranker" in " ".join(result.stdout.split())


def test_configurations_with_a_reranker_run_on_the_bundled_one(ekphory, benchmark):
    result = ekphory.run(
        "eval", "beir", "--data", benchmark, "--configs", "b,gate-a", "--json", "-"
    )
    assert [each["system"] for each in json.loads(result.stdout)["reports"]] == [
        *("A", "B", "GATE-A")
    ]


def test_configurations_are_written_as_markdown(ekphory, benchmark, tmp_path):
    file = tmp_path / "docs" / "configurations.md"
    result = ekphory.run(
        *("eval", "beir", "--data", benchmark, "--configs", "h,n", "--markdown", str(file))
    )
    assert f"Written: {file}" in result.stderr
    text = file.read_text()
    assert "    ekphory eval beir --data pets --configs h,n\n" in text
    assert "reranker: ekphory-rerank-small" in text
    assert "| H | Vector → Reranker (no RRF)" in text
    assert "run that one alone" in text


def test_markdown_is_for_configurations(ekphory, benchmark, tmp_path):
    sentence = ekphory.failure(
        "eval", "beir", "--data", benchmark, "--markdown", str(tmp_path / "m")
    )
    assert sentence.endswith("is for configurations. Name some with --configs")


def test_the_agent_is_measured_beside_plain_search_in_the_same_run(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--agent", "local", "--json", "-")
    agent, plain = json.loads(result.stdout)["reports"]
    assert (agent["system"], plain["system"]) == ("agent:local", "ekphory")
    assert agent["configuration"]["searches_a_question"] == 1.0
    assert agent["overall"]["scores"] == plain["overall"]["scores"]


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--n", "1"), "n=1: tells nothing. Give 100 or more"),
        (("--queries", "0"), "queries=0: measures nothing. Give 1 or more"),
        (("--scopes", "0"), "scopes=(0,): no layout. Give 1, or 50, or both"),
    ],
)
def test_a_measurement_of_nothing_is_refused(ekphory, arguments, sentence):
    assert ekphory.failure("bench", *arguments) == sentence


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_small_bench_writes_its_report(ekphory, tmp_path):
    result = ekphory.run(
        "bench", "--n", "200", "--embedded", "200", "--scopes", "2", "--queries", "5",
        "--cache", str(tmp_path / "cache"), "--json", str(tmp_path / "bench.json"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (size,) = json.loads((tmp_path / "bench.json").read_text())["sizes"]
    assert (size["rows"], size["scopes"]) == (200, 2)
    assert [each["name"] for each in size["systems"]] == ["ekphory", "lancedb"]


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
