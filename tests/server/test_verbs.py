"""`Memory("http://…")`: the verbs of `Memory` over a server, and who may use them."""

import asyncio
import inspect
import io
import pickle
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from tests.cases import read_cases
from tests.server.conftest import EITHER, served
from tests.server.running import models, running_server

from ekphory import AgentOptions, AsyncMemory, Memory
from ekphory.agent_trace import EventBody
from ekphory.errors import InvalidInput, MemoryNotFound, StoreClosed
from ekphory.filters.tree import Comparison, Field, MetadataField
from ekphory.http_service import ServiceRefusal
from ekphory.importers.ekphory_export import read_export
from ekphory.retrieval.presets import FAST
from ekphory.scope import Scope
from ekphory.server.routes.verbs import VERBS

SAID = [
    {"id": "rome", "text": "Mara lives in Rome", "at": "2024-01-05T10:00:00+02:00"},
    {"id": "bonn", "text": "Mara lives in Bonn", "at": "2025-09-05", "producer": "mara"},
    {"id": "tea", "text": "Mara drinks tea", "at": "2025-01-05", "metadata": {"n": 3, "x": True}},
]
NOW = "2026-03-01T00:00:00Z"


ALSO_OVER_A_CLUSTER = True


def open_directly(store, *, over_a_cluster):
    """Open the store of a server, or all shards of a cluster, in this process."""
    names, used = {"org": "home", "user": "mara"}, models()
    given = {"embedder": used.embedder, "reranker": used.reranker}
    if not over_a_cluster:
        return Memory(store, **names, **given)
    from ekphory.cluster.shards import open_memory

    return open_memory(str(store), Scope(**names), **given)


@pytest.fixture(scope="module", params=EITHER)
def both(request, tmp_path_factory):
    """A handle over a server, and one on its store in this process."""
    store, place = tmp_path_factory.mktemp("both") / "store", {"over_a_cluster": request.param}
    with (
        served(store, **place) as server,
        Memory(server.url, org="home", user="mara") as remote,
        open_directly(store, **place) as local,
    ):
        remote.add_many([{**each, "type": "semantic"} for each in SAID])
        remote.supersede("rome", by="bonn", at="2025-08-01")
        remote.update("tea", text="Mara drinks coffee")
        yield remote, local


@pytest.fixture
def connect(server, close_at_end):
    """Opens a handle over the module's server."""
    return lambda **given: close_at_end(Memory(server.url, **given))


# The same as in this process.


NOT_ASKED = {"close", "reembed", "undo_reembed", "drop_previous_vectors"}
"""Verbs of the handle itself, and those that whoever runs the server does beside it."""


def test_every_verb_can_be_asked_for_over_a_server():
    verbs = {name for name, member in vars(Memory).items() if inspect.isfunction(member)}
    assert {name for name in verbs if not name.startswith("_")} == {*VERBS, *NOT_ASKED}


FINDING = [("search", {"query": "tea"}), ("list", {}), ("count", {})]


