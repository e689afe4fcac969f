"""`forget(purge=True)` leaves no byte of the text on disk."""

import base64
import secrets
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from ekphory.errors import MemoryNotFound
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder


def marker():
    """24 random characters, which no compression can shorten to something else."""
    return base64.b64encode(secrets.token_bytes(18), altchars=b"xy").decode()


def files_that_hold(directory, text):
    """Names of the files under `directory` in which `text` can be read."""
    encodings = [text.encode(), text.encode("utf-16-le"), text.lower().encode()]
    return [
        path.name
        for path in directory.rglob("*")
        if path.is_file()
        for content in [path.read_bytes()]
        if any(encoded in content for encoded in encodings)
    ]


@pytest.fixture(scope="module")
def marks():
    names = ("text", "id", "producer", "source", "key", "value", "session")
    return {name: marker() for name in names}


@pytest.fixture(scope="module")
def written(tmp_path_factory, marks):
    """A store of a memory with a mark in every field that takes text, among many others."""
    path = tmp_path_factory.mktemp("marked") / "store"
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add_many({"text": f"nothing special {n}"} for n in range(300))
        memory.add(
            f"the password is {marks['text']} indeed",
            id=marks["id"],
            producer=marks["producer"],
            source=marks["source"],
            session=marks["session"],
            metadata={marks["key"]: marks["value"]},
        )
        memory.add_many({"text": f"nothing special either {n}"} for n in range(300))
    return path


@pytest.fixture
def secret(written, marks, store_path):
    """The marks, in a store of the test's own."""
    shutil.copytree(written, store_path)
    return marks


@pytest.mark.parametrize("name", ["text", "id", "producer", "source", "key", "value", "session"])
def test_a_marker_can_be_read_from_the_files_before(written, marks, name):
    assert files_that_hold(written, marks[name]) != []


def test_forgetting_alone_leaves_it_in_the_files(secret, memory, store_path):
    memory.forget(secret["id"])
    assert files_that_hold(store_path, secret["text"]) != []


def test_after_a_purge_no_file_holds_it_in_any_field(secret, memory, store_path):
    assert memory.forget(secret["id"], purge=True) == 1
    assert {name: files_that_hold(store_path, mark) for name, mark in secret.items()} == {
        name: [] for name in secret
    }


def test_a_purge_by_filter_reaches_the_files_too(secret, memory, store_path):
    assert memory.forget(filter=f"producer = '{secret['producer']}'", purge=True) == 1
    assert files_that_hold(store_path, secret["text"]) == []


def test_a_purge_reaches_every_earlier_version(memory, store_path):
    marks = [marker() for _ in range(3)]
    memory.add(marks[0], id="1")
    memory.update("1", text=marks[1])
    memory.update("1", text=marks[2])
    memory.forget("1", purge=True)
    assert [files_that_hold(store_path, mark) for mark in marks] == [[], [], []]


def test_a_purge_reaches_all_windows_of_a_long_text(memory, store_path):
    marks = [marker() for _ in range(4)]
    memory.add("filler ".join(["filler " * 120 + mark + " " for mark in marks]), id="1")
    memory.forget("1", purge=True)
    assert [files_that_hold(store_path, mark) for mark in marks] == [[], [], [], []]


def test_a_purge_reaches_what_was_forgotten_earlier(secret, memory, store_path):
    memory.add("another", id="other")
    memory.forget(secret["id"])
    memory.forget("other", purge=True)
    assert files_that_hold(store_path, secret["text"]) == []


def test_a_purge_reaches_files_of_before_and_after_a_merge(memory, store_path):
    mark = marker()
    memory.add(mark, id="1")
    for number in range(10):
        memory.add(f"nothing special {number}")
    memory.repair()
    memory.forget("1", purge=True)
    assert files_that_hold(store_path, mark) == []


def test_what_has_expired_can_be_purged_by_its_id(memory, store_path):
    mark = marker()
    ends = datetime.now(UTC) + timedelta(milliseconds=150)
    memory.add(mark, id="1", expires_at=ends)
    time.sleep(0.2)
    assert files_that_hold(store_path, mark) != []
    assert memory.forget("1", purge=True) == 1
    assert files_that_hold(store_path, mark) == []


def test_a_purge_keeps_all_other_memories(secret, memory):
    kept = [entry for entry in memory.list(limit=1_000) if entry.id != secret["id"]]
    found = [hit.id for hit in memory.search("nothing special 7", k=5).hits]
    memory.forget(secret["id"], purge=True)
    assert memory.list(limit=1_000) == kept
    assert [hit.id for hit in memory.search("nothing special 7", k=5).hits] == found


def test_memories_can_be_added_after_a_purge(secret, memory):
    memory.forget(secret["id"], purge=True)
    memory.add("kangaroo", id="new")
    assert [hit.id for hit in memory.search("kangaroo", k=1).hits] == ["new"]


def test_a_purged_store_opens_again(secret, memory, store_path):
    memory.forget(secret["id"], purge=True)
    memory.close()
    with Memory(store_path, embedder=HashEmbedder()) as again:
        assert again.count() == 600
        assert again.add("more").added == 1


def test_purging_what_is_not_there_is_a_clear_error(memory):
    with pytest.raises(MemoryNotFound):
        memory.forget("1", purge=True)


def test_another_scope_cannot_purge_it(secret, memory, open_memory):
    stranger = open_memory(user="stranger")
    with pytest.raises(MemoryNotFound):
        stranger.forget(secret["id"], purge=True)
    assert stranger.forget(filter="text CONTAINS 'password'", purge=True) == 0
    assert memory.get(secret["id"]).text == f"the password is {secret['text']} indeed"


@pytest.mark.slow
def test_searches_go_on_while_a_purge_runs(memory, open_memory):
    memory.add_many({"text": f"nothing special {n}", "id": f"{n}"} for n in range(600))
    done = threading.Event()

    def search(handle):
        while not done.is_set():
            assert len(handle.search("special", k=10)) == 10
            assert len(handle.list(limit=10)) == 10

    with ThreadPoolExecutor(2) as readers:
        searches = [readers.submit(search, open_memory()) for _ in range(2)]
        for number in range(5):
            memory.forget(f"{number}", purge=True)
        done.set()
        for search_of_a_reader in searches:
            search_of_a_reader.result()
