"""What a hook recalls, what it notes, and that it never fails its host."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.capture.readers import Reader, reading

from ekphory.hooks import running
from ekphory.hooks.hosts import HOSTS
from ekphory.hooks.running import (
    HookRun,
    capture_waiting,
    find_patterns,
    is_ignored,
    name_messages,
    names_ignored,
)
from ekphory.hooks.state import HookState
from ekphory.hooks.transcripts import read_transcript
from ekphory.models import captures
from ekphory.resident import start_once

from .payloads import CLAUDE_LINES, OPENCODE_LINES, end_payload, prompt_payload, write_lines

TABS = "Use tabs here"


@pytest.fixture
def ask(run, folder):
    """Runs the hook of a prompt; returns what the host is told."""

    def ask(prompt="the deploy script", *, project=None, session="s1"):
        asked = prompt_payload("claude-code", folder=folder, prompt=prompt, session=session)
        return run("prompt", asked, project=project)

    return ask


@pytest.fixture
def transcript(tmp_path):
    return write_lines(tmp_path / "t.jsonl", CLAUDE_LINES)


@pytest.fixture
def end_turn(run, folder, transcript):
    """Runs the hook of a turn's end, in Claude Code with a transcript."""
    ended = end_payload("claude-code", folder=folder, transcript=transcript)
    return lambda: run("turn-end", ended)


@pytest.fixture
def project(open_memory, folder):
    """The memories of the folder's project."""
    return open_memory(project=str(folder))


@pytest.fixture
def deploying(project):
    """The memories of a project that knows one thing."""
    project.add("The deploy script is bin/ship")
    return project


@pytest.fixture(autouse=True)
def read_as_preferences(monkeypatch):
    """Makes the capture keep what says to use tabs, as a preference."""
    kept = dict.fromkeys((TABS, "Use tabs"), reading("preference"))
    for module in (captures, running):
        monkeypatch.setattr(module, "bundled_capture_reader", lambda: Reader(kept))


def last(state):
    return state.events(limit=1)[0]


@pytest.mark.usefixtures("deploying")
def test_a_prompt_is_told_what_the_project_knows(ask, state):
    told = json.loads(ask())["hookSpecificOutput"]
    assert told["hookEventName"] == "UserPromptSubmit"
    assert "The deploy script is bin/ship" in told["additionalContext"]
    assert last(state).did == "recalled 1 of 1"