@pytest.mark.parametrize(("verb", "arguments"), FINDING)
def test_nothing_in_a_scope_that_holds_nothing_comes_with_a_hint(
    server, made_project, verb, arguments
):
    org = made_project["org_id"]
    body = {"scope": {"org": org, "project": "chat"}, "arguments": arguments}
    answer = server.client.post(f"/api/v1/memory/{verb}", json=body)
    assert answer.status_code == 200
    assert answer.json()["hint"].startswith(f"There is no memory of org='{org}', project='chat'")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [*FINDING, ("timeline", {"topic": "tea"}), ("profile", {}), ("export", {}), ("settle", {})],
)
@pytest.mark.parametrize(
    ("bound", "told"), [(None, "project 'nowhere'"), ("acme", "project 'nowhere' of organisation")]
)
def test_a_project_that_is_named_and_does_not_exist_is_not_found(
    server, verb, arguments, bound, told
):
    key = server.keys.create(org=bound, rights="read").text
    answer = server.client.post(
        f"/api/v1/memory/{verb}",
        json={"scope": {"project": "nowhere", "user": "mara"}, "arguments": arguments},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 404
    message = answer.json()["detail"]["message"]
    assert message.startswith(f"There is no {told}")
    assert message.endswith("POST /api/v2/projects/list lists the projects that there are.")


@pytest.mark.parametrize("scope", [{}, {"org": "empty", "project": "chat"}])
def test_an_export_of_what_is_there_or_is_not_named_is_sent_as_it_is(server, scope):
    server.answer("/projects", {"org_id": "empty", "project_id": "chat"}, status=201)
    answer = server.client.post("/api/v1/memory/export", json={"scope": scope})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    assert answer.text.startswith('{"ekphory_export":1')


def test_a_handle_on_a_project_that_does_not_exist_finds_nothing_in_it(connect):
    memory = connect(org="home", project="nowhere")
    found = (list(memory.search("tea")), memory.list(), memory.count(), memory.timeline("tea"))
    assert found == ([], [], 0, ())
    memory.settle(5)


def test_an_export_of_a_project_that_does_not_exist_is_whole_and_holds_nothing(connect, tmp_path):
    target, stream = tmp_path / "nowhere.jsonl", io.BytesIO()
    memory = connect(org="home", project="nowhere")
    report, again = memory.export(target), memory.export(stream)
    assert (report.memories, report.target, again.target) == (0, target, None)
    assert len(stream.getvalue()) == again.bytes
    assert list(read_export(target)) == []


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"k": 1},
        {"preset": "accurate"},
        {"preset": FAST, "superseded": "hide"},
        {"filter": Comparison(MetadataField("n"), "eq", 3)},
        {"filter": "at < date('2025-08-01')", "superseded": "ignore"},
        {"min_score": 0.999},
        {"pools": ("agent_memory",), "context": [{"role": "user", "content": "Mara moved"}]},
        {"time": "filter", "timezone": ZoneInfo("Europe/Rome"), "now": datetime(2026, 3, 1)},
        {"timezone": UTC, "now": datetime(2025, 9, 6, tzinfo=timezone(timedelta(hours=2)))},
    ],
)
@pytest.mark.parametrize("query", ["Where does Mara live?", ""])
def test_a_search_finds_the_same(both, query, settings):
    remote, local = (memory.search(query, **{"now": NOW, **settings}) for memory in both)
    assert remote.hits == local.hits
    assert (remote.order, remote.abstained) == (local.order, local.abstained)
    stages = [
        [(stage.name, stage.status) for stage in each.trace.stages] for each in (remote, local)
    ]
    assert stages[0] == stages[1]
    assert remote.to_prompt(now=NOW) == local.to_prompt(now=NOW)


def test_a_hit_says_what_supersedes_it_and_since_when(both):
    remote, _ = both
    found = {hit.id: hit for hit in remote.search("Where does Mara live?", now=NOW)}
    assert found["rome"].superseded_by == "bonn"
    assert found["rome"].since == datetime(2025, 8, 1, tzinfo=UTC)
    assert found["rome"].memory.at == datetime(2024, 1, 5, 8, tzinfo=UTC)


def test_the_agent_tells_the_same_and_its_events_afterwards(both):
    seen = []
    results = [
        memory.search(
            "Where does Mara live?",
            now=NOW,
            agent_mode=True,
            agent_options=AgentOptions(stage_results="trace", on_event=on_event),
        )
        for memory, on_event in zip(both, (seen.append, None), strict=True)
    ]
    traces = [result.retrieval_trace for result in results]
    bodies = [[type(event.body) for event in trace.events] for trace in traces]
    assert bodies[0] == bodies[1]
    assert (results[0].hits, traces[0].hops) == (results[1].hits, traces[1].hops)
    assert "stage_results" in traces[0].to_dict()
    assert tuple(seen) == traces[0].events


