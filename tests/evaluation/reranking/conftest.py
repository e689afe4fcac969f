"""Two conversations with their candidates, found with an embedder without weights."""

from datetime import UTC, datetime

import pytest

from ekphory.testing.models import HashEmbedder
from ekphory_lab.evaluation.datasets import (
    UNKNOWN,
    BenchmarkFile,
    Collection,
    EvaluationQuery,
    Passage,
)
from ekphory_lab.evaluation.reranking.candidates import find_candidates

TURNS = [
    ("a", "D1:1", "Ann", "I adopted a grey cat"),
    ("a", "D1:2", "Bob", "My boat sank in the harbour"),
    ("a", "D1:3", "Ann", "The cat sleeps all day"),
    ("b", "D1:1", "Cid", "I moved to Lisbon"),
    ("b", "D1:2", "Dan", "The train to Lisbon was late"),
]
QUESTIONS = [
    ("a", "0", "Who adopted a cat?", ["D1:1", "D1:3"]),
    ("a", "1", "What happened to the boat?", ["D1:2"]),
    ("b", "0", "Who moved to Lisbon?", ["D1:1"]),
]


@pytest.fixture(scope="session")
def dataset():
    collection = Collection()
    for place, (pool, turn, speaker, text) in enumerate(TURNS):
        passage = Passage(
            id=turn,
            text=text,
            speaker=speaker,
            at=datetime(2024, 5, 1, 10, tzinfo=UTC),
            session="1",
            sequence=place,
        )
        collection.add_passage("turns", pool=pool, passage=passage)
    for pool, number, text, answers in QUESTIONS:
        query = EvaluationQuery(pool=pool, id=number, text=text, category=pool)
        collection.add_query("questions", query=query)
        for answer in answers:
            collection.add_judgement("qrels", key=query.key, passage_id=answer, gain=1)
    return collection.dataset(
        "chats", source=UNKNOWN, files=(BenchmarkFile("turns.jsonl", "ab" * 32, None),)
    )


@pytest.fixture(scope="session")
def candidates(dataset):
    return find_candidates(dataset, embedder=HashEmbedder(dimension=64), top=3)
