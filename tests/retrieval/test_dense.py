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


def test_resident_vectors_score_every_row():
    arm = ResidentVectors((WINDOWS,), np.array([0, 1, 2], np.int32), documents(3))
    rows, scores = scored(arm, visible=[1, 0, 1])
    assert rows.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.0, 0.6])


def test_a_row_of_two_windows_counts_by_its_best_less_five_for_the_later_and_two_for_their_number():
    arm = ResidentVectors((WINDOWS,), np.array([0, 1, 1], np.int32), documents(2))
    assert scored(arm, visible=[1, 1])[1].tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)


def test_a_turn_loses_ten_for_the_number_of_its_windows_where_a_document_loses_three():
    arm = ResidentVectors(
        (WINDOWS,), np.array([0, 1, 1], np.int32), length_discounts(np.ones(2, bool))
    )
    assert scored(arm, visible=[1, 1])[1].tolist() == pytest.approx([1.0, 0.480685], abs=1e-5)


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


def test_a_few_visible_rows_are_scored_without_the_index():
    arm = indexed(keys=[5, 10, 20])
    rows, scores = scored(arm, visible=[0, 1, 1])
    assert rows.tolist() == [1, 2]
    assert scores.tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)


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
    assert scored(resident, visible=[1, 1])[1].tolist() == pytest.approx([0.6, 0.529206], abs=1e-5)
    assert scored(found, visible=[1, 1])[1].tolist() == pytest.approx([2**-0.5, 0.529206], abs=1e-5)
    assert resident.first_vectors(np.array([0]), now=0)[0] == pytest.approx([0.6, 0.8])


def test_what_is_asked_for_besides_is_scored_too():
    arm = indexed(keys=[10, 20])
    rows, scores = scored(arm, 1, visible=[1, 0])
    assert rows.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)


class TestManyVisibleRows:
    @pytest.fixture(autouse=True)
    def _none_is_few(self, monkeypatch):
        monkeypatch.setattr(dense, "FEW_VISIBLE", 0)

    def test_the_rows_that_the_index_found_are_scored_exactly_by_their_best_window(self):
        arm = indexed(keys=[10, 20, 30], found=[20, 10, 20])
        rows, scores = scored(arm, visible=[1, 1, 1])
        assert rows.tolist() == [0, 1]
        assert scores.tolist() == pytest.approx([1.0, 0.529206], abs=1e-5)

    def test_what_is_not_in_view_is_left_out(self):
        arm = indexed(keys=[10], found=[99, 10])
        assert scored(arm, visible=[1])[0].tolist() == [0]

    def test_other_rows_that_are_asked_for_are_scored_exactly(self):
        arm = indexed(keys=[10, 20, 30], found=[30])
        rows, scores = scored(arm, 1, 0, visible=[1, 1, 1])
        assert rows.tolist() == [0, 1, 2]
        assert scores.tolist() == pytest.approx([1.0, 0.529206, 0.1], abs=1e-5)

    def test_a_row_that_is_found_and_asked_for_comes_once(self):
        arm = indexed(keys=[10, 20], found=[10])
        assert scored(arm, 0, visible=[1, 1])[0].tolist() == [0]


def test_the_first_window_of_a_row_is_found_in_whichever_block_it_lies():
    arm = ResidentVectors((WINDOWS[:1], WINDOWS[1:]), np.array([0, 0, 1], np.int32), documents(2))
    assert arm.first_vectors(np.array([1, 0]), now=0).tolist() == [WINDOWS[2].tolist(), [1.0, 0.0]]
    assert arm.first_vectors(np.array([], np.int64), now=0).shape == (0, 2)


def test_the_first_window_of_a_row_is_read_from_the_store():
    arm = indexed(keys=[10, 20])
    assert arm.first_vectors(np.array([1, 0]), now=0).tolist() == [[0.0, 1.0], [1.0, 0.0]]


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
    return vectors


def test_the_first_search_waits_for_nothing_and_the_second_loads(store):
    vectors = ScopeVectors(store, ALICE, room=ROOM)
    vectors.prepare(3, 32)
    assert not vectors.resident
    vectors.prepare(3, 32)
    assert vectors.resident
    assert vectors.nbytes == 3 * (32 * 2 + 8)


def test_what_has_no_room_stays_on_disk(store):
    assert not held(store, room=3 * 32 * 2 - 1).resident


@pytest.mark.parametrize("room", [ROOM, 0])
def test_the_windows_of_a_memory_come_in_order_whether_held_or_not(store, room):
    found = held(store, room=room).read(np.array([3, 1]))
    by_key = {key: found.vectors[found.keys == key] for key in (1, 3)}
    assert np.allclose(by_key[1], store.vectors_of([1]).vectors, atol=1e-3)
    assert np.allclose(by_key[3], store.vectors_of([3]).vectors, atol=1e-3)


def test_only_the_scope_is_held(store):
    assert held(store).nbytes == 3 * (32 * 2 + 8)


def test_what_is_written_after_the_load_is_read_from_the_store(store):
    vectors = held(store)
    store.append([contract_row(4, owned_record(4, "alice"))])
    assert vectors.read(np.array([4, 1])).keys.tolist() == [1, 4]


def test_much_that_was_written_after_the_load_is_loaded_as_well(store):
    vectors = held(store)
    store.append([contract_row(key, owned_record(key, "alice")) for key in range(4, 105)])
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
