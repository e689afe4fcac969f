"""Embedding a store anew: nothing is lost, nothing is mixed, and there is a way back."""

import json
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.store.store_contract import CONTRACT_IDENTITY, contract_row, full_record

from ekphory import models
from ekphory.errors import EmbedderMismatch, StoreError, StoreLocked, StoreWarning
from ekphory.memory import Memory
from ekphory.models.embedder import EmbedderIdentity
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.query import CleanQuery
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.store.checks import examine
from ekphory.store.lance import LanceStore
from ekphory.store.lance_snapshot import LanceSnapshot
from ekphory.testing import HashEmbedder


class NextEmbedder(HashEmbedder):
    """A later model: of another revision, and perhaps of another dimension and window."""

    def __init__(self, *, dimension=32, window_words=100, revision="2"):
        super().__init__(dimension=dimension, window_words=window_words)
        self.identity = EmbedderIdentity("hash-embedder", revision, dimension)

    def _vector(self, text):
        # As if it had learned other axes: the same as before would hide that two are mixed.
        return np.roll(super()._vector(text), 1)


TEXTS = {
    "key": "the spare key is under the mat",
    "train": "the night train to Vienna leaves at nine",
    "bread": "sourdough needs a day to rise " + "and patience " * 30,
}


@pytest.fixture
def old_store(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many([{"id": name, "text": text} for name, text in TEXTS.items()])
    return store_path


@pytest.fixture
def open_next(old_store, close_at_end):
    """Opens the store with a later model, and lets it warn."""

    def open_store(**given):
        with pytest.warns(StoreWarning):
            return close_at_end(Memory(old_store, embedder=NextEmbedder(**given)))

    return open_store


def cosine(memory, query, name):
    (hit,) = memory.search(query, filter=f"id = '{name}'")
    return hit.scores["cosine"]


def search_stage(memory, query):
    return next(each for each in memory.search(query).trace.stages if each.name == "search pools")


def findings(memory):
    return {each.subject: each for each in examine(memory.health())}


# A store of an earlier model.


@pytest.mark.parametrize("dimension", [32, 48])
def test_a_store_of_an_earlier_model_opens_searches_by_words_and_says_so(old_store, dimension):
    with pytest.warns(
        StoreWarning, match=r"hash-embedder@1 \(32-d\), which is not at hand"
    ) as told:
        memory = Memory(old_store, embedder=NextEmbedder(dimension=dimension))
    with memory:
        hit = memory.search("where is the spare key?")[0]
        assert (hit.id, "cosine" in hit.scores) == ("key", False)
        stage = search_stage(memory, "spare key")
        assert stage.status == "degraded"
        assert "hash-embedder@1 (32-d), is not at hand" in stage.reason
        finding = findings(memory)["embedder"]
        assert finding.state == "wanting"
        assert f"makes them anew with hash-embedder@2 ({dimension}-d)" in finding.sentence
    assert len(told) == 1


@pytest.mark.parametrize("preset", ["fast", "balanced", "accurate", "memory_spark", "rrf"])
def test_every_preset_does_without_vectors(open_next, preset):
    found = open_next().search("night train to Vienna", preset=preset)
    assert found[0].id == "train"


def test_a_search_by_vectors_alone_is_refused_without_their_model(open_next):
    dense = Pipeline("dense", [CleanQuery(), SearchPools(arms="dense"), Fuse(method="dense")])
    with pytest.raises(EmbedderMismatch, match="Make them anew with `ekphory reembed`"):
        open_next().search("night train", preset=dense)


def test_what_is_written_without_the_model_is_found_by_words_and_embedded_with_the_rest(open_next):
    memory = open_next()
    memory.add("the bicycle has a new chain", id="bicycle")
    assert memory.search("bicycle chain")[0].id == "bicycle"
    assert memory.health().unembedded == 1
    memory.reembed()
    assert memory.health().unembedded == 0
    assert cosine(memory, "the bicycle has a new chain", "bicycle") == pytest.approx(1, abs=1e-5)


def test_the_earlier_model_serves_in_full_where_it_is_at_hand(open_next, old_store):
    open_next()
    with Memory(old_store, embedder=HashEmbedder()) as memory:
        assert cosine(memory, TEXTS["key"], "key") == pytest.approx(1, abs=1e-5)
        assert search_stage(memory, "key").status == "ran"


def test_what_another_model_left_without_vectors_the_stores_own_makes_up_for(open_next, old_store):
    open_next().add("the bicycle has a new chain", id="bicycle")
    with Memory(old_store, embedder=HashEmbedder()) as memory:
        finding = findings(memory)["embedder"]
        assert "1 memory has no vector of hash-embedder@1" in finding.sentence
        report = memory.reembed(HashEmbedder())
        assert (report.embedded, report.previous, report.unembedded) == (1, None, 0)
        for name, text in {**TEXTS, "bicycle": "the bicycle has a new chain"}.items():
            assert cosine(memory, text, name) == pytest.approx(1, abs=1e-5)
        assert memory.verify().damage == ()
        assert memory.reembed(HashEmbedder()).embedded == 0


# Embedding anew.


@pytest.mark.parametrize(
    ("dimension", "window_words", "rows"), [(32, 100, 3), (48, 100, 3), (16, 20, 6)]
)
def test_all_memories_get_vectors_of_the_new_model(open_next, dimension, window_words, rows):
    memory = open_next(dimension=dimension, window_words=window_words)
    told = []
    report = memory.reembed(on_progress=lambda *progress: told.append(progress))
    assert report.embedder == f"hash-embedder@2 ({dimension}-d)"
    assert report.previous == "hash-embedder@1 (32-d)"
    assert (report.memories, report.embedded, report.unembedded) == (3, 3, 0)
    assert told[-1] == (3, 3)
    assert cosine(memory, TEXTS["key"], "key") == pytest.approx(1, abs=1e-5)
    assert search_stage(memory, "key").status == "ran"
    verified = memory.verify()
    assert (verified.rows, verified.unverified, verified.damage) == (rows, 0, ())
    assert [memory.get(name).text for name in TEXTS] == list(TEXTS.values())


def test_history_metadata_and_ids_stay(memory):
    memory.add("tea at four", id="tea", metadata={"place": "Oslo", "n": 1.5})
    memory.update("tea", text="tea at five")
    before = memory.history("tea")
    memory.reembed(NextEmbedder(dimension=24))
    assert memory.history("tea") == before
    assert memory.count(filter="metadata.place = 'Oslo'") == 1
    assert memory.add("tea at four", id="tea").skipped == 1


@pytest.mark.parametrize("schema_version", [1, 2, 3])
def test_a_store_of_an_earlier_layout_is_brought_up_to_date_with_it(store_path, schema_version):
    identity = replace(CONTRACT_IDENTITY, schema_version=schema_version)
    stored = contract_row(1, full_record())
    LanceStore.open(str(store_path), identity).append([stored])
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        before = memory.get(stored.record.id)
        report = memory.reembed(NextEmbedder(dimension=24))
        assert (report.memories, report.embedded) == (1, 1)
        assert memory.get(stored.record.id) == before
        verified = memory.verify()
        assert (verified.unverified, verified.damage) == (0, ())


def test_the_model_may_be_named_and_stays_with_the_handle(memory):
    memory.add(TEXTS["key"], id="key")
    memory.reembed(NextEmbedder(dimension=24))
    memory.add(TEXTS["train"], id="train")
    assert cosine(memory, TEXTS["train"], "train") == pytest.approx(1, abs=1e-5)
    assert memory.reembed().embedder == "hash-embedder@2 (24-d)"


@pytest.mark.slow
def test_a_handle_that_was_open_before_never_mixes_vectors(old_store, start_child):
    other = start_child("reembedder.py", old_store, 2)
    with Memory(old_store, embedder=HashEmbedder()) as memory:
        assert cosine(memory, TEXTS["key"], "key") == pytest.approx(1, abs=1e-5)
        assert memory.search("night train")[0].id == "train"
        other.go()
        other.finished(60)
        with pytest.warns(StoreWarning, match=r"hash-embedder@2 \(32-d\), which is not at hand"):
            found = memory.search(TEXTS["key"])
        assert (found[0].id, "cosine" in found[0].scores) == ("key", False)
        memory.add("the bicycle has a new chain", id="bicycle")
    with Memory(old_store, embedder=NextEmbedder()) as memory:
        assert memory.reembed().embedded == 1
        assert cosine(memory, TEXTS["key"], "key") == pytest.approx(1, abs=1e-5)


def test_two_cannot_embed_one_store_at_once(memory):
    memory.add(TEXTS["key"])

    def again(_done, _total):
        with pytest.raises(StoreLocked, match="are being made anew already"):
            memory.reembed(NextEmbedder())

    memory.add_many([{"text": f"turn {number}"} for number in range(300)])
    assert memory.reembed(NextEmbedder(), on_progress=lambda d, t: d < t and again(d, t)).embedded


# What changes meanwhile.


def test_what_is_added_updated_forgotten_and_purged_meanwhile_is_right(memory):
    memory.add_many([{"id": f"{n}", "text": f"turn {n} of many"} for n in range(600)])
    changes = iter(
        [
            lambda: memory.add("a heron stood in the pond", id="heron"),
            lambda: memory.update("0", text="turn 0 told of an otter"),
            lambda: (memory.forget("1"), memory.forget("599", purge=True)),
        ]
    )
    memory.reembed(NextEmbedder(), on_progress=lambda *_: next(changes, lambda: None)())
    assert next(changes, None) is None
    assert memory.count() == 599
    for name, text in [("heron", "a heron stood in the pond"), ("0", "turn 0 told of an otter")]:
        assert cosine(memory, text, name) == pytest.approx(1, abs=1e-5)
    assert [entry.text for entry in memory.history("0")][1] == "turn 0 of many"
    assert memory.health().unembedded == 0
    assert not {"1", "599"} & {hit.id for hit in memory.search("turn 1", k=600)}


def test_a_purge_reaches_the_vectors_beside(memory, store_path):
    memory.add(TEXTS["key"], id="key")
    memory.add(TEXTS["train"], id="train")
    (vector,) = HashEmbedder().encode([TEXTS["key"]])
    memory.reembed(NextEmbedder())
    assert holds(store_path, vector)
    memory.forget("key", purge=True)
    assert not holds(store_path, vector)
    (kept,) = HashEmbedder().encode([TEXTS["train"]])
    assert holds(store_path, kept)
    memory.undo_reembed()
    assert cosine(memory, TEXTS["train"], "train") == pytest.approx(1, abs=1e-5)


def holds(store_path, vector):
    """Whether a data file has the first numbers of a vector."""
    wanted = vector[:4].astype("<f4").tobytes()
    return any(wanted in path.read_bytes() for path in store_path.rglob("data/*.lance"))


@pytest.mark.slow
def test_searches_and_writes_of_other_threads_go_on(memory):
    memory.add_many([{"id": f"{n}", "text": f"turn {n} of many"} for n in range(300)])
    stop, wrong, added = threading.Event(), [], []

    def use():
        while not stop.is_set():
            name = f"new {len(added)}"
            memory.add(f"{name} came in between", id=name)
            added.append(name)
            for text, wanted in [("turn 7 of many", "7"), (f"{name} came in between", name)]:
                if abs(cosine(memory, text, wanted) - 1) > 1e-4:
                    wrong.append(wanted)

    user = threading.Thread(target=use)
    user.start()
    for model in (NextEmbedder(), NextEmbedder(dimension=48, revision="3"), HashEmbedder()):
        memory.reembed(model)
    stop.set()
    user.join()
    assert (wrong, memory.health().unembedded) == ([], 0)
    assert memory.count() == 300 + len(added)


@pytest.mark.slow
def test_what_other_processes_write_meanwhile_is_kept_and_made_up_for(store_path, start_child):
    writers = [start_child("writer.py", store_path, name, 3) for name in ("a", "b")]
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many([{"text": f"said {number} before"} for number in range(300)])
        for writer in writers:
            writer.go()
        while not all(memory.count(filter=f"session = '{name}'") for name in ("a", "b")):
            time.sleep(0.01)
        memory.reembed(NextEmbedder())
        (a,), (b,) = (writer.finished(60) for writer in writers)
        # What they wrote after the switch has no vector, since they lack the new model.
        memory.reembed()
        written = a["own"] + b["own"] + a["shared"] + b["shared"] + a["single"] + b["single"]
        assert memory.count() == 300 + written
        assert memory.health().unembedded == 0
        for name in ("a 0-0", "b 0-7", "a 1"):
            assert cosine(memory, memory.get(name).text, name) == pytest.approx(1, abs=1e-4)
        assert memory.verify().damage == ()


# Breaking off.


def test_what_was_embedded_before_it_broke_off_is_not_embedded_again(memory, store_path):
    memory.add_many([{"text": f"turn {number} of many"} for number in range(600)])

    def break_off(done, _total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.reembed(NextEmbedder(), on_progress=break_off)
    assert cosine(memory, "turn 7 of many", memory.search("turn 7 of many")[0].id) > 0.99
    assert "Making them with hash-embedder@2 (32-d) has begun" in (
        findings(memory)["embedder"].sentence
    )
    assert memory.reembed(NextEmbedder()).embedded == 600 - 256
    assert len(list(store_path.glob("ekphory_vectors_*"))) == 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_killed_at_any_moment_the_old_vectors_or_the_new_ones_serve(old_store, start_child):
    with Memory(old_store, embedder=HashEmbedder()) as memory:
        memory.add_many([{"text": f"turn {number} of many"} for number in range(2_000)])
    waiting = [start_child("reembedder.py", old_store, revision) for revision in range(2, 8)]
    for revision, child in enumerate(waiting, start=2):
        child.go()
        for _ in range(revision % 4):
            child.next_report()
        time.sleep(0.07 * revision)
        child.kill()
        serving = serving_revision(old_store)
        embedder = HashEmbedder() if serving == "1" else NextEmbedder(revision=serving)
        with Memory(old_store, embedder=embedder) as memory:
            assert memory.count() == 2_003
            assert cosine(memory, TEXTS["key"], "key") == pytest.approx(1, abs=1e-4)
    with Memory(old_store, embedder=embedder) as memory:
        memory.reembed(NextEmbedder(revision="last"))
        assert memory.verify().damage == ()
        assert (memory.count(), memory.health().unembedded) == (2_003, 0)


def serving_revision(path):
    return LanceSnapshot(str(path)).identity.embedder.revision


# With the bundled model.


@pytest.fixture
def earlier_release(tmp_path):
    """The folder of the bundled embedder as an earlier release might have had it."""
    bundled = Path(models.__file__).parent / "bundled" / "ekphory-small"
    folder = shutil.copytree(bundled, tmp_path / "earlier")
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(record | {"revision": "0123456789abcdef"}))
    return str(folder)


def test_a_store_of_an_earlier_bundled_model_becomes_one_of_the_present(
    store_path, tmp_path, earlier_release
):
    given = [{"id": name, "text": text, "at": "2026-05-04"} for name, text in TEXTS.items()]
    with Memory(store_path, embedder=earlier_release) as memory:
        memory.add_many(given)
        assert memory.search("When does the train go?")[0].scores["cosine"] > 0.3
    with pytest.warns(StoreWarning, match="made by ekphory-small@0123456789abcdef"):
        memory = Memory(store_path)
    with memory, Memory(tmp_path / "new") as fresh:
        assert memory.search("night train", now="2026-06-01")[0].id == "train"
        assert memory.reembed().embedded == 3
        fresh.add_many(given)
        found, expected = (
            [(hit.id, hit.score) for hit in each.search("When does it leave?", now="2026-06-01")]
            for each in (memory, fresh)
        )
        assert found == expected


# The way back.


def test_undone_the_vectors_of_before_serve_and_a_second_time_the_new_ones(open_next, old_store):
    memory = open_next(dimension=48)
    memory.reembed()
    report = memory.undo_reembed()
    assert report.embedder == "hash-embedder@1 (32-d)"
    assert report.previous == "hash-embedder@2 (48-d)"
    with Memory(old_store, embedder=HashEmbedder()) as earlier:
        assert cosine(earlier, TEXTS["key"], "key") == pytest.approx(1, abs=1e-5)
        assert earlier.undo_reembed().embedded == 0
    assert cosine(memory, TEXTS["key"], "key") == pytest.approx(1, abs=1e-5)


def test_undone_what_came_since_is_found_by_words_until_its_model_is_at_hand(open_next, old_store):
    memory = open_next()
    memory.reembed()
    memory.add("the bicycle has a new chain", id="bicycle")
    assert memory.undo_reembed().unembedded == 1
    assert memory.search("bicycle chain")[0].id == "bicycle"
    memory.close()
    with Memory(old_store, embedder=HashEmbedder()) as earlier:
        assert earlier.search("bicycle chain")[0].id == "bicycle"
        assert earlier.reembed().embedded == 1
        assert cosine(earlier, "the bicycle has a new chain", "bicycle") > 0.99


def test_earlier_vectors_that_were_dropped_or_never_were_cannot_serve(memory, store_path):
    memory.add(TEXTS["key"])
    with pytest.raises(StoreError, match="no earlier vectors are kept"):
        memory.undo_reembed()
    memory.reembed(NextEmbedder())
    assert memory.drop_previous_vectors().previous is None
    assert list(store_path.glob("ekphory_vectors_*")) == []
    with pytest.raises(StoreError, match="no earlier vectors are kept"):
        memory.undo_reembed()


def test_only_the_vectors_of_the_last_model_are_kept(memory, store_path):
    memory.add(TEXTS["key"])
    for revision in ("2", "3", "4"):
        memory.reembed(NextEmbedder(revision=revision))
    assert memory.health().previous_embedder == "hash-embedder@3 (32-d)"
    assert len(list(store_path.glob("ekphory_vectors_*"))) == 1
