"""The front of a cluster answers whatever one server answers, to the same keys."""

import json

import pytest
from tests.cluster.front import running_cluster
from tests.server.running import models, running_server

from ekphory import Memory
from ekphory.cluster.shards import find_shard
from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.http_service import ServiceRefusal

pytestmark = pytest.mark.long
CONFIG = "/api/v2/config"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster that demands keys, with memories of two organisations in three projects each."""
    store = tmp_path_factory.mktemp("cluster") / "store"
    with running_cluster(store, models(), require_key=True) as running:
        for org in ("acme", "rival"):
            for number in range(3):
                names = {"org": org, "project": f"p{number}"}
                with Memory(running.url, api_key=running.keys.create().text, **names) as memory:
                    memory.add(f"{org} likes pizza in p{number}", id=f"{org}-{number}")
        yield running


@pytest.fixture
def connect(cluster, close_at_end):
    """Opens a handle of no project with a new key."""

    def open_memory(rights="write", *, bound=None, **scope):
        key = cluster.keys.create(rights=rights, **(bound or {})).text
        return close_at_end(Memory(cluster.url, api_key=key, **scope))

    return open_memory


@pytest.fixture
def ask(cluster):
    """Sends a request with a new key."""

    def send(method, path, body=None, *, rights="admin", **bound):
        headers = {"Authorization": f"Bearer {cluster.keys.create(rights=rights, **bound).text}"}
        return cluster.client.request(method, path, json=body, headers=headers)

    return send


def operations(described):
    return {
        (method.upper(), path) for path, methods in described["paths"].items() for method in methods
    }


# What can be asked for.


def test_every_path_of_one_server_is_answered_with_the_same_status(tmp_path):
    named = {"kind": "embedders", "name": "none", "trace_id": "none"}
    with running_server(tmp_path / "one") as one, running_cluster(tmp_path / "many") as many:
        asked = operations(one.client.get("/openapi.json").json())
        told = {}
        for method, path in sorted(asked):
            body = {} if method in ("POST", "PUT") else None
            told[method, path] = [
                each.client.request(method, path.format(**named), json=body).status_code
                for each in (one, many)
            ]
    assert len(asked) > 90
    assert {each: both for each, both in told.items() if len(set(both)) > 1} == {}


def test_the_description_leaves_out_what_would_change_the_configuration(cluster, tmp_path):
    with running_server(tmp_path / "one") as one:
        described = operations(one.client.get("/openapi.json").json())
    left_out = described - operations(cluster.client.get("/openapi.json").json())
    assert {path for _, path in left_out if not path.startswith(CONFIG)} == set()
    assert {method for method, _ in left_out} == {"PUT", "POST", "DELETE"}


@pytest.mark.parametrize("path", ["/nowhere", "/api/v2/nowhere", "/api/v2/memories/nowhere"])
def test_a_path_that_no_server_has_is_not_there(ask, path):
    answered = ask("POST", path, {})
    assert answered.status_code == 404
    assert "/docs lists what can be asked" in answered.json()["detail"]["message"]


# The configuration.


def test_the_configuration_is_read_as_that_of_one_server(ask, tmp_path):
    with running_server(tmp_path / "one") as one:
        for path in ("", "/resources", "/memory/episodic", "/memory/semantic"):
            told = ask("GET", CONFIG + path, rights="read", org="acme").json()
            assert told == one.client.get(CONFIG + path).json()


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("PUT", "/memory/episodic/long_term", {"reranker": "none"},
         "episodic_memory.long_term_memory.reranker='none': cannot be changed in a cluster. "
         "Set EKPHORY_RERANKER on all machines"),
        ("PUT", "/memory/episodic/short_term", {"message_capacity": 5},
         "episodic_memory.short_term_memory.message_capacity=5: cannot be changed in a cluster. "
         "Leave it as it is, or use `ekphory serve`"),
        ("PUT", "/memory", {"semantic_memory": {"embedding_model": "large"}},
         "semantic_memory.embedding_model='large': cannot be changed in a cluster. "
         "Run `ekphory cluster reembed`"),
        ("POST", "/resources/embedders", {"name": "large", "provider": "openai"},
         "embedders.name='large': cannot be changed in a cluster. Leave it as it is"),
    ],
)  # fmt: skip
def test_what_would_change_the_configuration_is_refused_with_what_to_do(
    ask, method, path, body, message
):
    before = ask("GET", CONFIG).json()
    answered = ask(method, CONFIG + path, body)
    assert answered.status_code == 422
    assert answered.json()["detail"]["message"].startswith(message)
    assert ask("GET", CONFIG).json() == before


@pytest.mark.parametrize("bound", [{"rights": "write"}, {"org": "acme"}])
def test_who_may_not_change_the_configuration_is_told_that(ask, bound):
    answered = ask("PUT", f"{CONFIG}/memory/semantic", {"enabled": True}, **bound)
    assert answered.status_code == 403


# Traces.


def test_a_trace_is_found_in_the_shard_that_searched_by_whom_it_concerns_alone(ask):
    for number in range(3):
        body = {"org_id": "acme", "project_id": f"p{number}", "query": "pizza"}
        trace = ask("POST", "/api/v2/memories/search", body).headers["X-Trace-ID"]
        path = f"/api/v2/traces/{trace}"
        kept = ask("GET", path, rights="read", org="acme").json()
        assert (kept["org_id"], kept["project_id"]) == ("acme", f"p{number}")
        for bound in ({"org": "rival"}, {"org": "acme", "project": "elsewhere"}):
            refused = ask("GET", path, **bound)
            assert (refused.status_code, refused.json()["detail"]["message"]) == (
                404,
                "Trace does not exist",
            )


@pytest.mark.parametrize("trace", ["none", "ffff0123456789", "0001", "0001zz"])
def test_a_trace_that_no_shard_keeps_is_not_there(ask, trace):
    assert ask("GET", f"/api/v2/traces/{trace}").status_code == 404


# Handles that are bound to no project.


def test_the_projects_lie_in_several_shards():
    places = {
        find_shard(org, f"p{number}", shards=3) for org in ("acme", "rival") for number in range(3)
    }
    assert len(places) > 1


@pytest.mark.parametrize("bound", [{"bound": {"org": "acme"}}, {"org": "acme"}])
def test_an_open_handle_reads_all_projects_of_its_organisation_and_no_other(connect, bound):
    memory = connect("read", **bound)
    ids = {"acme-0", "acme-1", "acme-2"}
    assert {hit.id for hit in memory.search("who likes pizza?", k=50)} == ids
    assert {record.id for record in memory.list()} == ids
    assert memory.count() == 3
    assert memory.get("acme-1").project == "p1"
    for ask in (memory.get, memory.history):
        with pytest.raises(MemoryNotFound):
            ask("rival-1")


@pytest.mark.parametrize(
    ("verb", "arguments"), [("settle", {}), ("conflicts", {"scan": True}), ("export", {})]
)
def test_a_verb_of_an_organisation_passes_over_the_shards_that_have_none_of_its_projects(
    ask, connect, verb, arguments
):
    memory = connect(org="alone", project="one")
    memory.add("tea at five", id="tea")
    body = {"scope": {"org": "alone"}, "arguments": arguments}
    status = ask("POST", f"/api/v1/memory/{verb}", body).status_code
    memory.forget("tea")
    assert status == 200


@pytest.mark.parametrize("verb", ["settle", "export", "count"])
def test_an_organisation_without_memories_is_not_found_by_an_open_handle(ask, verb):
    answered = ask("POST", f"/api/v1/memory/{verb}", {"scope": {"org": "nobody"}})
    assert answered.status_code == 404
    told = "There is no project of organisation 'nobody' in this store."
    assert answered.json()["detail"]["message"].startswith(told)


@pytest.mark.parametrize("verb", ["search", "list", "count", "forget", "settle", "unsupersede"])
def test_a_key_does_not_reach_another_organisation_by_its_name(ask, verb):
    arguments = {"search": {"query": "pizza"}, "forget": {"filter": "text != ''"}}
    body = {"scope": {"org": "rival"}, "arguments": arguments.get(verb, {})}
    answered = ask("POST", f"/api/v1/memory/{verb}", body, org="acme")
    assert answered.status_code == 403
    assert "pizza" not in answered.text


def test_what_an_open_handle_changes_is_changed_where_it_lies_and_within_its_key(connect):
    mine, all_of_them = connect(bound={"org": "acme"}), connect()
    mine.add("Anna lives in Rome", id="rome")
    mine.add("Anna lives in Bonn", id="bonn")
    assert (all_of_them.get("rome").org, all_of_them.get("rome").project) == ("acme", None)
    made = mine.supersede("rome", by="bonn")
    mine.update("rome", text="Anna lived in Rome")
    stranger = connect("admin", bound={"org": "rival"})
    for change in (
        lambda: stranger.update("rome", text="mine"),
        lambda: stranger.forget("rome"),
        lambda: stranger.supersede("rome", by="bonn"),
        lambda: stranger.promote("rome", pool="shared_knowledge"),
    ):
        with pytest.raises(MemoryNotFound):
            change()
    with pytest.raises(InvalidInput, match="there is none in this scope"):
        stranger.unsupersede(revision=made.id)
    assert stranger.forget(filter="text CONTAINS 'Rome'") == 0
    assert mine.get("rome").text == "Anna lived in Rome"
    assert mine.unsupersede(revision=made.id) == 1
    assert mine.forget(filter="text CONTAINS 'Anna'") == 2
    assert mine.count() == 3


def test_records_that_name_their_projects_go_into_their_shards(connect):
    records = [
        {"id": "a", "text": "of new", "org": "new", "project": "p0"},
        {"id": "b", "text": "of none"},
        {"id": "c", "text": "", "org": "new", "project": "p1"},
        {"id": "d", "text": "of new too", "org": "new", "project": "p1"},
        {"id": "e", "text": "nowhere", "org": " "},
        {"id": ["f"], "text": "an id that is none"},
    ]
    memory = connect()
    report = memory.add_many(records)
    assert (report.added, report.skipped) == (3, 0)
    assert [(each.index, each.id, each.field) for each in report.failed] == [
        (2, "c", "text"),
        (4, "e", "org"),
        (5, None, "id"),
    ]
    assert {each.id: (each.org, each.project) for each in connect(org="new").list()} == {
        "a": ("new", "p0"),
        "d": ("new", "p1"),
    }
    assert memory.add_many(records[:2]).skipped == 2
    assert memory.forget(filter="text CONTAINS 'of '") == 3
    bound = connect(bound={"org": "new"})
    assert [each.field for each in bound.add_many([{"text": "x", "org": "acme"}]).failed] == ["org"]


def test_exported_records_of_several_projects_come_back_with_their_ids_in_their_order(
    connect, tmp_path
):
    memory, file = connect(), tmp_path / "moved.jsonl"
    ids = {"w": "p0", "x": "p1", "y": "p0", "z": "p1"}
    memory.add_many(
        [{"id": each, "text": f"to be moved: {each}", "org": "moved", "project": project}
         for each, project in ids.items()]
    )  # fmt: skip
    connect(bound={"org": "moved"}).export(file)
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    exported = {each["id"]: each for each in lines if "id" in each}
    memory.forget(filter="text CONTAINS 'moved'")
    records = [
        {name: value for name, value in exported[each].items() if name != "sum"} for each in ids
    ]
    assert memory.add_exported(records).ids == ("w", "x", "y", "z")
    assert memory.add_exported(records).ids == ()
    assert memory.forget(filter="text CONTAINS 'moved'") == 4


def test_a_handle_that_names_a_project_alone_writes_to_the_default_organisation(connect):
    memory = connect(project="lone", user="mara")
    memory.add("tea at five", id="tea")
    assert connect(org="default", project="lone").get("tea").user == "mara"
    assert [hit.id for hit in memory.search("tea")] == ["tea"]
    assert memory.forget("tea") == 1


def test_a_key_that_may_read_changes_nothing_by_an_open_handle(connect):
    memory = connect("read")
    for change in (
        lambda: memory.add("tea"),
        lambda: memory.add_many([{"text": "tea", "org": "acme", "project": "p0"}]),
        lambda: memory.forget("acme-0"),
        lambda: memory.forget(filter="text != ''"),
        lambda: memory.conflicts(scan=True),
        lambda: memory.unsupersede(revision="none"),
    ):
        with pytest.raises(ServiceRefusal, match="This needs a key with the right to write"):
            change()
    assert memory.count() == 6


def test_the_store_is_measured_checked_and_put_in_order_in_all_shards(connect):
    memory = connect("admin")
    assert memory.health().memories == 6
    assert memory.verify().damage == ()
    memory.repair()
    for each in (Memory.health, Memory.verify, Memory.repair):
        with pytest.raises(ServiceRefusal, match="This concerns all projects"):
            each(connect("admin", bound={"org": "acme"}))
