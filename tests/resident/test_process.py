"""The process that keeps stores open between commands, as a caller on the command line meets it."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.mcp_server.lines import Lines, request

from ekphory import resident
from ekphory.daemon import Daemon

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_a_command_starts_the_process_that_answers_the_next_one_by_the_callers_path(running):
    done = running.run("search", "where is the spare key?", "--store", "store", "--json")
    (hit,) = json.loads(done.stdout)["hits"]
    assert hit["memory"]["text"] == "The spare key is under the pot"
    status = running.wait_until_running()
    assert (status["requests"], status["stores"]) == (1, [str(running.store)])


@pytest.mark.parametrize(
    ("arguments", "code"), [(("search", "spare key"), 0), (("get", "nothing"), 1), (("search",), 2)]
)
def test_an_answer_or_an_error_is_the_same_with_and_without_it(running, arguments, code):
    whole = (*arguments, "--store", str(running.store))
    with_it, without = running.run(*whole), running.run(*whole, EKPHORY_DAEMON="0")
    assert (with_it.stdout, with_it.stderr) == (without.stdout, without.stderr)
    assert with_it.returncode == without.returncode == code
    assert running.status()["requests"] == 1


def test_a_write_is_seen_with_and_without_it(running):
    running.add("Tea is in the tin")
    running.add("Salt is in the jar", EKPHORY_DAEMON="0")
    assert "Tea is in the tin" in running.search("where is the tea?", EKPHORY_DAEMON="0")
    assert "Salt is in the jar" in running.search("where is the salt?")


def test_without_a_store_both_take_the_default_one(running):
    running.run("add", "Bread is in the box")
    shown = running.run("search", "where is the bread?", "--json", EKPHORY_DAEMON="0")
    assert json.loads(shown.stdout)["hits"][0]["text"] == "Bread is in the box"
    assert running.status()["requests"] == 1


def test_what_asks_it_imports_nothing_slow():
    script = "import sys, ekphory.resident; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(Path(resident.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"typing", "pathlib", "dataclasses", "platformdirs", "subprocess"} & {*loaded}


def test_other_settings_run_alone(running):
    running.search("where is the spare key?", EKPHORY_RERANKER="none")
    assert running.status()["requests"] == 1
    assert running.status()["stores"] == []


def test_another_version_runs_alone(running):
    request = {"run": ["list"], "version": "0.0.1", "settings": resident.hash_settings()}
    assert resident.ask(request, seconds=10) == {"alone": True}


def test_a_command_whose_folder_is_gone_runs_alone(running, monkeypatch):
    for name in [name for name in os.environ if name.startswith("EKPHORY_")]:
        monkeypatch.delenv(name)
    request = {
        "run": ["--version"],
        "version": running.status()["version"],
        "settings": resident.hash_settings(),
        "store": "",
        "variables": {},
        "terminal": [False, False],
    }
    there = resident.ask({**request, "folder": str(running.path)}, seconds=10)
    assert there["status"] == 0
    gone = resident.ask({**request, "folder": str(running.path / "gone")}, seconds=10)
    assert gone == {"alone": True}


def test_the_callers_scope_holds(running):
    running.add("Bruno likes tea", EKPHORY_PROJECT="bruno")
    assert running.search("who likes tea?", EKPHORY_PROJECT="bruno") == ["Bruno likes tea"]
    assert running.search("who likes tea?", EKPHORY_PROJECT="mara") == []


def test_a_stale_socket_is_replaced(running):
    os.kill(running.status()["pid"], signal.SIGKILL)
    [path] = running.folder.glob("*.sock")
    assert path.is_socket()
    assert running.search("where is the spare key?") == ["The spare key is under the pot"]
    assert running.wait_until_running()["requests"] == 0


@contextmanager
def answered_by(behave):
    """Stand in for the resident process: `behave` gets the socket that it listens on."""
    resident.make_socket_folder()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(resident.find_socket())
        listener.listen()
        answering = threading.Thread(target=behave, args=(listener,))
        answering.start()
        yield
        answering.join()


def test_a_write_that_a_crash_cuts_off_is_told_and_not_repeated(home):
    with answered_by(take_and_crash):
        done = home.add("Tea is in the tin")
    assert (done.returncode, done.stdout) == (1, "")
    assert "took the command and did not answer" in done.stderr
    assert not home.store.exists()


def take_and_crash(listener):
    connection, _ = listener.accept()
    with connection:
        assert resident.receive(connection)["run"][0] == "add"


ON_A_FULL_DISK = """
import subprocess, sys
from pathlib import Path
from tests.resident.home import Home

