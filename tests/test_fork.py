"""Stores in processes that were forked from one that had written, or started beside it."""

import http.client
import multiprocessing
import os
import signal
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ekphory.errors import StoreClosed
from ekphory.http_service import JsonTransport, Service
from ekphory.memory import Memory
from ekphory.store.writer import DirectoryLock
from ekphory.testing import HashEmbedder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
LONGEST_S = 60


def _in_a_fork(work, *arguments):
    """Return what `work` answers in a process forked from this one; fails if it hangs or dies."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put(work(*arguments)))
    child.start()
    child.join(LONGEST_S)
    hung = child.is_alive()
    child.kill()
    child.join()
    assert not hung, "the forked process hangs"
    assert child.exitcode == 0
    return answers.get()


def _error_of(use):
    try:
        use()
    except StoreClosed as error:
        return str(error)
    return "no error"


def _add_and_count(path, text="by the child"):
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add(text)
        found = memory.search(text).hits[0].text
        return memory.count() if found == text else f"found {found!r}"


def _inherited_uses(handle):
    return [
        lambda: handle.add("by the child"),
        lambda: handle.search("anything"),
        handle.count,
        lambda: handle.forget("an id"),
    ]


@pytest.mark.parametrize("use", range(4))
def test_an_inherited_handle_says_at_once_that_it_must_be_opened_here(memory, use):
    memory.add("by the parent")
    sentence = _in_a_fork(_error_of, _inherited_uses(memory)[use])
    assert sentence == "This handle is of the process before a fork. Open Memory here too."


def test_closing_an_inherited_handle_leaves_the_parents_open(memory):
    memory.add("by the parent")
    assert _in_a_fork(memory.close) is None
    memory.add("once more")
    assert memory.count() == 2


@pytest.mark.parametrize("attempt", range(3))
def test_a_fork_opens_the_store_that_its_parent_writes_to(memory, store_path, attempt):
    for number in range(5):
        memory.add(f"by the parent {number}")
    assert _in_a_fork(_add_and_count, store_path) == 6
    assert memory.count() == 6


def test_a_fork_of_a_fork_opens_it_too(memory, store_path):
    memory.add("by the parent")

    def child():
        with Memory(store_path, embedder=HashEmbedder()) as own:
            own.add("by the child")
            return _in_a_fork(_add_and_count, store_path, "by the grandchild")

    assert _in_a_fork(child) == 3


def test_os_fork_without_multiprocessing(memory, store_path):
    memory.add("by the parent")
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST_S)
        os._exit(_add_and_count(store_path))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


@pytest.mark.parametrize(
    "method",
    ["fork", *(pytest.param(name, marks=pytest.mark.slow) for name in ("forkserver", "spawn"))],
)
def test_workers_of_a_pool_open_stores_of_their_own(memory, store_path, method, tmp_path):
    memory.add("by the parent")
    with multiprocessing.get_context(method).Pool(2) as pool:
        paths = [tmp_path / f"own-{number}" for number in range(4)]
        assert pool.map_async(_add_and_count, paths).get(LONGEST_S) == [1] * 4
        texts = [(store_path, f"by worker {number}") for number in range(4)]
        counts = pool.starmap_async(_add_and_count, texts).get(LONGEST_S)
    assert max(counts) == 5
    assert memory.count() == 5


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with Memory(self.server.store, embedder=HashEmbedder()) as memory:
            memory.add(text)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.mark.slow
def test_a_server_that_forks_its_workers_after_the_store_was_used(memory, store_path):
    memory.add("by the parent")
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    server.store = store_path
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=server.serve_forever, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for number in range(9):
            client = http.client.HTTPConnection(*server.server_address, timeout=LONGEST_S)
            client.request("POST", "/", body=f"request {number}")
            assert client.getresponse().status == 204
            client.close()
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
        server.server_close()
    assert memory.count() == 10


def test_a_fork_does_not_keep_the_lock_of_a_parent_that_died(tmp_path):
    reading, writing = os.pipe()
    writer = os.fork()
    if writer == 0:
        with DirectoryLock(tmp_path).held():
            child = os.fork()
            if child == 0:
                signal.pause()
            os.write(writing, str(child).encode())
            os._exit(0)
    os.waitpid(writer, 0)
    try:
        with DirectoryLock(tmp_path).held(seconds=1):
            pass
    finally:
        os.kill(int(os.read(reading, 16)), signal.SIGKILL)


def test_a_fork_asks_a_service_over_connections_of_its_own():
    service = Service(kind="test service", url="http://127.0.0.1:9/v1/test", model="m", api_key="")
    transport = JsonTransport(service)
    parents = transport._own_client()
    assert _in_a_fork(lambda: transport._own_client() is parents) is False
    assert transport._own_client() is parents
