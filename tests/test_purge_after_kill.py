"""A purge leaves no byte of a text, whatever was killed before and whatever the clock says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

WRITE = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
with Memory(sys.argv[1], embedder=HashEmbedder()) as memory:
    memory.add(sys.argv[2], id=sys.argv[3])
"""
PURGE = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
with Memory(sys.argv[1], embedder=HashEmbedder()) as memory:
    print(memory.forget(sys.argv[2], purge=True))
"""
# What Lance calls first to give a data file its name, and to make a version current. strace counts
# the calls of each thread by itself, so that only the first of a kind is sure to come.
NAMING_DATA, COMMITTING = "rename,renameat,renameat2", "link,linkat"

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
needs_faketime = pytest.mark.skipif(
    shutil.which("faketime") is None, reason="faketime is not installed"
)


def run(script, *arguments, before=()):
    command = [*before, sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def killed_at(calls):
    """What starts a command so that it is killed at its first call of these."""
    inject = f"inject={calls}:signal=SIGKILL:when=1"
    return ("strace", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject)


def files_that_hold(directory: Path, text: str) -> list[str]:
    return [
        path.name
        for path in directory.rglob("*")
        if path.is_file() and text.encode() in path.read_bytes()
    ]


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize("calls", [NAMING_DATA, COMMITTING])
def test_a_purge_removes_what_a_killed_write_left(store_path, calls):
    run(WRITE, store_path, "the first memory", "first")
    killed = run(WRITE, store_path, "hunter2 is the word", "secret", before=killed_at(calls))
    assert killed.returncode != 0
    assert files_that_hold(store_path, "hunter2") != []
    run(WRITE, store_path, "hunter2 is the word", "secret")

    assert run(PURGE, store_path, "secret").stdout == "1\n"

    assert files_that_hold(store_path, "hunter2") == []
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert [record.text for record in memory.list()] == ["the first memory"]


def test_a_purge_removes_a_list_of_deleted_rows_that_a_kill_left_unfinished(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add_many({"text": f"row {number}", "id": f"{number}"} for number in range(3))
        memory.forget("0")
        (lists,) = store_path.glob("memories.lance/_deletions")
        (lists / ".tmpAuYJmP").write_text("hunter2")

        memory.forget("1", purge=True)

    assert files_that_hold(store_path, "hunter2") == []


@needs_strace
@pytest.mark.slow
def test_a_repair_removes_what_killed_writes_left(store_path):
    run(WRITE, store_path, "the first memory", "first")
    for number in range(3):
        run(WRITE, store_path, f"another {number}", number, before=killed_at(NAMING_DATA))
    assert list(store_path.glob("memories.lance/data/.tmp*")) != []

    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.repair()

    assert list(store_path.glob("memories.lance/*/.tmp*")) == []
    assert len(list(store_path.glob("memories.lance/data/*"))) == 1


@needs_faketime
@pytest.mark.slow
@pytest.mark.parametrize("back", ["-30s", "-400d"])
def test_a_purge_holds_when_the_clock_has_gone_back(store_path, back):
    run(WRITE, store_path, "the first memory", "first")
    run(WRITE, store_path, "hunter2 is the word", "secret")

    assert run(PURGE, store_path, "secret", before=("faketime", "-f", back)).stdout == "1\n"

    assert files_that_hold(store_path, "hunter2") == []
    assert len(list(store_path.glob("memories.lance/_versions/*.manifest"))) == 1


def test_a_purge_removes_files_that_no_version_names(store_path):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add("hunter2 is the word", id="secret")
        memory.add("the first memory", id="first")
        left = store_path / "memories.lance" / "data" / ".tmpLEFT"
        left.write_bytes(b"hunter2 is the word")
        memory.forget("secret", purge=True)
        assert [record.id for record in memory.list()] == ["first"]
    assert files_that_hold(store_path, "hunter2") == []
