"""`ekphory capture` and `ekphory hook`, with the bundled models."""

import getpass
import json
import subprocess

import pytest
from tests.hooks.payloads import CLAUDE_LINES, prompt_payload, write_lines

from ekphory import resident
from ekphory.hooks.state import HookState, Waiting

SAID = [
    {"role": "user", "content": "hi there"},
    {"role": "user", "content": "I'm allergic to hazelnuts, please never suggest any"},
    {"role": "tool", "content": "212 passed in 11.3s"},
    {"role": "user", "content": "the staging password is hedgehog-Lamp-91, user is deploy"},
]


@pytest.fixture
def transcript(tmp_path):
    return write_lines(tmp_path / "said.jsonl", SAID)


def test_a_transcript_is_captured_without_its_secret(ekphory, transcript):
    report = ekphory.json("capture", str(transcript), "--project", "home", "--session", "s1")
    assert [1] in [each["evidence"] for each in report["kept"]]
    assert report["redactions"] == 1
    assert {0, 2} <= set(report["dropped"])
    listed = ekphory.run("list", "--project", "home").stdout
    assert "hazelnuts" in listed
    assert "hedgehog" not in listed


def test_a_transcript_that_is_captured_again_tells_what_is_known(ekphory, transcript):
    first = ekphory.run("capture", str(transcript), "--project", "home")
    assert "2 new memories of 4 messages" in first.stdout
    again = ekphory.run("capture", str(transcript), "--project", "home")
    assert "0 new memories of 4 messages, 2 known already" in again.stdout


def test_hooks_know_what_was_captured_by_hand(ekphory, transcript):
    ekphory.run("capture", str(transcript), "--project", "home", "--session", "s1")
    state = HookState(ekphory.store)
    assert len(state.captured_by_hand(None, "home", "s1")) == len(SAID)
    assert state.captured_by_hand(None, "work", "s1") == set()


def test_a_review_writes_nothing(ekphory, transcript):
    shown = ekphory.run("capture", str(transcript), "--review")
    assert "hazelnuts" in shown.stdout
    assert not ekphory.store.exists()


def test_labels_are_shown_in_a_review_and_given_by_a_capture(ekphory, tmp_path):
    billed = {"role": "user", "content": "I want my invoices as PDF by mail, never on paper"}
    file = str(write_lines(tmp_path / "billed.jsonl", [billed]))
    labels = ("--label", "invoices", "--label", "the garden")
    (shown,) = ekphory.json("capture", file, "--review", *labels)["kept"]
    assert shown["labels"] == ["invoices"]
    assert "labels" in ekphory.run("capture", file, "--review", *labels).stdout
    assert "labels" not in ekphory.run("capture", file).stdout
    again = ekphory.run("capture", file, *labels).stdout
    assert "1 known already" in again
    assert "labels" in again
    listed = ekphory.json("list", "--filter", "m.labels HAS 'invoices'")
    assert listed["total"] == 1


def test_a_file_without_messages_is_refused(ekphory, tmp_path):
    (tmp_path / "empty.jsonl").write_text("{}\n")
    assert "holds no message" in ekphory.failure("capture", str(tmp_path / "empty.jsonl"))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text(json.dumps(SAID)),
        lambda path: path.write_text(json.dumps({"messages": SAID})),
        lambda path: write_lines(path, CLAUDE_LINES),
    ],
)
def test_a_transcript_of_another_form_is_read(ekphory, tmp_path, write):
    write(tmp_path / "t.json")
    report = ekphory.json("capture", str(tmp_path / "t.json"), "--review")
    assert set(report) == {"kept", "dropped", "redactions", "steering", "added"}


def test_hooks_are_installed_shown_and_removed(ekphory, tmp_path):
    place = ("--config-dir", str(tmp_path))
    dry = ekphory.json("hook", "install", "claude-code", *place, "--dry-run")
    assert (dry["changed"], (tmp_path / "settings.json").exists()) == (False, False)
    assert ekphory.json("hook", "install", "claude-code", *place)["changed"]
    assert not ekphory.json("hook", "install", "claude-code", *place)["changed"]
    told = ekphory.json("hook", "status", "claude-code", *place)
    file = str(tmp_path / "settings.json")
    assert told["hosts"] == [{"host": "claude-code", "installed": True, "file": file, "git": None}]
    assert ekphory.json("hook", "uninstall", "claude-code", *place)["changed"]
    told = ekphory.json("hook", "status", "claude-code", *place)
    assert told["hosts"][0]["installed"] is False


