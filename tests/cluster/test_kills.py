"""A served cluster whose replicas and nodes are killed and paused, on storage that fails."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import pytest
from tests.cluster.conftest import BUCKET, NEEDED
from tests.cluster.test_serving import STARTS_TRIED, Cluster, replica_processes

from ekphory import Memory
from ekphory.cluster.front import READ_SECONDS
from ekphory.cluster.shards import open_memory
from ekphory.errors import EkphoryError, MemoryNotFound
from ekphory.models.loading import load_embedder
from ekphory.scope import Scope

pytestmark = pytest.mark.long
KILLS = int(os.environ.get("EKPHORY_TEST_KILLS", "20"))
PROJECTS = 4
NODES = 2
ORG = "acme"
MOST_SECONDS = 300
"""So long a write is tried again; a busy machine takes its time to start what was killed."""


@dataclass
class Client:
    """Writes to one project, and knows what it was told."""

    url: str
    project: str
    seed: int
    stop: threading.Event
    stored: dict[str, str] = field(default_factory=dict)
    reads: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refusals: Counter = field(default_factory=Counter)
    written: int = 0

    def run(self):
        chance = random.Random(self.seed)
        with Memory(self.url, org=ORG, project=self.project) as memory:
            for number in range(1_000_000):
                if self.stop.is_set():
                    return
                self.step(memory, chance, f"{self.project}-{number}")

    def step(self, memory, chance, name):
        drawn = chance.random()
        if drawn < 0.3 or not self.stored:
            self.write(lambda: memory.add(f"text of {name}", id=name))
            self.stored[name] = f"text of {name}"
            return
        chosen = chance.choice(sorted(self.stored))
        if drawn < 0.4:
            self.write(lambda: forget(memory, chosen))
            del self.stored[chosen]
        elif drawn < 0.55:
            self.write(lambda: memory.update(chosen, text=f"text of {name} instead"))
            self.stored[chosen] = f"text of {name} instead"
        else:
            self.read(chosen)

    def write(self, do):
        ends = time.monotonic() + MOST_SECONDS
        while True:
            try:
                do()
            except EkphoryError as error:
                assert time.monotonic() < ends, error
                self.refusals[str(error)[:120]] += 1
                time.sleep(0.3)
            else:
                self.written += 1
                return

    def read(self, chosen):
        """Read one memory, which must be as it was acknowledged, or be refused in time."""
        asked = {"scope": {"org": ORG, "project": self.project}, "arguments": {"id": chosen}}
        began = time.monotonic()
        answer = httpx.post(f"{self.url}/api/v1/memory/get", json=asked, timeout=60)
        self.reads.append(time.monotonic() - began)
        if answer.status_code == 503:
            self.refusals[503] += 1
        elif answer.status_code != 200 or self.stored[chosen] not in answer.text:
            self.wrong.append(answer.text)


def forget(memory, chosen):
    try:
        memory.forget(chosen)
    except MemoryNotFound:
        return  # the request before had done it, and its answer was lost


@pytest.fixture
def failing_storage(start_child, monkeypatch):
    """An S3 in a process of its own, which the environment names; `go` makes it fail."""
    for name in ("obstore", "lance", "moto.server", "ray"):
        pytest.importorskip(name, reason=NEEDED)
    child = start_child("object_storage.py", 7, BUCKET)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": child.next_report()["url"],
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return child


class Nodes:
    """Ray nodes of this machine, by default three; the replicas run on all but the head."""

    def __init__(self, port, folder, *, others=NODES):
        self.address, self._folder = f"127.0.0.1:{port}", folder
        self._numbers = count()
        self._head = self._start("--head", "--port", str(port), "--num-cpus", "0")
        self._others = [self._add() for _ in range(others)]

    def _add(self):
        return self._start("--address", self.address, "--num-cpus", "2")

    def _start(self, *options):
        command = [str(Path(sys.executable).parent / "ray"), "start", "--block", *options]
        command += ["--node-ip-address", "127.0.0.1", "--object-store-memory", "100000000"]
        command += ["--disable-usage-stats"]
        command += ["--include-dashboard", "false"] if "--head" in options else []
        for _ in range(STARTS_TRIED):
            told = self._folder / f"node-{next(self._numbers)}.log"
            with told.open("wb") as log:
                started = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            while started.poll() is None:
                if b"Ray runtime started" in told.read_bytes():
                    return started
                time.sleep(0.1)
        raise AssertionError(told.read_text())

    def kill_one(self, chance):
        place = chance.randrange(NODES)
        end_group(self._others[place])
        self._others[place] = self._add()

    def end(self):
        for process in (*self._others, self._head):
            end_group(process)


def end_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port():
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


@pytest.fixture
def nodes(monkeypatch, tmp_path):
    pytest.importorskip("ray", reason=NEEDED)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("EKPHORY_RERANKER", "none")
    # As the clients and the storage, which are on the same machine.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    found = Nodes(free_port(), tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", found.address)
    yield found
    found.end()


def disturb(nodes, chance):
    """Kill a node or a replica, or pause one for longer than its lease lasts, or shorter."""
    drawn = chance.random()
    if drawn < 0.15:
        nodes.kill_one(chance)
        return "nodes killed"
    replicas = wait_for(replica_processes)
    chosen = chance.choice(replicas)
    if drawn < 0.7:
        os.kill(chosen, signal.SIGKILL)
        return "replicas killed"
    os.kill(chosen, signal.SIGSTOP)
    time.sleep(chance.uniform(1, 14))
    os.kill(chosen, signal.SIGCONT)
    return "replicas paused"


def wait_for(look):
    """Return what is there, as soon as it is."""
    ends = time.monotonic() + MOST_SECONDS
    while not (found := look()) and time.monotonic() < ends:
        time.sleep(0.2)
    assert found
    return found


def wait_for_writes(clients, *, past):
    wait_for(lambda: sum(client.written for client in clients) > past)


def say(storage):
    """Let the storage begin to fail, or end."""
    storage.go()
    storage.next_report()


@pytest.mark.timeout(900 + 60 * KILLS)
def test_nothing_acknowledged_is_lost_whatever_dies_or_pauses(failing_storage, nodes, tmp_path):
    chance = random.Random(11)
    root = f"s3://{BUCKET}/{tmp_path.name}-{os.getpid()}"
    stop, done = threading.Event(), Counter()
    with (tmp_path / "log").open("wb") as log:
        cluster = Cluster(root, log=log)
        clients = [Client(cluster.url, f"p{number}", number, stop) for number in range(PROJECTS)]
        threads = [threading.Thread(target=client.run) for client in clients]
        try:
            say(failing_storage)
            for thread in threads:
                thread.start()
            while done.total() < KILLS:
                done[disturb(nodes, chance)] += 1
                wait_for_writes(clients, past=sum(client.written for client in clients))
                time.sleep(chance.uniform(0, 3))
            say(failing_storage)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            cluster.end()
    reads = [seconds for client in clients for seconds in client.reads]
    refused = sum((client.refusals for client in clients), Counter())
    written = sum(client.written for client in clients)
    print(
        dict(done), f"{written} writes, {len(reads)} reads, {max(reads):.1f} s the longest", refused
    )
    embedder = load_embedder(None)
    for client in clients:
        scope = Scope(org=ORG, project=client.project)
        with open_memory(root, scope, embedder=embedder) as memory:
            stored = Counter((each.id, each.text) for each in memory.list(limit=100_000))
        assert stored == Counter(client.stored.items())
        assert client.wrong == []
    assert max(reads) < READ_SECONDS + 1


OWN = """
from ekphory.cluster.ray_session import running_ray
with running_ray(cpus=1) as ray:
    print(ray.cluster_resources()["CPU"], ray.util.get_node_ip_address())
"""


def start_own():
    return subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, check=False)


def test_a_ray_of_its_own_is_started_on_the_loopback_address_beside_one_that_runs(
    nodes, monkeypatch
):
    monkeypatch.delenv("RAY_ADDRESS")
    told = start_own()
    assert (told.returncode, told.stdout) == (0, "1.0 127.0.0.1\n"), told.stderr


def test_a_cluster_that_was_started_without_authentication_is_not_joined(monkeypatch, tmp_path):
    pytest.importorskip("ray", reason=NEEDED)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    nodes = Nodes(free_port(), tmp_path, others=0)
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    try:
        told = start_own()
    finally:
        nodes.end()
    assert "lets in whoever can reach it" in told.stderr
