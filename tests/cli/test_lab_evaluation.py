import json

import pytest
from tests.evaluation.conftest import SETS, write_conversations
from tests.services.wire import running_service, says
from tests.training.tiny_encoder import write_tiny_encoder

from ekphory_lab.evaluation.loaders import load_conversation


@pytest.fixture
def measure(ekphory):
    """Measures four passages and three questions in BEIR's form, and returns what was printed."""

    def run(*options, **environment):
        result = ekphory.run("eval", "beir", "--data", str(SETS / "town"), *options, **environment)
        assert result.exit_code == 0, result.output
        return result

    return run


BM25 = ("--system", "bm25")


def reports(result):
    return json.loads(result.stdout)["reports"]


def test_the_whole_report_is_written_to_the_file(measure, tmp_path):
    file = tmp_path / "report.json"
    result = measure(*BM25, "--json", str(file))
    assert result.stderr == f"Written: {file}\n"
    assert "town: 3 queries, 4 passages in 1 pools" in result.stdout
    assert "bm25 on town" in result.stdout
    (report,) = json.loads(file.read_text())["reports"]
    assert (report["system"], report["dataset"]["queries"]) == ("bm25", 3)


def test_a_dash_writes_the_report_to_standard_output(measure):
    (report,) = reports(measure(*BM25, "--json", "-"))
    assert report["overall"]["scores"]["R@5"]["mean"] == pytest.approx(2 / 3)
    # A preset of the product is measured.
    (report,) = reports(measure("--preset", "rrf", "--json", "-"))
    assert report["system"] == "ekphory:rrf"
    # Misses are shown on request.
    shown = measure(*BM25, "--show-misses").stdout
    assert "1 of 3 queries miss a relevant passage in the first 10; the 1 worst:" in shown
    assert "3: vegetable gardening" in shown


@pytest.mark.parametrize("form", ["locomo", "conversation", "beir", "multihop"])
def test_missing_data_are_named(ekphory, form, tmp_path):
    assert "nowhere" in ekphory.failure("eval", form, "--data", str(tmp_path / "nowhere"))


def test_configurations_are_shown_beside_vector_only_search(measure):
    shown = measure("--configs", "B,GATE-A", EKPHORY_RERANKER="none").stdout
    assert "Memory-Spark's configurations on town" in shown
    assert "Vector-Only" in shown
    assert "needs a reranker" in " ".join(shown.split())


def test_configurations_with_a_reranker_run_on_the_bundled_one_or_the_one_that_is_named(measure):
    configured = ("--configs", "b,gate-a", "--json", "-")
    assert [each["system"] for each in reports(measure(*configured))] == ["A", "B", "GATE-A"]
    with running_service(lambda _: says({"results": []})) as service:
        measure("--configs", "n", EKPHORY_RERANKER=service.host)
    assert service.asked


def test_the_agent_is_measured_beside_plain_search_in_the_same_run(measure):
    agent, plain = reports(measure("--agent", "local", "--json", "-"))
    assert (agent["system"], plain["system"]) == ("agent:local", "ekphory")
    assert agent["configuration"]["searches_a_question"] == 1.0
    assert agent["overall"]["scores"] == plain["overall"]["scores"]


@pytest.mark.long
def test_candidates_tables_and_reports_are_written(ekphory, tmp_path):
    candidates, report, page = (tmp_path / name for name in ("c.jsonl", "r.json", "r.md"))
    chats = write_conversations(tmp_path / "chats")
    contest = ("--data", str(chats), *"--rerankers bm25 --top 3".split())
    written = ("--candidates", str(candidates), "--json", str(report), "--markdown", str(page))
    result = ekphory.run("eval", "rerank", *contest, *written)
    assert result.exit_code == 0, result.output
    assert "chats: 3 questions, the best 3 candidates of each" in result.stdout
    assert "questions in a dialogue" in result.stdout
    names = [each["name"] for each in json.loads(report.read_text())["sets"][0]["contenders"]]
    assert names == ["none", "bm25"]
    assert "ekphory eval rerank --data chats --rerankers bm25 --top 3" in page.read_text()
    assert candidates.exists()


