"""What the presets do through `Memory.search`, with and without the models that they may use."""

import json
from datetime import UTC, datetime

import pytest

from ekphory.errors import InvalidInput, ServiceError
from ekphory.memory import Memory
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.retrieval.stages.query import CleanQuery, ExpandQuery
from ekphory.retrieval.stages.shape import Cut
from ekphory.testing.models import HashEmbedder, OverlapReranker, ScriptedChat
from services.wire import Reply, running_service, says

PINNED = {"pinned": True}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def open_with(store_path):
    """Opens a handle with other models than an embedder."""
    handles = []

    def open_one(**models):
        handles.append(Memory(store_path, embedder=HashEmbedder(), **models))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


def test_a_handle_has_the_preset_of_searches_that_name_none(open_with):
    memory = open_with(preset="fast")
    memory.add("tea is warm")

    assert memory.search("tea").trace.preset == "fast"
    assert memory.search("tea", preset="balanced").trace.preset == "balanced"


def test_a_handle_refuses_a_preset_that_there_is_not(open_with):
    with pytest.raises(InvalidInput, match="preset='fastest'"):
        open_with(preset="fastest")


def ids(result):
    return [hit.id for hit in result]


def stages(result):
    return {stage.name: stage for stage in result.trace.stages}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_finds_what_answers(memory, name):
    memory.add_many({"text": f"row {n} about nothing"} for n in range(20))
    memory.add("Ben has a red dog", id="dog")
    result = memory.search("who has a red dog", k=3, preset=name)
    assert ids(result)[0] == "dog"
    assert result.trace.preset == name


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_answers_in_a_scope_without_memories(memory, name):
    for query in ("dog", "😀", "what did she say?"):
        assert ids(memory.search(query, preset=name)) == []


@pytest.mark.parametrize("name", ["accurate", "memory_spark"])
def test_without_its_models_a_preset_is_whole_and_says_what_it_lacks(open_with, name):
    memory = open_with(reranker="none")
    memory.add("Ben has a dog")
    result = memory.search("who has a dog in the house", preset=name)
    assert not result.trace.degraded
    assert stages(result)["rerank"].reason == "no reranker"


def test_a_reranker_orders_the_hits_of_accurate(open_with):
    memory = open_with(reranker=OverlapReranker())
    memory.add_many({"text": text} for text in ("the dog", "the red dog", "the red"))
    result = memory.search("red dog", preset="accurate", now=NOW)
    assert result.hits[0].text == "the red dog"
    assert result.hits[0].scores["reranker"] == 1.0


def test_a_score_that_a_hit_was_not_given_is_not_among_its_scores(open_with):
    memory = open_with(reranker=OverlapReranker())
    memory.add_many({"text": f"the red dog {n}"} for n in range(60))
    hits = memory.search("red dog", k=60, preset="accurate").hits
    assert [("reranker" in hit.scores) for hit in hits] == [True] * 50 + [False] * 10
    json.dumps([dict(hit.scores) for hit in hits], allow_nan=False)


def test_a_reranker_may_be_named_by_its_url(open_with):
    def rate(request):
        texts = request.body["documents"]
        return says(
            {"results": [{"index": n, "relevance_score": 0.1 * n} for n in range(len(texts))]}
        )

    with running_service(rate) as service:
        memory = open_with(reranker=service.host)
        memory.add_many({"text": f"dog {n}"} for n in range(3))
        result = memory.search("dog", preset="accurate", now=NOW)
    assert stages(result)["rerank"].status == "ran"
    assert service.bodies[0]["query"] == "Asked on 1 June 2026: dog"


def test_a_reranker_that_fails_leaves_the_order_and_the_trace_says_so(open_with):
    plain = open_with(reranker="none")
    plain.add_many({"text": f"the red dog {n}"} for n in range(5))
    expected = ids(plain.search("red dog 3", preset="accurate", now=NOW))
    with running_service(lambda _: Reply(status=400)) as service:
        result = open_with(reranker=service.host).search("red dog 3", preset="accurate", now=NOW)
    assert ids(result) == expected
    assert result.trace.degraded
    assert stages(result)["rerank"].status == "degraded"


def test_a_language_model_widens_the_search_of_memory_spark(open_with):
    document = "Ben commutes by the tram every single morning, since the office lies downtown."
    memory = open_with(chat=ScriptedChat([document, "tram to the office"]))
    memory.add("tram to the office", id="tram")
    memory.add_many({"text": f"row {n}"} for n in range(30))
    result = memory.search("how does Ben get around?", k=1, preset="memory_spark")
    assert ids(result) == ["tram"]
    assert [stages(result)[name].status for name in ("hyde", "multi-query")] == ["ran", "ran"]


def test_a_language_model_that_fails_costs_nothing_but_time(open_with):
    refused = ServiceError("https://chat.example: refused the connection")
    memory = open_with(chat=ScriptedChat([refused, refused]))
    memory.add("Ben has a dog", id="dog")
    result = memory.search("who has a dog in the house?", preset="memory_spark")
    assert ids(result) == ["dog"]
    assert stages(result)["hyde"].reason == str(f"scripted-chat: {refused}")


def test_a_pipeline_of_ones_own_can_be_given(open_with):
    own = Pipeline(
        "own", [CleanQuery(), ExpandQuery(), SearchPools(arms="dense"), Fuse(method="dense"), Cut()]
    )
    memory = open_with(chat=ScriptedChat(["a completely different wording"]))
    memory.add("a completely different wording", id="other")
    result = memory.search("original question", k=1, preset=own)
    assert (ids(result), result.trace.preset) == (["other"], "own")


