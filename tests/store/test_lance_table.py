"""One Lance table: its folder of commits, its newest version, and what tells of damage."""

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import lancedb
import pytest
from tests.cases import read_cases
from tests.store.store_contract import CONTRACT_IDENTITY, contract_row

from ekphory.errors import StoreError
from ekphory.filters.tree import And
from ekphory.memory import Memory
from ekphory.store.lance import TABLE, LanceStore
from ekphory.store.lance_table import (
    STATE_FILE,
    CommitFiles,
    NewestVersion,
    SharedReading,
    commit_file,
    commits_folder,
)
from ekphory.testing import HashEmbedder

CASES = read_cases(__file__)

# The folder of commits: a table that nobody wrote to is not asked again.


@pytest.fixture
def open_store(tmp_path):
    return lambda: LanceStore.open(str(tmp_path), CONTRACT_IDENTITY)


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def unasked(monkeypatch):
    """Make every further question to a table an error."""

    def asked(self):
        raise AssertionError("the table was asked again")

    return lambda: monkeypatch.setattr("lancedb.table.LanceTable.checkout_latest", asked)


def test_a_commit_is_the_last_where_its_file_is_there_and_the_next_one_is_not(tmp_path):
    files = CommitFiles(tmp_path)
    for version in (1, 2, 3):
        assert not files.end_at(version)
        (tmp_path / commit_file(version)).touch()
        assert files.end_at(version)
        assert not files.end_at(version - 1)
    assert files.count() == 3


@pytest.mark.parametrize("folder", [None, "missing"])
def test_where_there_is_no_folder_no_commit_is_surely_the_last(tmp_path, folder):
    files = CommitFiles(folder and tmp_path / folder)
    assert (files.end_at(1), files.count()) == (False, 0)


def test_a_table_that_was_left_alone_is_asked_once(store, unasked):
    store.append([contract_row(1)])
    version = store.version()
    unasked()
    assert [store.version(), store.version()] == [version, version]


def test_a_handle_need_not_ask_for_what_it_wrote_itself(store, unasked):
    before = store.version()
    unasked()
    store.append([contract_row(1)])
    store.append([contract_row(2)])
    assert store.version() == before + 2
    assert store.keys(And(())).tolist() == [1, 2]


def test_every_write_of_another_handle_is_seen_at_once(open_store):
    writer, reader = open_store(), open_store()

    def assert_sees(keys):
        assert reader.version() == writer.version()
        assert reader.keys(And(())).tolist() == keys

    for key in range(1, 31):
        reader.version()
        writer.append([contract_row(key)])
        assert_sees(list(range(1, key + 1)))
    writer.append([contract_row(31)])
    reader.append([contract_row(32)])
    assert_sees(list(range(1, 33)))
    writer.delete(range(2, 33))
    assert_sees([1])
    writer.purge()
    assert_sees([1])


def test_a_table_whose_folder_is_gone_is_told_as_before(store, tmp_path):
    store.append([contract_row(1)])
    store.version()
    shutil.rmtree(tmp_path)
    with pytest.raises(StoreError, match="cannot read the store"):
        store.version()


# The newest version is known at once, whoever wrote it.


@pytest.fixture
def newest(tmp_path, store):
    """Makes what knows the newest version of a table from the commits that it is given."""
    table = lancedb.connect(tmp_path).open_table(TABLE)
    return lambda commits: NewestVersion("a store", table, commits=commits)


