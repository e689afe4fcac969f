"""The dense arm scores a memory by its best window."""

from dataclasses import replace

import numpy as np
import pytest
from tests.models.tiny_components import tiny_components
from tests.store.in_memory import InMemoryStore
from tests.store.store_contract import CONTRACT_IDENTITY, contract_row, owned_record

from ekphory.filters.tree import And, Comparison, Field
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.late_bound import LateBoundParts, age_buckets, normalised
from ekphory.retrieval import dense
from ekphory.retrieval.dense import (
    IndexedVectors,
    LateBoundRows,
    LateBoundWindows,
    ResidentVectors,
    ScopeVectors,
    Wanted,
    length_discounts,
)
from ekphory.store.protocol import StoreIdentity

WINDOWS = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
EAST = np.array([1, 0], np.float32)


def documents(number):
    return length_discounts(np.zeros(number, bool))


def scored(arm, *also, visible):
    search = arm.begin(EAST, Wanted(nearest=3, visible=np.array(visible, bool), now=0))
    return search(np.array(also, np.int64))


# Less .05 for the window that is not the first, and for their number .03·ln 2, of a turn .1·ln 2.
OF_TWO_WINDOWS, OF_A_TURN = 0.529206, 0.480685


@pytest.mark.parametrize(
    ("owners", "are_turns", "expected"),
    [
        ([0, 1, 2], False, [1.0, 0.0, 0.6]),
        ([0, 1, 1], False, [1.0, OF_TWO_WINDOWS]),
        ([0, 1, 1], True, [1.0, OF_A_TURN]),
    ],
)
def test_resident_vectors_score_every_row_by_its_best_window(owners, are_turns, expected):
    discounts = length_discounts(np.full(len(expected), are_turns))
    arm = ResidentVectors((WINDOWS,), np.array(owners, np.int32), discounts)
    rows, scores = scored(arm, visible=[1] + [0] * (len(expected) - 1))
    assert rows.tolist() == list(range(len(expected)))
    assert scores.tolist() == pytest.approx(expected, abs=1e-5)


def indexed(*, keys, found=()):
    """An arm whose index gives the keys `found`; keys 10 and 30 have one window, 20 has two."""
    store = InMemoryStore(StoreIdentity(1, "1", EmbedderIdentity("plane", "1", 2)))
    windows = {10: WINDOWS[:1], 20: WINDOWS[1:], 30: np.array([[0.1, 0]], np.float32)}
    store.append([replace(contract_row(key), vectors=each) for key, each in windows.items()])
    vectors = ScopeVectors(store, And(()), room=10_000)
    return IndexedVectors(
        np.array(keys, np.int64),
        lambda *_: np.array(found, np.int64),
        vectors,
        documents(len(keys)),
    )


@pytest.mark.parametrize(
    ("arm", "also", "visible", "few", "expected"),
    [
        # Few visible rows are scored without the index, and what is asked for besides.
        ({"keys": [5, 10, 20]}, [], [0, 1, 1], 4_000, {1: 1.0, 2: OF_TWO_WINDOWS}),
        ({"keys": [10, 20]}, [1], [1, 0], 4_000, {0: 1.0, 1: OF_TWO_WINDOWS}),
        # Of many those that the index found, unless they are out of view, and what is asked for.
        ({"keys": [10, 20, 30], "found": [20, 10, 20]}, [], [1, 1, 1], 0,
         {0: 1.0, 1: OF_TWO_WINDOWS}),
        ({"keys": [10], "found": [99, 10]}, [], [1], 0, {0: 1.0}),
        ({"keys": [10, 20, 30], "found": [30]}, [1, 0], [1, 1, 1], 0,
         {0: 1.0, 1: OF_TWO_WINDOWS, 2: 0.1}),
        ({"keys": [10, 20], "found": [10]}, [0], [1, 1], 0, {0: 1.0}),
    ],
)  # fmt: skip
def test_what_is_looked_at_is_scored_exactly_by_its_best_window_and_comes_once(
    monkeypatch, arm, also, visible, few, expected
):
    monkeypatch.setattr(dense, "FEW_VISIBLE", few)
    rows, scores = scored(indexed(**arm), *also, visible=visible)
    assert rows.tolist() == list(expected)
    assert scores.tolist() == pytest.approx(list(expected.values()), abs=1e-5)


def test_both_arms_bind_age_and_type_alike():
    parts = LateBoundParts(np.zeros((10, 2), np.float32), np.zeros((4, 2), np.float32))
    parts.age[1] = [0, -1]  # from one to three days
    two_days = 2 * 86_400_000_000
    bound = LateBoundRows(parts, np.array([-two_days, 0]), np.array([3, 3]))
    content, owners = np.array([[3, 5], [0, 1], [0.6, 0.8]], np.float32), np.array([0, 1, 1])
    windows = LateBoundWindows.of(bound, owners, content)
    resident = ResidentVectors((content,), owners.astype(np.int32), documents(2), windows)

    found = replace(indexed(keys=[10, 20]), bound=bound)

    # z of the first is (3, 4); the second, of today, stays as it is
    for arm, first in ((resident, 0.6), (found, 2**-0.5)):
        scores = scored(arm, visible=[1, 1])[1].tolist()
        assert scores == pytest.approx([first, OF_TWO_WINDOWS], abs=1e-5)
    assert resident.first_vectors(np.array([0]), now=0)[0] == pytest.approx([0.6, 0.8])


