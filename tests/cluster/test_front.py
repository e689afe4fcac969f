"""What the front of a cluster measures, limits and notes, over HTTP."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.cluster.front import Replicas
from tests.cluster.test_serving import KEY, add, search
from tests.server.running import running_application

from ekphory.cluster.front import Front
from ekphory.cluster.served_shards import WHOLE
from ekphory.errors import StoreError
from ekphory.server.options import GivenKey, Limits, ServerOptions

pytestmark = pytest.mark.long


@pytest.fixture
def replicas(shards, close_at_end):
    return close_at_end(Replicas(shards))


@pytest.fixture
def serve(shards, replicas, tmp_path):
    """Serves the shards with some options, and returns a client of the front."""

    @contextmanager
    def running(ask=replicas.ask, **settings):
        options = ServerOptions(store=shards.root, catalog=tmp_path / "keys.sqlite3", **settings)
        front = Front(shards, ask, errors=(StoreError,))
        with running_application(front.application(options), options) as client:
            yield client

    return running


def post(client, request):
    path, body = request
    return client.post(path, json=body)


def in_shard(shards, number):
    """The name of a project that lies in a shard."""
    names = (f"p{each}" for each in range(100))
    return next(name for name in names if shards.find("acme", name) == number)


def test_requests_and_leases_are_measured_by_shard(shards, serve):
    project = in_shard(shards, 1)
    with serve() as client:
        assert post(client, add(project, "I like pizza")).status_code == 200
        assert post(client, search(project, "pizza")).status_code == 200
        measured = client.get("/metrics").text.splitlines()
    assert 'ekphory_shard_requests_total{shard="shard-00001",status="200"} 2.0' in measured
    assert 'ekphory_shard_request_seconds_count{shard="shard-00001"} 2.0' in measured
    assert 'ekphory_shard_requests_under_way{shard="shard-00001"} 0.0' in measured
    assert 'ekphory_shard_events_total{event="opened",shard="shard-00001"} 1.0' in measured
    assert 'ekphory_shard_events_total{event="lease_taken",shard="shard-00001"} 1.0' in measured
    counted = 'method="POST",route="/api/v2/memories/search",status="200"'
    assert f"ekphory_requests_total{{{counted}}} 1.0" in measured
    assert "shard-00000" not in "".join(measured)


def test_the_metrics_need_a_key_where_one_is_needed(serve):
    with serve(key=GivenKey.of(KEY)) as client:
        assert client.get("/metrics").status_code == 401
        let_in = client.get("/metrics", headers={"Authorization": f"Bearer {KEY}"})
        assert let_in.status_code == 200


def test_what_the_front_answers_itself_is_asked_by_its_own_method_alone(serve):
    with serve() as client:
        posted = [client.post(path).status_code for path in ("/health", "/metrics", "/docs")]
        listed = client.get("/api/v2/projects/list").status_code
    assert posted == [405, 405, 405]
    assert listed == 405


def test_a_shard_that_many_wait_for_refuses_further_requests_and_others_answer(
    shards, replicas, serve
):
    asked, going_on = asyncio.Event(), asyncio.Event()
    hot, cool = in_shard(shards, 1), in_shard(shards, 2)

    async def slow(shard, request):
        if shard == 1:
            asked.set()
            await going_on.wait()
        elif b"go on" in request.body:
            await asked.wait()
            going_on.set()
        return await replicas.ask(shard, request)

    limits = Limits(shard_concurrency=1)
    with serve(ask=slow, limits=limits) as client, ThreadPoolExecutor() as pool:
        waiting = pool.submit(post, client, search(hot, "pizza"))
        while 'under_way{shard="shard-00001"} 1.0' not in client.get("/metrics").text:
            pass
        refused = post(client, search(hot, "pizza"))
        assert post(client, search(cool, "go on")).status_code == 404
        assert waiting.result().status_code == 404
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "Too many requests wait for this project's shard" in refused.text


def test_requests_of_all_shards_leave_threads_to_those_of_one(shards, replicas, serve):
    going_on = asyncio.Event()

    async def slow(shard, request):
        if shard == WHOLE:
            await going_on.wait()
        elif b"go on" in request.body:
            going_on.set()
        return await replicas.ask(shard, request)

    of_all = ("/api/v1/memory/list", {"scope": {"org": "acme"}})
    with serve(ask=slow, limits=Limits(threads=4)) as client, ThreadPoolExecutor() as pool:
        waiting = [pool.submit(post, client, of_all) for _ in range(2)]
        while 'under_way{shard="all-shards"} 2.0' not in client.get("/metrics").text:
            pass
        refused = post(client, of_all)
        assert post(client, search("p0", "go on")).status_code == 404
        assert [each.result().json()["result"] for each in waiting] == [[], []]
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "Too many requests ask all shards. Name org and project" in refused.text


def test_a_shard_that_does_not_answer_is_counted(shards, serve):
    async def fail(shard, request):
        raise StoreError("gone")

    with serve(ask=fail) as client:
        assert post(client, search(in_shard(shards, 1), "pizza")).status_code == 503
        measured = client.get("/metrics").text
    assert 'ekphory_shard_requests_total{shard="shard-00001",status="503"} 1.0' in measured


def test_the_memories_of_an_organisation_are_counted_in_all_shards(shards, serve):
    projects = [in_shard(shards, number) for number in range(3)]
    with serve() as client:
        for project in projects:
            assert post(client, add(project, f"pizza in {project}")).status_code == 200
    with serve(limits=Limits(org_memories=3)) as client:
        refused = post(client, add(projects[0], "more"))
        while refused.status_code == 503:  # a busy machine takes more than five seconds
            refused = post(client, add(projects[0], "more"))
    assert refused.status_code == 429
    assert "Organisation 'acme' holds 3 memories and may hold 3" in refused.text


def test_a_quota_that_cannot_be_looked_at_lets_nothing_in(shards, serve):
    async def fail(shard, request):
        raise StoreError("gone")

    with serve(ask=fail, limits=Limits(org_memories=3)) as client:
        refused = post(client, add("p0", "more"))
    assert refused.status_code == 503
    assert "It is not known how many memories the organisation holds" in refused.text


def test_the_front_notes_who_read_what(shards, serve, tmp_path):
    with serve(audit=tmp_path / "audit.jsonl") as client:
        post(client, add("p0", "I like pizza"))
        post(client, search("p0", "pizza"))
    added, found = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert added["verb"] == "POST /api/v2/memories"
    assert found["verb"] == "POST /api/v2/memories/search"
    assert (found["org"], found["project"]) == ("acme", "p0")
    assert added["ids"] == found["ids"]
    assert len(added["ids"]) == 1


def test_the_inspector_looks_into_projects_and_over_all_shards(shards, serve):
    first, second = in_shard(shards, 0), in_shard(shards, 1)
    with serve() as client:
        page = client.get("/inspect")
        for project in (first, second):
            assert post(client, add(project, f"I like pizza in {project}")).status_code == 200
        asked = {"org_id": "acme", "project_id": second, "query": "pizza"}
        found = client.post("/api/v2/inspect/search", json=asked).json()
        growth = client.get("/api/v2/inspect/growth").json()
        health = client.get("/api/v2/inspect/health").json()
        latency = client.get("/api/v2/inspect/latency").json()
    assert page.headers["content-type"].startswith("text/html")
    assert [hit["text"] for hit in found["hits"]] == [f"I like pizza in {second}"]
    assert growth["counts"] == {f"acme / {first}": 1, f"acme / {second}": 1}
    assert [bar["counts"] for bar in growth["projects"]] == [growth["counts"]]
    assert (health["healthy"], health["numbers"]["memories"]) == (True, 2)
    assert {each["sentence"] for each in health["findings"] if each["subject"] == "upkeep"} == {
        "Fine in all shards."
    }
    assert "add" in {minute["route"] for minute in latency["minutes"]}


def test_a_file_that_the_inspector_does_not_have_is_not_there(serve):
    with serve() as client:
        answers = [client.get(f"/inspect/{name}").status_code for name in ("app.js", "nothing.js")]
    assert answers == [200, 404]
