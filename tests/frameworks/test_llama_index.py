import asyncio

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from ekphory.errors import InvalidInput
from ekphory.frameworks.llama_index import EkphoryRerank, EkphoryRetriever, make_passage
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import RerankPassage
from ekphory.testing import OverlapReranker
from ekphory.types import to_utc

KEY = "The spare key hangs behind the boiler"
LUNCH = "Lunch was soup"
QUESTION = "Where is the spare key?"
MOMENT = "2026-02-03T12:00:00+00:00"


@pytest.fixture
def house(memory):
    memory.add(
        KEY,
        id="key",
        at=MOMENT,
        producer="Mara",
        type="semantic",
        importance=0.8,
        metadata={"room": "cellar", "type": "note"},
    )
    memory.add(LUNCH, id="lunch", at=MOMENT)
    return memory


def node(text, score=0.5, **metadata):
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)


def test_a_retriever_gives_the_likeliest_memories_as_nodes(house):
    found = EkphoryRetriever(house, k=1).retrieve(QUESTION)
    assert [(entry.node_id, entry.text) for entry in found] == [("key", KEY)]
    assert found[0].score == house.search(QUESTION, k=1).hits[0].score


def test_a_node_tells_what_the_memory_knows_of_itself(house):
    (found,) = EkphoryRetriever(house, k=1).retrieve(QUESTION)
    assert found.metadata == {
        "memory_id": "key",
        "at": MOMENT,
        "producer": "Mara",
        "type": "semantic",
        "importance": 0.8,
        "pool": "agent_memory",
        "room": "cellar",
        "metadata.type": "note",
    }


def test_a_language_model_is_shown_who_said_it_and_when_and_an_embedder_who(house):
    (found,) = EkphoryRetriever(house, k=1).retrieve(QUESTION)
    shown = found.node.get_content(MetadataMode.LLM)
    assert shown == f"at: {MOMENT}\nproducer: Mara\n\n{KEY}"
    assert found.node.get_content(MetadataMode.EMBED) == f"producer: Mara\n\n{KEY}"


def test_it_can_be_awaited(house):
    found = asyncio.run(EkphoryRetriever(house, k=1).aretrieve(QUESTION))
    assert [entry.node_id for entry in found] == ["key"]


def test_the_settings_are_those_of_a_search(house):
    retriever = EkphoryRetriever(house, filter="m.room IS NULL", preset="fast")
    assert [entry.node_id for entry in retriever.retrieve("key")] == ["lunch"]
    assert EkphoryRetriever(house, min_score=0.999).retrieve("unheard of") == []
    with pytest.raises(InvalidInput, match="k=0: is out of range"):
        EkphoryRetriever(house, k=0).retrieve("key")


def test_memories_of_equal_text_are_both_given(memory):
    memory.add("ok", id="1", at="2026-01-01")
    memory.add("ok", id="2", at="2026-01-02")
    found = EkphoryRetriever(memory).retrieve("ok")
    assert {entry.node_id for entry in found} == {"1", "2"}


def ranked(*nodes, query="the key", **settings):
    """Rerank nodes, and return their texts and scores."""
    rerank = EkphoryRerank(reranker=Reranker(OverlapReranker()), **settings)
    found = rerank.postprocess_nodes([node(text) for text in nodes], query_str=query)
    return [(entry.text, entry.score) for entry in found]


def test_a_postprocessor_orders_the_nodes_of_any_retriever():
    assert ranked(LUNCH, "boiler key", KEY) == [(KEY, 1.0), ("boiler key", 0.5), (LUNCH, 0.0)]
    assert ranked() == []
    with pytest.raises(InvalidInput, match="Give query_str as well"):
        ranked("x", query=None)


@pytest.mark.parametrize("settings", [{"top_n": 1}, {"min_score": 0.6}])
def test_few_or_only_likely_nodes_can_be_kept(settings):
    assert ranked(LUNCH, "boiler key", KEY, **settings) == [(KEY, 1.0)]


def test_a_memory_is_reranked_with_who_said_it_and_when_and_another_node_as_embedded(house):
    (found,) = EkphoryRetriever(house, k=1).retrieve(QUESTION)
    assert make_passage(found) == RerankPassage(f"Mara: {KEY}", at=to_utc(MOMENT, field="at"))
    assert make_passage(node("a text", at="noon")) == RerankPassage("at: noon\n\na text")
    # An id like a memory's makes none of it.
    assert make_passage(node("a text", memory_id="7")).text == "memory_id: 7\n\na text"


def test_a_postprocessor_can_be_written_down():
    rerank = EkphoryRerank(reranker=Reranker(OverlapReranker()), top_n=3)
    assert rerank.to_dict() == {"class_name": "EkphoryRerank", "min_score": None, "top_n": 3}