@pytest.mark.usefixtures("deploying")
def test_a_prompt_is_recorded_without_its_secrets(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", "10")
    assert ask("where is the deploy script? the staging password is hedgehog-Lamp-91") != ""
    (records,) = tmp_path.rglob("searches.sqlite3")
    assert b"deploy script" in records.read_bytes()
    assert b"hedgehog" not in records.read_bytes()


@pytest.mark.usefixtures("deploying")
def test_what_the_reranker_finds_irrelevant_is_not_told(ask, state):
    for prompt, did in [
        ("Where is the deploy script?", "recalled 1 of 1"),
        ("Write a script for a play about the sea", "recalled nothing"),
    ]:
        ask(prompt)
        assert last(state).did == did


@pytest.mark.parametrize(
    "prompt",
    ["ok", "Thanks!", "yes, go on", "Looks good, do it.", "ja, weiter", "2", "👍"],
)
def test_a_prompt_that_only_agrees_or_thanks_is_told_rules_alone(ask, project, prompt):
    project.add("Thanks to Ida the deploy goes on: ok is looking good, yes")
    project.add_rule("Answer in metric units")
    told = ask(prompt)
    assert "Answer in metric units" in told
    assert "Ida" not in told


@pytest.mark.parametrize("prompt", ["why?", "ok, where is it?", "继续部署", "deploy"])
def test_a_prompt_with_a_word_of_its_own_asks_for_something(prompt):
    assert running.asks_for_something(prompt)


@pytest.mark.usefixtures("deploying")
def test_nothing_is_told_twice_in_a_session(ask):
    assert ask() != ""
    assert ask() == ""
    assert ask(session="s2") != ""


@pytest.mark.usefixtures("deploying")
def test_what_is_recalled_when_the_tool_waits_no_more_is_told_with_a_later_prompt(
    ask, state, monkeypatch
):
    monkeypatch.setenv("EK_WAITS_UNTIL", "1764072000.0")
    assert ask() == ""
    assert last(state).did == "recalled too late"
    monkeypatch.setenv("EK_WAITS_UNTIL", "7764072000.0")
    assert ask() != ""


def test_what_the_session_itself_said_is_not_told(ask, project):
    project.add("The deploy script is bin/ship", session="s1")
    assert ask() == ""


def test_another_projects_memories_are_never_told(ask, open_memory):
    open_memory(project="elsewhere").add("The deploy script is bin/ship")
    assert ask() == ""
    assert ask(project="elsewhere") != ""


def test_at_the_end_of_a_turn_the_transcript_is_noted_and_then_captured_once(
    run, end_turn, capture, folder, state, project, transcript
):
    end_turn()
    assert last(state).did == "noted for capture"
    assert capture() == 1
    assert state.waiting() == []
    (record,) = project.list()
    assert (record.text, record.session, record.agent) == (TABS, "s1", "claude-code")
    run("session-end", end_payload("claude-code", folder=folder, transcript=transcript))
    capture()
    assert last(state).did == "nothing new"
    assert project.count() == 1


def test_what_hooks_captured_is_not_captured_again_by_hand(end_turn, capture, project, transcript):
    end_turn()
    capture()
    (record,) = project.list()
    report = project.capture(read_transcript(transcript), session="s1", source="t.jsonl")
    assert [each.id for each in report.kept] == [record.id]
    assert project.count() == 1
    project.capture(read_transcript(transcript), session="another")
    assert project.count() == 2


def test_what_was_captured_by_hand_is_not_captured_again_by_hooks(
    end_turn, capture, folder, state, transcript
):
    names = name_messages(read_transcript(transcript))
    state.note_captured_by_hand(None, "another project", "s1", names)
    state.note_captured_by_hand(None, str(folder), "s1", names[:-1])
    state.note_captured_by_hand(None, str(folder), "s1", names[-1:])
    end_turn()
    capture()
    assert last(state).did == "nothing new"


def test_what_was_captured_into_another_project_is_captured_by_hooks(
    end_turn, capture, state, project, transcript
):
    names = name_messages(read_transcript(transcript))
    state.note_captured_by_hand(None, "another project", "s1", names)
    end_turn()
    capture()
    assert project.count() == 1


def test_what_was_noted_and_not_captured_is_captured_by_whoever_comes_next(
    end_turn, open_memory, project, tmp_path
):
    end_turn()
    # The process is killed here; another one reads the same file of state.
    assert capture_waiting(HookState(tmp_path / "state"), open_memory) == 1
    assert project.count() == 1


def test_messages_that_are_sent_are_noted_without_their_secrets(
    send, capture, folder, project, tmp_path
):
    secret = {"info": {"role": "user"}, "parts": [{"type": "text", "text": "pw: Sommer2024!"}]}
    send([*OPENCODE_LINES, secret], folder=folder)
    kept = (tmp_path / "state" / "hooks.sqlite3").read_bytes()
    assert b"Use tabs" in kept
    assert b"Sommer2024" not in kept
    assert capture() == 1
    assert b"Use tabs" not in (tmp_path / "state" / "hooks.sqlite3").read_bytes()
    assert [each.text for each in project.list()] == ["Use tabs"]


def test_a_capture_that_fails_is_noted_and_tried_again(end_turn, capture, state):
    end_turn()

    def refuse(**_scope):
        raise OSError(28, "No space left on device")

    assert capture_waiting(state, refuse) == 0
    assert "No space left on device" in last(state).failure
    assert capture() == 1


def test_a_session_is_not_forgotten_while_it_is_captured(end_turn, state, open_memory, project):
    end_turn()

    def forget():
        with state.hold_captures():
            project.forget(filter="session = 's1'")

    with ThreadPoolExecutor(1) as thread:

        def open_slowly(**scope):
            thread.submit(forget)
            time.sleep(0.2)
            return open_memory(**scope)

        assert capture_waiting(state, open_slowly) == 1
    assert project.count() == 0


@pytest.mark.parametrize("payload", ["", "not json", "[]", "{}"])
def test_a_payload_that_cannot_be_read_is_noted_and_the_host_told_nothing(run, state, payload):
    assert run("prompt", payload) == ""
    assert "InvalidInput" in last(state).failure


def test_a_store_that_fails_is_noted_and_the_host_told_nothing(folder, state):
    def refuse(**_scope):
        raise OSError(5, "Input/output error")

    hook = HookRun(HOSTS["claude-code"], "prompt", state, refuse)
    asked = prompt_payload("claude-code", folder=folder, prompt="anything")
    assert hook.reply(json.dumps(asked)) == ""
    assert "Input/output error" in last(state).failure


@pytest.mark.usefixtures("deploying")
def test_a_pause_lasts_until_its_end(ask, state):
    state.pause(datetime.now(UTC) + timedelta(hours=1))
    assert ask() == ""
    assert last(state).did == "paused"
    state.pause(datetime.now(UTC) - timedelta(seconds=1))
    assert ask() != ""


def test_what_is_said_while_paused_is_not_captured_later(end_turn, capture, state, project):
    state.pause(datetime.now(UTC) + timedelta(hours=1))
    end_turn()
    state.pause(None)
    end_turn()
    capture()
    assert last(state).did == "nothing new"
    assert project.count() == 0


def test_what_is_said_in_a_pause_is_not_captured_when_its_turn_ends_after_it(
    end_turn, send, capture, folder, state, project, transcript
):
    state.pause(datetime.now(UTC) + timedelta(hours=1))
    said = datetime.now(UTC)
    state.pause(None)
    write_lines(transcript, [{**CLAUDE_LINES[0], "timestamp": said.isoformat()}])
    end_turn()
    created = {"created": 1_000 * said.timestamp()}
    part = {"type": "text", "text": "Use tabs"}
    send([{"info": {"role": "user", "time": created}, "parts": [part]}], folder=folder)
    assert b"Use tabs" not in (state.lock.parent / "hooks.sqlite3").read_bytes()
    capture()
    assert project.count() == 0


def test_what_is_said_in_a_folder_that_is_left_out_is_not_captured_elsewhere(
    send, capture, folder, project, tmp_path
):
    left_out = tmp_path / "private"
    left_out.mkdir()
    (left_out / ".ekphoryignore").touch()
    send(OPENCODE_LINES, folder=left_out)
    send(OPENCODE_LINES, folder=folder)
    capture()
    assert project.count() == 0


def test_a_pinned_rule_is_told_with_the_first_prompt_of_a_session(ask, project):
    project.add_rule("Answer in metric units")
    assert "Answer in metric units" in ask("How tall is the tower?")
    assert ask("How tall is the tower?") == ""


def test_what_two_memories_say_alike_is_told_once(ask, deploying, state):
    deploying.add("The deploy script is bin/ship", pool="agent_mistakes")
    ask()
    assert last(state).did == "recalled 1 of 1"


def test_a_helpers_session_is_left_out(run, folder, state):
    asked = prompt_payload("claude-code", folder=folder, prompt="x") | {"agent_id": "a7"}
    assert run("prompt", asked) == ""
    assert "not the user's session" in last(state).did


def test_claude_codes_hook_that_cursor_runs_leaves_it_to_cursors(ask, state, monkeypatch):
    monkeypatch.setenv("CURSOR_VERSION", "3.20.17")
    ask("x")
    assert last(state).did == "left to Cursor's own hook"


@pytest.mark.parametrize(
    ("content", "below", "ignored"),
    [
        ("", "", True),
        ("*\n", "src", True),
        ("# a comment\nsecret/\n", "secret", True),
        ("secret/\n", "secret/deep", True),
        ("secret/\n", "src", False),
        ("# a comment alone\n", "src", False),
    ],
)
def test_a_folder_is_left_out_by_a_file(folder, content, below, ignored):
    (folder / ".ekphoryignore").write_text(content)
    place = folder / below
    place.mkdir(parents=True, exist_ok=True)
    assert is_ignored(place) is ignored


def test_a_repository_below_a_folder_that_is_left_out_is_left_out(folder):
    (folder / ".ekphoryignore").touch()
    inner = folder / "vendor" / "tool"
    (inner / ".git").mkdir(parents=True)
    assert is_ignored(inner)
    (inner / ".ekphoryignore").write_text("secret/\n")
    assert is_ignored(inner)
    assert find_patterns(inner) == ["secret/"]


def test_a_link_to_a_folder_that_is_left_out_is_left_out(folder, tmp_path):
    (folder / ".ekphoryignore").touch()
    (folder / "src").mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder / "src")
    assert is_ignored(link)


