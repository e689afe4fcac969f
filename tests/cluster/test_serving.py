"""A cluster answers as one server does: routing by shard, keys, catalogs, and takeovers."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import httpx
import pytest
from tests.cluster.conftest import NEEDED
from tests.cluster.front import Replicas

from ekphory.cluster.front import Front
from ekphory.cluster.objects import Objects
from ekphory.cluster.ray_session import running_ray
from ekphory.cluster.served_shards import ForwardedRequest, ShardCatalog
from ekphory.cluster.serving import ClusterOptions, serve_cluster
from ekphory.errors import InvalidInput, StoreError
from ekphory.server.options import GivenKey, ServerOptions
from ekphory.server.serving import NeedsKey

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
KEY = "k" * 32
SEARCH = "/api/v2/memories/search"


@pytest.fixture
def replicas(shards, close_at_end):
    return close_at_end(Replicas(shards))


@pytest.fixture
def ask(shards, replicas, tmp_path):
    """Sends requests to a front, and returns status and content of each answer."""
    front = Front(shards, replicas.ask, errors=(StoreError,))
    options = ServerOptions(store=shards.root, catalog=tmp_path / "keys.sqlite3")
    return lambda *requests: asyncio.run(send(front.application(options), requests))


async def send(application, requests, key=None):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        answers = [await client.post(path, json=body) for path, body in requests]
    return [(answer.status_code, answer.json() if answer.content else None) for answer in answers]


def add(project, *contents):
    messages = [{"content": content, "producer": "mara"} for content in contents]
    return "/api/v2/memories", {"org_id": "acme", "project_id": project, "messages": messages}


def search(project, query):
    return SEARCH, {"org_id": "acme", "project_id": project, "query": query}


def contents(answer):
    status, body = answer
    assert status == 200, body
    found = body["content"]["episodic_memory"]
    kinds = (found["long_term_memory"], found["short_term_memory"])
    return sorted({each["content"] for kind in kinds for each in kind["episodes"]})


def test_what_is_said_in_a_project_is_found_there_and_nowhere_else(ask):
    projects = [f"p{number}" for number in range(6)]
    answers = ask(
        *(add(project, f"I like pizza in {project}") for project in projects),
        *(search(project, "what pizza?") for project in projects),
    )
    assert [status for status, _ in answers[:6]] == [200] * 6
    assert [contents(answer) for answer in answers[6:]] == [
        [f"I like pizza in {project}"] for project in projects
    ]


def test_projects_of_all_shards_are_listed(ask):
    names = [{"org_id": "acme", "project_id": f"p{number}"} for number in range(5)]
    *_, (status, listed) = ask(
        *(("/api/v2/projects", name) for name in names), ("/api/v2/projects/list", {})
    )
    assert (status, listed) == (200, names)


def test_a_project_outlives_the_replica_that_made_it(shards, replicas, ask, tmp_path):
    made = {"org_id": "acme", "project_id": "lasting", "description": "kept"}
    ask(("/api/v2/projects", made))
    replicas.close()
    anew = Replicas(shards)
    front = Front(shards, anew.ask, errors=())
    options = ServerOptions(store=shards.root, catalog=tmp_path / "keys.sqlite3")
    named = {"org_id": "acme", "project_id": "lasting"}
    sent = send(front.application(options), [("/api/v2/projects/get", named)])
    [(status, found)] = asyncio.run(sent)
    anew.close()
    assert (status, found["description"]) == (200, "kept")


def test_services_over_earlier_states_of_a_catalog_do_not_pile_up(
    shards, replicas, close_at_end, tmp_path, monkeypatch
):
    held = tmp_path / "held"
    held.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(held))
    beside = close_at_end(Replicas(shards))
    names = [name for name in map("p{}".format, range(40)) if shards.find("acme", name) == 0][:4]
    options = ServerOptions(store=shards.root, catalog=tmp_path / "keys.sqlite3")
    writes, reads = (
        Front(shards, each.ask, errors=()).application(options) for each in (replicas, beside)
    )
    for name in names:
        project = {"org_id": "acme", "project_id": name}
        assert asyncio.run(send(writes, [("/api/v2/projects", project)]))[0][0] == 201
        assert asyncio.run(send(reads, [("/api/v2/projects/get", project)]))[0][0] == 200
    # One of who writes, and one of who reads.
    assert len(list(held.glob("ekphory-*"))) == 2


def test_a_catalog_that_another_process_has_changed_is_not_overwritten(shards, tmp_path):
    objects = Objects(shards.root)
    first = ShardCatalog(objects, "catalogs/x", tmp_path / "1")
    second = ShardCatalog(objects, "catalogs/x", tmp_path / "2")
    first.publish(b"first")
    assert not second.is_newest()
    with pytest.raises(StoreError, match="another process has changed it"):
        second.publish(b"second")
    assert objects.get("catalogs/x/000000000001") == b"first"


def test_a_key_is_needed_where_one_is_given(shards, replicas, tmp_path):
    front = Front(shards, replicas.ask, errors=())
    options = ServerOptions(
        store=shards.root, catalog=tmp_path / "keys.sqlite3", key=GivenKey.of(KEY)
    )
    application = front.application(options)
    asked = [("/api/v2/projects/list", {})]
    [(refused, _)] = asyncio.run(send(application, asked))
    [(let_in, _)] = asyncio.run(send(application, asked, key=KEY))
    assert (refused, let_in) == (401, 200)


VERB = (
    "/api/v1/memory/add",
    {
        "scope": {"org": "acme", "project": "p0"},
        "arguments": {"text": "I like pizza"},
    },
)


@pytest.mark.parametrize(("path", "body"), [search("p0", "pizza"), VERB])
def test_a_shard_refuses_a_project_that_it_does_not_hold(shards, replicas, path, body):
    wrong = (shards.find("acme", "p0") + 1) % shards.count
    request = ForwardedRequest(
        method="POST",
        path=path,
        query=b"",
        headers=[(b"content-type", b"application/json")],
        body=json.dumps(body).encode(),
        caller=("somebody", None, None, "admin"),
    )
    (status, _, content), _ = asyncio.run(replicas.ask(wrong, request))
    assert status == 403
    assert b"does not hold the project" in content


def test_an_address_that_others_reach_is_not_served_without_a_key(place):
    options = ClusterOptions(server=ServerOptions(store=place, host="0.0.0.0"))
    with pytest.raises(NeedsKey, match="can be reached by others, and there is no key yet"):
        serve_cluster(options, on_listening=lambda _: None)


def test_a_ray_cluster_without_authentication_is_not_joined(monkeypatch):
    pytest.importorskip("ray", reason=NEEDED)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(InvalidInput, match="lets in whoever can reach it"), running_ray(cpus=1):
        pass


def test_a_ray_without_processors_is_not_started():
    with pytest.raises(InvalidInput, match="cpus=0: is out of range"), running_ray(cpus=0):
        pass


def test_an_embedder_that_the_replicas_would_not_use_is_refused(tmp_path):
    options = ClusterOptions(server=ServerOptions(store=str(tmp_path), embedder="./model"))
    with pytest.raises(InvalidInput, match="is for this process alone"):
        serve_cluster(options, on_listening=lambda _: None)


# With Ray, as a user runs it.

STARTS = 540


STARTS_TRIED = 3
"""Ray gives up where its own processes take long to start, as on a busy machine."""


class Cluster:
    """`ekphory cluster serve` in a process of its own."""

    def __init__(self, store, *, log):
        command = [sys.executable, "-m", "ekphory", "cluster", "serve", "--store", str(store)]
        options = ["--port", "0", "--shards", "4", "--workers", "2", "--cpus", "2", "--json"]
        told = {}
        for _ in range(STARTS_TRIED):
            self.process = subprocess.Popen(
                [*command, *options], stdout=subprocess.PIPE, stderr=log, text=True
            )
            told = self._read_told()
            if "url" in told:
                break
            self.process.wait()
            self.process.stdout.close()
        self.url = told["url"]

    def _read_told(self):
        text = ""
        while line := self.process.stdout.readline():
            text += line
            if is_whole(text):
                return json.loads(text)
        raise AssertionError(f"it ended before it listened: {text}")

    def post(self, request):
        """Ask until it answers: a shard that is moved or loaded is refused for some seconds."""
        path, body = request
        until = time.monotonic() + STARTS
        while True:
            answer = httpx.post(f"{self.url}{path}", json=body, timeout=120)
            if answer.status_code != 503 or time.monotonic() > until:
                return answer.status_code, answer.json()
            time.sleep(1)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=STARTS)
        with self.process.stdout as told:
            assert told.read() == ""


def is_whole(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def replica_processes():
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [
        int(line.split()[0]) for line in found.stdout.splitlines() if "ServeReplica:ekphory" in line
    ]


@pytest.mark.timeout(3 * STARTS)
def test_a_cluster_keeps_what_it_acknowledged_when_a_replica_is_killed(tmp_path):
    pytest.importorskip("ray", reason=NEEDED)
    with (tmp_path / "log").open("wb") as log:
        cluster = Cluster(tmp_path / "cluster", log=log)
        try:
            projects = [f"p{number}" for number in range(4)]
            for project in projects:
                assert cluster.post(add(project, f"I like pizza in {project}"))[0] == 200
            for process in replica_processes():
                os.kill(process, signal.SIGKILL)
            for project in projects:
                found = contents(cluster.post(search(project, "what pizza?")))
                assert found == [f"I like pizza in {project}"]
                assert cluster.post(add(project, f"I moved out of {project}"))[0] == 200
            assert len(contents(cluster.post(search("p0", "moved or pizza")))) == 2
            open_scope = {"scope": {"org": "acme"}}
            assert cluster.post(("/api/v1/memory/count", open_scope)) == (200, {"result": 8})
        finally:
            cluster.end()
