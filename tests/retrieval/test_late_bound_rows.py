"""Stored vectors against embedding everything anew, as arrays."""

import numpy as np
import pytest
from tests.models.tiny_components import tiny_components

from ekphory.models.late_bound import age_buckets, normalised
from ekphory.retrieval.dense import LateBoundRows, LateBoundWindows

DAY = 86_400_000_000
ROWS, WINDOWS, DIMENSION = 500, 640, 32
NOWS = np.linspace(0, 900 * DAY, 20).astype(np.int64).tolist()


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.fixture
def rows(random):
    at = random.integers(-500 * DAY, 0, ROWS)
    return LateBoundRows(tiny_components().late_bound(), at, random.integers(0, 4, ROWS))


@pytest.fixture
def pooled(random):
    return random.normal(0, 1, (WINDOWS, DIMENSION)).astype(np.float32)


@pytest.fixture
def content(pooled):
    return tiny_components().content(pooled)


@pytest.fixture
def owners():
    """Every memory has a window, and the first 140 have two."""
    return np.sort(np.concatenate([np.arange(ROWS), np.arange(WINDOWS - ROWS)]))


@pytest.fixture
def query(random):
    return normalised(random.normal(0, 1, (1, DIMENSION)).astype(np.float32))[0]


def embedded_anew(pooled, rows, owners, now):
    """Age and type added before the projection, as the model was trained; in double precision."""
    components = tiny_components()
    buckets = age_buckets((now - rows.at[owners]) / DAY)
    added = components.age[buckets] + components.type[rows.types[owners]]
    weight = components.projection.weight.astype(np.float64)
    vectors = (pooled + added) @ weight.T + components.projection.bias
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_at_twenty_moments_scores_and_order_are_those_of_embedding_anew(
    rows, pooled, content, owners, query
):
    windows = LateBoundWindows.of(rows, owners, content)
    for now in NOWS:
        scores = windows.scores(query, content @ query, now=now)

        expected = embedded_anew(pooled, rows, owners, now) @ query
        assert np.abs(scores - expected).max() <= 1e-5
        assert np.array_equal(np.argsort(-scores), np.argsort(-expected))


def test_candidates_score_as_they_do_among_all(rows, content, owners, query):
    chosen = np.array([3, 99, 400, 639])

    some = rows.scores(query, content[chosen], owners=owners[chosen], now=0)

    everything = LateBoundWindows.of(rows, owners, content).scores(query, content @ query, now=0)
    assert np.abs(some - everything[chosen]).max() <= 1e-5


def test_memories_of_one_window_each_own_themselves(rows, content, query):
    one, now = np.arange(ROWS), NOWS[3]
    windows = LateBoundWindows.of(rows, one, content[:ROWS])

    scores = windows.scores(query, content[:ROWS] @ query, now=now)

    vectors = rows.vectors(content[:ROWS], owners=one, now=now)
    assert np.abs(scores - vectors @ query).max() <= 1e-5


def test_windows_that_come_later_score_as_if_they_had_been_there(rows, content, owners, query):
    earlier = LateBoundWindows.of(rows, owners[:600], content[:600])
    later = LateBoundWindows.of(rows, owners[600:], content[600:])

    joined = earlier.followed_by(later)

    whole = LateBoundWindows.of(rows, owners, content)
    products = content @ query
    assert np.array_equal(
        joined.scores(query, products, now=0), whole.scores(query, products, now=0)
    )


def test_the_order_changes_with_the_moment(rows, content, owners, query):
    windows, products = LateBoundWindows.of(rows, owners, content), content @ query

    orders = {
        tuple(np.argsort(-windows.scores(query, products, now=now))[:10].tolist()) for now in NOWS
    }

    assert len(orders) > 5


def test_a_thousand_nearest_by_content_hold_the_ten_best(random, rows, query):
    count = 20_000
    content = random.normal(0, 1, (count, DIMENSION)).astype(np.float32) * 2
    many = LateBoundRows(
        rows.parts, random.integers(-500 * DAY, 0, count), random.integers(0, 4, count)
    )
    everyone = np.arange(count)
    agreed = []
    for now in NOWS:
        nearest = np.argsort(-(content @ query))[:1000]
        found = many.scores(query, content[nearest], owners=nearest, now=now)
        everything = many.scores(query, content, owners=everyone, now=now)
        best = set(np.argsort(-everything)[:10].tolist())
        agreed.append(len(best & set(nearest[np.argsort(-found)[:10]].tolist())) / 10)

    assert np.mean(agreed) >= 0.99
