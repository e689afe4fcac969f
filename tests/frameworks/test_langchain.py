"""LangChain: a memory as a retriever, and a reranker as a document compressor."""

import asyncio
from datetime import UTC, datetime

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from pydantic import ValidationError

from ekphory.errors import InvalidInput
from ekphory.frameworks.langchain import EkphoryCompressor, EkphoryRetriever
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import Judgement
from ekphory.testing import OverlapReranker

DOCUMENTS = [
    Document("Jon rows", id="row", metadata={"page": 1}),
    Document("Mara drinks green tea", id="tea", metadata={"page": 2}),
    Document("green paint", id="paint"),
]


class Sure:
    """Is sure of everything, of the longer text most; keeps what it is given to read."""

    name = "sure"
    batch_size = 8
    is_calibrated = True

    def __init__(self):
        self.passages = []

    def score(self, query, passages, /):
        return self.judge(query, passages).scores

    def judge(self, _query, passages, /):
        self.passages += passages
        raw = np.array([len(passage.text) for passage in passages], np.float32)
        return Judgement(np.ones_like(raw), raw)


def compressed(*documents, query="green tea", model=None, **settings):
    reranker = Reranker(model or OverlapReranker())
    kept = EkphoryCompressor(reranker=reranker, **settings).compress_documents(documents, query)
    return [(each.id or each.page_content, each.metadata) for each in kept]


def passage_of(document):
    """What a reranker is given to read of a document."""
    model = Sure()
    compressed(document, model=model)
    return model.passages[0]


def test_documents_are_ordered_by_the_reranker_and_say_their_score():
    assert compressed(*DOCUMENTS) == [
        ("tea", {"page": 2, "relevance_score": 1.0}),
        ("paint", {"relevance_score": 0.5}),
        ("row", {"page": 1, "relevance_score": 0.0}),
    ]
    assert compressed() == []


@pytest.mark.parametrize(
    ("settings", "kept"), [({"top_n": 1}, ["tea"]), ({"min_score": 0.5}, ["tea", "paint"])]
)
def test_only_the_best_or_likely_are_kept(settings, kept):
    assert [name for name, _ in compressed(*DOCUMENTS, **settings)] == kept
    assert DOCUMENTS[2].metadata == {}


def test_memories_are_read_with_their_date_and_who_said_them(memory):
    memory.add("I like tea", producer="Mara", at="2026-05-02T10:00Z")
    passage = passage_of(*EkphoryRetriever(memory=memory).invoke("tea"))
    assert passage.text == "Mara: I like tea"
    assert passage.at == datetime(2026, 5, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "metadata",
    [
        {"at": "the station", "producer": 7, "heading": None},
        # The program that wrote a file is not taken for a speaker.
        {"producer": "pdfTeX", "heading": "Drinks", "at": "2026-01-01"},
    ],
)
def test_what_others_call_by_the_same_names_is_left_alone(metadata):
    passage = passage_of(Document("tea", metadata=metadata))
    assert (passage.text, passage.at) == ("tea", None)


def test_documents_of_equal_probability_are_ordered_by_what_the_model_itself_gives():
    ((kept, _),) = compressed(Document("tea"), Document("green tea"), model=Sure(), top_n=1)
    assert kept == "green tea"


@pytest.mark.parametrize("settings", [{"top_n": 0}, {"min_score": 2}, {"top": 1}])
def test_a_setting_that_cannot_be_used_is_refused(settings):
    with pytest.raises(ValidationError):
        compressed(**settings)


@pytest.mark.slow
def test_without_a_reranker_the_one_that_comes_with_ekphory_is_asked():
    kept = EkphoryCompressor().compress_documents(DOCUMENTS, "What does Mara drink?")
    assert kept[0].id == "tea"
    assert kept[0].metadata["relevance_score"] > kept[1].metadata["relevance_score"]


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
    found = [(each.id, each.metadata["score"]) for each in documents]
    assert found == [(hit.id, hit.score) for hit in filled.search("green tea").hits]


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
    with pytest.raises(InvalidInput, match="k=0: is out of range"):
        EkphoryRetriever(memory=filled, k=0).invoke("green tea")


def test_it_can_be_awaited_and_is_a_part_of_chains(filled):
    texts = RunnableLambda(lambda documents: [each.page_content for each in documents])
    chain = EkphoryRetriever(memory=filled, k=1) | texts
    assert asyncio.run(chain.ainvoke("green tea")) == ["Mara drinks green tea"]


def test_a_setting_can_be_changed_for_one_question_that_is_awaited(filled):
    retriever = EkphoryRetriever(memory=filled, k=1)
    asked = {"k": 5, "pools": ("shared_knowledge",)}
    awaited = asyncio.run(retriever.ainvoke("green tea", **asked))
    assert [document.id for document in awaited] == ["row"]
    assert retriever.invoke("green tea", **asked) == awaited
    with pytest.raises(InvalidInput, match="limit=3: no such setting"):
        asyncio.run(retriever.ainvoke("green tea", limit=3))


def test_a_setting_that_is_misspelt_is_refused_and_not_passed_over(filled):
    with pytest.raises(ValueError, match="filtr\n  Extra inputs are not permitted"):
        EkphoryRetriever(memory=filled, filtr="type = 'semantic'")


def test_a_scope_is_kept(open_memory):
    open_memory(user="jon").add("green tea")
    assert EkphoryRetriever(memory=open_memory(user="mara")).invoke("green tea") == []