def test_each_event_of_an_agent_is_known_by_the_names_of_its_fields():
    kinds = get_args(EventBody)
    assert len({frozenset(kind.__dataclass_fields__) for kind in kinds}) == len(kinds)


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.list(order="oldest"),
        lambda memory: memory.list(filter=Comparison(Field("producer"), "eq", "mara")),
        lambda memory: memory.count(),
        lambda memory: memory.get("tea"),
        lambda memory: memory.history("tea"),
        lambda memory: memory.timeline("Where Mara lives", now=NOW),
        lambda memory: memory.profile(now=NOW),
        lambda memory: memory.related("tea"),
        lambda memory: memory.gate_status(),
        lambda memory: memory.gate_status(preset="memory_spark"),
        lambda memory: memory.revisions(),
        lambda memory: memory.conflicts(),
        lambda memory: memory.settle(5),
        lambda memory: memory.verify(),
        lambda memory: memory.health(),
    ],
)
def test_a_verb_that_reads_returns_the_same(both, ask):
    remote, local = map(ask, both)
    assert remote == local
    assert type(remote) is type(local)


def test_conflicts_are_looked_for_over_a_server(both):
    remote, _ = both
    assert remote.conflicts(scan=True) == remote.conflicts()


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.get("nobody"),
        lambda memory: memory.search("x", k=0),
        lambda memory: memory.search("x", filter="topic ="),
        lambda memory: memory.search("x", pools=["nowhere"]),
        lambda memory: memory.search("x", preset="best"),
        lambda memory: memory.add("x", type="fact"),
        lambda memory: memory.add("x", importance=float("nan")),
        lambda memory: memory.add("x", metadata={"org": "other"}),
        lambda memory: memory.add_messages([{"role": "user"}]),
        lambda memory: memory.list(filter="org = 'other'"),
        lambda memory: memory.update("tea"),
        lambda memory: memory.forget(),
        lambda memory: memory.supersede("rome", by="rome"),
        lambda memory: memory.unsupersede(revision="none"),
        lambda memory: memory.revisions(of=["none"]),
        lambda memory: memory.related("none"),
        lambda memory: memory.gate_status(preset="best"),
        lambda memory: memory.promote("tea", pool="mine"),
        lambda memory: memory.settle(-1),
        lambda memory: memory.repeated_mistakes(),
        lambda memory: memory.repeated_mistakes(least=1),
    ],
)
def test_what_is_refused_is_the_same_error(both, ask):
    errors = []
    for memory in both:
        with pytest.raises((InvalidInput, MemoryNotFound)) as refused:
            ask(memory)
        errors.append(refused.value)
    assert type(errors[0]) is type(errors[1])
    assert (str(errors[0]), vars(errors[0])) == (str(errors[1]), vars(errors[1]))


def test_an_export_is_the_same_in_a_file_and_in_a_stream(both, tmp_path):
    remote, local = both
    told = []
    stream = io.BytesIO()
    to_file = remote.export(tmp_path / "mara.jsonl", on_progress=lambda *done: told.append(done))
    to_stream = remote.export(stream)
    assert (to_file.target, to_stream.target) == (tmp_path / "mara.jsonl", None)
    assert to_file.bytes == (tmp_path / "mara.jsonl").stat().st_size
    assert to_file.sha256 == to_stream.sha256 == local.export(io.BytesIO()).sha256
    assert (to_file.memories, to_file.versions, told) == (3, 1, [(3, 3)])
    with pytest.raises(InvalidInput, match="target="):
        remote.export(tmp_path)


