import json

import pytest


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


def test_a_system_is_measured_and_shown_in_tables(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--system", "bm25")
    assert result.exit_code == 0, result.output
    assert "pets: 3 queries, 4 passages in 1 pools" in result.stdout
    assert "bm25 on pets" in result.stdout


def test_the_whole_report_is_written_to_the_file(ekphory, benchmark, tmp_path):
    file = tmp_path / "report.json"
    result = ekphory.run(
        "eval", "beir", "--data", benchmark, "--system", "bm25", "--json", str(file)
    )
    assert result.stderr == f"Written: {file}\n"
    (report,) = json.loads(file.read_text())["reports"]
    assert (report["system"], report["dataset"]["queries"]) == ("bm25", 3)


def test_a_dash_writes_the_report_to_standard_output(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--system", "bm25", "--json", "-")
    (report,) = json.loads(result.stdout)["reports"]
    assert report["overall"]["scores"]["R@5"]["mean"] == pytest.approx(2 / 3)


def test_the_product_is_measured_by_default(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--json", "-")
    assert json.loads(result.stdout)["reports"][0]["system"] == "ekphory"


def test_a_preset_of_the_product_is_measured(ekphory, benchmark):
    result = ekphory.run("eval", "beir", "--data", benchmark, "--preset", "rrf", "--json", "-")
    assert json.loads(result.stdout)["reports"][0]["system"] == "ekphory:rrf"


def test_misses_are_shown_on_request(ekphory, benchmark):
    result = ekphory.run(
        "eval", "beir", "--data", benchmark, "--system", "bm25", "--show-misses", "--limit", "1"
    )
    assert "1 of 3 queries miss a relevant passage in the first 10; the 1 worst:" in result.stdout
    assert "3: vegetable gardening" in result.stdout


def test_a_run_is_compared_with_an_earlier_one(ekphory, benchmark, tmp_path):
    measure = ("eval", "beir", "--data", benchmark, "--system", "bm25")
    ekphory.run(*measure, "--json", str(tmp_path / "first.json"))
    result = ekphory.run(*measure, "--compare", str(tmp_path / "first.json"))
    assert "bm25 minus bm25, 3 queries" in result.stdout


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
