"""How often a search asks the object storage, and that what it holds is never stale."""

import multiprocessing
import os
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.cluster.conftest import NEEDED

from ekphory.cluster.objects import LOCAL
from ekphory.cluster.shards import hold_shard, make_shards, open_memory
from ekphory.engine import make_engine
from ekphory.filters.tree import EVERYTHING
from ekphory.memory import Memory
from ekphory.scope import Scope
from ekphory.search import Question, search
from ekphory.store import blocks
from ekphory.store.protocol import ScopeColumns
from ekphory.testing import HashEmbedder
from ekphory_lab.bench.cluster import object_storage

pytestmark = pytest.mark.long

SCOPE = Scope(org="acme", project="home")
NAMES = ["oak", "elm", "ash", "fir", "yew", "bay", "fig", "box", "may", "gum"]
QUESTIONS = [f"who saw the {name}" for name in NAMES]


def sayings(count):
    return [
        {"id": f"m{n}", "text": f"number {n} saw the {NAMES[n % 10]} near {NAMES[n // 10 % 10]}",
         "at": f"2026-05-{n % 28 + 1:02}", "session": f"s{n // 20}", "org": "acme",
         "project": "home"}
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def traffic():
    """What an S3 on this machine was asked."""
    pytest.importorskip("obstore", reason=NEEDED)
    pytest.importorskip("lance", reason=NEEDED)
    pytest.importorskip("moto.server", reason=NEEDED)
    with object_storage(delay=0) as counted:
        yield counted


@pytest.fixture
def shards(traffic, tmp_path):
    """A store of one shard on object storage."""
    return make_shards(f"s3://bench/{tmp_path.name}", HashEmbedder(), count=1)


@pytest.fixture
def open_writer(shards):
    """Opens a handle whose lease outlasts the test once it has written."""
    with ExitStack() as opened:

        def open_one():
            lease = shards.lease(0, seconds=600)
            opened.enter_context(hold_shard(shards, 0, HashEmbedder(), lease=lease))
            names = {"org": "acme", "project": "home"}
            made = Memory(shards.uri(0), embedder=HashEmbedder(), **names)
            opened.callback(made.close)
            return made

        yield open_one


@pytest.fixture
def reader(shards):
    """Opens the shard as another machine would that does not write."""
    engine = make_engine(shards.uri(0), HashEmbedder(), shards.lease(0))
    yield engine
    engine.writer.close()


def fill(shards, count):
    """Write memories, and leave the shard as its upkeep does."""
    with open_memory(shards.root, SCOPE, embedder=HashEmbedder()) as memory:
        memory.add_many(sayings(count))
        memory.repair()


def find(engine, query, *, scope=SCOPE, now=datetime(2026, 12, 1, tzinfo=UTC)):
    asked = Question(query, 10, now, None, EVERYTHING, None, None)
    return [hit.memory.text for hit in search(engine, scope, asked)]


@contextmanager
def counting(traffic):
    """Count the requests of the block into the list that it is given."""
    counts, before = [], traffic.copy()
    yield counts
    counts.append((traffic - before)["requests"])


def count_first_search(shards, traffic):
    with (
        counting(traffic) as counts,
        open_memory(shards.root, SCOPE, embedder=HashEmbedder()) as memory,
    ):
        assert len(memory.search("who saw the oak", k=10)) == 10
    return counts[0]


def test_opening_and_the_first_search_of_a_thousand_memories_ask_twelve_times(shards, traffic):
    fill(shards, 1000)
    assert count_first_search(shards, traffic) == 12


def test_pinned_rules_are_read_with_the_rest(shards, traffic):
    with open_memory(shards.root, SCOPE, embedder=HashEmbedder()) as memory:
        memory.add("never plant a box", pool="shared_rules", metadata={"pinned": True})
    fill(shards, 100)
    with (
        counting(traffic) as counts,
        open_memory(shards.root, SCOPE, embedder=HashEmbedder()) as memory,
    ):
        assert "never plant a box" in [hit.memory.text for hit in memory.search("oak", k=3)]
    assert counts == [12]


@pytest.mark.slow
def test_opening_and_the_first_search_of_ten_thousand_memories_ask_twelve_times(shards, traffic):
    fill(shards, 10_000)
    assert count_first_search(shards, traffic) == 12


def test_a_further_search_asks_for_the_newest_versions_alone(shards, reader, traffic):
    fill(shards, 300)
    find(reader, "who saw the oak")
    with counting(traffic) as counts:
        for question in QUESTIONS:
            find(reader, question)
    assert counts == [20]


def test_a_further_search_of_who_holds_the_lease_asks_nothing(shards, open_writer, traffic):
    fill(shards, 300)
    memory = open_writer()
    memory.add("number 300 saw the oak")
    memory.search("who saw the oak")
    with counting(traffic) as counts:
        for question in QUESTIONS:
            memory.search(question)
    assert counts == [0]


def test_what_this_process_writes_is_found_without_asking(shards, open_writer, traffic):
    fill(shards, 300)
    memory = open_writer()
    memory.add("first")
    memory.search("who saw the oak")
    memory.add("Anna planted a cedar")
    with counting(traffic) as counts:
        assert memory.search("cedar", k=1)[0].memory.text == "Anna planted a cedar"
    assert counts == [0]


def test_what_another_process_wrote_is_found_and_read_once(shards, open_writer, reader, traffic):
    fill(shards, 300)
    find(reader, "who saw the oak")
    open_writer().add("Anna planted a cedar")
    assert find(reader, "cedar")[0] == "Anna planted a cedar"
    with counting(traffic) as counts:
        assert find(reader, "who planted a cedar")[0] == "Anna planted a cedar"
    assert counts == [2]


def test_what_another_process_forgot_or_changed_is_found_so(shards, open_writer, reader):
    fill(shards, 60)
    assert "number 7 saw the box near oak" in find(reader, "number 7 saw the box near oak")
    memory = open_writer()
    memory.update("m7", text="number 7 saw a cedar")
    memory.forget("m8")
    assert find(reader, "cedar")[0] == "number 7 saw a cedar"
    assert "number 7 saw the box near oak" not in find(reader, "number 7 saw the box near oak")
    assert "number 8 saw the may near oak" not in find(reader, "number 8 saw the may near oak")
    assert [each.text for each in memory.history("m7")] == [
        "number 7 saw a cedar",
        "number 7 saw the box near oak",
    ]


def test_what_has_expired_is_not_found(shards, open_writer, reader):
    memory = open_writer()
    memory.add("the cedar is sick", expires_at="2999-01-01")
    memory.add("the cedar is old")
    assert find(reader, "cedar", now=datetime(2998, 12, 31, tzinfo=UTC)) == [
        "the cedar is sick",
        "the cedar is old",
    ]
    assert find(reader, "cedar", now=datetime(2999, 1, 2, tzinfo=UTC)) == ["the cedar is old"]


def test_a_scope_is_not_found_through_another_one_of_its_shard(shards, open_writer, reader):
    fill(shards, 40)
    find(reader, "oak")
    with open_memory(
        shards.root, Scope(org="acme", project="work"), embedder=HashEmbedder()
    ) as other:
        other.add("an oak at work")
    assert find(reader, "oak", scope=Scope(org="acme", project="work")) == ["an oak at work"]
    assert "an oak at work" not in find(reader, "oak")


def test_purged_text_is_held_no_more(shards, open_writer):
    fill(shards, 40)
    memory = open_writer()
    memory.add("the word is xylophone", id="secret")
    memory.search("xylophone")
    held = next(iter(memory._engine.snapshots._held.values()))
    key = held.columns.key[-1]
    assert held.records.held([key])[key].text == "the word is xylophone"
    memory.forget("secret", purge=True)
    assert held.records.held([key]) == {}
    assert len(memory.search("", k=100)) == 40


@pytest.mark.parametrize("whole_files_up_to", [2**25, 0])
def test_what_is_read_at_once_is_what_is_read_in_parts(
    shards, reader, monkeypatch, whole_files_up_to
):
    monkeypatch.setattr(blocks, "_READ_WHOLE", whole_files_up_to)
    with open_memory(shards.root, SCOPE, embedder=HashEmbedder()) as memory:
        memory.add(" ".join(f"word{n}" for n in range(250)), id="long", importance=0.9)
        memory.add_many(sayings(30))
        memory.update("m3", text="number 3 saw a cedar")
        memory.forget("m4")
    store, scope = reader.store, SCOPE.predicate()
    store.version()
    whole = store.scan_whole(scope, room=2**20)
    columns, vectors = store.scan(scope), store.scan_vectors(scope)
    records = store.scan_records(scope)
    for name in ScopeColumns.__slots__:
        assert getattr(whole.columns, name).tolist() == getattr(columns, name).tolist()
    assert whole.vectors.keys.tolist() == vectors.keys.tolist()
    assert np.array_equal(whole.vectors.vectors, vectors.vectors)
    assert len(vectors.keys) == 32
    assert whole.records.keys.tolist() == records.keys.tolist()
    places = np.arange(30)
    assert whole.records.at(places) == records.at(places)


def test_what_has_no_room_is_read_in_parts(shards, reader):
    fill(shards, 300)
    reader.store.version()
    assert reader.store.scan_whole(SCOPE.predicate(), room=10_000) is None


def test_a_store_in_a_directory_is_read_in_parts(tmp_path):
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        memory.add("an oak")
        assert memory._engine.store.scan_whole(EVERYTHING, room=2**40) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:UserWarning")
def test_a_fork_searches_without_the_library_that_its_parent_had_loaded(tmp_path):
    pytest.importorskip("lance", reason=NEEDED)

    def found():
        with Memory(f"{LOCAL}{tmp_path}/store", embedder=HashEmbedder()) as memory:
            return [hit.memory.text for hit in memory.search("who saw the oak", k=3)]

    with Memory(f"{LOCAL}{tmp_path}/store", embedder=HashEmbedder()) as memory:
        memory.add_many(sayings(20))
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    assert len(found()) == 3
    assert blocks.can_read_at_once()
    child = context.Process(target=lambda: answers.put((blocks.can_read_at_once(), found())))
    child.start()
    child.join(30)
    child.kill()
    child.join()
    assert child.exitcode == 0
    assert answers.get() == (False, found())