def test_messages_that_name_an_ignored_path_are_left_out():
    assert names_ignored("look at `config/.env`, please", [".env"])
    assert names_ignored("Ida's pay is in finance/payroll.csv", ["finance/"])
    assert names_ignored("see /srv/app/finance/2026/payroll.csv", ["finance"])
    assert not names_ignored("see refinance/payroll.csv", ["finance/"])
    assert not names_ignored("look at config/app.toml", [".env"])


@pytest.fixture
def say(send, capture, folder):
    """Captures a session of opencode that consists of some messages, each with its moment."""

    def say(*messages, session="s1"):
        sent = [
            {
                "info": {"role": "user"} | ({} if second is None else _created(second)),
                "parts": [{"type": "text", "text": text}],
            }
            for second, text in messages
        ]
        send(sent, folder=folder, session=session)
        capture()

    return say


def _created(second):
    return {"time": {"created": 1_764_072_000_000 + 1_000 * second}}


def test_after_a_compaction_what_is_new_is_captured_and_nothing_twice(say, project):
    say((0, "Use tabs"), (1, "hello"), (2, "bye"))
    # The tool has made one of three, and something is said anew.
    say((1, "hello"), (9, TABS))
    assert sorted(each.text for each in project.list()) == ["Use tabs", TABS]


