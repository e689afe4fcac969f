"""One memory and its versions: read, changed, forgotten and purged."""

import base64
import secrets
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.filters.tree import Comparison, Field, In, Not
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

ALSO_OVER_A_SERVER = True

# `get`, `list` and `count`.


@pytest.fixture
def diary(memory):
    """Five days, written out of order."""
    days = {3: "rain", 1: "sun", 5: "snow", 2: "wind", 4: "fog"}
    memory.add_many(
        {"id": f"d{day}", "text": text, "at": f"2026-05-0{day}", "metadata": {"day": day}}
        for day, text in days.items()
    )
    return memory


def ids(records):
    return [record.id for record in records]


def test_an_unknown_id_is_a_clear_error(memory):
    with pytest.raises(MemoryNotFound, match=r"id='nobody': no such memory in this scope"):
        memory.get("nobody")


@pytest.mark.parametrize("name", ["", None, 5, "a\x00", "\ud800", "x" * 10_001])
def test_what_is_no_id_is_a_clear_error(memory, name):
    with pytest.raises((InvalidInput, MemoryNotFound), match=r"^id="):
        memory.get(name)


def test_an_id_that_two_narrower_scopes_use_must_be_told_apart(open_memory):
    open_memory(user="alice").add("hers", id="1")
    open_memory(user="bob").add("his", id="1")
    with pytest.raises(InvalidInput, match=r"2 narrower scopes.*Bind the agent, user or session"):
        open_memory().get("1")


def test_a_list_comes_in_order_in_pages_and_filtered(diary):
    # A list and a count can be filtered by a text or a tree.
    assert ids(diary.list(filter="m.day >= 4")) == ["d5", "d4"]
    assert diary.count(filter="at < date('2026-05-03')") == 2
    assert ids(diary.list(filter=Comparison(Field("text"), "eq", "fog"))) == ["d4"]
    # A list comes in order and in pages.
    assert ids(diary.list()) == ["d5", "d4", "d3", "d2", "d1"]
    assert ids(diary.list(order="oldest")) == ["d1", "d2", "d3", "d4", "d5"]
    assert ids(diary.list(order="written")) == ["d3", "d1", "d5", "d2", "d4"]
    assert ids(diary.list(limit=2)) == ["d5", "d4"]
    assert ids(diary.list(limit=2, offset=4)) == ["d1"]
    assert diary.list(offset=5) == []
    diary.forget(filter="TRUE")
    assert (diary.list(), diary.count()) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"offset": -1}, "offset"),
        ({"order": "random"}, "order"),
    ],
)
def test_a_page_that_does_not_exist_is_a_clear_error(memory, arguments, field):
    with pytest.raises(InvalidInput, match=f"^{field}="):
        memory.list(**arguments)


def test_the_largest_filters_may_be_used_in_any_scope(open_memory):
    memory = open_memory(project="p", user="alice")
    memory.add_many({"text": f"row {n}", "id": f"{n}"} for n in range(1_010))
    chosen = In(Field("id"), tuple(f"{n}" for n in range(1_000)))
    assert len(memory.list(filter=chosen, limit=2_000)) == memory.count(filter=chosen) == 1_000
    assert len(memory.search("row", filter=chosen, k=1_000)) == 1_000
    tree = Comparison(Field("text"), "eq", "row 7")
    for _ in range(50):
        tree = Not(tree)
    assert memory.count(filter=tree) == len(memory.search("row", filter=tree)) == 1


def expiring(memory, text, where):
    """Add a memory, and wait until it has expired; give a moment before."""
    lasting = timedelta(milliseconds=150 if where == "in this process" else 3_000)
    ends = datetime.now(UTC) + lasting
    memory.add(text, id="1", expires_at=ends)
    while (left := ends - datetime.now(UTC)) >= timedelta(0):
        time.sleep(left.total_seconds())
    return ends - lasting


def test_an_expired_memory_is_hidden_from_every_read_but_of_an_earlier_moment(memory, where):
    before = expiring(memory, "short", where)
    assert_hidden(memory, "short")
    assert [hit.id for hit in memory.search("short", now=before).hits] == ["1"]
    # Its id can be used again.
    assert memory.add("new", id="1").added == 1
    memory.update("1", text="newer")
    assert (memory.get("1").text, ids(memory.list())) == ("newer", ["1"])


def test_forgetting_hides_at_once(memory):
    memory.add("a", id="1")
    assert memory.forget("1") == 1
    assert_hidden(memory, "a")


