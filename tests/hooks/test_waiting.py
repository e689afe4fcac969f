"""How long a tool waits for its hook."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

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


def refuse(listener, *, after):
    """Answer one request by its caller's running alone, some seconds later."""
    connection, _ = listener.accept()
    with connection:
        resident.receive(connection)
        time.sleep(after)
        resident.send(connection, {"alone": True})


def test_a_tool_waits_no_longer_where_the_resident_process_refuses_late(data, tmp_path):
    asked = json.dumps(prompt_payload("claude-code", folder=tmp_path, prompt="anything"))
    command = [sys.executable, "-m", "ekphory", "hook", "run", "claude-code", "prompt"]
    environment = {**os.environ, "XDG_DATA_HOME": data, "EKPHORY_DAEMON": "1"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(resident.find_socket())
        listener.listen()
        server = threading.Thread(target=refuse, args=(listener,), kwargs={"after": 1.7})
        server.start()
        started = time.monotonic()
        done = subprocess.run(
            [*command, "--store", str(tmp_path / "store")],
            input=asked,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        server.join()
    assert done.stdout == ""
    assert time.monotonic() - started < 3.0


def test_a_git_that_is_slow_gives_no_project_another_name(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 5\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TimeoutError, match="git did not answer"):
        find_project(tmp_path, seconds=0.2)
    monkeypatch.setenv("PATH", "")
    assert find_project(tmp_path) == str(tmp_path)