home = Home(Path(sys.argv[1]))
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", home.path], check=True)
assert home.add("The spare key is under the pot").returncode == 0
home.wait_until_running()
filler = home.path / "filler"
try:
    filler.write_bytes(bytes(8_000_000))
except OSError:
    full = home.add("Tea is in the tin")
    assert full.returncode == 1 and "No space left on device" in full.stderr, full
    assert home.search("where is the spare key?") == ["The spare key is under the pot"]
    filler.unlink()
    assert home.add("Salt is in the jar").returncode == 0
    print(home.status()["requests"], *sorted(home.search("salt, tea, key")), sep="; ")
finally:
    home.stop()
"""


def test_on_a_full_disk_writes_fail_searches_answer_and_with_room_it_goes_on(home):
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("this machine gives no file system of a test's own")
    done = subprocess.run(
        [*apart, sys.executable, "-c", ON_A_FULL_DISK, str(home.path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.stderr == ""
    assert done.stdout == "3; Salt is in the jar; The spare key is under the pot\n"


def test_of_two_that_start_at_once_one_serves(home):
    command = [sys.executable, "-m", "ekphory.daemon"]
    both = [subprocess.Popen(command, env=home.environment, cwd="/") for _ in range(2)]
    status = home.wait_until_running()
    ended = {each.pid: each.wait(timeout=60) for each in both if each.pid != status["pid"]}
    assert list(ended.values()) == [1]
    home.stop()
    for each in both:
        each.wait(timeout=60)


def test_a_purge_by_another_process_closes_its_handles(running):
    running.search("where is the spare key?")
    found = running.run("list", "--store", str(running.store), "--json")
    [memory] = json.loads(found.stdout)["memories"]
    arguments = ("forget", memory["id"], "--purge", "--store", str(running.store))
    assert running.run(*arguments).returncode == 0
    assert running.status()["stores"] == []
    assert running.search("where is the spare key?") == []


def test_a_restored_store_is_the_one_that_answers(running):
    target = str(running.path / "memories.tar")
    assert running.run("backup", "--store", str(running.store), "--target", target).returncode == 0
    running.add("Tea is in the tin")
    shutil.rmtree(running.store)
    done = running.run("restore", "--source", target, "--store", str(running.store))
    assert done.returncode == 0, done.stderr
    assert running.search("where is the tea?") == ["The spare key is under the pot"]


@pytest.mark.parametrize("after", ["nothing", "an empty folder", "another store"])
def test_a_store_that_was_removed_is_not_written_to(running, open_session, after):
    other = running.path / "other"
    running.run("add", "Salt is in the jar", "--store", str(other), EKPHORY_DAEMON="0")
    session = open_session()
    assert session.recalled("where is the spare key?") == ["The spare key is under the pot"]
    shutil.rmtree(running.store)
    if after == "an empty folder":
        running.store.mkdir()
    if after == "another store":
        other.rename(running.store)
    done = running.add("Tea is in the tin")
    assert (done.returncode, done.stderr) == (0, "")
    found = ["Salt is in the jar"] if after == "another store" else []
    assert sorted(running.search("where is it?")) == [*found, "Tea is in the tin"]
    assert session.recalled("where is the tea?")[0] == "Tea is in the tin"
    assert running.status()["requests"] == 3


def test_the_command_line_tells_of_it_and_ends_it(running):
    pid = running.status()["pid"]
    shown = running.run("daemon", "status", "--json")
    assert json.loads(shown.stdout)["pid"] == pid
    running.search("where is the spare key?")
    told = running.run("daemon", "status").stdout
    assert f"Process {pid} has answered 1 command, holds open " in told
    running.run("daemon", "stop")
    end = time.monotonic() + 30
    while time.monotonic() < end and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    assert running.status() == {"running": False}


def test_one_that_closes_its_socket_while_it_is_asked_whether_it_ended_has_ended(home):
    with answered_by(end_between_two_questions):
        done = home.run("daemon", "stop")
    assert (done.returncode, done.stdout) == (0, "Process 4711 has ended.\n")


def end_between_two_questions(listener):
    connection, _ = listener.accept()
    with connection:
        assert resident.receive(connection) == {"stop": True}
        resident.send(connection, {"running": True, "pid": 4711})
    listener.accept()[0].close()
    Path(listener.getsockname()).unlink()


def test_a_request_that_is_too_large_is_not_taken(running):
    [path] = running.folder.glob("*.sock")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall((resident.MOST_BYTES + 1).to_bytes(4, "big"))
        assert connection.recv(1) == b""
    assert running.status()["running"]


def test_more_than_thirty_two_requests_at_once_run_alone(home):
    resident.make_socket_folder()
    served = Daemon(Path(resident.find_socket()), clock=time.monotonic)
    serving = threading.Thread(target=served.serve)
    serving.start()
    home.wait_until_running()
    with ExitStack() as opened:
        with served._turn:
            asked = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(33)]
            for connection in asked:
                connection.connect(resident.find_socket())
                resident.send(connection, {"release": "none"})
            (refused,), _, _ = select.select(asked, [], [], 60)
            assert resident.receive(refused) == {"alone": True}
        asked.remove(refused)
        assert [resident.receive(each) for each in asked] == [{"released": True}] * 32
    home.stop()
    serving.join(timeout=60)


def test_it_ends_when_nothing_is_asked(home):
    script = (
        "import pathlib, time; from ekphory import daemon, resident; "
        "resident.make_socket_folder(); path = pathlib.Path(resident.find_socket()); "
        "daemon.Daemon(path, idle_seconds=0.2, clock=time.monotonic).serve()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=home.environment, timeout=60, check=True
    )
    assert done.returncode == 0
    assert list(home.folder.glob("*.sock")) == []


def test_a_request_that_goes_alone_does_not_keep_it_running(home):
    resident.make_socket_folder()
    moment = [0.0]
    served = Daemon(Path(resident.find_socket()), idle_seconds=100, clock=lambda: moment[0])
    serving = threading.Thread(target=served.serve)
    serving.start()
    home.wait_until_running()
    moment[0] = 99
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(resident.find_socket())
        resident.send(connection, {"version": "another"})
        assert resident.receive(connection) == {"alone": True}
    moment[0] = 101
    serving.join(timeout=60)
    assert not serving.is_alive()


@pytest.mark.parametrize(
    "command", ["add -", "search tea --embedder model", "search tea --embedder=model", "serve", ""]
)
def test_what_it_cannot_do_is_not_asked_of_it(command):
    assert resident.run_command(command.split()) is None


class McpSession(Lines):
    """`ekphory mcp` of a home."""

    def __init__(self, home, *arguments):
        command = [sys.executable, "-m", "ekphory", "mcp", "--store", str(home.store), *arguments]
        super().__init__(command, environment=home.environment, folder=home.path)

    def tools(self):
        return [tool["name"] for tool in self.answer(request(2, "tools/list"))["result"]["tools"]]

    def call(self, tool, **arguments):
        asked = request(2, "tools/call", name=tool, arguments=arguments)
        return self.answer(asked)["result"]["structuredContent"]

    def recalled(self, query):
        return [hit["text"] for hit in self.call("recall", query=query)["hits"]]


@pytest.fixture
def open_session(running):
    """Starts sessions over stdio beside the resident process."""
    started = []

    def start(*arguments):
        started.append(McpSession(running, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_a_session_over_stdio_is_served_by_the_resident_process(running, open_session):
    session = open_session("--user", "mara")
    assert session.call("remember", text="Tea is in the tin")["status"] == "added"
    assert session.recalled("where is the tea?")[0] == "Tea is in the tin"
    assert running.status()["sessions"] == 1
    # The scope is that of the session's own command line.
    assert "Tea is in the tin" not in open_session("--user", "ben").recalled("where is the tea?")
    assert session.end() == (0, "", "")
    wait_until(lambda: running.status()["sessions"] == 1)
    assert running.search("where is the tea?")[0] == "Tea is in the tin"


def test_a_session_purges_and_goes_on_after_a_backup_by_another_process(running, open_session):
    session = open_session()
    (key,) = session.call("list")["memories"]
    kept = session.call("remember", text="Tea is in the tin")
    assert session.call("forget", id=key["id"], purge=True) == {"forgotten": 1, "purged": True}
    target = str(running.path / "memories.tar")
    assert running.run("backup", "--store", str(running.store), "--target", target).returncode == 0
    assert [each["id"] for each in session.call("list")["memories"]] == [kept["id"]]


def test_a_session_ends_aloud_when_the_resident_process_does(running, open_session):
    session = open_session()
    running.stop()
    assert session.process.wait(timeout=30) == 1
    assert "The resident process has ended" in session.process.stderr.read()


@pytest.mark.parametrize(
    "wrong", [("--nonsense",), ("--port", "8090"), ("--tools", "none"), ("--store", ".bashrc")]
)
def test_a_session_that_cannot_be_is_refused_as_without_it(running, wrong):
    (running.path / ".bashrc").write_text("no store")
    with_it, without = running.run("mcp", *wrong), running.run("mcp", *wrong, EKPHORY_DAEMON="0")
    assert (with_it.stdout, with_it.stderr) == (without.stdout, without.stderr)
    assert with_it.returncode == without.returncode > 0
    assert running.status()["sessions"] == 0


def test_what_needs_a_catalog_is_served_alone(running, open_session):
    session = open_session("--tools", "memmachine")
    assert session.tools()[0] == "add_memory"
    assert running.status()["sessions"] == 0


class ClaudeCode:
    """Runs the hooks of a configuration as Claude Code does: a list of words, and no shell."""

    def __init__(self, home):
        self.home = home
        self.settings = json.loads((home.path / ".claude" / "settings.json").read_text())

    def fire(self, event, payload):
        answers = []
        for group in self.settings["hooks"][event]:
            for hook in group["hooks"]:
                done = subprocess.run(
                    [hook["command"], *hook["args"]],
                    input=json.dumps({"hook_event_name": event, **payload}),
                    env=self.home.environment,
                    cwd=self.home.path,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=hook["timeout"],
                )
                assert (done.returncode, done.stderr) == (0, "")
                answers.append(done.stdout)
        return "".join(answers)


def test_a_tools_session_is_captured_and_the_next_one_knows(running):
    store = ("--store", str(running.store))
    running.run("hook", "install", "claude-code", *store)
    host = ClaudeCode(running)
    said = [
        ("user", "Never use pandas in this repository, we use polars for everything"),
        ("assistant", "Understood."),
        ("user", "the staging password is hedgehog-Lamp-91"),
    ]
    path = running.path / "t.jsonl"
    lines = [
        {
            "type": role,
            "message": {"role": role, "content": text},
            "timestamp": f"2026-11-25T12:00:0{n}Z",
        }
        for n, (role, text) in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = {"session_id": "s1", "transcript_path": str(path), "cwd": str(running.path)}
    assert host.fire("Stop", session) == ""
    wait_until(lambda: told_of_hooks(running)["waiting"] == 0)
    (following := running.path / "t2.jsonl").touch()
    asked = {"session_id": "s2", "transcript_path": str(following), "cwd": str(running.path)}
    asked["prompt"] = "Do we use pandas or polars here?"
    reply = json.loads(host.fire("UserPromptSubmit", asked))["hookSpecificOutput"]
    assert reply["hookEventName"] == "UserPromptSubmit"
    assert "polars for everything" in reply["additionalContext"]
    files = [each.read_bytes() for each in running.store.rglob("*") if each.is_file()]
    assert not any(b"hedgehog-Lamp-91" in content for content in files)


def told_of_hooks(home):
    return json.loads(home.run("hook", "status", "--json", "--store", str(home.store)).stdout)


def wait_until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)
