"""Each tool runs the hooks that are installed in it, with payloads of the form that it documents.

The payloads are in the TOML file beside.
"""

import json
import shutil

import pytest
from scripts.hook_sessions import PROJECT, HookHome
from tests.cases import read_tables
from tests.resident.home import temporary_home

from ekphory.hooks.hosts import EVENTS, HOSTS, read_payload
from ekphory.memory import Memory

from .fake_host import FakeHost
from .payloads import TRANSCRIPTS, write_lines

KNOWN, PROMPT = "The deploy script is bin/ship", "Where is the deploy script?"
SAID = "We decided that releases go out on Tuesdays, never on Fridays"
SENT = read_tables(__file__)
CONFIGURED = [name for name, host in HOSTS.items() if host.form is not None]
PLUGINS = [name for name, host in HOSTS.items() if host.form is None]
IN_ORDER = ["session-start", "prompt", "turn-end", "compact", "session-end"]


def spoken(host):
    """The transcript of a tool in which the user says something that is worth keeping."""
    text = json.dumps(TRANSCRIPTS[host]).replace("Use tabs here", "Use tabs")
    return json.loads(text.replace("Use tabs", SAID))


def fill_in(sent, **values):
    """What is sent, with its values in their places."""
    if isinstance(sent, str) and sent.strip("{}") in values:
        return values[sent.strip("{}")]
    if isinstance(sent, str):
        return sent.replace("{folder}", str(values["folder"]))
    if isinstance(sent, list):
        return [fill_in(each, **values) for each in sent]
    if isinstance(sent, dict):
        return {name: fill_in(each, **values) for name, each in sent.items()}
    return sent


def test_the_table_has_all_events_of_all_tools():
    assert set(SENT) == set(HOSTS)
    for host in CONFIGURED:
        assert set(SENT[host]) == set(EVENTS)
        for event, payload in SENT[host].items():
            assert payload["hook_event_name"] == HOSTS[host].events[event]


@pytest.mark.parametrize("host", CONFIGURED)
@pytest.mark.parametrize("event", EVENTS)
def test_a_payload_is_read(tmp_path, host, event):
    places = {"folder": str(tmp_path), "transcript": str(tmp_path / "t"), "prompt": PROMPT}
    read = read_payload(json.dumps(fill_in(SENT[host][event], **places)))
    named = "conversation_id" if host == "cursor" else "session_id"
    assert read.session == SENT[host]["prompt"][named]
    assert (read.folder, read.transcript) == (tmp_path, tmp_path / "t")
    assert not read.is_of_a_helper
    if event == "prompt":
        assert read.prompt == PROMPT


# With real processes: what is installed is run, as the tool runs it.


@pytest.fixture(scope="module")
def home():
    """A home whose project knows where the deploy script is, and whose resident process is warm."""
    with temporary_home(HookHome) as made:
        with Memory(made.store, project=PROJECT) as memory:
            memory.add(KNOWN)
        warming = FakeHost("claude-code", made)
        warming.fire("session-start", {"session_id": "warm", "cwd": str(made.folder)})
        made.wait_for_resident()
        warming.wait_until_told({"session_id": "warm", "cwd": str(made.folder), "prompt": PROMPT})
        yield made


def told_by(reply, host):
    """What a tool puts before the model of a reply, which has nothing that the tool refuses."""
    if host == "cursor":
        assert set(reply) == {"continue", "additional_context"}
        assert reply["continue"] is True
        return reply["additional_context"]
    assert set(reply) == {"hookSpecificOutput"}
    told = reply["hookSpecificOutput"]
    assert set(told) == {"hookEventName", "additionalContext"}
    assert told["hookEventName"] == HOSTS[host].events["prompt"]
    return told["additionalContext"]


def assert_all_was_done(home, host, session):
    """Assert that each event of a host ran without a failure, and that its dialogue is captured."""
    home.wait_for_captures()
    events = [each for each in reversed(home.state.events(limit=1_000)) if each.host == host]
    assert [each.failure for each in events if each.failure] == []
    done = [each.event for each in events if each.event != "capture" and each.project]
    assert [event for event in IN_ORDER if event in done] == IN_ORDER
    with Memory(home.store, project=PROJECT) as memory:
        kept = [each for each in memory.list() if each.agent == host and each.session == session]
    assert [each.text for each in kept] == [SAID]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("host", CONFIGURED)
def test_a_tool_is_told_what_is_known_and_its_dialogue_is_captured(home, host):
    tool, replies = FakeHost(host, home), {}
    places = {
        "folder": str(home.folder),
        "transcript": str(write_lines(home.path / f"{host}.jsonl", spoken(host))),
        "prompt": PROMPT,
    }
    for event in IN_ORDER:
        payload = fill_in(SENT[host][event], **places)
        replies[event] = tool.fire(event, payload)
    assert KNOWN in told_by(replies.pop("prompt"), host)
    assert set(replies.values()) == {None}
    assert_all_was_done(home, host, read_payload(json.dumps(payload)).session)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the plugins")
@pytest.mark.parametrize(("host", "session"), [("opencode", "ses_4f2a"), ("openclaw", "c9e1")])
def test_a_plugin_puts_before_the_model_what_is_known_and_sends_the_dialogue(home, host, session):
    places = {
        "folder": str(home.folder),
        "transcript": str(home.path / f"{host}.jsonl"),
        "prompt": PROMPT,
        "messages": spoken(host),
    }
    steps = fill_in(SENT[host]["steps"], **places)
    start, prompt, *others = FakeHost(host, home).play(steps, places["messages"])
    assert KNOWN in told_by_plugin(prompt, host)
    for each, step in zip([start, *others], [steps[0], *steps[2:]], strict=True):
        assert each == {**step, "returned": None}  # nothing else is put anywhere
    assert_all_was_done(home, host, session)


def told_by_plugin(done, host):
    """What a plugin puts before the model at a prompt."""
    if host == "openclaw":
        assert set(done["returned"]) == {"prependContext"}
        return done["returned"]["prependContext"]
    typed, told = done["given"][1]["parts"]
    assert typed["text"] == PROMPT
    assert told["id"].startswith("prt_")
    ours = {"sessionID": "ses_4f2a", "messageID": "msg_b1", "type": "text", "synthetic": True}
    assert told == {**ours, "id": told["id"], "text": told["text"]}
    return told["text"]
