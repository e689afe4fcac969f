"""`ekphory serve` as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.server.running import read_object

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.service.handles import catalog_file
from ekphory_lab.bench.serving import ServerProcess

SERVE = (sys.executable, "-m", "ekphory", "serve")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals"),
]


class Served:
    """A server process, and a client of it."""

    def __init__(self, store, *options):
        command = [*SERVE, "--store", str(store), "--port", "0", "--json"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        first = read_object(self.process)
        self.cpu_to_listen = ServerProcess("", self.process.pid, 0, 0).cpu_seconds()
        self.url = first["url"].replace("0.0.0.0", "127.0.0.1")
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def add(self, content, **headers):
        body = {"messages": [{"content": content}]}
        return self.client.post("/api/v2/memories", json=body, headers=headers)

    def contents(self):
        answered = self.client.post("/api/v2/memories/list", json={"page_size": 10_000})
        return [each["content"] for each in answered.json()["content"]["episodic_memory"]]

    def found(self, query):
        answered = self.client.post("/api/v2/memories/search", json={"query": query})
        return answered.json()["content"]["episodic_memory"]["long_term_memory"]["episodes"]

    def stop(self, how=signal.SIGTERM):
        """Ends it, and returns the log, one parsed object a line."""
        self.client.close()
        self.process.send_signal(how)
        _, log = self.process.communicate(timeout=60)
        return [json.loads(line) for line in log.splitlines()]


@pytest.fixture
def serve(tmp_path):
    started = []

    def start(*options):
        started.append(Served(tmp_path / "store", *options))
        return started[-1]

    yield start
    for each in started:
        each.client.close()
        if each.process.poll() is None:
            each.stop(signal.SIGKILL)


def test_it_listens_answers_logs_and_stops(serve):
    server = serve()
    assert server.client.get("/health").json()["status"] == "healthy"
    assert server.add("tea at five").status_code == 200
    log = server.stop()
    assert [line["route"] for line in log] == ["/health", "/api/v2/memories"]
    assert server.process.returncode == -signal.SIGTERM
    assert serve().contents() == ["tea at five"]


@pytest.mark.long
def test_what_is_under_way_when_it_is_told_to_stop_is_finished(serve):
    server = serve("--threads", "1")
    server.add("first")
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda n: server.add(f"message {n}"), range(8))
        time.sleep(0.05)
        server.process.send_signal(signal.SIGTERM)
    done = [answer for answer in answers if answer.status_code == 200]
    server.process.communicate(timeout=60)
    assert len(serve().contents()) == 1 + len(done)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells no CPU time")
def test_it_listens_after_seconds(serve):
    # CPU time, of which busy cores take more; `ekphory bench-server` tells the seconds.
    assert serve().cpu_to_listen <= 10


def test_every_acknowledged_write_outlives_a_kill(serve):
    server = serve()
    acknowledged = set()

    def write(writer):
        for number in range(10_000):
            content = f"writer {writer} message {number}"
            try:
                if server.add(content).status_code == 200:
                    acknowledged.add(content)
            except httpx.HTTPError:
                return

    with ThreadPoolExecutor(4) as threads:
        for writer in range(4):
            threads.submit(write, writer)
        while len(acknowledged) < 40:
            time.sleep(0.01)
        server.process.kill()
    server.process.communicate()
    # It opens as it is, without repair, and searches.
    again = serve()
    stored = again.contents()
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    assert again.found("writer 1 message 3")
    assert again.add("written after it").status_code == 200


def make_key(store):
    database = Database(catalog_file(store))
    key = AccessKeys(database).create().text
    database.close()
    return key


def children_of(server):
    """Name the processes that answer; before them there may be one that watches over resources."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process have a core")
