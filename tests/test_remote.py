"""`Memory("http://…")` where it cannot work: what is refused, and servers that fail."""

import json
import re
from datetime import timedelta, timezone

import pytest
from tests.cli.command_line import CommandLine
from tests.server.running import running_server
from tests.services.wire import Reply, running_service, says

from ekphory import AgentOptions, Memory
from ekphory.agent.provider import AgentSettings
from ekphory.errors import InvalidInput, ServiceError, StoreError
from ekphory.filters.tree import Contains, Field
from ekphory.http_service import ServiceRefusal, ServiceUnavailable
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import FAST
from ekphory.testing import HashEmbedder


@pytest.fixture
def wire():
    with running_service() as service:
        yield service


@pytest.fixture
def remote(wire, close_at_end):
    """A handle on a service that answers as it is told."""
    return close_at_end(Memory(wire.host))


# What cannot be done over a server.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"embedder": HashEmbedder()}, "embedder=.*a server has its own models.*Leave it out"),
        ({"reranker": "none"}, "reranker='none': a server has its own models"),
        ({"chat": "http://localhost/v1"}, "chat=.*a server has its own models"),
        ({"preset": Pipeline("mine", FAST.stages)}, "preset=.*cannot be sent to a server"),
        ({"path": "http://key@localhost:8080"}, "holds a key or a query.*as `api_key`"),
        ({"path": "http://localhost:8080?key=secret"}, "path='http://localhost:8080': holds a key"),
        ({"path": "http://"}, "url='http://': not an http"),
        ({"path": "http://localhost:8080", "api_key": "a\nb"}, "api_key="),
    ],
)
def test_what_a_server_cannot_use_is_refused_at_once(given, message):
    with pytest.raises(InvalidInput, match=message) as refused:
        Memory(**{"path": "http://localhost:8080", **given})
    assert "secret" not in str(refused.value)