def test_what_git_does_with_the_file_of_a_project_is_told(ekphory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    git("init")
    place = ("claude-code", "--scope", "project")
    exclude = {
        "file": str(tmp_path / ".git" / "info" / "exclude"),
        "lines": ["/.claude/settings.local.json"],
    }
    assert ekphory.json("hook", "install", *place, "--dry-run")["exclude"] == exclude
    assert ekphory.json("hook", "status", *place)["hosts"][0]["git"] == "untracked"
    shown = ekphory.run("hook", "install", *place).stdout
    assert "git leaves out /.claude/settings.local.json" in shown.replace("\n", " ")
    assert ekphory.json("hook", "status", *place)["hosts"][0]["git"] == "ignored"
    assert ekphory.json("hook", "uninstall", *place)["exclude"] == exclude
    (tmp_path / ".claude" / "settings.local.json").write_text("{}")
    git("add", "-A")
    assert "committed" in ekphory.failure("hook", "install", *place, "--dry-run")
    assert ekphory.json("hook", "status", *place)["hosts"][0]["git"] == "tracked"


def git(*words):
    subprocess.run(["git", *words], check=True, capture_output=True)


def test_a_configuration_that_cannot_be_read_hides_no_other_tool(ekphory, tmp_path):
    (tmp_path / "settings.json").write_text("{} // a comment")
    told = ekphory.json("hook", "status", "--config-dir", str(tmp_path))
    installed = {each["host"]: each["installed"] for each in told["hosts"]}
    assert (installed["gemini-cli"], installed["codex"]) == (None, False)
    shown = ekphory.run("hook", "status", "gemini-cli", "--config-dir", str(tmp_path)).stdout
    assert "cannot be read" in shown


def test_the_status_of_hooks_that_never_ran_says_so(ekphory):
    shown = ekphory.run("hook", "status").stdout
    assert "What they did last" not in shown
    assert shown.endswith("\nNo hook ran yet.\n")


def test_a_hook_recalls_for_a_prompt(ekphory, tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    ekphory.run("add", "The deploy script is bin/ship", "--project", str(folder))
    payload = json.dumps(
        prompt_payload("claude-code", folder=folder, prompt="where is the deploy script?")
    )
    ran = ekphory.run("hook", "run", "claude-code", "prompt", stdin=payload)
    told = json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "bin/ship" in told
    shown = ekphory.run("hook", "status").stdout
    assert "recalled 1 of 1" in shown


def test_a_memory_of_the_user_is_told_in_every_project(ekphory, tmp_path):
    ekphory.run("add", "Mara prefers tabs over spaces", "--user", getpass.getuser())
    ekphory.run("add", "Ida prefers spaces over tabs", "--user", "ida")
    asked = prompt_payload(
        "claude-code", folder=tmp_path, prompt="Does Mara prefer tabs or spaces?"
    )
    told = ekphory.run("hook", "run", "claude-code", "prompt", stdin=json.dumps(asked)).stdout
    assert "Mara prefers tabs" in told
    assert "Ida" not in told


def test_a_hook_ends_well_whatever_comes(ekphory):
    ran = ekphory.run("hook", "run", "claude-code", "prompt", stdin="not json")
    assert (ran.exit_code, ran.stdout) == (0, "")
    failure = ekphory.json("hook", "status")["last_failure"]
    assert "is not JSON" in failure["failure"]


def test_hooks_are_paused_and_go_on(ekphory):
    assert ekphory.json("hook", "pause", "--for", "2h")["paused_until"]
    assert ekphory.json("hook", "status")["paused_until"]
    ekphory.run("hook", "resume")
    assert ekphory.json("hook", "status")["paused_until"] is None
    assert "must be a span of time" in ekphory.failure("hook", "pause", "--for", "soon")


def test_a_session_is_forgotten_whole(ekphory):
    ekphory.run("add", "one", "--session", "s1")
    ekphory.run("add", "two", "--session", "s1")
    ekphory.run("add", "three", "--session", "s2")
    forgotten = ekphory.json("forget", "--session", "s1", "--purge", "--yes")
    assert forgotten == {"forgotten": 2, "purged": True}
    assert "three" in ekphory.run("list").stdout


def test_what_waits_of_a_session_is_forgotten_with_it(ekphory, tmp_path):
    ekphory.run("add", "one", "--session", "s1")
    said = [{"role": "user", "content": "I'm allergic to hazelnuts, please never suggest any"}]
    state = HookState(ekphory.store)
    waiting = Waiting(0, "opencode", "s1", None, "app", str(tmp_path), None, said)
    state.add_waiting(waiting)
    ekphory.run("forget", "--session", "s1", "--project", "other", "--yes")
    assert len(state.waiting()) == 1
    ekphory.run("forget", "--session", "s1", "--purge", "--yes")
    assert b"hazelnuts" not in (ekphory.store / "hooks.sqlite3").read_bytes()
    state.add_waiting(waiting)
    ekphory.run("hook", "catch-up")
    assert "hazelnuts" not in ekphory.run("list").stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("hook", "install", "emacs"), "host"),
        (("hook", "install", "codex", "--scope", "project"), "scope"),
        (("hook", "install", "codex", "--scope", "world"), "scope"),
        (("hook", "run", "codex", "lunch"), "event"),
    ],
)
def test_what_is_not_known_is_named(ekphory, arguments, named):
    assert named in ekphory.failure(*arguments, stdin="{}")


def test_the_way_to_the_resident_process_leaves_help_and_mistakes_to_the_command(monkeypatch):
    # Standard input is not read: a person who asks for help would wait for ever.
    monkeypatch.setattr(resident, "_read_stdin", lambda: pytest.fail("standard input was read"))
    assert resident.run_command(["hook", "run", "--help"]) is None
    assert resident.run_command(["hook", "run", "claude-code", "lunch"]) is None