class Interrupted(CommitFiles):
    """Does something between a look at the folder and what follows from it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.meanwhile = None

    def end_at(self, version):
        found = super().end_at(version)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


def test_without_a_folder_to_look_at_the_table_is_asked_after_a_write_of_ours_too(newest, store):
    version = newest(CommitFiles(commits_folder("s3://bucket/memories", TABLE)))
    version.note_own(version.get() + 1)
    store.append([contract_row(1)])
    store.append([contract_row(2)])
    assert version.get() == store.version()


@pytest.mark.parametrize("name", [commit_file, "{}.manifest".format], ids=["today", "early"])
def test_under_names_of_today_and_of_an_early_format_every_write_is_seen(
    tmp_path, newest, store, monkeypatch, name
):
    monkeypatch.setattr("ekphory.store.lance_table.commit_file", name)
    folder = commits_folder(str(tmp_path), TABLE)
    version = newest(CommitFiles(folder))
    for key in range(1, 4):
        version.note_own(version.get() + 1)
        store.append([contract_row(key)])
        assert version.get() == store.version()
        assert (folder / name(store.version())).exists() is (name is commit_file)


@pytest.mark.parametrize("others_before", [0, 1])
@pytest.mark.parametrize("others_after", [0, 1])
def test_writes_between_a_look_and_its_answer_are_not_forgotten(
    tmp_path, newest, store, others_before, others_after
):
    commits = Interrupted(commits_folder(str(tmp_path), TABLE))
    version = newest(commits)
    version.get()

    def write():
        store.append([contract_row(1)])
        if others_before:
            store.append([contract_row(2)])
        version.note_own(store.version())
        if others_after:
            store.append([contract_row(3)])

    commits.meanwhile = write
    assert version.get() >= store.version() - others_after
    assert version.get() == store.version()


# One reading for all who ask at the same time.


class Source:
    """Counts readings; each may be held up."""

    def __init__(self):
        self.readings = 0
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()

    def read(self):
        self.readings += 1
        number = self.readings
        self.begun.release()
        assert self.go_on.wait(timeout=10)
        return number


def test_one_after_another_each_call_reads_anew():
    shared = SharedReading(Source().read)
    assert [shared.get() for _ in range(3)] == [1, 2, 3]


def test_calls_during_a_reading_share_the_next_one():
    source = Source()
    source.go_on.clear()
    shared = SharedReading(source.read)
    with ThreadPoolExecutor(9) as threads:
        first = threads.submit(shared.get)
        assert source.begun.acquire(timeout=10)
        later = [threads.submit(shared.get) for _ in range(8)]
        # Time for all of them to ask.
        time.sleep(0.3)
        source.go_on.set()
    assert first.result() == 1
    assert all(answer.result() >= 2 for answer in later)
    assert source.readings < 9


def test_a_call_never_gets_a_reading_that_began_before_it():
    source = Source()
    shared = SharedReading(source.read)

    def ask(_):
        before = source.readings
        return shared.get() > before - 1

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(800)))


def test_a_reading_that_fails_is_told_and_the_next_call_reads_again():
    answers = iter([OSError("gone"), 5])

    def read():
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    shared = SharedReading(read)
    with pytest.raises(OSError, match="gone"):
        shared.get()
    assert shared.get() == 5


# What is damaged on disk is told by a StoreError, and never taken for an empty store.


@pytest.fixture
def open_hashed(store_path):
    return lambda: Memory(store_path, embedder=HashEmbedder())


@pytest.fixture
def table_folder(store_path, open_hashed):
    with open_hashed() as memory:
        memory.add("the first memory", id="first", metadata={"n": 1})
        memory.add("the second memory", id="second", metadata={"n": 2})
        memory.forget("first")
    return store_path / "memories.lance"


def newest_manifest(table_folder):
    return min((table_folder / "_versions").glob("*.manifest"))


def flip_newest(table):
    path = newest_manifest(table)
    content = path.read_bytes()
    assert b"string" in content
    path.write_bytes(content.replace(b"string", b"strijg"))


DAMAGES = {
    "versions gone": lambda table: shutil.rmtree(table / "_versions"),
    "table gone": shutil.rmtree,
    "newest gone": lambda table: newest_manifest(table).unlink(),
    "newest flipped": flip_newest,
    "note gone": lambda table: (table.parent / STATE_FILE).unlink(),
}


@pytest.mark.parametrize(
    ("damages", "said"), CASES["a store that lost its newest state is refused and left as it is"]
)
def test_a_store_that_lost_its_newest_state_is_refused_and_left_as_it_is(
    table_folder, open_hashed, store_path, damages, said
):
    for damage in damages:
        DAMAGES[damage](table_folder)
    before = sorted(store_path.rglob("*"))
    with pytest.raises(StoreError, match=said):
        open_hashed()
    assert sorted(store_path.rglob("*")) == before


def test_a_folder_in_which_a_store_was_only_begun_is_no_lost_store(store_path, open_hashed):
    store_path.mkdir()
    (store_path / ".ekphory.lock").touch()
    (store_path / "memories.lance" / "_transactions").mkdir(parents=True)
    (store_path / "memories.lance" / "_transactions" / "0-killed.txn").touch()
    with open_hashed() as memory:
        assert memory.count() == 0


def test_a_damaged_list_of_deleted_rows_is_told_and_one_that_was_only_begun_is_not(
    store_path, open_hashed
):
    with open_hashed() as memory:
        memory.add_many({"id": str(number), "text": f"note {number}"} for number in range(20))
        memory.forget("3")
    (deletions,) = store_path.glob("memories.lance/_deletions/*")
    (deletions.parent / ".tmp4Hq1zX").write_bytes(b"begun")
    with open_hashed() as memory:
        assert memory.count() == 19
    content = bytearray(deletions.read_bytes())
    content[len(content) // 2] ^= 1
    deletions.write_bytes(content)
    with pytest.raises(StoreError, match="or a list of deleted rows that it names was"):
        open_hashed()


def test_a_damaged_row_is_told_when_it_is_read(table_folder, open_hashed):
    for path in table_folder.glob("data/*.lance"):
        path.write_bytes(path.read_bytes().replace(b'"metadata"', b'"metadava"'))
    with (
        open_hashed() as memory,
        pytest.raises(StoreError, match=r"a row of memories\.lance is damaged .*metadava"),
    ):
        memory.list()


def test_a_note_that_is_garbage_is_told_with_the_remedy(table_folder, open_hashed, store_path):
    (store_path / STATE_FILE).write_bytes(b"\xff\x00{")
    with pytest.raises(StoreError, match=r"\.ekphory\.state\.json: cannot be read .*Remove it"):
        open_hashed()
    (store_path / STATE_FILE).unlink()
    with open_hashed() as memory:
        assert [record.id for record in memory.list()] == ["second"]


def test_a_note_that_is_older_than_the_newest_version_holds_nothing_up(
    table_folder, open_hashed, store_path
):
    noted = (store_path / STATE_FILE).read_bytes()
    with open_hashed() as memory:
        memory.add("the third memory", id="third")
    (store_path / STATE_FILE).write_bytes(noted)
    with open_hashed() as memory:
        assert {record.id for record in memory.list()} == {"second", "third"}


def test_every_write_has_noted_the_newest_version_when_the_store_is_closed(
    table_folder, open_hashed, store_path
):
    noted = []
    # A part of a note, which a killed writer left.
    (store_path / f"{STATE_FILE}.77.88").write_text("{")
    for write in (
        lambda memory: memory.add("the third memory", id="third"),
        lambda memory: memory.update("third", text="the third, changed"),
        lambda memory: memory.forget("third"),
        lambda memory: memory.forget("second", purge=True),
        lambda memory: memory.repair(),
    ):
        with open_hashed() as memory:
            write(memory)
        note = json.loads((store_path / STATE_FILE).read_text())
        noted.append(2**64 - 1 - note["version"] == int(newest_manifest(table_folder).stem))
    assert noted == [True] * 5
    assert list(store_path.glob(f"{STATE_FILE}.*")) == []


def test_a_note_of_failed_upkeep_with_other_types_is_told_as_unreadable(
    table_folder, open_hashed, store_path
):
    (store_path / ".ekphory.upkeep.json").write_text('{"message": 1, "attempts": "x", "since": ""}')
    with open_hashed() as memory:
        assert "cannot be read" in memory.health().upkeep_failure
