"""Who may ask the resident process, from where, and that it does only what its caller could."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from ekphory import resident


def in_processes(test):
    """Mark a test that starts a resident process."""
    return pytest.mark.slow(pytest.mark.long(test))


as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
NOBODY = 65534


# The place of its socket.


def open_to_others(folder):
    folder.mkdir(mode=0o755, parents=True)
    return f"{folder} must be of mode 0700, so that only you may enter it: chmod 700 {folder}."


def a_link(folder):
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder.parent)
    return f"{folder} must be a folder that belongs to you, and no link. Move away what is there."


def a_file_for_a_socket(folder):
    folder.mkdir(mode=0o700, parents=True)
    path = Path(resident.find_socket())
    path.touch()
    return f"{path} is in the way of the socket. Remove it."


def a_link_above(folder):
    folder.parent.parent.mkdir()
    elsewhere = folder.parents[2] / "elsewhere"
    (elsewhere / "daemon").mkdir(mode=0o700, parents=True)
    folder.parent.symlink_to(elsewhere)
    return (
        f"{folder.parent} must be a folder that belongs to you, and no link. "
        "Put one in its place, or set XDG_DATA_HOME to a folder of your own."
    )


def of_another_user_above(folder):
    folder.mkdir(mode=0o700, parents=True)
    os.chown(folder.parent, NOBODY, NOBODY)
    return (
        f"{folder.parent} must be a folder that belongs to you, and no link. "
        "Put one in its place, or set XDG_DATA_HOME to a folder of your own."
    )


def data_of_another_user(folder):
    folder.mkdir(mode=0o700, parents=True)
    os.chown(folder.parents[1], NOBODY, NOBODY)
    return (
        f"{folder.parents[1]} belongs to user {NOBODY}, who may change it. "
        "Set XDG_DATA_HOME to a folder of your own."
    )


def written_by_others(above, mode):
    def spoil(folder):
        folder.mkdir(mode=0o700, parents=True)
        folder.parents[above].chmod(mode)
        return (
            f"{folder.parents[above]} is of mode {mode:04o}, so that others may change it: chmod "
            f"go-w {folder.parents[above]}, or set XDG_DATA_HOME to a folder of your own."
        )

    return spoil


SPOILED = [
    open_to_others,
    a_link,
    a_file_for_a_socket,
    a_link_above,
    pytest.param(of_another_user_above, marks=as_root),
    pytest.param(data_of_another_user, marks=as_root),
    pytest.param(written_by_others(0, 0o777), id="all may write above"),
    pytest.param(written_by_others(1, 0o775), id="the group may write the data folder"),
    pytest.param(written_by_others(1, 0o1777), id="like /tmp"),
]


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_place_where_others_could_put_a_socket_is_not_used(home, spoil):
    told = spoil(home.folder)
    with pytest.raises(resident.Refused) as refused:
        resident.find_socket()
    assert f"{refused.value}." == told
    assert resident.find_obstacle() == told


def test_a_place_of_the_users_own_is_made_and_used_below_a_shared_folder(home):
    before = os.umask(0)  # whatever the umask, it is not made for others to write
    try:
        resident.make_socket_folder()
    finally:
        os.umask(before)
    assert Path(resident.find_socket()).parent == home.folder
    made = [home.folder, *home.folder.parents[:2]]
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o700, 0o755, 0o755]


def test_a_data_folder_that_is_a_link_of_the_users_is_followed(home):
    (home.path / "large disk").mkdir()
    (home.path / "data").symlink_to(home.path / "large disk")
    resident.make_socket_folder()
    assert Path(resident.find_socket()).parent == home.folder


def test_nothing_is_made_behind_a_link(home):
    elsewhere = home.path / "elsewhere"
    elsewhere.mkdir()
    (home.path / "data").mkdir()
    home.folder.parent.symlink_to(elsewhere)
    with pytest.raises(resident.Refused):
        resident.make_socket_folder()
    assert list(elsewhere.iterdir()) == []


@in_processes
@pytest.mark.parametrize("spoil", [open_to_others, a_link_above])
def test_why_no_resident_process_can_be_used_is_told_with_the_remedy(home, spoil):
    told = spoil(home.folder)
    home.add("The spare key is under the pot")
    status = json.loads(home.run("daemon", "status", "--json").stdout)
    assert status == {"running": False, "refused": told}
    assert home.run("daemon", "status").stdout == f"No resident process can be used. {told}\n"
    findings = json.loads(home.run("doctor", "--store", str(home.store), "--json").stdout)
    (note,) = (each for each in findings["findings"] if each["subject"] == "resident process")
    assert (note["state"], note["sentence"].endswith(told)) == ("note", True)


HOOK = """
import sys
from ekphory.resident import run_command
print(run_command(["hook", "run", "claude-code", "prompt"]))
"""


def test_where_none_can_be_used_a_hook_runs_alone_and_waits_for_none(home):
    open_to_others(home.folder)
    done = subprocess.run(
        [sys.executable, "-c", HOOK],
        input="{}",
        env=home.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "None\n"  # so the hook is run by this process


@in_processes
@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_folder_that_others_may_enter_later_is_not_used(running, mode):
    running.folder.chmod(mode)
    assert running.search("where is the spare key?") == ["The spare key is under the pot"]
    running.folder.chmod(0o700)
    assert running.status()["requests"] == 0


@in_processes
def test_a_link_in_place_of_the_folder_is_not_followed(home):
    elsewhere = home.path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    home.folder.parent.mkdir(parents=True)
    home.folder.symlink_to(elsewhere)
    home.add("The spare key is under the pot")
    assert list(elsewhere.iterdir()) == []
    assert home.status() == {"running": False}


# Who asks.


CALLER = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.recv(1)
"""
OTHERS_PYTHON = shutil.which("python3", path="/usr/bin")


