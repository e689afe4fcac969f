import numpy as np
import pytest

from ekphory.models.late_bound import (
    PassageReading,
    PredictedTraits,
    late_bound_of,
    read_passages,
    traits_by_memory,
)
from ekphory.testing.models import HashEmbedder

CONTENT = np.zeros((3, 2), np.float32)


def test_any_model_can_read_passages():
    embedder = HashEmbedder()

    reading = read_passages(embedder, ["tea", "coffee"])

    assert np.array_equal(reading.content, embedder.encode(["tea", "coffee"]))
    assert (reading.importance, reading.type_logits) == (None, None)
    assert late_bound_of(embedder) is None


def test_a_memorys_traits_are_the_mean_over_its_windows():
    logits = np.array([[0, 3, 0, 0], [5, 0, 0, 0], [0, 1, 0, 2]], np.float32)
    reading = PassageReading(CONTENT, np.array([0.2, 0.6, 0.9], np.float32), logits)

    first, second = traits_by_memory(reading, [2, 1])

    assert (first.importance, first.type) == (pytest.approx(0.4), "episodic")
    assert (second.importance, second.type) == (pytest.approx(0.9), "unknown")


def test_a_model_without_heads_predicts_nothing():
    reading = PassageReading(CONTENT)

    assert traits_by_memory(reading, [1, 2]) == [PredictedTraits(None, None)] * 2


def test_no_memories_have_no_traits():
    assert traits_by_memory(PassageReading(CONTENT[:0]), []) == []
