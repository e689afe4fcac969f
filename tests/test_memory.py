"""Handles on a store, their verbs, and what they cost."""

import ast
import asyncio
import inspect
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ekphory
from ekphory.errors import InvalidInput, MemoryNotFound, StoreClosed, StoreError
from ekphory.memory import AsyncMemory, Memory
from ekphory.testing import HashEmbedder

# Any number of handles, of any scope, in any number of threads, on one directory.


@pytest.fixture
def background_threads():
    """Names of ekphory's threads that were started since the test began."""
    before = set(threading.enumerate())

    def names():
        started = (thread for thread in threading.enumerate() if thread not in before)
        return [thread.name for thread in started if thread.name.startswith("ekphory")]

    return names


def test_many_handles_share_one_writer_which_the_last_one_that_closes_ends(
    open_memory, background_threads
):
    handles = [open_memory(user=f"u{number}") for number in range(12)]
    handles[0].search("hello")
    assert background_threads() == []
    for handle in handles:
        handle.add("hello")
    assert background_threads() == ["ekphory-writer"]
    assert [handle.count() for handle in handles] == [1] * 12
    for handle in (*handles[1:], *handles[1:]):
        handle.close()
    assert handles[0].add("again").added == 1
    assert background_threads() == ["ekphory-writer"]
    handles[0].close()
    assert background_threads() == []


def test_a_with_block_closes_its_handle(store_path, background_threads):
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        memory.add("hello")
    assert background_threads() == []
    with pytest.raises(StoreClosed, match="was closed"):
        memory.count()


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        *((verb, {}) for verb in ("list", "count", "health", "repair")),
        *((verb, {"id": "1"}) for verb in ("get", "history", "forget")),
        *(("search", {"query": query}) for query in ("x", "")),
        *(("add", {"text": "x"}), ("update", {"id": "1", "text": "x"})),
        ("add_many", {"records": [{"text": "x"}]}),
        ("add_messages", {"messages": [{"role": "user", "content": "x"}]}),
    ],
)
def test_a_closed_handle_says_so(memory, verb, given):
    memory.close()
    with pytest.raises(StoreClosed, match="Open the store again"):
        getattr(memory, verb)(**given)


def test_closing_waits_for_what_is_being_written(store_path):
    memory = Memory(store_path, embedder=HashEmbedder())
    started = threading.Event()
    reports = []

    def rows():
        for number in range(1_000):
            started.set()
            yield {"text": f"row {number}"}

    def write():
        try:
            reports.append(memory.add_many(rows()).added)
        except StoreClosed:
            reports.append(None)

    writer = threading.Thread(target=write)
    writer.start()
    started.wait()
    memory.close()
    writer.join()
    with Memory(store_path, embedder=HashEmbedder()) as again:
        assert again.count() >= (reports[0] or 0)


def test_several_spellings_of_a_path_are_one_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "store")
    spellings = ["store", "./store/", "other/../store", "link"]
    spellings += [tmp_path / "store", f"file://{tmp_path}/store"]
    handles = [Memory(path, embedder=HashEmbedder()) for path in spellings]
    handles[0].add("hello", id="1")
    assert [handle.add("hello", id="1").skipped for handle in handles] == [1] * 6
    for handle in handles:
        handle.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "store"]