@pytest.mark.long
def test_given_candidates_are_ordered_and_the_table_says_whose_they_are(ekphory, tmp_path):
    chats = write_conversations(tmp_path / "chats")
    file = tmp_path / "bge-m3.jsonl"
    dataset = load_conversation(chats)
    rows = (
        {
            "pool": query.pool,
            "query_id": query.id,
            "passage_ids": [each.id for each in dataset.pools[query.pool]],
        }
        for query in dataset.queries
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    contest = ("--data", str(chats), "--rerankers", "bm25", "--candidates", str(file))

    result = ekphory.run("eval", "rerank", *contest, COLUMNS="200")

    assert result.exit_code == 0, result.output
    assert "chats: 3 questions, the best 100 candidates of each, by bge-m3.jsonl (given)" in (
        result.stdout
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bench", "--n", "1"), "n=1: tells nothing. Give 100 or more"),
        (("bench", "--queries", "0"), "queries=0: measures nothing. Give 1 or more"),
        (("bench", "--scopes", "0"), "scopes=(0,): no layout. Give 1, or 50, or both"),
        (("eval", "rerank", "--data", ".", "--top", "0"), "must be 1 or more"),
        (("eval", "rerank", "--data", ".", "--share", "2"), "must be between 0 and 1"),
    ],
)
def test_a_measurement_of_nothing_is_refused(ekphory, arguments, sentence):
    assert sentence in ekphory.failure(*arguments)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_small_bench_writes_its_report(ekphory, tmp_path):
    size = "bench --n 200 --embedded 200 --scopes 2 --queries 5".split()
    written = ("--cache", str(tmp_path / "cache"), "--json", str(tmp_path / "bench.json"))
    result = ekphory.run(*size, *written)
    assert result.exit_code == 0, result.output
    (size,) = json.loads((tmp_path / "bench.json").read_text())["sizes"]
    assert (size["rows"], size["scopes"]) == (200, 2)
    assert [each["name"] for each in size["systems"]] == ["ekphory", "lancedb"]


def test_generated_cases_are_ranked_and_shown(ekphory, tmp_path):
    file = tmp_path / "report.json"
    result = ekphory.run("eval", "agentmem", "--count", "8", "--json", str(file))
    assert result.exit_code == 0, result.output
    shown, report = " ".join(result.stdout.split()), json.loads(file.read_text())
    assert "generated: 8 queries, 8 candidates, 1 relevant" in shown
    assert "all-MiniLM-L6-v2" in shown  # measured, or named as missing
    assert all(note in shown for note in report["notes"])
    assert {each["system"] for each in report["rankings"]} >= {"bundled", "bm25"}
    assert set(report["rankings"][0]["scores"]) == {"MRR", "R@1", "R@5", "NDCG@10"}


@pytest.mark.torch
@pytest.mark.slow
def test_any_sentence_transformers_directory_is_ranked_beside_the_bundled_model(ekphory, tmp_path):
    (tmp_path / "tiny-base").mkdir()
    write_tiny_encoder(tmp_path / "tiny-base")
    model = str(tmp_path / "tiny-base")
    result = ekphory.run("eval", "agentmem", "--count", "8", "--model", model, "--json", "-")
    assert result.exit_code == 0, result.output
    rankings = json.loads(result.stdout)["rankings"]
    (row,) = [each for each in rankings if each["system"] == model]
    assert 0 < row["scores"]["MRR"]["mean"] <= 1


@pytest.fixture
def boat(tmp_path):
    """A folder with a conversation of one turn, and a question about it."""
    turn = {"pool": "p", "id": "1", "text": "Ann has a boat called Matilda", "speaker": "Ann"}
    query = {"pool": "p", "id": "q", "text": "What is Ann's boat called?", "answer": "Matilda"}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(turn))
    (tmp_path / "queries.jsonl").write_text(json.dumps(query))
    (tmp_path / "qrels.tsv").write_text("pool\tquery-id\tcorpus-id\tscore\np\tq\t1\t1\n")
    return tmp_path


def test_a_conversation_that_gives_no_case_is_named(ekphory, boat):
    sentence = ekphory.failure("eval", "agentmem", "--count", "8", "--data", str(boat))
    assert "it gives no case" in sentence


@pytest.mark.slow
def test_hints_are_worth_eight_points_where_queries_ask_for_type_or_importance(ekphory):
    printed = ekphory.run("eval", "cues", "--json", "-")
    assert printed.exit_code == 0, printed.output
    overall = json.loads(printed.stdout)["scores"][0]
    assert overall["queries"] == 100
    assert overall["difference"]["difference"] >= 0.08


def test_answers_are_asked_of_the_chat_service_that_is_configured(ekphory, boat):
    arguments = ("eval", "answers", "--data", str(boat))

    def answer(request):
        said = '{"right": true}' if "response_format" in request.body else "Matilda."
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return says({"choices": [choice]})

    with running_service(answer) as service:
        environment = {"EKPHORY_CHAT_URL": service.host, "EKPHORY_CHAT_MODEL": "scripted"}
        result = ekphory.run(*arguments, "--judge", "--json", "-", **environment)
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)["overall"]["scores"]
    names = ("exact match", "F1", "judged right")
    assert [scores[name]["mean"] for name in names] == [1.0, 1.0, 1.0]
    # Without a service the best memory is compared; a judge says what to configure.
    scores = json.loads(ekphory.run(*arguments, "--json", "-").stdout)["overall"]["scores"]
    assert "judged right" not in scores
    assert scores["F1"]["mean"] == pytest.approx(1 / 3)  # one word of five
    sentence = ekphory.failure(*arguments, "--judge")
    assert sentence.endswith("Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL.")