def assert_hidden(memory, text):
    with pytest.raises(MemoryNotFound):
        memory.get("1")
    assert (memory.list(), memory.count()) == ([], 0)
    assert memory.search(text).hits == memory.search("").hits == ()


# `update`, `history` and `forget`.


@pytest.fixture(scope="module")
def changed_store(tmp_path_factory):
    """A store of a memory that was changed twice."""
    path = tmp_path_factory.mktemp("moved") / "store"
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add("Lives in Rome", id="home", at="2026-05-01", producer="Anna", metadata={"n": 1})
        memory.update("home", text="Lives in Oslo")
        memory.update("home", text="Lives in Bonn", importance=0.9)
    return path


@pytest.fixture
def moved(changed_store, store_path, open_memory):
    """A handle on a copy of it."""
    shutil.copytree(changed_store, store_path)
    return open_memory()


def texts(records):
    return [record.text for record in records]


@pytest.mark.one_store
def test_an_update_keeps_earlier_versions_out_of_view(moved):
    # An update replaces the given fields and keeps the others.
    found = moved.get("home")
    assert (found.text, found.importance) == ("Lives in Bonn", 0.9)
    assert (found.producer, found.metadata) == ("Anna", {"n": 1})
    # A new text is of now, not of when the earlier one was said.
    assert found.at == found.created_at
    assert moved.history("home")[-1].at.isoformat() == "2026-05-01T00:00:00+00:00"
    # Earlier versions are kept as history each under an id of its own.
    versions = moved.history("home")
    assert texts(versions) == ["Lives in Bonn", "Lives in Oslo", "Lives in Rome"]
    assert [version.superseded_by for version in versions] == [None, "home", "home"]
    assert [moved.get(version.id) for version in versions] == versions
    # Earlier versions are out of the default view and of the words that are found.
    assert (moved.count(), texts(moved.list())) == (1, ["Lives in Bonn"])
    for query, is_known in (("Lives in Rome", True), ("Bonn", True), ("Rome", False)):
        (hit,) = moved.search(query).hits
        assert (hit.text, hit.scores["bm25"] > 0) == ("Lives in Bonn", is_known)
    # An earlier version cannot be changed.
    earlier = moved.history("home")[1].id
    with pytest.raises(InvalidInput, match=r"is an earlier version. Update 'home' instead"):
        moved.update(earlier, text="x")
    # A filter that only an earlier version matches forgets nothing.
    assert moved.forget(filter="text CONTAINS 'Rome'") == 0
    assert len(moved.history("home")) == 3


LATER = datetime(2900, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", "b"),
        ("type", "semantic"),
        ("importance", 0.9),
        ("metadata", {"k": "v"}),
        ("at", LATER),
        ("expires_at", LATER),
    ],
)
def test_each_field_can_be_changed_alone(memory, field, value):
    memory.add("a", id="1")
    assert texts(memory.history("1")) == ["a"]
    changed = memory.update("1", **{field: value})
    assert getattr(changed, field) == value
    assert changed == memory.get("1")
    assert changed.superseded_by is None
    assert changed.supersedes is not None


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.update("1", text="b"),
        lambda memory: memory.forget("1"),
        lambda memory: memory.forget("1", purge=True),
    ],
)
def test_changing_what_is_not_there_is_a_clear_error(memory, use):
    with pytest.raises(MemoryNotFound, match="id='1'"):
        use(memory)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"text": " "}, "^text="),
        ({"importance": 2}, "^importance="),
        ({"at": "soon"}, "^at="),
        ({}, "nothing to change"),
    ],
)
def test_an_update_that_cannot_be_stored_changes_nothing(memory, changes, problem):
    memory.add("a", id="1")
    with pytest.raises(InvalidInput, match=problem):
        memory.update("1", **changes)
    assert texts(memory.history("1")) == ["a"]


def test_updates_at_the_same_time_all_count(memory):
    memory.add("a", id="1")
    changes = {"text": "b", "importance": 0.9, "type": "semantic", "metadata": {"k": 1}}
    with ThreadPoolExecutor(4) as threads:
        for name, value in changes.items():
            threads.submit(memory.update, "1", **{name: value})
    found = memory.get("1")
    assert {name: getattr(found, name) for name in changes} == changes
    assert len(memory.history("1")) == 5