def test_the_path_may_start_in_the_home_directory_and_missing_folders_are_made(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    with Memory("~/a/memories", embedder=HashEmbedder()) as memory:
        memory.add("hello")
    assert (tmp_path / "a" / "memories").is_dir()


@pytest.mark.slow
def test_a_deleted_directory_stays_deleted_while_the_handle_is_idle(
    open_memory, store_path, caplog
):
    memory = open_memory()
    memory.add("hello")
    # In one step: what was written last may be noted at this moment.
    store_path.rename(store_path.with_name("elsewhere"))
    time.sleep(1.3)  # files are merged in a quiet moment, a second after the last write
    memory.close()
    assert not store_path.exists()
    assert caplog.messages == []


def test_a_store_whose_directory_is_gone_says_so_and_can_be_made_anew(
    open_memory, store_path, background_threads
):
    memory = open_memory()
    memory.add("hello", id="1")
    # In one step: what was written last may be noted at this moment.
    store_path.rename(store_path.with_name("elsewhere"))
    for use in (lambda: memory.add("again"), lambda: memory.search("hello"), memory.count):
        with pytest.raises(StoreError, match=str(store_path)):
            use()
    memory.close()
    assert background_threads() == []
    assert open_memory().add("hello", id="1").added == 1


def in_threads(work, arguments):
    """Run `work` on each argument, all at the same time, and give the results."""
    with ThreadPoolExecutor(len(arguments)) as threads:
        return list(threads.map(work, arguments))


@pytest.mark.slow
def test_threads_may_share_one_handle(memory):
    memory.add_many({"text": f"shared {n}", "id": f"s{n}"} for n in range(50))

    def work(thread):
        for number in range(5):
            name = f"{thread}-{number}"
            assert memory.add(f"shared by {name}", id=name).added == 1
            assert memory.get(name).text == f"shared by {name}"
            assert len(memory.search("shared", k=20)) == 20
            if number % 3 == 0:
                memory.update(name, text=f"changed {name}")
            if number % 5 == 4:
                memory.forget(name)

    in_threads(work, range(4))
    assert memory.count() == 50 + 4 * 4


def test_one_id_written_by_many_threads_is_one_memory(open_memory):
    handles = [open_memory() for _ in range(8)]
    reports = in_threads(lambda handle: handle.add("hello", id="1"), handles)
    assert sum(report.added for report in reports) == 1
    assert handles[0].count() == 1


def test_handles_may_be_opened_and_closed_by_threads_at_the_same_time(store_path):
    def work(number):
        for turn in range(4):
            with Memory(store_path, embedder=HashEmbedder()) as memory:
                memory.add("hello", id=f"{number}-{turn}")

    in_threads(work, range(4))
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert memory.count() == 16


FORGETFUL_AND_QUICK = """
import sys
from ekphory import Memory
from ekphory.testing import HashEmbedder
memory = Memory(sys.argv[1], embedder=HashEmbedder())
for number in range(10):
    memory.add(f"hello {number}")
"""


@pytest.mark.long
def test_a_process_that_ends_without_closing_still_merges_what_it_wrote(store_path):
    command = [sys.executable, "-W", "error", "-c", FORGETFUL_AND_QUICK, str(store_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")
    with Memory(store_path, embedder=HashEmbedder()) as memory:
        assert (memory.count(), memory.health().fragments) == (10, 1)


@pytest.mark.parametrize("path", ["", "  ", None, 5, "a\x00b"])
def test_what_names_no_store_is_a_clear_error(path):
    with pytest.raises(InvalidInput, match=r"^path="):
        Memory(path, embedder=HashEmbedder())


# `AsyncMemory`: the same verbs, awaitable.

VERBS = [
    name
    for name, member in vars(Memory).items()
    if inspect.isfunction(member) and not name.startswith("_")
]


def run(store_path, use):
    async def session():
        async with AsyncMemory(store_path, embedder=HashEmbedder(), user="alice") as memory:
            return await use(memory)

    return asyncio.run(session())


def test_every_verb_does_what_its_twin_does_on_the_same_store(store_path):
    async def use(memory):
        assert (await memory.add("Anna drinks tea", id="tea")).added == 1
        chat = [{"role": "user", "content": "hello"}]
        assert (await memory.add_messages(chat, session="s1")).added == 1
        assert (await memory.add_many([{"text": "row"}, {"text": " "}])).added == 1
        assert (await memory.search("tea", k=1)).hits[0].id == "tea"
        assert (await memory.update("tea", text="Anna drinks coffee")).text == "Anna drinks coffee"
        assert (await memory.get("tea")).text == "Anna drinks coffee"
        assert len(await memory.history("tea")) == 2
        assert len(await memory.list(limit=2)) == 2
        assert await memory.count() == 3
        assert (await memory.health()).memories == 3
        with Memory(store_path, embedder=HashEmbedder()) as plain:
            assert plain.get("tea").user == "alice"
        await memory.repair()
        assert await memory.forget("tea", purge=True) == 1
        assert await memory.count(filter="user = 'alice'") == 2
        return memory

    closed = run(store_path, use)
    with pytest.raises(StoreClosed):
        asyncio.run(closed.count())


@pytest.mark.slow
def test_many_tasks_may_share_one_handle(store_path):
    async def use(memory):
        await asyncio.gather(*(memory.add(f"row {n}", id=f"{n}") for n in range(30)))
        results = await asyncio.gather(*(memory.search(f"row {n}", k=5) for n in range(30)))
        return {len(result) for result in results}

    assert run(store_path, use) == {5}


def test_errors_reach_the_one_who_awaits(store_path):
    async def use(memory):
        with pytest.raises(MemoryNotFound):
            await memory.get("nobody")
        with pytest.raises(InvalidInput, match=r"^k="):
            await memory.search("x", k=0)

    run(store_path, use)


def test_the_event_loop_is_free_while_a_verb_runs(store_path):
    async def use(memory):
        ticks = 0
        task = asyncio.create_task(memory.add_many({"text": f"row {n}"} for n in range(2_000)))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return ticks

    assert run(store_path, use) > 10


# The public surface.


def test_the_public_names_are_few_and_sorted_and_what_the_package_imports():
    tree = ast.parse(Path(ekphory.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if (node.module or "").startswith("ekphory.")]
    imported = {alias.asname or alias.name for node in own for alias in node.names}
    assert ekphory.__all__ == sorted(imported | {"__version__"})
    assert [name for name in ekphory.__all__ if not hasattr(ekphory, name)] == []
    assert len(ekphory.__all__) <= 20


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="no_such_name"):
        ekphory.no_such_name  # noqa: B018  reading it is the test


def test_both_classes_have_the_same_verbs():
    assert "search" in VERBS
    assert {name for name in vars(AsyncMemory) if not name.startswith("_")} == set(VERBS)
    assert inspect.signature(AsyncMemory) == inspect.signature(Memory)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_the_same_in_both_classes_and_takes_two_arguments_by_position_at_most(verb):
    plain, awaited = getattr(Memory, verb), getattr(AsyncMemory, verb)
    assert inspect.iscoroutinefunction(awaited)
    assert awaited.__doc__ == plain.__doc__
    assert inspect.signature(awaited) == inspect.signature(plain)
    parameters = list(inspect.signature(plain).parameters.values())[1:]
    assert sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters) <= 2
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


# What `import ekphory` costs and touches, seen from a fresh interpreter.

MOST_SECONDS = 0.3
HEAVY = {"torch", "sentence_transformers", "transformers", "lancedb", "pyarrow", "onnxruntime"}
# What LanceDB does at import is local: a pair of sockets to wake an event loop, a test for IPv6.
NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}

PROBE = """
import json, logging, sys, time

sockets, touched = [], []

def watch(event, arguments):
    if event.startswith("socket."):
        sockets.append(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        touched.append(str(arguments[0]))
    if event in ("os.mkdir", "os.rename", "os.remove", "subprocess.Popen"):
        touched.append(f"{event} {arguments[0]}")

sys.addaudithook(watch)
started = time.perf_counter()
STATEMENT
seconds = time.perf_counter() - started
print(json.dumps({
    "seconds": seconds,
    "modules": sorted(sys.modules),
    "sockets": sockets,
    "touched": touched,
    "handlers": len(logging.getLogger().handlers),
}))
"""


def probe(statement: str, home: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE.replace("STATEMENT", statement)],
        cwd=home,
        env=os.environ | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_importing_the_package_takes_less_than_three_tenths_of_a_second(tmp_path):
    assert min(probe("import ekphory", tmp_path)["seconds"] for _ in range(5)) < MOST_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "sockets", "modules"),
    [
        ("import ekphory", {"socket"}, HEAVY),
        (
            "from ekphory import AsyncMemory, Memory, load_embedder",
            NETWORK,
            {"torch", "sentence_transformers"},
        ),
    ],
)
def test_importing_connects_nowhere_writes_no_file_and_loads_nothing_heavy(
    tmp_path, statement, sockets, modules
):
    seen = probe(statement, tmp_path)
    assert [event for event in seen["sockets"] if event.startswith(tuple(sockets))] == []
    assert modules.isdisjoint(seen["modules"])
    assert (seen["touched"], seen["handlers"]) == ([], 0)
    assert list(tmp_path.iterdir()) == []