def test_parts_of_a_document_come_once_and_whole(memory):
    memory.add_many(
        {"id": f"part{n}", "text": text, "parent_id": "handbook", "path": "h.md", "sequence": n}
        for n, text in enumerate(["Keys rotate on Mondays.", "Keys are kept in the vault."])
    )
    (hit,) = memory.search("where are the keys kept", preset="memory_spark")
    assert hit.id == "part1"
    assert hit.text.split() == "Keys rotate on Mondays. Keys are kept in the vault.".split()
    assert hit.memory.text == "Keys are kept in the vault."


def test_a_parent_holds_no_part_that_the_search_may_not_see(open_memory):
    fields = {"parent_id": "handbook", "path": "h.md"}
    his = {"id": "his", "text": "Ben's key is 4711.", "sequence": 0}
    hers = {"id": "hers", "text": "Anna's key is 1234.", "sequence": 1}
    old = {"id": "old", "text": "Old key list.", "sequence": 2, "importance": 0.1}
    open_memory(user="ben").add_many([his | fields])
    anna = open_memory(user="anna")
    anna.add_many([hers | fields, old | fields])
    (hit,) = anna.search("key 1234", preset="memory_spark", filter="importance >= 0.5")
    assert hit.text == "Anna's key is 1234."
    everyone = open_memory().search("key", preset="memory_spark")
    assert all("4711" not in hit.text or hit.id == "his" for hit in everyone)


def test_what_the_conversation_holds_is_left_out(memory):
    memory.add("the deployment failed because the certificate expired", id="known")
    memory.add("the certificate is renewed by the night job", id="new")
    said = ["Yesterday the deployment failed because the certificate expired."]
    found = memory.search("certificate", preset="memory_spark", context=said)
    assert ids(found) == ["new"]
    assert set(ids(memory.search("certificate", context=said))) == {"known", "new"}


@pytest.mark.parametrize("context", ["a text", 7, [1], None])
def test_a_context_that_is_no_list_of_texts_is_refused(memory, context):
    with pytest.raises(InvalidInput, match="context="):
        memory.search("dog", context=context)


@pytest.mark.parametrize("name", ["balanced", "accurate", "memory_spark", "rrf"])
def test_a_pinned_rule_comes_first_whatever_is_asked(memory, name):
    memory.add_many({"text": f"the red dog {n}"} for n in range(400))
    memory.add("Never push on Friday", id="rule", pool="shared_rules", metadata=PINNED)
    memory.add("Always greet the guests", id="advice", pool="shared_rules", importance=1.0)
    result = memory.search("red dog", k=4, preset=name, now=NOW)
    assert ids(result)[0] == "rule"
    assert "advice" not in ids(result)
    assert len(result) == 4


def test_a_pinned_rule_is_as_probable_as_it_is(memory):
    memory.add("Never push on Friday", id="rule", pool="shared_rules", metadata=PINNED)
    memory.add("the red dog", id="dog")
    result = memory.search("red dog", k=2)
    assert ids(result) == ["rule", "dog"]
    assert result.hits[0].score < result.hits[1].score
    assert ids(memory.search("red dog", k=2, min_score=result.hits[1].score)) == ["dog"]


def test_a_pinned_rule_obeys_pools_filter_and_scope(open_memory):
    open_memory(project="other").add("a rule", pool="shared_rules", metadata=PINNED)
    memory = open_memory(project="p")
    memory.add("Never push on Friday", id="rule", pool="shared_rules", metadata=PINNED)
    memory.add_many({"text": f"the red dog {n}", "id": str(n)} for n in range(4))
    assert ids(memory.search("dog", k=2))[0] == "rule"
    assert "rule" not in ids(memory.search("dog", pools=["agent_memory"]))
    assert "rule" not in ids(memory.search("dog", filter="m.pinned IS NULL"))


@pytest.mark.parametrize(
    ("pool", "metadata"),
    [("shared_rules", {"pinned": "yes"}), ("shared_rules", {}), ("agent_memory", PINNED)],
)
def test_only_a_rule_that_says_so_is_pinned(memory, pool, metadata):
    memory.add_many({"text": f"the red dog {n}"} for n in range(4))
    memory.add("Never push on Friday", id="rule", pool=pool, metadata=metadata, importance=1.0)
    assert "rule" not in ids(memory.search("red dog", k=4))


def test_a_rule_is_pinned_and_loosened_by_a_change(memory):
    memory.add_many({"text": f"the red dog {n}"} for n in range(4))
    memory.add("Never push on Friday", id="rule", pool="shared_rules")
    memory.update("rule", metadata=PINNED)
    assert ids(memory.search("red dog", k=4))[0] == "rule"
    memory.update("rule", metadata={"pinned": False})
    assert "rule" not in ids(memory.search("red dog", k=4))


def test_the_most_important_of_several_pinned_rules_come_first(memory):
    for n, importance in enumerate([0.2, 0.9, 0.5, 0.7]):
        memory.add(
            f"rule {n}", id=str(n), pool="shared_rules", importance=importance, metadata=PINNED
        )
    memory.add_many({"text": f"the red dog {n}"} for n in range(8))
    assert ids(memory.search("red dog", k=8))[:3] == ["1", "3", "2"]
