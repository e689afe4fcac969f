"""LangChain's retriever over a memory."""

import asyncio

import pytest
from langchain_core.runnables import RunnableLambda

from ekphory.errors import InvalidInput
from ekphory.frameworks.langchain import EkphoryRetriever


@pytest.fixture
def filled(memory):
    memory.add(
        "Mara drinks green tea",
        id="tea",
        at="2026-05-02T10:00Z",
        producer="Mara",
        type="semantic",
        importance=0.7,
        source="diary",
        metadata={"score": 3, "city": "Rome"},
    )
    memory.add("Jon rows on Sundays", id="row", pool="shared_knowledge", metadata={"city": "Oslo"})
    return memory


def test_a_document_has_the_text_and_tells_what_the_memory_tells(filled):
    (document,) = EkphoryRetriever(memory=filled, k=1).invoke("green tea")
    score = document.metadata.pop("score")
    assert 0 < score < 1
    assert (document.id, document.page_content) == ("tea", "Mara drinks green tea")
    assert document.metadata == {
        "id": "tea",
        "at": "2026-05-02T10:00:00+00:00",
        "type": "semantic",
        "importance": 0.7,
        "pool": "agent_memory",
        "producer": "Mara",
        "source": "diary",
        "metadata": {"score": 3, "city": "Rome"},
    }


def test_documents_come_as_the_search_orders_them(filled):
    documents = EkphoryRetriever(memory=filled).invoke("green tea")
    hits = filled.search("green tea").hits
    assert [(each.id, each.metadata["score"]) for each in documents] == [
        (hit.id, hit.score) for hit in hits
    ]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"filter": "m.city = 'Oslo'"}, ["row"]),
        ({"pools": ("shared_knowledge",)}, ["row"]),
        ({"preset": "fast", "k": 1}, ["tea"]),
        ({"min_score": 1.0}, []),
        ({"agent_mode": True, "k": 1}, ["tea"]),
    ],
    ids=str,
)
def test_the_settings_are_those_of_a_search(filled, settings, found):
    documents = EkphoryRetriever(memory=filled, **settings).invoke("green tea")
    assert [document.id for document in documents] == found


def test_it_can_be_awaited_and_asked_several_things(filled):
    retriever = EkphoryRetriever(memory=filled, k=1)
    (awaited,) = asyncio.run(retriever.ainvoke("green tea"))
    (first,), (second,) = retriever.batch(["green tea", "who rows"])
    assert (awaited.id, first.id, second.id) == ("tea", "tea", "row")


def test_it_is_a_part_of_chains(filled):
    texts = RunnableLambda(lambda documents: [each.page_content for each in documents])
    chain = EkphoryRetriever(memory=filled, k=1) | texts
    assert chain.invoke("green tea") == ["Mara drinks green tea"]


def test_a_scope_is_kept(open_memory):
    open_memory(user="jon").add("green tea")
    assert EkphoryRetriever(memory=open_memory(user="mara")).invoke("green tea") == []


def test_a_setting_that_cannot_be_used_is_refused(filled):
    with pytest.raises(InvalidInput, match="k=0: is out of range"):
        EkphoryRetriever(memory=filled, k=0).invoke("green tea")
