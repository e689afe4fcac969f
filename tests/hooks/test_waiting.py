"""How long a tool waits for its hook."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from tests.cli.command_line import CommandLine

from ekphory import resident
from ekphory.hooks.repository import find_project

from .payloads import prompt_payload


@pytest.fixture
def data(monkeypatch):
    """A folder for the user's data; a socket's path is short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_DATA_HOME", folder)
        resident.make_socket_folder()
        yield folder


PROMPT = ("hook", "run", "claude-code", "prompt")


@pytest.fixture
def ekphory(data, tmp_path):
    """Runs a command on a store as a process of its own; returns what it printed."""

    def run(*words, asked="", daemon="1"):
        done = subprocess.run(
            [sys.executable, "-m", "ekphory", *words, "--store", str(tmp_path / "store")],
            input=asked,
            env={**os.environ, "XDG_DATA_HOME": data, "EKPHORY_DAEMON": daemon},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    return run


@pytest.fixture
def too_late(ekphory):
    """What `hook status` says of prompts that got nothing in time."""

    def ask():
        told = json.loads(ekphory("hook", "status", "--json", daemon="0"))
        assert [told["last_too_late"]] == told["events"][: told["too_late"]]
        return told["last_too_late"]

    return ask


@pytest.fixture
def asked(tmp_path):
    return json.dumps(prompt_payload("claude-code", folder=tmp_path, prompt="anything"))


@contextmanager
def resident_process(*, answers_after):
    """Listens as the resident process does, and lets its one caller run alone some time later."""

    def refuse():
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            resident.receive(connection)
            time.sleep(answers_after)
            resident.send(connection, {"alone": True})

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(resident.find_socket())
        listener.listen()
        server = threading.Thread(target=refuse)
        server.start()
        yield
        server.join()


@pytest.mark.usefixtures("data")
def test_a_tool_waits_no_longer_where_the_resident_process_refuses_late(ekphory, asked, too_late):
    with resident_process(answers_after=1.7):
        started = time.monotonic()
        assert ekphory(*PROMPT, asked=asked) == ""
        assert time.monotonic() - started < 3.0
    assert too_late()["did"].startswith("too late: alone, without the resident process")


@pytest.mark.usefixtures("data")
def test_a_prompt_that_the_resident_process_answers_too_late_is_noted(ekphory, asked, too_late):
    with resident_process(answers_after=2.5):
        assert ekphory(*PROMPT, asked=asked) == ""
    assert too_late() == {
        **too_late(),
        "host": "claude-code",
        "event": "prompt",
        "did": "too late: the resident process took longer than 1.8 seconds",
        "failure": None,
    }


@pytest.fixture
def ask_in_vain(data, monkeypatch):
    """Runs the hook of a prompt of a store whose tool waits for nothing."""
    monkeypatch.setattr(resident, "HOOK_SECONDS", 0.0)
    monkeypatch.setattr(resident, "_read_stdin", lambda: "{}")
    monkeypatch.setenv("EKPHORY_DAEMON", "1")
    return lambda store: resident.run_command([*PROMPT, "--store", store])


def test_a_prompt_that_no_resident_process_answers_is_noted_of_its_store(ask_in_vain):
    for store in ("/mine", "/other", "/mine"):
        assert ask_in_vain(store) == 0
    noted = resident.read_late(["/mine"])
    assert [each["store"] for each in noted] == ["/mine", "/mine"]
    assert noted[0]["did"] == "too late: no resident process answered within 1.8 seconds"
    assert resident.read_late([""]) == []


def test_the_notes_of_late_prompts_do_not_grow_for_ever(ask_in_vain, monkeypatch):
    monkeypatch.setattr(resident, "_MOST_LATE_BYTES", 1_000)
    for _ in range(20):
        ask_in_vain("/s")
    assert 1 <= len(resident.read_late(["/s"])) < 10


def test_a_prompt_that_has_its_answer_is_not_noted_as_too_late(asked, tmp_path, monkeypatch):
    monkeypatch.setenv(resident.WAITS_UNTIL, "7764072000.0")
    CommandLine(tmp_path / "store").run(*PROMPT, stdin=asked)
    assert resident.WAITS_UNTIL not in os.environ  # which is what the end looks at


def test_a_git_that_is_slow_gives_no_project_another_name(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 5\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TimeoutError, match="git did not answer"):
        find_project(tmp_path, seconds=0.2)
    monkeypatch.setenv("PATH", "")
    assert find_project(tmp_path) == str(tmp_path)