@contextmanager
def connected(home, python=sys.executable, **rights):
    """Take the connection of a process with such rights, as the resident process does."""
    home.path.chmod(0o755)
    path = home.path / "open.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        caller = subprocess.Popen([python, "-c", CALLER, str(path)], cwd="/", **rights)
        connection, _ = listener.accept()
        with connection:
            yield connection
        assert caller.wait(timeout=30) == 0


@as_root
@pytest.mark.skipif(OTHERS_PYTHON is None, reason="needs a Python that all may run")
def test_another_user_is_told_from_the_own_one(home):
    with (
        connected(home, OTHERS_PYTHON, user=NOBODY, group=NOBODY) as connection,
        pytest.raises(resident.NoResident, match=f"belongs to user {NOBODY}"),
    ):
        resident.check_peer(connection)


def test_a_caller_of_the_own_user_and_groups_is_one_of_ours(home):
    with connected(home) as connection:
        assert resident.check_peer(connection) is not None
        assert resident.is_in_the_same_groups(connection)


@as_root
@pytest.mark.parametrize("other", [{"extra_groups": [*os.getgroups(), 4711]}, {"group": 4711}])
def test_other_groups_are_told_from_the_own_ones(home, other):
    with connected(home, **other) as connection:
        assert resident.check_peer(connection) is not None
        assert not resident.is_in_the_same_groups(connection)


@in_processes
@as_root
def test_a_caller_of_other_groups_runs_alone(running):
    asked = ("search", "where is the spare key?", "--store", str(running.store))
    done = running.run(*asked, rights={"extra_groups": [*os.getgroups(), 4711]})
    assert "spare key" in done.stdout
    assert running.status()["stores"] == []
    running.run(*asked)
    assert running.status()["stores"] == [str(running.store)]


LIES = """
import sys
from ekphory import __version__, resident

request = {"run": ["--version"], "version": __version__, "settings": sys.argv[1]}
more = {"store": "", "folder": "/", "variables": {}, "terminal": [False, False]}
print(resident.ask(request | more, seconds=60))
"""


@in_processes
@as_root
def test_a_caller_that_lies_about_its_groups_runs_alone(running, monkeypatch):
    for name in [name for name in os.environ if name.startswith("EKPHORY_")]:
        monkeypatch.delenv(name)

    def ask(**rights):
        return subprocess.run(
            [sys.executable, "-c", LIES, resident.hash_settings()],
            capture_output=True,
            text=True,
            check=True,
            **rights,
        ).stdout

    assert "'status': 0" in ask()
    assert ask(extra_groups=[*os.getgroups(), 4711]) == "{'alone': True}\n"


@in_processes
def test_what_it_makes_is_for_others_to_read_only_where_the_callers_umask_says_so(running):
    for daemon in ("0", "1"):
        store = running.path / f"private {daemon}"
        done = running.run(
            *("add", "Tea is in the tin", "--store", str(store)),
            rights={"umask": 0o077},
            EKPHORY_DAEMON=daemon,
        )
        assert done.returncode == 0
        assert {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in store.rglob("*")} == {0}


@pytest.mark.parametrize("told", ["/proc/self/status", "/proc/of/another/system"])
def test_the_umask_is_read_and_stays(told):
    before = os.umask(0o027)
    try:
        assert [resident.read_umask(told), resident.read_umask(told)] == [0o027, 0o027]
    finally:
        assert os.umask(before) == 0o027


def test_another_umask_is_another_setting():
    mine = resident.hash_settings()
    before = os.umask(0o077 if resident.read_umask() != 0o077 else 0o022)
    try:
        assert resident.hash_settings() != mine
    finally:
        os.umask(before)
    assert resident.hash_settings() == mine


# Letting go of a store.


@in_processes
@pytest.mark.parametrize("command", ["backup", "forget"])
def test_a_store_is_let_go_of_for_a_caller_that_does_without_it_too(running, command):
    running.search("where is the spare key?")
    assert running.status()["stores"] == [str(running.store)]
    arguments = {
        "backup": ("backup", "--target", str(running.path / "memories.tar")),
        "forget": ("forget", "--filter", "producer = 'nobody'", "--purge"),
    }[command]
    done = running.run(*arguments, "--store", str(running.store), EKPHORY_DAEMON="0")
    assert done.returncode == 0, done.stderr
    assert running.status()["stores"] == []


def test_the_resident_process_itself_has_nobody_to_ask(home, monkeypatch):
    resident.make_socket_folder()
    monkeypatch.setenv(resident.RESIDENT, str(os.getpid()))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(resident.find_socket())
        listener.listen()
        listener.setblocking(False)
        resident.release(str(home.store))
        with pytest.raises(BlockingIOError):
            listener.accept()