def test_the_first_window_of_a_row_is_found_in_whichever_block_it_lies_or_in_the_store():
    arm = ResidentVectors((WINDOWS[:1], WINDOWS[1:]), np.array([0, 0, 1], np.int32), documents(2))
    assert arm.first_vectors(np.array([1, 0]), now=0).tolist() == [WINDOWS[2].tolist(), [1.0, 0.0]]
    assert arm.first_vectors(np.array([], np.int64), now=0).shape == (0, 2)
    stored = indexed(keys=[10, 20])
    assert stored.first_vectors(np.array([1, 0]), now=0).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_row_that_was_deleted_meanwhile_has_a_vector_of_zeros():
    for keys in ([5, 10], [10, 99]):
        found = indexed(keys=keys).first_vectors(np.array([0, 1]), now=0)
        assert found.tolist() == [[float(key == 10), 0.0] for key in keys]


ALICE = Comparison(Field("user"), "eq", "alice")
ROOM = 1_000_000


@pytest.fixture
def store():
    found = InMemoryStore(CONTRACT_IDENTITY)
    found.append(
        [
            contract_row(1, owned_record(1, "alice")),
            contract_row(2, owned_record(2, "bob")),
            contract_row(3, owned_record(3, "alice"), windows=2),
        ]
    )
    return found


def held(store, *, room=ROOM):
    vectors = ScopeVectors(store, ALICE, room=room)
    for _ in range(2):
        vectors.prepare(3, 32)
    vectors.settle()
    return vectors


def test_the_first_search_loads_nothing_and_the_second_begins_to_load_what_has_room(store):
    vectors = ScopeVectors(store, ALICE, room=ROOM)
    vectors.prepare(3, 32)
    assert not vectors.resident
    vectors.prepare(3, 32)
    vectors.settle()
    assert vectors.resident
    assert vectors.nbytes == 3 * (32 * 2 + 8)
    assert not held(store, room=3 * 32 * 2 - 1).resident


@pytest.mark.parametrize("room", [ROOM, 0])
def test_the_windows_of_a_memory_come_in_order_whether_held_or_not(store, room):
    found = held(store, room=room).read(np.array([3, 1]))
    by_key = {key: found.vectors[found.keys == key] for key in (1, 3)}
    assert np.allclose(by_key[1], store.vectors_of([1]).vectors, atol=1e-3)
    assert np.allclose(by_key[3], store.vectors_of([3]).vectors, atol=1e-3)


def test_what_is_written_after_the_load_is_read_from_the_store_or_loaded_if_it_is_much(store):
    vectors = held(store)
    store.append([contract_row(4, owned_record(4, "alice"))])
    assert vectors.read(np.array([4, 1])).keys.tolist() == [1, 4]
    assert vectors.nbytes == 3 * (32 * 2 + 8)
    store.append([contract_row(key, owned_record(key, "alice")) for key in range(5, 105)])
    vectors.read(np.arange(4, 105))
    assert vectors.nbytes == (3 + 101) * (32 * 2 + 8)


DAY = 86_400_000_000
ROWS, WINDOW_COUNT, DIMENSION = 500, 640, 32
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
    return random.normal(0, 1, (WINDOW_COUNT, DIMENSION)).astype(np.float32)


@pytest.fixture
def content(pooled):
    return tiny_components().content(pooled)


@pytest.fixture
def owners():
    """Every memory has a window, and the first 140 have two."""
    return np.sort(np.concatenate([np.arange(ROWS), np.arange(WINDOW_COUNT - ROWS)]))


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


def test_candidates_and_later_windows_score_as_they_do_among_all(rows, content, owners, query):
    # Candidates score as they do among all.
    chosen = np.array([3, 99, 400, 639])

    some = rows.scores(query, content[chosen], owners=owners[chosen], now=0)

    everything = LateBoundWindows.of(rows, owners, content).scores(query, content @ query, now=0)
    assert np.abs(some - everything[chosen]).max() <= 1e-5
    # Memories of one window each own themselves.
    one, now = np.arange(ROWS), NOWS[3]
    windows = LateBoundWindows.of(rows, one, content[:ROWS])

    scores = windows.scores(query, content[:ROWS] @ query, now=now)

    vectors = rows.vectors(content[:ROWS], owners=one, now=now)
    assert np.abs(scores - vectors @ query).max() <= 1e-5
    # Windows that come later score as if they had been there.
    earlier = LateBoundWindows.of(rows, owners[:600], content[:600])
    later = LateBoundWindows.of(rows, owners[600:], content[600:])

    joined = earlier.followed_by(later)

    whole = LateBoundWindows.of(rows, owners, content)
    products = content @ query
    assert np.array_equal(
        joined.scores(query, products, now=0), whole.scores(query, products, now=0)
    )
