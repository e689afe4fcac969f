import numpy as np
import pytest

from ekphory.errors import InvalidInput
from ekphory.models.late_bound import (
    NO_AGE,
    NO_TYPE,
    LateBoundParts,
    age_buckets,
    age_buckets_at,
    late_bound_scores,
    normalised,
    type_codes,
)

DAY = 86_400_000_000
MEMORIES, DIMENSION = 400, 48


@pytest.fixture
def random():
    return np.random.default_rng(3)


@pytest.fixture
def parts(random):
    return LateBoundParts(
        random.normal(0, 1, (10, DIMENSION)).astype(np.float32),
        random.normal(0, 1, (4, DIMENSION)).astype(np.float32),
    )


@pytest.fixture
def content(random):
    """Content vectors of lengths from 0.1 to 10, so that no part of the formula is negligible."""
    lengths = np.logspace(-1, 1, MEMORIES)[:, None]
    directions = normalised(random.normal(0, 1, (MEMORIES, DIMENSION)).astype(np.float32))
    return (directions * lengths).astype(np.float32)


def reembedded(parts, content, buckets, types):
    """What a model that adds age and type before the normalisation gives, in double precision."""
    rows = content.astype(np.float64) + parts.age[buckets] + parts.type[types]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("days", "bucket"),
    [
        (-5, 0), (0, 0), (1, 0), (1.01, 1), (3, 1), (4, 2), (7, 2), (8, 3), (14, 3), (15, 4),
        (30, 4), (31, 5), (60, 5), (61, 6), (90, 6), (91, 7), (180, 7), (181, 8), (365, 8),
        (365.5, 9), (10_000, 9), (float("inf"), 9),
    ],
)  # fmt: skip
def test_the_limits_of_the_buckets_are_inclusive(days, bucket):
    assert age_buckets([days]).tolist() == [bucket]


def test_an_age_that_is_no_number_is_refused():
    with pytest.raises(InvalidInput, match="days_ago"):
        age_buckets([1.0, float("nan")])


def test_moments_are_compared_to_the_microsecond():
    now = 20_000 * DAY
    moments = np.array([now + 1, now - DAY, now - DAY - 1, now - 365 * DAY, now - 365 * DAY - 1])

    assert age_buckets_at(moments, now).tolist() == [0, 0, 1, 8, 9]


def test_types_are_numbered_as_the_model_was_trained():
    names = ["unknown", "episodic", "procedural", "semantic", "episodic"]

    assert type_codes(names).tolist() == [3, 0, 2, 1, 0]
    assert type_codes(np.array([], np.str_)).tolist() == []


def test_an_unknown_type_is_refused():
    with pytest.raises(InvalidInput, match="memory_type='seasonal'"):
        type_codes(["semantic", "seasonal"])


def test_parts_of_another_shape_are_refused():
    with pytest.raises(InvalidInput, match=r"type=\(3, 8\)"):
        LateBoundParts(np.zeros((10, 8), np.float32), np.zeros((3, 8), np.float32))


def test_a_small_example_by_hand():
    parts = LateBoundParts(np.zeros((10, 2), np.float32), np.zeros((4, 2), np.float32))
    parts.age[2] = [0, 1]
    parts.type[1] = [0, 3]
    content = np.array([[3, 0]], np.float32)

    buckets, types = np.array([2]), np.array([1])
    lengths = parts.lengths(content, types=types)[:, 2]
    scores = late_bound_scores(
        content @ np.array([0, 1], np.float32),
        parts.offsets(np.array([0, 1], np.float32)),
        lengths,
        buckets=buckets,
        types=types,
    )

    assert lengths == pytest.approx([5])  # z = (3, 4)
    assert scores == pytest.approx([0.8])


def test_twenty_moments_give_the_scores_and_the_order_of_embedding_everything_anew(
    random, parts, content
):
    types = random.integers(0, 4, MEMORIES)
    at = np.arange(MEMORIES) * (2 * DAY)
    query = normalised(random.normal(0, 1, (1, DIMENSION)).astype(np.float32))[0]
    lengths, offsets = parts.lengths(content, types=types), parts.offsets(query)
    for now in np.linspace(0, 1200 * DAY, 20).astype(np.int64):
        buckets = age_buckets_at(at, int(now))
        at_this_age = lengths[np.arange(MEMORIES), buckets]
        scores = late_bound_scores(
            content @ query, offsets, at_this_age, buckets=buckets, types=types
        )

        expected = reembedded(parts, content, buckets, types) @ query

        assert np.abs(scores - expected).max() <= 1e-5
        assert np.array_equal(np.argsort(-scores), np.argsort(-expected))


def test_the_length_at_one_age_is_one_of_the_ten(random, parts, content):
    buckets, types = random.integers(0, 10, MEMORIES), random.integers(0, 4, MEMORIES)

    one = parts.lengths_at(content, buckets=buckets, types=types)

    ten = parts.lengths(content, types=types)
    assert one == pytest.approx(ten[np.arange(MEMORIES), buckets], rel=1e-5)


def test_what_is_bound_is_what_embedding_anew_gives(random, parts, content):
    buckets, types = random.integers(0, 10, MEMORIES), random.integers(0, 4, MEMORIES)

    vectors = parts.bound(content, buckets=buckets, types=types)

    assert np.abs(vectors - reembedded(parts, content, buckets, types)).max() <= 1e-6


def test_without_age_and_type_the_content_is_left(parts, content):
    nothing = np.full(MEMORIES, NO_AGE), np.full(MEMORIES, NO_TYPE)

    vectors = parts.bound(content, buckets=nothing[0], types=nothing[1])

    assert np.array_equal(vectors, normalised(content))


def test_a_memory_that_its_age_cancels_has_a_finite_score(parts):
    content = -(parts.age[:1] + parts.type[:1])
    zero = np.zeros(1, np.int64)

    lengths = parts.lengths(content, types=zero)

    assert np.isfinite(lengths).all()
    assert (lengths > 0).all()