def test_a_long_memory_can_become_short(memory):
    memory.add("word " * 350 + "kangaroo", id="1")
    memory.update("1", text="short")
    assert [hit.text for hit in memory.search("kangaroo").hits] == ["short"]


@pytest.mark.one_store
def test_a_callers_id_that_looks_like_a_version_is_a_memory_of_its_own(moved):
    taken = moved.history("home")[1].id
    assert moved.add("mine", id=taken).added == 1
    assert moved.get(taken).text == "mine"
    assert texts(moved.history("home"))[0] == "Lives in Bonn"


@pytest.mark.parametrize("which", [{"id": "home"}, {"filter": "producer = 'Anna'"}])
@pytest.mark.one_store
def test_forgetting_takes_the_history_along_and_counts_the_memory(moved, which):
    versions = [version.id for version in moved.history("home")]
    assert moved.forget(**which) == 1
    for name in versions:
        with pytest.raises(MemoryNotFound):
            moved.get(name)
    assert moved.health().history == 0


@pytest.mark.one_store
def test_one_version_of_the_history_can_be_forgotten(moved):
    newest, middle, _ = moved.history("home")
    assert moved.forget(middle.id) == 1
    assert moved.get("home") == newest
    with pytest.raises(MemoryNotFound):
        moved.get(middle.id)


def test_all_that_match_a_filter_can_be_forgotten_by_thousands_and_no_others(memory):
    memory.add_many({"text": f"row {n}", "metadata": {"n": n}} for n in range(2_100))
    assert memory.forget(filter="m.n >= 5000") == 0
    assert memory.forget(filter="m.n < 2050") == 2_050
    assert memory.count() == 50


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "id=None: names nothing to forget. Give an id or a filter"),
        ({"id": "1", "filter": "text = 'a'"}, "id='1': stands beside a filter"),
    ],
)
def test_forgetting_needs_an_id_or_a_filter(memory, arguments, problem):
    memory.add("a", id="1")
    with pytest.raises(InvalidInput, match=problem):
        memory.forget(**arguments)
    assert memory.count() == 1


# `forget(purge=True)` leaves no byte of the text on disk,


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


FIELDS_WITH_TEXT = ("text", "id", "producer", "source", "key", "value", "session")


@pytest.fixture(scope="module")
def marks():
    return {name: marker() for name in FIELDS_WITH_TEXT}


@pytest.fixture(scope="module")
def marked_store(tmp_path_factory, marks):
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
def secret(marked_store, marks, store_path):
    """The marks, in a store of the test's own."""
    shutil.copytree(marked_store, store_path)
    return marks


@pytest.mark.parametrize("name", FIELDS_WITH_TEXT)
def test_a_marker_can_be_read_from_the_files_before(marked_store, marks, name):
    assert files_that_hold(marked_store, marks[name]) != []


def test_forgetting_alone_leaves_it_in_the_files_until_anything_is_purged(
    secret, memory, store_path
):
    memory.add("another", id="other")
    memory.forget(secret["id"])
    assert files_that_hold(store_path, secret["text"]) != []
    memory.forget("other", purge=True)
    assert files_that_hold(store_path, secret["text"]) == []


@pytest.mark.parametrize("which", [{"id": "{id}"}, {"filter": "producer = '{producer}'"}])
def test_after_a_purge_no_file_holds_it_in_any_field(secret, memory, store_path, which):
    named = {name: text.format(**secret) for name, text in which.items()}
    assert memory.forget(**named, purge=True) == 1
    assert [mark for mark in secret.values() if files_that_hold(store_path, mark)] == []


def test_a_purge_reaches_every_version_and_all_windows_of_a_long_text(memory, store_path):
    marks = [marker() for _ in range(5)]
    memory.add(marks[0], id="1")
    memory.update("1", text=marks[1])
    memory.update("1", text=" ".join("filler " * 120 + mark for mark in marks[2:]))
    memory.forget("1", purge=True)
    assert [files_that_hold(store_path, mark) for mark in marks] == [[], [], [], [], []]


def test_a_purge_reaches_files_of_before_and_after_a_merge(memory, store_path):
    mark = marker()
    memory.add(mark, id="1")
    for number in range(10):
        memory.add(f"nothing special {number}")
    memory.repair()
    memory.forget("1", purge=True)
    assert files_that_hold(store_path, mark) == []


def test_what_has_expired_can_be_purged_by_its_id(memory, store_path, where):
    mark = marker()
    expiring(memory, mark, where)
    assert files_that_hold(store_path, mark) != []
    assert memory.forget("1", purge=True) == 1
    assert files_that_hold(store_path, mark) == []


