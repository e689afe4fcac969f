"""Bad input and bad surroundings: a clear error, and everything acknowledged before is intact."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import lancedb
import pytest
from tests.store.store_contract import CONTRACT_IDENTITY

from ekphory.errors import FilterError, InvalidInput, SchemaTooNew, ScopeError, StoreError
from ekphory.memory import Memory
from ekphory.store.lance_rows import table_schema
from ekphory.store.protocol import SCHEMA_VERSION
from ekphory.testing import HashEmbedder


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "a", "at": "9999-12-31"}, "at"),
        ({"text": "a", "metadata": {"project": "other"}}, "metadata.project"),
        ({"text": "a", "metadata": {"n": 10**400}}, "metadata.n"),
    ],
)
def test_what_cannot_be_stored_leaves_what_is_stored_intact(open_memory, given, field):
    memory = open_memory(project="apollo")
    memory.add("acknowledged", id="1")
    with pytest.raises(InvalidInput) as caught:
        memory.add(**given)
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert [entry.text for entry in memory.list()] == ["acknowledged"]
    assert memory.add("more").added == 1


@pytest.mark.parametrize("value", ["5", 5.0, True, None])
@pytest.mark.parametrize(
    ("ask", "remedy"),
    [
        (lambda memory, k: memory.search("tea", k=k), "Give 1 to 1,000"),
        (lambda memory, k: memory.timeline("tea", k=k), "Give at least 1"),
    ],
)
def test_a_number_that_is_not_whole_is_told_from_one_that_is_out_of_range(
    memory, ask, remedy, value
):
    with pytest.raises(InvalidInput) as caught:
        ask(memory, value)
    assert str(caught.value) == f"k={value!r}: must be a whole number. {remedy}"
    with pytest.raises(InvalidInput, match=f"^k=0: is out of range. {remedy}$"):
        ask(memory, 0)


@pytest.mark.parametrize("field", ["embedder", "reranker", "chat"])
def test_what_is_not_a_model_is_refused_by_the_name_of_its_field(store_path, field):
    with pytest.raises(InvalidInput, match=f"^{field}=5: has no method"):
        Memory(store_path, **{field: 5})
    assert not store_path.exists()


def test_a_target_that_cannot_be_written_to_is_refused(memory):
    with pytest.raises(InvalidInput, match=r"^target=5: neither a path nor a binary stream\. "):
        memory.export(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda memory, condition: memory.search("a", filter=condition),
        lambda memory, condition: memory.search("", filter=condition),
        lambda memory, condition: memory.list(filter=condition),
        lambda memory, condition: memory.count(filter=condition),
        lambda memory, condition: memory.forget(filter=condition),
    ],
)
class TestFilters:
    def test_a_malformed_filter_is_refused_by_every_verb(self, open_memory, call):
        memory = open_memory(project="apollo")
        memory.add("a")
        for condition in ("", "text", "text = 'a", "nosuch = 1", "text = 'a\x00'"):
            with pytest.raises(FilterError, match=r"^filter="):
                call(memory, condition)
        assert memory.count() == 1

    @pytest.mark.parametrize("condition", ["project = 'gemini'", "project IN ('gemini')"])
    def test_a_filter_that_leaves_its_scope_is_refused_by_every_verb(
        self, open_memory, call, condition
    ):
        open_memory(project="gemini").add("theirs")
        memory = open_memory(project="apollo")
        with pytest.raises(ScopeError, match=r"^project='gemini'.*bound to project='apollo'"):
            call(memory, condition)
        assert open_memory(project="gemini").count() == 1


@pytest.mark.parametrize("query", ["half \ud83d a", "nul \x00 a", "\ud800", "\x00"])
def test_a_query_of_broken_characters_is_answered_or_refused_by_name(memory, query):
    memory.add("a b c")
    try:
        assert len(memory.search(query)) == 1
    except InvalidInput as error:
        assert error.field == "query"


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (
            {"schema_version": SCHEMA_VERSION + 1},
            SchemaTooNew,
            r"schema version 5.* up to 4.*pip install --upgrade",
        ),
        ({"terms_version": "0"}, StoreError, r"version 0 of the tokenizer.*Import the memories"),
    ],
)
def test_a_store_of_another_schema_or_tokenizer_is_refused_with_the_remedy(
    store_path, change, error, told
):
    other = replace(CONTRACT_IDENTITY, **change)
    lancedb.connect(store_path).create_table("memories", schema=table_schema(other))
    with pytest.raises(error, match=told):
        Memory(store_path, embedder=HashEmbedder())


def test_a_file_and_a_foreign_table_are_refused_and_left_alone(store_path, tmp_path):
    # A foreign table in the directory is refused and left alone.
    table = lancedb.connect(store_path).create_table("memories", [{"colour": "red"}])
    with pytest.raises(StoreError, match=r"not made by ekphory. Choose another directory"):
        Memory(store_path, embedder=HashEmbedder())
    assert table.to_arrow().to_pylist() == [{"colour": "red"}]
    # A path that is a file or lies below one is refused.
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(InvalidInput, match=r"^path=.*is a file. Give a directory"):
        Memory(path, embedder=HashEmbedder())
    with pytest.raises((InvalidInput, StoreError), match=r"notes\.txt"):
        Memory(path / "store", embedder=HashEmbedder())
    assert path.read_text() == "mine"


def test_a_foreign_table_of_another_name_and_other_files_stay_beside_the_store(store_path):
    lancedb.connect(store_path).create_table("paintings", [{"colour": "red"}])
    (store_path / "notes.txt").write_text("mine")
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add("hello", id="1")
        memory.repair()
        memory.forget("1", purge=True)
    found = lancedb.connect(store_path).open_table("paintings").to_arrow().to_pylist()
    assert found == [{"colour": "red"}]
    assert (store_path / "notes.txt").read_text() == "mine"


@pytest.fixture(scope="module")
def mounted(tmp_path_factory):
    """Mounts a small file system; skips where that is not allowed."""
    targets = []

    def mount(*options):
        target = tmp_path_factory.mktemp("mounted")
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"cannot mount a file system here: {done.stderr.strip()}")
        targets.append(target)
        return target

    yield mount
    for target in targets:
        subprocess.run(["umount", "-l", str(target)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
class TestReadOnly:
    @pytest.fixture(scope="class")
    @classmethod
    def frozen(cls, mounted):
        """A store of one memory that can be read and not written."""
        target = mounted("size=20m")
        with Memory(target / "store", embedder=HashEmbedder()) as memory:
            memory.add("acknowledged", id="1")
        subprocess.run(["mount", "-o", "remount,ro", str(target)], check=True)
        return target

    def test_a_read_only_store_can_be_read(self, frozen):
        with Memory(frozen / "store", embedder=HashEmbedder()) as memory:
            assert memory.get("1").text == "acknowledged"
            assert [hit.id for hit in memory.search("acknowledged").hits] == ["1"]

    @pytest.mark.parametrize(
        "write",
        [
            lambda memory: memory.add("more"),
            lambda memory: memory.add_many([{"text": "more"}]),
            lambda memory: memory.update("1", text="more"),
            lambda memory: memory.forget("1"),
            lambda memory: memory.forget("1", purge=True),
            lambda memory: memory.repair(),
        ],
    )
    def test_writing_to_it_is_a_clear_error(self, frozen, write):
        with Memory(frozen / "store", embedder=HashEmbedder()) as memory:
            with pytest.raises(StoreError, match=r"store: cannot .*[Rr]ead-only.*(Check|Free)"):
                write(memory)
            assert memory.get("1").text == "acknowledged"

    def test_a_store_cannot_be_made_there(self, frozen):
        with pytest.raises(StoreError, match=r"new: cannot .*[Rr]ead-only.*(Check|Free)"):
            Memory(frozen / "new", embedder=HashEmbedder())


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
class TestFullDisk:
    @pytest.mark.slow
    def test_what_was_acknowledged_before_the_disk_was_full_is_intact(self, mounted):
        target = mounted("size=2m")
        acknowledged = 0
        with Memory(target / "store", embedder=HashEmbedder()) as memory:
            with pytest.raises(StoreError, match=r"No space left.*(Check|Free)") as caught:
                for number in range(1_000):
                    memory.add_many(rows(number, 100))
                    acknowledged += 100
            assert ".rs:" not in str(caught.value)
            assert memory.count() >= acknowledged > 0
        with Memory(target / "store", embedder=HashEmbedder()) as memory:
            assert memory.count() >= acknowledged
            assert len(memory.search("row", k=10)) == 10

    @pytest.mark.slow
    def test_writing_goes_on_once_there_is_space(self, mounted):
        target = mounted("size=2m")
        (target / "ballast").write_bytes(bytes(1_200_000))
        with Memory(target / "store", embedder=HashEmbedder()) as memory:
            with pytest.raises(StoreError):
                for number in range(1_000):
                    memory.add_many(rows(number, 100))
            before = memory.count()
            (target / "ballast").unlink()
            assert memory.add("there is space again").added == 1
            assert memory.count() == before + 1

    @pytest.mark.slow
    def test_what_frees_space_needs_none(self, mounted):
        target = mounted("size=2m")
        with Memory(target / "store", embedder=HashEmbedder()) as memory:
            memory.add_many(rows(0, 10))
            memory.reembed(HashEmbedder(dimension=16))
            (target / "store" / ".ekphory.reembed.lock").unlink()
            with suppress(OSError), (target / "ballast").open("wb", buffering=0) as ballast:
                while ballast.write(bytes(4096)):
                    pass
            with pytest.raises(StoreError, match=r"No space left.*(Check|Free)"):
                memory.reembed(HashEmbedder(dimension=64))
            assert memory.drop_previous_vectors().previous is None


def rows(batch, count):
    return [{"text": f"row {batch} {n}", "id": f"{batch}-{n}"} for n in range(count)]


WITH_A_LIMIT_ON_FILES = """
import resource, sys
from ekphory import Memory
from ekphory.errors import StoreError
from ekphory.testing import HashEmbedder

with Memory(sys.argv[1], embedder=HashEmbedder()) as memory:
    memory.add("acknowledged", id="1")
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    try:
        memory.add_many({"text": f"row {n}", "id": f"r{n}"} for n in range(2_000))
        print("written")
    except StoreError as error:
        print("StoreError", error)
    print(memory.count())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_write_that_the_system_cuts_off_is_a_clear_error(store_path):
    command = [sys.executable, "-c", WITH_A_LIMIT_ON_FILES, str(store_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    told, count = child.stdout.splitlines()
    assert told.startswith(f"StoreError {store_path}: cannot write")
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert memory.get("1").text == "acknowledged"
        assert memory.count() == int(count) < 2_000
        assert memory.add("more").added == 1