def test_the_example_of_the_page_runs(server, capsys):
    page = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(from ekphory import Memory\n.*?)```", page, re.DOTALL)
    exec(example.replace("http://127.0.0.1:8080", server.url))
    assert capsys.readouterr().out == "town We moved from Porto to Lisbon in May\n"


# Writing.


def test_records_go_in_batches_and_each_that_fails_has_its_place(connect):
    memory = connect(project="batches")
    records = [{"text": f"note {number}", "id": str(number)} for number in range(600)]
    records[300] = {"text": ""}
    records[301] = {"text": "an object", "metadata": {"of": object()}}
    told = []
    report = memory.add_many(iter(records), on_progress=told.append)
    assert (report.added, report.skipped, memory.count()) == (598, 0, 598)
    assert [(each.index, each.field) for each in report.failed] == [
        (300, "text"),
        (301, "metadata.of"),
    ]
    assert [each.added for each in told] == [256, 511, 598]
    assert memory.add_many(records).skipped == 598


def test_a_long_text_goes_in_one_request(connect):
    memory = connect(project="long")
    text = "tea " * 100_000
    assert memory.add_many([{"text": "a"}, {"text": text}, {"text": "b"}]).added == 3


def test_what_was_exported_is_taken_back_whole(connect):
    memory = connect(project="back")
    taken = {"id": "a", "text": "b", "created_at": "2026-01-01", "versions": []}
    report = memory.add_exported([taken])
    assert (report.added, report.ids) == (1, ("a",))
    assert memory.get("a").created_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_verbs_that_write_do_what_they_say(connect):
    memory = connect(project="writes", agent="a")
    mistake = memory.learn_mistake("retried a 404", fix="give up")
    rule = memory.add_rule("Answer in metric units")
    copy = memory.promote(mistake, pool="shared_mistakes")
    said = memory.add_messages([{"role": "user", "content": "hello"}], session="s")
    pools = {each.id: each.pool for each in memory.list()}
    assert [pools[each] for each in (mistake, rule, copy)] == [
        *("agent_mistakes", "shared_rules", "shared_mistakes")
    ]
    assert memory.get(said.ids[0]).session == "s"
    assert memory.forget(filter="pool = 'agent_mistakes'") == 1
    memory.add("the key is 4711", id="key")
    assert memory.forget("key", purge=True) == 1
    memory.repair()


@pytest.mark.slow
def test_messages_are_captured_there(connect):
    memory = connect(project="captured")
    messages = [{"role": "user", "content": "I always use tabs, never spaces, in Makefiles."}]
    (kept,) = memory.capture(messages, session="s", labels=["style"]).kept
    assert memory.get(kept.id).metadata["class"] == kept.class_


def test_a_scope_is_that_of_the_handle(connect):
    connect(org="home", project="scoped", user="mara").add("hers", id="1")
    connect(org="home", project="scoped", user="ben").add("his", id="1")
    assert connect(org="home", project="scoped", user="mara").get("1").text == "hers"
    assert connect(org="home", project="scoped").count() == 2
    assert connect(org="home", project="else").count() == 0


def test_async_memory_asks_a_server_as_well(server):
    async def session():
        async with AsyncMemory(server.url, project="awaited") as memory:
            await asyncio.gather(*(memory.add("tea", id=str(number)) for number in range(5)))
            return await memory.count()

    assert asyncio.run(session()) == 5


def test_a_closed_handle_says_so_over_a_server_too(connect):
    memory = connect()
    memory.close()
    with pytest.raises(StoreClosed, match="Open the store again"):
        memory.count()


# Keys.


@pytest.fixture(scope="module", params=EITHER)
def guarded(request, tmp_path_factory):
    store = tmp_path_factory.mktemp("keys") / "store"
    with served(store, over_a_cluster=request.param, require_key=True) as running:
        key = running.keys.create(org="home", project="chat", rights="admin").text
        with Memory(running.url, api_key=key) as memory:
            memory.add("the safe opens with 4711", id="1")
            memory.add("the safe opened before", id="2")
            memory.supersede("2", by="1")
        yield running


@pytest.fixture
def with_key(guarded, close_at_end):
    """Opens a handle with a new key that is bound so and has these rights."""

    def connect(rights="write", *, bound=None, **scope):
        key = guarded.keys.create(rights=rights, **(bound or {})).text
        return close_at_end(Memory(guarded.url, api_key=key, **scope))

    return connect


READS = [
    lambda memory: memory.search("what opens the safe?").hits,
    lambda memory: memory.search("").hits,
    lambda memory: memory.list(),
    lambda memory: memory.count(),
    lambda memory: memory.revisions(),
    lambda memory: memory.conflicts(),
    lambda memory: memory.timeline("the safe"),
    lambda memory: memory.profile(),
    lambda memory: memory.forget(filter="text CONTAINS 'safe'"),
    lambda memory: memory.export(io.BytesIO()).memories,
]
BY_ID = [
    lambda memory: memory.get("1"),
    lambda memory: memory.history("1"),
    lambda memory: memory.update("1", text="mine"),
    lambda memory: memory.forget("1"),
    lambda memory: memory.promote("1", pool="shared_knowledge"),
    lambda memory: memory.supersede("1", by="2"),
    lambda memory: memory.revisions(of=["1"]),
]


OTHERS = [{"org": "else"}, {"org": "home", "project": "else"}]


@pytest.mark.parametrize("bound", OTHERS)
def test_a_key_of_another_project_finds_nothing(with_key, bound):
    memory = with_key("admin", bound=bound)
    assert [ask(memory) for ask in READS] == [(), (), [], 0, (), (), (), (), 0, 0]


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ({"org": "home", "project": "kitchen"}, 1),
        ({"org": "home"}, 1),
        ({}, 1),
        ({"org": "home", "project": "chat"}, 0),
        ({"org": "else"}, 0),
    ],
)
def test_repeated_mistakes_are_told_to_keys_that_reach_the_project(with_key, bound, told):
    for agent in ("ann", "bob"):
        with_key(org="home", project="kitchen", agent=agent).add(
            "left the oven on", id="oven", pool="agent_mistakes"
        )
    assert len(with_key("read", bound=bound).repeated_mistakes()) == told


def test_what_a_server_answers_of_a_repeated_mistake_is_counts_and_moments(server):
    ask = server.client.post
    for agent in ("ann", "bob"):
        given = {"text": "left the oven on", "at": "2026-03-01", "pool": "agent_mistakes"}
        ask(
            "/api/v1/memory/add",
            json={"scope": {"project": "k", "agent": agent}, "arguments": given},
        )
    answer = ask("/api/v1/memory/repeated_mistakes", json={"scope": {"project": "k"}})
    at = "2026-03-01T00:00:00+00:00"
    assert answer.json() == {"result": [{"owners": 2, "memories": 2, "first": at, "last": at}]}


@pytest.mark.parametrize("ask", BY_ID)
def test_a_key_of_another_project_knows_no_id(with_key, ask):
    with pytest.raises(MemoryNotFound):
        ask(with_key(bound={"org": "home", "project": "else"}))


@pytest.mark.parametrize("ask", [*READS, *BY_ID, lambda memory: memory.add("mine")])
def test_a_key_does_not_reach_another_scope_by_its_name(with_key, ask):
    memory = with_key("admin", bound=OTHERS[1], org="home", project="chat")
    with pytest.raises(ServiceRefusal, match="bound to another organisation or project"):
        ask(memory)


def test_what_a_bound_key_writes_is_in_its_own_project(with_key):
    with_key(bound={"org": "home", "project": "own"}).add("mine", id="m")
    record = with_key("read", org="home").get("m")
    assert (record.org, record.project) == ("home", "own")
    report = with_key(bound={"org": "home", "project": "own"}).add_many(
        [{"text": "there", "project": "chat"}]
    )
    assert [each.field for each in report.failed] == ["project"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.add("tea"),
        lambda memory: memory.forget("1"),
        lambda memory: memory.conflicts(scan=True),
        lambda memory: memory.repair(),
    ],
)
def test_a_key_that_may_read_changes_nothing(with_key, ask):
    memory = with_key("read", bound={"org": "home", "project": "chat"})
    with pytest.raises(ServiceRefusal, match="This needs a key with the right to"):
        ask(memory)
    assert memory.count() == 2


def test_what_concerns_the_whole_store_needs_a_key_that_is_bound_to_nothing(with_key):
    for ask in (Memory.health, Memory.verify, Memory.repair):
        with pytest.raises(ServiceRefusal, match="This concerns all projects"):
            ask(with_key("admin", bound={"org": "home"}))
    assert with_key("admin").health().memories >= 2


def test_without_a_key_and_with_a_wrong_one_the_error_says_where_keys_are_given(guarded):
    for key in (None, "ek_wrong"):
        with (
            Memory(guarded.url, api_key=key) as memory,
            pytest.raises(ServiceRefusal, match="EKPHORY_API_KEY") as refused,
        ):
            memory.count()
        assert guarded.url in str(refused.value)
        assert "ek_wrong" not in str(refused.value)


def test_the_key_may_be_in_the_environment_and_is_never_in_a_pickle(guarded, monkeypatch):
    key = guarded.keys.create(rights="read").text
    with Memory(guarded.url, project="chat", preset="fast", api_key=key) as memory:
        pickled = pickle.dumps(memory)
    assert key.encode() not in pickled
    monkeypatch.setenv("EKPHORY_API_KEY", key)
    with pickle.loads(pickled) as again:
        assert (again.count(), again.scope.project, again.preset) == (2, "chat", FAST)


# The paths themselves.


@pytest.mark.parametrize(("verb", "arguments", "field"), read_cases(__file__)["refused"])
def test_arguments_of_other_names_or_types_are_refused(server, verb, arguments, field):
    answer = server.client.post(f"/api/v1/memory/{verb}", json={"arguments": arguments})
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"]["fields"]["field"] == field


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"scope": {"org_id": "home"}}, "org_id='home': no such field. Did you mean 'org'?"),
        ({"scope": {"org": "home", "proj": "chat"}}, "Did you mean 'project'?"),
        ({"scopes": {"org": "home"}}, "Did you mean 'scope'?"),
    ],
)
def test_a_scope_that_is_misspelt_forgets_nothing_of_others(server, connect, body, named):
    memory = connect(org="away", project="misspelt")
    memory.add("theirs", id="1")
    asked = {**body, "arguments": {"filter": "TRUE"}}
    answer = server.client.post("/api/v1/memory/forget", json=asked)
    assert answer.status_code == 422
    assert named in answer.json()["detail"]["message"]
    assert memory.count() == 1


@pytest.mark.parametrize("verb", ["close", "__reduce__", "_engine", "scope", "nothing"])
def test_nothing_but_the_verbs_can_be_asked_for(server, verb):
    assert server.client.post(f"/api/v1/memory/{verb}", json={}).status_code == 404


@pytest.mark.slow
def test_an_export_is_whole_beside_purges(connect, purging, tmp_path):
    memory = connect(org="bakery", project="ovens")
    memory.add("The oven is broken", id="oven")
    with purging(memory):
        reports = [memory.export(tmp_path / "ovens.jsonl") for _ in range(20)]
    assert min(report.memories for report in reports) == 1
    assert '"id":"oven"' in (tmp_path / "ovens.jsonl").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_search_with_the_agent_is_held_as_the_server_is_configured(tmp_path):
    document = {"retrieval_agent": {"agent_session_max_combined_calls": 2}}
    with (
        running_server(tmp_path / "store", document=document) as server,
        Memory(server.url, org="home", project="chat") as memory,
    ):
        memory.add_many(SAID)
        asked = {"org_id": "home", "project_id": "chat", "query": "Where does Mara live?"}
        asked["agent_mode"] = True
        inspected = server.answer("/inspect/search", asked)["agent"]["events"]
        found = memory.search("Where does Mara live?", agent_mode=True).retrieval_trace
    assert inspected[0]["data"]["most_calls"] == 2
    assert found.events[0].body.most_calls == 2
