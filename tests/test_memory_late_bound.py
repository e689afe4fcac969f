"""A store whose model binds age and type late, against embedding everything anew."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.models.tiny_components import write_tiny_onnx_embedder
from tests.training.tiny_encoder import TEXTS

from ekphory.memory import Memory
from ekphory.models.agent_embedder import Embedder

START = datetime(2026, 1, 1, tzinfo=UTC)
NOWS = [START + timedelta(days=days) for days in range(0, 800, 40)]
MEMORIES = sorted(set(TEXTS))
TYPES = ["episodic", "semantic", "procedural", "unknown"]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    return Embedder.from_pretrained(write_tiny_onnx_embedder(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def memory(embedder, tmp_path):
    with Memory(tmp_path / "store", embedder=embedder) as opened:
        yield opened


def test_every_moment_gives_the_scores_of_embedding_everything_anew(memory, embedder):
    for place, text in enumerate(MEMORIES):
        at = START - timedelta(days=11 * place)
        memory.add(text, id=str(place), at=at, type=TYPES[place % 4])
    query = embedder.encode_query(["the big dog"])[0]
    orders = set()
    for now in NOWS:
        hits = memory.search("the big dog", k=len(MEMORIES), now=now).hits

        ages = [(now - START).days + 11 * place for place in range(len(MEMORIES))]
        types = [TYPES[place % 4] for place in range(len(MEMORIES))]
        expected = embedder.encode(MEMORIES, days_ago=ages, memory_type=types) @ query
        found = {int(hit.id): hit.scores["cosine"] for hit in hits}
        assert len(found) == len(MEMORIES)
        assert max(abs(found[place] - expected[place]) for place in found) <= 1e-5
        orders.add(tuple(np.argsort([-found[place] for place in range(len(found))])[:5].tolist()))
    assert len(orders) > 3


def test_what_is_added_between_searches_scores_as_if_it_had_been_there(memory, embedder):
    memory.add("the cat sat", at=START, type="semantic")
    memory.search("dog", now=START)
    memory.add("a big dog", at=START - timedelta(days=100), type="episodic")

    hits = memory.search("dog", now=START).hits

    expected = (
        embedder.encode(
            ["a big dog", "the cat sat"], days_ago=[100, 0], memory_type=["episodic", "semantic"]
        )
        @ embedder.encode_query(["dog"])[0]
    )
    found = [hit.scores["cosine"] for hit in sorted(hits, key=lambda hit: hit.text)]
    assert found == pytest.approx(expected.tolist(), abs=1e-5)


def test_what_the_caller_left_out_is_predicted(memory, embedder):
    memory.add("the cat sat", id="a")

    stored = memory.get("a")

    assert stored.type == embedder.memory_type(["the cat sat"])[0]
    predicted = float(embedder.importance(["the cat sat"])[0])
    assert stored.importance == pytest.approx(predicted, abs=0.001)


def test_what_the_caller_gave_stays(memory):
    memory.add("the cat sat", id="a", type="procedural", importance=0.9)

    stored = memory.get("a")

    assert (stored.type, stored.importance) == ("procedural", 0.9)
