"""A large scope's snapshot is kept on disk, and serves the next process as one read anew would."""

import shutil
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.models.onnx_models import load_bundled
from ekphory.retrieval import snapshot
from ekphory.scope import Scope
from ekphory.store.kept_arrays import FOLDER
from ekphory.testing import HashEmbedder

TEXTS = ("red boat", "blue boat", "my tea", "a red cup of tea", "the harbour at night", "boat trip")
QUERIES = ("red boat", "tea", "harbour", "where is the boat?")


@pytest.fixture(autouse=True)
def small_scopes_are_kept_too(monkeypatch):
    monkeypatch.setattr(snapshot, "LEAST_KEPT", 2)


def open_store(path, **scope):
    return Memory(path, embedder=HashEmbedder(), **scope)


def fill(path, texts=TEXTS, **scope):
    with open_store(path, **scope) as memory:
        for place, text in enumerate(texts):
            memory.add(text, id=f"m{place}", at=datetime(2024, 5, 1 + place, tzinfo=UTC))
        memory.search("boat")


def answers(path, **scope):
    """What is found, and whether the vectors were mapped from what was kept."""
    with open_store(path, **scope) as memory:
        found = [
            [(hit.id, round(hit.score, 6)) for hit in memory.search(query, k=20)]
            for query in QUERIES
        ]
        held = memory._engine.snapshots.of(Scope(**scope).predicate())
        return found, isinstance(held.dense.blocks[0].base, np.memmap)


def answers_anew(path, monkeypatch, **scope):
    with monkeypatch.context() as changed:
        changed.setenv("EKPHORY_KEEP_SNAPSHOTS", "0")
        return answers(path, **scope)[0]


def test_what_was_kept_finds_what_was_found_before(store_path, monkeypatch):
    fill(store_path)
    found, was_mapped = answers(store_path)
    assert was_mapped
    assert found == answers_anew(store_path, monkeypatch)
    assert found[0][0][0] == "m0"


def test_models_that_know_age_and_type_score_as_before(store_path, monkeypatch):
    def search():
        with Memory(store_path, embedder=load_bundled()) as memory:
            return [(hit.id, round(hit.score, 6)) for hit in memory.search("where is the boat?")]

    with Memory(store_path, embedder=load_bundled()) as memory:
        memory.add_many([{"id": f"m{place}", "text": text} for place, text in enumerate(TEXTS)])
    anew = search()
    assert (store_path / FOLDER).is_dir()
    assert search() == anew


@pytest.mark.parametrize(
    "change",
    [
        lambda memory: memory.add("another red boat", id="m9"),
        lambda memory: memory.forget("m0"),
        lambda memory: memory.update("m1", text="the boat is green now"),
        lambda memory: memory.forget("m2") and memory.add("tea with milk", id="m2"),
    ],
)
def test_what_others_wrote_since_is_found(store_path, monkeypatch, change):
    fill(store_path)
    with open_store(store_path) as memory:
        change(memory)
    found, _ = answers(store_path)
    assert found == answers_anew(store_path, monkeypatch)


def test_a_scope_is_never_served_by_what_was_kept_of_another(store_path, monkeypatch):
    fill(store_path, org="a", project="p")
    fill(store_path, org="b", project="p", texts=("a secret of b", "another secret"))
    assert len(list((store_path / FOLDER).iterdir())) == 2
    for org in ("a", "b"):
        found, was_mapped = answers(store_path, org=org, project="p")
        assert was_mapped
        assert found == answers_anew(store_path, monkeypatch, org=org, project="p")


def test_a_purge_leaves_nothing_of_it_and_what_is_kept_later_is_without_it(store_path):
    fill(store_path)
    with open_store(store_path) as memory:
        memory.search("boat")
        memory.forget("m0", purge=True)
        assert not (store_path / FOLDER).exists()
    found, _ = answers(store_path)
    assert "m0" not in {name for hits in found for name, _ in hits}
    (kept,) = (store_path / FOLDER).iterdir()
    assert np.load(kept / "columns.key.npy").shape == (len(TEXTS) - 1,)


def test_a_repair_leaves_nothing_of_it_since_it_may_be_damaged(store_path):
    fill(store_path)
    with open_store(store_path) as memory:
        memory.repair()
        assert not (store_path / FOLDER).exists()


def test_of_another_table_in_the_same_place_nothing_is_taken(store_path, tmp_path, monkeypatch):
    fill(store_path)
    other = tmp_path / "other"
    fill(other, texts=[f"{text} of others" for text in reversed(TEXTS)])
    shutil.rmtree(store_path / "memories.lance")
    shutil.copytree(other / "memories.lance", store_path / "memories.lance")
    (store_path / ".ekphory.state.json").unlink(missing_ok=True)
    found, was_mapped = answers(store_path)
    assert not was_mapped
    assert found == answers_anew(store_path, monkeypatch)


def test_nothing_is_kept_of_small_scopes_or_where_it_is_switched_off(store_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_KEEP_SNAPSHOTS", "0")
    fill(store_path)
    monkeypatch.delenv("EKPHORY_KEEP_SNAPSHOTS")
    monkeypatch.setattr(snapshot, "LEAST_KEPT", len(TEXTS) + 1)
    answers(store_path)
    assert not (store_path / FOLDER).exists()
    monkeypatch.setenv("EKPHORY_KEEP_SNAPSHOTS", "no")
    with pytest.raises(InvalidInput, match="EKPHORY_KEEP_SNAPSHOTS='no': must be 0 or 1"):
        open_store(store_path / "new")


def test_a_folder_that_cannot_be_written_fails_no_search(store_path, caplog):
    fill(store_path, texts=TEXTS[:1])
    (store_path / FOLDER).write_text("a file in its place")
    with open_store(store_path) as memory:
        memory.add(TEXTS[1])
        assert len(memory.search("boat")) == 2
    assert (store_path / FOLDER).is_file()


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "forget", "update", "reopen", "purge"]), st.integers(0, 9)),
    max_size=12,
)


@pytest.mark.long
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_whatever_happened_between_it_finds_what_one_read_anew_does(
    tmp_path_factory, monkeypatch, changes
):
    path = tmp_path_factory.mktemp("kept") / "store"
    fill(path)
    memory = open_store(path)
    for what, number in changes:
        known = memory.count(filter=f"id = 'm{number}'") > 0
        if what == "reopen":
            memory.close()
            memory = open_store(path)
            memory.search("boat")
        elif what == "purge" and known:
            memory.forget(f"m{number}", purge=True)
        elif what == "add" and not known:
            memory.add(f"{TEXTS[number % len(TEXTS)]} anew", id=f"m{number}")
        elif what == "forget" and known:
            memory.forget(f"m{number}")
        elif what == "update" and known:
            memory.update(f"m{number}", text=f"changed {TEXTS[number % len(TEXTS)]}")
    memory.close()
    assert answers(path)[0] == answers_anew(path, monkeypatch)
