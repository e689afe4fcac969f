"""A scope too large to be held in memory is searched through the store, with the same results."""

import shutil

import pytest

from ekphory.memory import Memory
from ekphory.retrieval import dense, snapshot
from ekphory.testing.models import HashEmbedder


@pytest.fixture(params=[4_000, 0], ids=["few visible", "many visible"])
def small_memory_limit(monkeypatch, request):
    """Makes a scope of more than 50 memories a large one, read or searched through the store."""
    monkeypatch.setattr(snapshot, "RESIDENT_ROWS", 50)
    monkeypatch.setattr(dense, "FEW_VISIBLE", request.param)


def ids(result):
    return [hit.id for hit in result.hits]


def rows(count):
    return [
        {"id": f"r{n}", "text": f"note {n} about topic {n % 7}", "metadata": {"n": n},
         "pool": f"pool{n % 3}", "at": "2026-05-01"}
        for n in range(count)
    ]  # fmt: skip


def written(path, count):
    """Write a store of so many rows; give its path."""
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add_many(rows(count))
    return path


@pytest.fixture(scope="module")
def path_of_200(tmp_path_factory):
    return written(tmp_path_factory.mktemp("small") / "store", 200)


@pytest.fixture
def memory_of_200(path_of_200, store_path, open_memory):
    shutil.copytree(path_of_200, store_path)
    return open_memory()


@pytest.mark.slow
@pytest.mark.parametrize("query", ["note 7", "nothing in common", "you and me"])
@pytest.mark.parametrize("few", [4_000, 0])
@pytest.mark.parametrize("preset", ["balanced", "rrf"])
def test_the_best_hits_are_those_of_a_small_scope(memory_of_200, monkeypatch, query, preset, few):
    memory = memory_of_200
    exact = memory.search(query, k=20, now="2026-06-01", preset=preset).hits
    monkeypatch.setattr(snapshot, "RESIDENT_ROWS", 50)
    monkeypatch.setattr(dense, "FEW_VISIBLE", few)
    memory.add("makes the snapshot of the scope a large one", id="last", at="2026-05-01")
    memory.forget("last")
    found = memory.search(query, k=20, now="2026-06-01", preset=preset).hits
    assert [hit.id for hit in found] == [hit.id for hit in exact]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in exact], abs=1e-4)


@pytest.fixture(scope="module")
def path_of_1100(tmp_path_factory):
    return written(tmp_path_factory.mktemp("large") / "store", 1_100)


@pytest.fixture
def memory_of_1100(path_of_1100, small_memory_limit):
    """A handle opened under the limit on memories that are only read."""
    with Memory(path_of_1100, embedder=HashEmbedder()) as memory:
        yield memory


@pytest.mark.parametrize("query", ["note 7", "nothing in common"])
def test_k_hits_come_whenever_the_scope_holds_k(memory_of_1100, query):
    for k in (1, 300, 1_000):
        assert len(set(ids(memory_of_1100.search(query, k=k)))) == k


@pytest.mark.parametrize("query", ["note 7", "nothing in common"])
def test_k_hits_come_under_a_narrow_filter(memory_of_1100, query):
    for condition, matching in [("m.n < 5", 5), ("m.n < 400", 400), ("pool = 'pool1'", 367)]:
        assert len(ids(memory_of_1100.search(query, k=1_000, filter=condition))) == matching
    assert len(ids(memory_of_1100.search(query, k=1_000, pools=["pool2"]))) == 366


def test_the_best_match_inside_a_filter_is_found_however_many_are_better_outside(
    memory, small_memory_limit
):
    # No word of the query is searched lexically, so only the dense arm can find it.
    query = "you and me and my"
    memory.add("dog you and me and my", id="wanted", metadata={"kind": "dog"}, at="2026-05-01")
    memory.add_many(
        {"text": f"dog number {n}", "metadata": {"kind": "dog"}, "at": "2026-05-02"}
        for n in range(400)
    )
    memory.add_many(
        {"text": query, "id": f"near {n}", "metadata": {"kind": "cat"}} for n in range(400)
    )
    found = memory.search(query, k=5, filter="m.kind = 'dog'", now="2026-06-01")
    assert ids(found)[0] == "wanted"


def test_a_change_is_seen_at_once(memory, small_memory_limit):
    memory.add_many(rows(120))
    memory.update("r7", text="kangaroo")
    memory.forget("r8")
    memory.add("wallaby", id="new")
    assert ids(memory.search("kangaroo", k=1)) == ["r7"]
    assert ids(memory.search("wallaby", k=1)) == ["new"]
    assert "r8" not in ids(memory.search("note 8", k=1_000))


def test_a_large_scope_stays_apart_from_others(open_memory, small_memory_limit):
    alice, bob = open_memory(user="alice"), open_memory(user="bob")
    alice.add_many(rows(120))
    bob.add_many({"text": f"bobs note {n}", "id": f"b{n}"} for n in range(120))
    found = ids(alice.search("bobs note 7", k=1_000))
    assert sorted(found) == sorted(f"r{n}" for n in range(120))
