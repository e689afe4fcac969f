"""The command line takes reranker and language model from the environment."""

import json

import pytest
from tests.models.tiny_rerankers import write_overlap_reranker

from services.wire import Reply, running_service, says


def longest_first(request):
    """Rate a passage by its length."""
    rows = [
        {"index": place, "relevance_score": min(len(text) / 100, 1.0)}
        for place, text in enumerate(request.body["documents"])
    ]
    return says({"results": rows})


@pytest.fixture
def reranker():
    with running_service(longest_first) as service:
        yield service


def stages(found):
    return {stage["name"]: stage for stage in found["trace"]["stages"]}


def test_a_search_is_reranked_by_the_service_that_is_named(kitchen, reranker):
    environment = {"EKPHORY_RERANKER": reranker.host, "EKPHORY_RERANKER_MODEL": "m-1"}
    found = kitchen.json("search", "oven", "--preset", "accurate", **environment)
    assert stages(found)["rerank"]["status"] == "ran"
    assert reranker.bodies[0]["model"] == "m-1"


def test_the_environment_names_the_preset_of_searches_that_name_none(kitchen, reranker):
    environment = {"EKPHORY_RERANKER": reranker.host, "EKPHORY_PRESET": "accurate"}
    assert stages(kitchen.json("search", "oven", **environment))["rerank"]["status"] == "ran"
    named = kitchen.json("search", "oven", "--preset", "fast", **environment)
    assert named["trace"]["preset"] == "fast"


def test_an_unknown_preset_is_told_before_anything_is_asked(kitchen):
    result = kitchen.run("search", "oven", EKPHORY_PRESET="acurate")
    assert result.exit_code == 1
    assert "Did you mean 'accurate'?" in result.stderr


def test_a_service_may_give_logits(kitchen):
    rows = [{"index": place, "relevance_score": 4.0 - 3 * place} for place in range(3)]
    with running_service(lambda _: says({"results": rows})) as service:
        found = kitchen.json(
            *("search", "oven", "--preset", "accurate"),
            EKPHORY_RERANKER=service.host,
            EKPHORY_RERANKER_SCORES="logit",
        )
    assert stages(found)["rerank"]["status"] == "ran"


def test_a_preset_that_reranks_nothing_asks_no_service(kitchen, reranker):
    kitchen.json("search", "oven", EKPHORY_RERANKER=reranker.host)
    assert reranker.asked == []


def test_a_service_that_refuses_costs_no_hit(kitchen):
    with running_service(lambda _: Reply(status=400)) as service:
        found = kitchen.json(
            "search", "oven", "--preset", "accurate", EKPHORY_RERANKER=service.host
        )
    assert (len(found["hits"]), stages(found)["rerank"]["status"]) == (3, "degraded")


def test_a_language_model_without_a_name_is_told(kitchen):
    result = kitchen.run("search", "oven", EKPHORY_CHAT_URL="http://127.0.0.1:9/v1")
    assert result.exit_code == 1
    assert "a chat service needs one" in result.stderr


def test_configurations_that_need_a_reranker_run_with_the_one_that_is_named(
    ekphory, reranker, tmp_path
):
    (tmp_path / "pets" / "qrels").mkdir(parents=True)
    passages = [{"_id": str(n), "title": "", "text": f"cat {n} " * (n + 1)} for n in range(5)]
    (tmp_path / "pets" / "corpus.jsonl").write_text(
        "".join(json.dumps(passage) + "\n" for passage in passages)
    )
    (tmp_path / "pets" / "queries.jsonl").write_text('{"_id": "q", "text": "a cat"}\n')
    (tmp_path / "pets" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t4\t1\n")
    measured = ekphory.run(
        *("eval", "beir", "--data", str(tmp_path / "pets"), "--configs", "H", "--json", "-"),
        EKPHORY_RERANKER=reranker.host,
    )
    reranked = json.loads(measured.stdout)["reports"][1]
    assert (reranked["system"], reranked["overall"]["scores"]["MRR"]["mean"]) == ("H", 1.0)


def test_the_dialogue_before_the_question_reaches_the_reranker(kitchen, reranker):
    kitchen.json(
        *("search", "and when?", "--preset", "accurate", "--now", "2026-06-01"),
        *("--context", "user: the oven broke", "--context", "assistant: oh no"),
        EKPHORY_RERANKER=reranker.host,
    )
    assert reranker.bodies[0]["query"] == (
        "The dialogue so far:\nuser: the oven broke\nassistant: oh no\n"
        "Asked on 1 June 2026: and when?"
    )


def test_a_reranker_may_be_a_directory(kitchen, tmp_path):
    write_overlap_reranker(tmp_path / "reranker")
    found = kitchen.json("search", "oven", EKPHORY_RERANKER=str(tmp_path / "reranker"))
    assert stages(found)["rerank"]["detail"]["reranker"] == "overlap"