@pytest.mark.one_store
def test_a_purge_keeps_all_other_memories(secret, memory, open_memory):
    # Another scope cannot purge it.
    stranger = open_memory(user="stranger")
    with pytest.raises(MemoryNotFound):
        stranger.forget(secret["id"], purge=True)
    assert stranger.forget(filter="text CONTAINS 'password'", purge=True) == 0
    assert memory.get(secret["id"]).text == f"the password is {secret['text']} indeed"
    # A purge keeps all other memories also once the store is opened again.
    kept = [entry for entry in memory.list(limit=1_000) if entry.id != secret["id"]]
    found = memory.search("nothing special 7", k=5).hits
    memory.forget(secret["id"], purge=True)
    for handle in (memory, open_memory()):
        assert handle.list(limit=1_000) == kept
        assert ids(handle.search("nothing special 7", k=5).hits) == ids(found)
        handle.close()
    again = open_memory()
    again.add("kangaroo", id="new")
    assert ids(again.search("kangaroo", k=1).hits) == ["new"]


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


# whatever was killed before and whatever the clock says.

CALL = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
with Memory(sys.argv[1], embedder=HashEmbedder()) as memory:
    if len(sys.argv) == 4:
        memory.add(sys.argv[3], id=sys.argv[2])
    else:
        print(memory.forget(sys.argv[2], purge=True))
"""
HUNTER = ("secret", "hunter2 is the word")
# What Lance calls first to give a data file its name, and to make a version current. strace counts
# the calls of each thread by itself, so that only the first of a kind is sure to come.
NAMING_DATA, COMMITTING = "rename,renameat,renameat2", "link,linkat"

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
needs_faketime = pytest.mark.skipif(
    shutil.which("faketime") is None, reason="faketime is not installed"
)


def run(store_path, *arguments, before=()):
    """Purge what has an id, or add a text with that id, in a process of its own."""
    command = [*before, sys.executable, "-c", CALL, str(store_path), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def killed_at(calls):
    """What starts a command so that it is killed at its first call of these."""
    inject = f"inject={calls}:signal=SIGKILL:when=1"
    return ("strace", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject)


@pytest.mark.long
@needs_strace
@pytest.mark.parametrize("calls", [NAMING_DATA, COMMITTING])
def test_a_purge_removes_what_a_killed_write_left(store_path, calls):
    run(store_path, "first", "the first memory")
    assert run(store_path, *HUNTER, before=killed_at(calls)).returncode != 0
    assert files_that_hold(store_path, "hunter2") != []
    run(store_path, *HUNTER)

    assert run(store_path, "secret").stdout == "1\n"

    assert files_that_hold(store_path, "hunter2") == []
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert [record.text for record in memory.list()] == ["the first memory"]


def test_a_purge_removes_files_that_no_version_names(memory, store_path):
    memory.add_many({"text": f"row {number}", "id": f"{number}"} for number in range(3))
    memory.forget("0")
    for folder in ("_deletions", "data"):
        (store_path / "memories.lance" / folder / ".tmpAuYJmP").write_text("hunter2")

    memory.forget("1", purge=True)

    assert files_that_hold(store_path, "hunter2") == []
    assert ids(memory.list()) == ["2"]


@pytest.mark.long
@needs_strace
def test_a_repair_removes_what_killed_writes_left(store_path):
    run(store_path, "first", "the first memory")
    for number in range(3):
        run(store_path, number, f"another {number}", before=killed_at(NAMING_DATA))
    assert list(store_path.glob("memories.lance/data/.tmp*")) != []

    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.repair()

    assert list(store_path.glob("memories.lance/*/.tmp*")) == []
    assert len(list(store_path.glob("memories.lance/data/*"))) == 1


@needs_faketime
@pytest.mark.slow
@pytest.mark.parametrize("back", ["-30s", pytest.param("-400d", marks=pytest.mark.long)])
def test_a_purge_holds_when_the_clock_has_gone_back(store_path, back):
    run(store_path, "first", "the first memory")
    run(store_path, *HUNTER)

    assert run(store_path, "secret", before=("faketime", "-f", back)).stdout == "1\n"

    assert files_that_hold(store_path, "hunter2") == []
    assert len(list(store_path.glob("memories.lance/_versions/*.manifest"))) == 1
