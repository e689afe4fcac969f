"""`ekphory mcp` as a process at the other end of two pipes."""

import json
import os
import signal
import subprocess

import pytest
from tests.server.running import running_server

from ekphory.memory import Memory

from .connected import KEPT, MCP, ended, over_stdio
from .lines import Lines, request

pytestmark = pytest.mark.slow


def remembering(number, text):
    return request(number, "tools/call", name="remember", arguments={"text": text})


@pytest.fixture
def raw(tmp_path):
    started = []

    def start():
        command = [*MCP, "--store", str(tmp_path / "store")]
        started.append(Lines(command, environment=KEPT))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_an_agent_remembers_in_one_process_and_recalls_in_the_next(tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    with over_stdio(store, "--user", "mara", log=log) as agent:
        kept = agent.data("remember", text="Mara lives in Lisbon")
        agent.call("update", id=kept["id"], text="Mara lives in Porto")
    with over_stdio(store, EKPHORY_USER="mara") as agent:
        assert agent.recalled("Where does Mara live?") == ["Mara lives in Porto"]
        gone = agent.data("forget", id=kept["id"], purge=True)
        assert gone == {"forgotten": 1, "purged": True}
    written = log.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    told = [(line["tool"], line["outcome"]) for line in lines]
    assert told == [("remember", "done"), ("update", "done")]
    assert "Lisbon" not in written


def test_a_server_is_asked_where_one_is_named_and_its_errors_are_told(tmp_path):
    with running_server(tmp_path / "store") as server:
        with over_stdio(server.url, "--org", "acme", "--project", "p") as agent:
            kept = agent.data("remember", text="Mara lives in Lisbon")
            assert agent.recalled("Where does Mara live?") == ["Mara lives in Lisbon"]
            assert "no such memory" in agent.refusal("forget", id="another")
        with Memory(server.url, org="acme", project="p") as memory:
            assert memory.get(kept["id"]).text == "Mara lives in Lisbon"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("http://127.0.0.1:1", "--tools", "memmachine"),
            "these tools need the files of the store",
        ),
        (("http://",), "not an http(s) URL"),
    ],
)
def test_a_server_that_cannot_be_used_is_told_at_once(options, message):
    command = [*MCP, "--store", *options]
    told = subprocess.run(command, env=KEPT, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert message in told.stderr


def test_memmachines_tools_are_offered_on_request(tmp_path):
    with over_stdio(tmp_path / "store", "--tools", "memmachine") as agent:
        assert list(agent.tools()) == ["add_memory", "search_memory", "delete_memory"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "how",
    ["SIGKILL", *(pytest.param(end, marks=pytest.mark.long) for end in ("SIGTERM", "SIGINT"))],
)
def test_what_was_acknowledged_outlives_any_end(raw, tmp_path, how):
    first = raw()
    for number in range(2, 7):
        reply = first.answer(remembering(number, f"note {number}"))
        assert reply["result"]["structuredContent"]["status"] == "added"
    first.process.send_signal(signal.Signals[how])
    first.process.wait(timeout=10)
    with over_stdio(tmp_path / "store") as agent:
        assert agent.data("list")["total"] == 5


def test_standard_output_carries_the_protocol_alone_and_what_cannot_be_read_is_not_logged(raw):
    server = raw()
    server.send("a private note, and no JSON")
    refused = server.answer(remembering(2, "half of a private face: \ud83d"))
    assert (refused["id"], refused["error"]["code"]) == (2, -32700)
    assert "half of a surrogate pair" in refused["error"]["message"]
    assert server.answer(remembering(3, "a private note"))["id"] == 3
    code, out, log = server.end()
    assert (code, out) == (0, "")
    assert [json.loads(line).get("tool") for line in log.splitlines()][-1] == "remember"
    assert "private" not in log


def test_a_store_that_cannot_be_used_is_told_on_standard_error(tmp_path):
    (tmp_path / "file").write_text("no store", encoding="utf-8")
    assert "is a file. Give a directory" in ended("--store", str(tmp_path / "file"))
