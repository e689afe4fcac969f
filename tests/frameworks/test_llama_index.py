import asyncio

import numpy as np
import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from ekphory.errors import InvalidInput
from ekphory.frameworks.llama_index import EkphoryRerank, EkphoryRetriever, make_passage
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import RerankPassage
from ekphory.types import to_utc

KEY = "The spare key hangs behind the boiler"
LUNCH = "Lunch was soup"


@pytest.fixture
def house(memory):
    memory.add(
        KEY,
        id="key",
        at="2026-02-03T12:00:00Z",
        producer="Mara",
        type="semantic",
        importance=0.8,
        metadata={"room": "cellar", "type": "note"},
    )
    memory.add(LUNCH, id="lunch", at="2026-02-03T12:00:00Z")
    return memory


class CountWords:
    """A reranker of ours: the share of the passage's words that the query has."""

    name = "count words"
    batch_size = 2

    def score(self, query, passages):
        wanted = set(query.text.lower().split())
        return np.array(
            [
                len(wanted & set(passage.text.lower().split())) / len(passage.text.split())
                for passage in passages
            ]
        )


def node(text, score=0.5, **metadata):
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)


def test_a_retriever_gives_the_likeliest_memories_as_nodes(house):
    found = EkphoryRetriever(house, k=1).retrieve("Where is the spare key?")
    assert [(entry.node_id, entry.text) for entry in found] == [("key", KEY)]
    assert found[0].score == house.search("Where is the spare key?", k=1).hits[0].score


def test_a_node_tells_what_the_memory_knows_of_itself(house):
    (found,) = EkphoryRetriever(house, k=1).retrieve("Where is the spare key?")
    assert found.metadata == {
        "memory_id": "key",
        "at": "2026-02-03T12:00:00+00:00",
        "producer": "Mara",
        "type": "semantic",
        "importance": 0.8,
        "pool": "agent_memory",
        "room": "cellar",
        "metadata.type": "note",
    }


def test_a_language_model_is_shown_who_said_it_and_when_and_an_embedder_who(house):
    (found,) = EkphoryRetriever(house, k=1).retrieve("Where is the spare key?")
    shown = found.node.get_content(MetadataMode.LLM)
    assert shown == f"at: 2026-02-03T12:00:00+00:00\nproducer: Mara\n\n{KEY}"
    assert found.node.get_content(MetadataMode.EMBED) == f"producer: Mara\n\n{KEY}"


def test_it_can_be_awaited(house):
    found = asyncio.run(EkphoryRetriever(house, k=1).aretrieve("Where is the spare key?"))
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


def test_a_postprocessor_orders_the_nodes_of_any_retriever():
    rerank = EkphoryRerank(reranker=Reranker(CountWords()))
    nodes = [node(LUNCH), node(KEY), node("boiler key")]
    ranked = rerank.postprocess_nodes(nodes, query_str="the key")
    assert [entry.text for entry in ranked] == [
        "boiler key", "The spare key hangs behind the boiler", LUNCH,
    ]  # fmt: skip
    assert [entry.score for entry in ranked] == [0.5, pytest.approx(2 / 7), 0.0]
    assert [entry.score for entry in nodes] == [0.5, 0.5, 0.5]


def test_few_or_only_likely_nodes_can_be_kept():
    reranker = Reranker(CountWords())
    nodes = [node(LUNCH), node(KEY), node("boiler key")]
    few = EkphoryRerank(reranker=reranker, top_n=1).postprocess_nodes(nodes, query_str="key")
    likely = EkphoryRerank(reranker=reranker, min_score=0.4)
    assert [entry.text for entry in few] == ["boiler key"]
    assert len(likely.postprocess_nodes(nodes, query_str="key")) == 1
    assert likely.postprocess_nodes([], query_str="key") == []


def test_a_memory_is_reranked_with_who_said_it_and_when_and_another_node_as_embedded(house):
    (found,) = EkphoryRetriever(house, k=1).retrieve("Where is the spare key?")
    moment = to_utc("2026-02-03T12:00:00Z", field="at")
    assert make_passage(found) == RerankPassage(f"Mara: {KEY}", at=moment)
    assert make_passage(node("a text", at="noon")) == RerankPassage("at: noon\n\na text")


def test_a_node_that_only_has_an_id_like_a_memorys_is_read_as_embedded():
    other = make_passage(node("a text", memory_id="7"))
    assert other == RerankPassage("memory_id: 7\n\na text")


def test_nodes_are_not_reranked_without_a_query():
    with pytest.raises(InvalidInput, match="Give query_str as well"):
        EkphoryRerank(reranker=Reranker(CountWords())).postprocess_nodes([node("x")])


def test_a_postprocessor_can_be_written_down():
    rerank = EkphoryRerank(reranker=Reranker(CountWords()), top_n=3)
    assert rerank.to_dict() == {"class_name": "EkphoryRerank", "min_score": None, "top_n": 3}