def test_what_was_forgotten_stays_so_when_something_new_stands_before_it(say, project):
    say((1, "Use tabs"), (2, "bye"))
    project.forget(project.list()[0].id, purge=True)
    say((0, "hello"), (1, "Use tabs"), (2, "bye"), (3, TABS))
    assert [each.text for each in project.list()] == [TABS]


def test_what_a_session_copies_from_the_one_that_it_resumes_is_captured_once(say, project):
    say((1, "Use tabs"), (2, "bye"))
    say((1, "Use tabs"), (2, "bye"), (3, TABS), session="s2")
    assert [(each.text, each.session) for each in project.list()] == [
        (TABS, "s2"),
        ("Use tabs", "s1"),
    ]


def test_what_two_sessions_say_at_one_moment_is_captured_of_both(say, project):
    say((1, "Use tabs"), (2, "bye"))
    say((1, TABS), (3, "bye"), session="s2")
    assert sorted(each.text for each in project.list()) == ["Use tabs", TABS]


def test_what_was_forgotten_stays_so_when_a_step_back_is_undone(say, project):
    say((1, "Use tabs"), (2, "bye"))
    project.forget(project.list()[0].id, purge=True)
    say((2, "bye"), (3, "hello"))
    say((1, "Use tabs"), (2, "bye"), (3, "hello"))
    assert project.count() == 0


def test_what_is_said_after_a_transcript_without_moments_became_shorter_is_captured(say, project):
    say((None, "hello"), (None, "bye"), (None, "hm"))
    say((None, "hello"))
    say((None, "hello"), (None, TABS))
    assert [each.text for each in project.list()] == [TABS]


def test_what_several_note_at_once_is_all_noted(state):
    names = [f"m{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: state.note_recalled("codex", "s1", [name]), names))
    assert state.recalled("codex", "s1") == set(names)


def test_a_transcript_with_an_odd_line_is_captured_all_the_same(
    end_turn, capture, project, transcript
):
    odd = [{"type": "user", "message": {"content": "hm"}, "timestamp": "12:00"}, {"type": "user"}]
    write_lines(transcript, [*odd, *CLAUDE_LINES])
    end_turn()
    assert capture() == 1
    assert project.count() == 1


def test_a_failure_never_tells_the_payload(run, state):
    run("prompt", '{"prompt": "the wifi password is hedgehog-Lamp-91')
    assert "hedgehog" not in last(state).failure


def test_what_waits_is_captured_into_its_own_organisation(
    folder, state, open_memory, capture, transcript
):
    hook = HookRun(HOSTS["claude-code"], "turn-end", state, open_memory, org="acme")
    hook.reply(json.dumps(end_payload("claude-code", folder=folder, transcript=transcript)))
    capture()
    assert open_memory(org="acme", project=str(folder)).count() == 1


RUNS_UNTIL_TOLD = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / f"{os.getpid()}.started").touch()
while not (folder / "stop").exists():
    time.sleep(0.02)
"""
ASKS = "import sys; from ekphory.resident import start_once; start_once(sys.argv[2:], sys.argv[1])"


def test_however_many_ask_for_a_process_one_is_started_and_another_after_its_end(tmp_path):
    started = [sys.executable, "-S", "-c", RUNS_UNTIL_TOLD, str(tmp_path)]
    asked = [sys.executable, "-c", ASKS, str(tmp_path / "lock"), *started]

    def ask_until_started(count):
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("*.started"))) < count:
            assert time.monotonic() < end
            subprocess.run(asked, check=True)

    ask_until_started(1)
    for _ in range(3):
        subprocess.run(asked, check=True)
    time.sleep(0.2)
    assert len(list(tmp_path.glob("*.started"))) == 1
    (tmp_path / "stop").touch()
    ask_until_started(2)


def test_where_no_process_can_be_started_all_goes_on_without_it(tmp_path):
    missing = str(tmp_path / "missing" / "lock")
    nothing = [sys.executable, "-c", ""]
    start_once(nothing, missing)
    start_once(nothing, str(tmp_path))
    start_once(["/nowhere/python"], str(tmp_path / "lock"))
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]