def test_as_many_processes_as_there_are_cores_have_one_each_and_more_may_run_on_all(serve):
    cores = frozenset(os.sched_getaffinity(0))
    # A single process is not started apart, so on one core there is only the second case.
    for count in {max(2, len(cores)), len(cores) + 1}:
        server = serve("--workers", str(count))
        own = {frozenset(os.sched_getaffinity(pid)) for pid in children_of(server)[-count:]}
        assert own == ({frozenset({core}) for core in cores} if count == len(cores) else {cores})
        assert os.sched_getaffinity(server.process.pid) == cores
        server.stop()


@pytest.mark.long
def test_several_processes_answer_on_one_store_and_one_that_is_killed_is_replaced(serve, tmp_path):
    server = serve("--workers", "2")
    with ThreadPoolExecutor(16) as threads:
        added = threads.map(lambda n: server.add(f"message {n}").status_code, range(16))
    assert set(added) == {200}
    assert all(len(server.contents()) == 16 for _ in range(8))
    searched = server.client.post("/api/v2/memories/search", json={"query": "message"})
    options = ("--port", server.url.rpartition(":")[2], "--workers", "2")
    for taken in (options, options[:2]):
        assert "cannot be listened on" in refusal(tmp_path / "other", *taken)

    def read_trace(count):
        """Read the trace of the search over connections that are all open at once."""
        asking = [httpx.Client(base_url=server.url, timeout=60) for _ in range(count)]
        path = f"/api/v2/traces/{searched.headers['X-Trace-ID']}"
        statuses = {each.get(path).status_code for each in asking}
        for each in asking:
            each.close()
        return statuses

    assert read_trace(12) == {200}
    if sys.platform == "linux":  # only there are the children of a process told
        os.kill(children_of(server)[-1], signal.SIGKILL)
        assert read_trace(16) == {200}
    server.stop()


@pytest.mark.long
def test_the_log_of_a_process_holds_request_ids_and_no_text_and_no_key(serve, tmp_path):
    key = make_key(tmp_path / "store")
    server = serve("--require-key")
    headers = {"Authorization": f"Bearer {key}", "X-Request-ID": "mine-1"}
    server.add("whisper", **headers)
    asked = {"query": "whisper", "filter": "whisper = 'whisper'"}
    server.client.post("/api/v2/memories/search", json=asked, headers=headers)
    server.client.post("/api/v2/memories", json={"messages": "whisper"}, headers=headers)
    server.add("whisper", Authorization="Bearer ek_whisper_whisper")
    server.client.get("/whisper?whisper=whisper", headers=headers)
    log = server.stop()
    assert [line["status"] for line in log] == [200, 422, 422, 401, 404]
    assert [line["request_id"] for line in log].count("mine-1") == 4
    assert not [each for each in ("whisper", key) if each in json.dumps(log)]


@pytest.mark.long
def test_a_key_in_the_environment_lets_it_listen_everywhere(serve, monkeypatch):
    monkeypatch.setenv("EKPHORY_SERVE_KEY", "f00d" * 16)
    server = serve("--host", "0.0.0.0")
    assert server.add("tea").status_code == 401
    assert server.add("tea", Authorization=f"Bearer {'f00d' * 16}").status_code == 200
    assert "f00d" not in json.dumps(server.stop())


def refusal(store, *options):
    command = [*SERVE, "--store", str(store), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    return sentence


@pytest.mark.long
def test_an_address_that_others_reach_needs_a_key(serve, tmp_path):
    sentence = refusal(tmp_path / "store", "--host", "0.0.0.0")
    assert sentence.startswith("0.0.0.0 can be reached by others, and there is no key yet.")
    sentence = refusal(tmp_path / "store", "--require-key")
    assert sentence.startswith("Every request is to have a key, and there is no key yet.")
    assert sentence.endswith("or leave out --require-key.")
    key = make_key(tmp_path / "store")
    server = serve("--host", "0.0.0.0")
    assert server.add("tea").status_code == 401
    assert server.add("tea", Authorization=f"Bearer {key}").status_code == 200
