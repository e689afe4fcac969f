"""Examples: their files, the split, levels of relevance, and how well they are ranked."""

import gzip
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.training.reranker.rerank_examples import candidate, example

from ekphory.errors import DatasetError
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.training.reranker.examples import (
    SOFT_LABELS,
    Candidate,
    RerankExample,
    development,
    first_stage_scores,
    levels,
    part_of,
    read_examples,
    reciprocal_rank,
    relevance,
    rows_of,
    soft_labels,
    write_examples,
)

WHOLE = RerankExample(
    "chats",
    RerankQuery("And when?", ("Did Ada move?", "Yes."), datetime(2024, 5, 8, 9, tzinfo=UTC)),
    (
        Candidate(
            RerankPassage("a", "b", "c", datetime(2023, 1, 2, tzinfo=UTC), "semantic"),
            True,
            "answer",
            1.25,
            0.5,
            True,
        ),
        candidate("d"),
    ),
    (0.98, 0.02),
)


def test_examples_are_read_as_they_were_written(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_examples([WHOLE, WHOLE], tmp_path / name)

    assert read_examples(tmp_path / "a.gz") == (WHOLE, WHOLE)
    # Equal examples give equal bytes.
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    # Another file is refused.
    path = tmp_path / "other.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "hello"}\n'))

    with pytest.raises(DatasetError, match="no examples for a reranker"):
        read_examples(path)


ROWS = [{"query": str(number), "sentence": f"sentence {number // 2}"} for number in range(400)]


def test_one_row_of_sixteen_is_held_back():
    held = [row["sentence"] for row in rows_of("held_back", ROWS)]
    assert 10 <= len(held) <= 45
    # Questions with the same answer stay together.
    assert all(part_of(ROWS[n]) == part_of(ROWS[n + 1]) for n in range(0, 400, 2))
    # The split is the same in every run.
    assert held[:3] == ["sentence 1", "sentence 1", "sentence 12"]


def test_a_known_answer_is_fully_relevant_and_one_beaten_nine_to_one_is_low():
    abilities = np.array([0.0, -math.log(9)])

    assert relevance(abilities, np.array([True, False])) == pytest.approx([1.0, 0.2])
    # What beats the answer is no more than fully relevant.
    assert relevance(np.array([0.0, 3.0]), np.array([True, False])).tolist() == [1.0, 1.0]
    # Without a known answer the best one is the measure.
    found = relevance(np.array([1.0, 1.0 - math.log(3)]), np.array([False, False]))
    assert found == pytest.approx([1.0, 0.5])


def test_a_bound_belongs_to_the_level_above_it():
    assert levels(np.array([0.0, 0.19, 0.2, 0.5, 0.79, 0.8, 1.0])).tolist() == [1, 1, 2, 3, 4, 5, 5]
    # Every level has its soft label.
    assert soft_labels(np.array([5, 1])).tolist() == [SOFT_LABELS[4], SOFT_LABELS[0]]


ASKED = example(candidate("a", relevant=True), candidate("b"), candidate("c"))


def test_the_rank_is_that_of_the_best_answer():
    two = example(candidate("a", relevant=True), candidate("b"), candidate("c", relevant=True))

    assert reciprocal_rank(two, np.array([0.1, 0.5, 0.9])) == 1.0
    assert reciprocal_rank(ASKED, np.array([0.5, 0.9, 0.1])) == 0.5
    # Equal scores do not flatter.
    assert reciprocal_rank(ASKED, np.zeros(3)) == pytest.approx(1 / 3)


def test_sources_are_reported_apart():
    other = example(candidate("a", relevant=True), candidate("b"), source="squad")

    found = development([ASKED, other], [np.array([3.0, 2, 1]), np.array([0.0, 1])], step=7)

    assert found.ranks == {"all": 0.75, "chats": 1.0, "squad": 0.5}
    assert found.with_context is None
    assert found.step == 7


def test_the_first_stage_is_the_mean_of_its_two_arms():
    asked = example(
        candidate("a", relevant=True, lexical=1.0, dense=0.0),
        candidate("b", lexical=0.0, dense=1.0),
    )

    assert first_stage_scores(asked) == pytest.approx([0, 0])