def test_a_store_in_a_directory_takes_no_key(store_path):
    with pytest.raises(InvalidInput, match=r"api_key='\*\*\*': a store has no key"):
        Memory(store_path, api_key="ek_secret")
    assert not store_path.exists()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda memory: memory.search("x", filter=Contains(Field("text"), "a", any_case=True)),
            "filter=.*cannot be sent to a server",
        ),
        (
            lambda memory: memory.search("x", preset=Pipeline("mine", FAST.stages)),
            "preset=.*cannot be sent to a server",
        ),
        (
            lambda memory: memory.search("x", timezone=timezone(timedelta(hours=2))),
            "timezone=.*no such timezone.*Give a name",
        ),
        (
            lambda memory: memory.search("x", agent_options=AgentOptions(settings=AgentSettings())),
            "agent_options=.*settings of its own configuration.*Leave them out",
        ),
        (lambda memory: memory.add("a", metadata={"k": b"b"}), r"metadata\.k=.*cannot be sent"),
        (lambda memory: memory.add("a", metadata={1: "b"}), "metadata={1: 'b'}: cannot be sent"),
        (lambda memory: memory.add("\ud800"), "text=.*half of a surrogate pair"),
    ],
)
def test_what_cannot_be_sent_says_why(wire, remote, ask, message):
    with pytest.raises(InvalidInput, match=message):
        ask(remote)
    assert wire.asked == []


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda memory: memory.add(5), "text=5: must be a string, not int"),
        (lambda memory: memory.get(5), "id=5: an id is non-empty text"),
        (lambda memory: memory.count(filter=5), "filter=5: must be a filter"),
        (lambda memory: memory.search("x", agent_mode="yes"), "agent_mode='yes': must be true or"),
        (lambda memory: memory.forget("x", purge="no"), "purge='no': must be true or false"),
        (lambda memory: memory.add_many("abc"), "records='abc': must be a list of records"),
        (lambda memory: memory.add_many(5), "records=5: must be a list of records"),
        (lambda memory: memory.add_exported({}), "records={}: must be a list of records"),
        (lambda memory: memory.capture(5), "messages=5: must be a list of messages"),
        (lambda memory: memory.capture([], source=5), "source=5: must be a string"),
        (lambda memory: memory.profile(user=5), "user=5: a scope field is text"),
        (lambda memory: memory.revisions(of=5), "of=5: must be a list of ids"),
        (lambda memory: memory.unsupersede(revision=["x"]), "revision=.*: there is none in this"),
        (lambda memory: memory.settle("x"), "timeout='x': must be a number of seconds"),
    ],
)
def test_a_server_refuses_what_cannot_be_used_in_the_words_of_a_store(served, ask, message):
    store, server = served
    with pytest.raises(InvalidInput, match=message) as refused:
        ask(store)
    with pytest.raises(type(refused.value), match=f"^{re.escape(str(refused.value))}$"):
        ask(server)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A store, and a handle on a server of another one."""
    folder = tmp_path_factory.mktemp("served")
    with (
        running_server(folder / "remote") as server,
        Memory(folder / "store", embedder=HashEmbedder()) as store,
        Memory(server.url) as remote,
    ):
        yield store, remote


def test_the_command_line_takes_the_url_and_says_what_has_to_be_done_elsewhere(tmp_path):
    with running_server(tmp_path / "store") as server:
        line = CommandLine(server.url)
        assert line.json("add", "I like figs", "--id", "figs")["ids"] == ["figs"]
        assert [hit["id"] for hit in line.json("search", "figs")["hits"]] == ["figs"]
        assert line.failure("get", "plums").startswith("id='plums': no such memory")
        said = line.failure("backup", "--target", str(tmp_path / "copy"))
    assert "is on object storage or a server" in said


# Servers that fail.


def test_nobody_who_listens_is_an_error_that_names_the_url_and_the_remedy():
    with (
        Memory("http://127.0.0.1:9", api_key="ek_secret") as memory,
        pytest.raises(ServiceUnavailable) as failed,
    ):
        memory.add("tea")
    said = str(failed.value)
    assert said.startswith("The memory server at http://127.0.0.1:9 could not be asked")
    assert said.endswith("Check the URL, and that the service runs.")
    assert "ek_secret" not in said


def test_a_server_that_went_away_is_an_error(tmp_path):
    with running_server(tmp_path / "store") as server:
        memory = Memory(server.url)
        memory.add("tea")
    with memory, pytest.raises(ServiceUnavailable, match="could not be asked"):
        memory.count()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(404, b"<html>not here</html>"), "answered status 404: .*an ekphory of this version"),
        (Reply(200, b"<html>welcome</html>"), "answered what is not JSON"),
        (says({"pages": 3}), "answered without a result.*an ekphory of this version"),
        (says({"result": {"hits": []}}), "this ekphory does not know.*the same version here"),
        (Reply(413, b"{}"), "answered status 413: .*Send less at a time"),
        (says([]), "answered without a result"),
    ],
)
def test_an_answer_that_is_not_that_of_a_memory_server_is_an_error(wire, remote, reply, message):
    wire.answer = lambda _: reply
    with pytest.raises(ServiceError, match=message) as failed:
        remote.search("x")
    assert wire.host in str(failed.value)


BUSY = Reply(429, b"{}", {"Retry-After": "0"})
OVERLOADED = Reply(503, b'{"detail": {"exception": "Overloaded"}}', {"Retry-After": "0"})
BROKEN = Reply(502, b"{}", {"Retry-After": "0"})
CUT_OFF = Reply(missing_bytes=5)


@pytest.mark.parametrize(
    ("ask", "result"),
    [
        (lambda memory: memory.count(), 3),
        (lambda memory: memory.add("tea", id="1"), {"added": 1, "skipped": 0, "failed": []}),
        (lambda memory: memory.add_many([{"text": "a", "id": "1"}]).added, 1),
    ],
)
@pytest.mark.parametrize("failure", [BUSY, OVERLOADED, BROKEN, CUT_OFF])
def test_what_may_be_done_twice_is_asked_again(wire, remote, ask, result, failure):
    report = {"added": 1, "skipped": 0, "failed": []}
    wire.replies = [failure, says({"result": 3 if result == 3 else report})]
    ask(remote)
    assert len(wire.asked) == 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.add("tea"),
        lambda memory: memory.add_many([{"text": "a", "id": "1"}, {"text": "b"}]),
        lambda memory: memory.update("1", text="tea"),
        lambda memory: memory.forget("1"),
    ],
)
def test_what_must_not_be_done_twice_is_asked_again_only_where_nothing_was_done(wire, remote, ask):
    for failure in (BROKEN, CUT_OFF):
        wire.replies, wire.asked = [failure], []
        with pytest.raises(ServiceUnavailable, match="Whether it was done is not known"):
            ask(remote)
        assert len(wire.asked) == 1
    for failure in (BUSY, OVERLOADED):
        wire.replies, wire.asked = [failure, Reply(422, b"{}")], []
        with pytest.raises(ServiceRefusal):
            ask(remote)
        assert len(wire.asked) == 2


def test_what_is_broken_there_is_the_error_that_it_is_here(wire, remote):
    detail = {"code": 503, "message": "The server cannot do this", "exception": "StoreError"}
    wire.answer = lambda _: Reply(503, json.dumps({"detail": detail}).encode())
    with pytest.raises(StoreError, match="The server cannot do this"):
        remote.update("1", text="tea")


def test_settling_asks_until_it_is_done_or_the_time_is_over(wire, remote):
    wire.answer = lambda _: says({"result": False})
    with pytest.raises(TimeoutError, match=r"not settled within 0\.1 s; the work goes on"):
        remote.settle(0.1)
    wire.replies, wire.asked = [says({"result": False}), says({"result": True})], []
    remote.settle()
    assert [each.path for each in wire.asked] == ["/api/v1/memory/settle"] * 2
