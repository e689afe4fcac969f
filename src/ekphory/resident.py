"""The way to a process that keeps stores open between commands: where it listens, how it is asked.

Nothing slow is imported here, `typing`, `pathlib` and `dataclasses` among it: a command that the
resident process answers starts with no more. What is sent is one JSON object a message, behind its
length.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import struct
import sys
import zlib

from ekphory import __version__
from ekphory.errors import EkphoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

PREFIX = "EKPHORY_"
COMMANDS = frozenset({"search", "add", "update", "get", "list", "history", "hook", "mcp"})
"""What the resident process answers; `hook run` and `mcp` over stdio by ways of their own."""
_WRITING = frozenset({"add", "update"})
_ALONE = ("-", "--embedder", "--debug")
"""Arguments with which a command runs alone: what reads standard input or loads another model."""
MOST_BYTES = 1_000_000
_LENGTH = struct.Struct(">I")
_LONGEST_SOCKET_PATH = 100
"""Of a path to a socket; Linux takes 107 bytes and macOS 103."""
_CONNECT_SECONDS = 0.5
_READ_SECONDS = 10.0
_SESSION_SECONDS = 20.0
"""So long a resident process may take to load what a session needs."""
_PIPE_BYTES = 65_536
HOOK_SECONDS = 1.8
"""So long a hook waits, also for a resident process that is just starting."""
_POLL_SECONDS = 0.05
_LATE_FILE = "late-hooks.jsonl"
_MOST_LATE_BYTES = 100_000
"""Of the file of prompts that came too late; a fuller one is begun anew."""
_WHY_LATE = {
    "starting": f"too late: no resident process answered within {HOOK_SECONDS} seconds",
    "busy": f"too late: the resident process took longer than {HOOK_SECONDS} seconds",
    "alone": f"too late: alone, without the resident process, it took over {HOOK_SECONDS} seconds",
}
_EVENTS = ("prompt", "turn-end", "compact", "session-start", "session-end")
"""Of hooks; with another word the command itself says what is wrong."""
_DETACHED = "EK_DETACHED"
"""Set for a process that no tool waits for."""
RESIDENT = "EK_RESIDENT"
"""Names the resident process by its id, in itself: it has nothing to ask of another."""
INHERITED_LOCK = "EK_LOCK"
"""Set for a process that holds its lock already."""
WAITS_UNTIL = "EK_WAITS_UNTIL"
"""Says until when a tool waits for its hook, in seconds since 1970."""
_WRITE_SECONDS = 90.0
PASSED_ON = (
    WAITS_UNTIL,
    *("EKPHORY_STORE", "EKPHORY_ORG", "EKPHORY_PROJECT", "EKPHORY_AGENT", "EKPHORY_USER"),
    *("EKPHORY_SESSION", "EKPHORY_PRESET"),
    *("COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"),
)
"""Variables that each request carries."""
_SAME = ("HOME", "XDG_DATA_HOME", "TZ", "OMP_NUM_THREADS")
"""Variables that must be the same in both, as every other one of ekphory's."""
_CREDENTIALS = struct.Struct("=iII")
"""Process, user and group of Linux's SO_PEERCRED."""
_PEER_GROUPS = 59
"""SO_PEERGROUPS of Linux, which the module `socket` does not name."""
_GROUPS_BYTES = 1024
"""So many getsockopt reads at most: 256 groups; who is in more goes alone."""


class NoResident(EkphoryError):
    """No resident process answers, or it may not be asked."""


class Refused(NoResident):
    """None can be started: the place of its socket is taken, or others may enter it."""


class Unanswered(EkphoryError):
    """The resident process took a message and did not say what became of it."""


def is_wanted() -> bool:
    """Return whether a resident process may be used; `EKPHORY_DAEMON=0` switches it off."""
    return _read_variable("DAEMON") != "0" and _has_sockets()


def _has_sockets() -> bool:
    return hasattr(socket, "AF_UNIX")


def _read_variable(name: str) -> str:
    return os.environ.get(PREFIX + name, "").strip()


def _find_folder() -> str:
    """Return the folder `daemon` in the user's data directory, as platformdirs names it."""
    if sys.platform == "linux":  # without its import, which takes longer than a search
        data = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
        return os.path.join(data, "ekphory", "daemon")
    from platformdirs import user_data_dir

    return os.path.join(user_data_dir("ekphory", appauthor=False), "daemon")


def _check_folder(folder: str) -> None:
    if not _is_mine(folder):
        remedy = "Move away what is there"
        raise Refused(f"{folder} must be a folder that belongs to you, and no link. {remedy}")
    if os.lstat(folder).st_mode & 0o077:
        remedy = f"chmod 700 {_quote(folder)}"
        raise Refused(f"{folder} must be of mode 0700, so that only you may enter it: {remedy}")


def _check_place(folder: str) -> None:
    """Check that nobody else can put another folder in place of this one, or of the one above."""
    above = os.path.dirname(folder)
    _check_closed(os.path.dirname(above))
    if not _is_mine(above):
        remedy = "Put one in its place, or set XDG_DATA_HOME to a folder of your own"
        raise Refused(f"{above} must be a folder that belongs to you, and no link. {remedy}")
    _check_closed(above)


def _is_mine(folder: str) -> bool:
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _check_closed(folder: str) -> None:
    found = os.stat(folder)  # the data folder may be a link; what it leads to counts
    if found.st_uid not in {0, os.getuid()}:
        remedy = "Set XDG_DATA_HOME to a folder of your own"
        raise Refused(f"{folder} belongs to user {found.st_uid}, who may change it. {remedy}")
    if found.st_mode & 0o022:
        remedy = f"chmod go-w {_quote(folder)}, or set XDG_DATA_HOME to a folder of your own"
        mode = stat.S_IMODE(found.st_mode)
        raise Refused(f"{folder} is of mode {mode:04o}, so that others may change it: {remedy}")


def _quote(path: str) -> str:
    import shlex  # for this alone

    return shlex.quote(path)


def make_socket_folder() -> None:
    """Make the folder of the socket, unless it is there.

    Raises:
        NoResident: It cannot be made.
        Refused: Others could put another in its place.
    """
    folder = _find_folder()
    above = os.path.dirname(folder)
    try:
        os.makedirs(os.path.dirname(above), mode=0o755, exist_ok=True)
        _make_folder(above, mode=0o755)
        _check_place(folder)
        _make_folder(folder, mode=0o700)
    except OSError as error:
        raise NoResident(str(error)) from error


def _make_folder(folder: str, *, mode: int) -> None:
    try:
        os.mkdir(folder, mode=mode)
    except FileExistsError:
        return


def find_socket() -> str:
    """Return the path of this installation's socket, or of the one that is to come.

    Raises:
        NoResident: The folder is not there.
        Refused: It or one above it is a link, or others could enter or replace it; the path is too
            long for a socket; or something else is there.
    """
    folder = _find_folder()
    try:
        _check_place(folder)
        _check_folder(folder)
    except OSError as error:
        raise NoResident(str(error)) from error
    path = os.path.join(folder, f"{_installation()}.sock")
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise Refused(f"{path} is too long for a socket. Set XDG_DATA_HOME to a shorter folder")
    _check_free(path)
    return path


def _check_free(path: str) -> None:
    try:
        found = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise Refused(f"{path} is in the way of the socket. Remove it")


def find_obstacle() -> str | None:
    """Return why no resident process can be started, and the remedy; None where one can be."""
    try:
        find_socket()
    except Refused as refused:
        return f"{refused}."
    except NoResident:
        pass  # the folder is made with the first one
    return None


def _installation() -> str:
    """Name this installation: another version or environment has a process of its own."""
    named = "\0".join((__version__, sys.prefix, os.path.dirname(__file__)))
    return f"{zlib.crc32(named.encode()):08x}"


def hash_settings() -> str:
    """Return a hash of what a command's result depends on and that is not sent.

    Variables are, and by which rights files are opened and made: groups and the umask.
    """
    counted = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name not in {*PASSED_ON, "EKPHORY_DAEMON"}
    )
    places = [os.environ.get(name, "") for name in _SAME]
    rights = [read_umask(), os.getegid(), sorted(os.getgroups())]
    if not counted:
        return json.dumps([places, rights])  # the usual case, without the import of hashlib
    import hashlib

    return hashlib.sha256(json.dumps([places, rights, counted]).encode()).hexdigest()


def read_umask(status: str = "/proc/self/status") -> int:
    """Return this process's umask.

    Args:
        status: Where Linux tells it. Elsewhere it is read by being set, for an instant to one by
            which no other could open what another thread makes meanwhile.
    """
    try:
        with open(status, "rb") as file:
            _, _, told = file.read().partition(b"\nUmask:")
        return int(told.split()[0], 8)
    except (OSError, ValueError, IndexError):
        pass  # not Linux, or before 4.7
    found = os.umask(0o077)
    os.umask(found)
    return found


def identify(path: str) -> tuple[int, int] | None:
    """Return device and inode of a store's directory, so that both sides mean the same one."""
    try:
        found = os.stat(os.path.expanduser(path))
    except OSError:
        return None
    return found.st_dev, found.st_ino


# Messages.


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send one message.

    Raises:
        NoResident: It is larger than a message may be.
    """
    body = json.dumps(message).encode("utf-8", "surrogatepass")
    if len(body) > MOST_BYTES:
        raise NoResident(f"a message may have {MOST_BYTES:,} bytes, got {len(body):,}")
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive(connection: socket.socket) -> dict[str, Any]:
    """Receive one message.

    Raises:
        NoResident: The other side ended before, or sent something else.
    """
    (length,) = _LENGTH.unpack(_receive_bytes(connection, _LENGTH.size))
    if length > MOST_BYTES:
        raise NoResident(f"a message may have {MOST_BYTES:,} bytes, got {length:,}")
    try:
        message = json.loads(_receive_bytes(connection, length))
    except ValueError as error:
        raise NoResident(str(error)) from error
    if not isinstance(message, dict):
        raise NoResident("a message must be an object")
    return message


def _receive_bytes(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise NoResident("the other side ended the connection")
        parts += part
    return bytes(parts)


def check_peer(connection: socket.socket) -> int | None:
    """Return the other side's process id; None where the system does not tell it.

    Raises:
        NoResident: It belongs to another user.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return None  # the folder's rights are what keeps others out
    process, user, _ = _read_credentials(connection)
    if user != os.getuid():
        raise NoResident(f"the socket belongs to user {user}")
    return process


def _read_credentials(connection: socket.socket) -> tuple[int, int, int]:
    size = _CREDENTIALS.size
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    process, user, group = _CREDENTIALS.unpack(told)
    return process, user, group


def is_in_the_same_groups(connection: socket.socket) -> bool:
    """Return whether the other side may open what this process may by its groups.

    True as well where the system does not tell: `hash_settings` counts what the caller says.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, _, group = _read_credentials(connection)
    try:
        told = connection.getsockopt(socket.SOL_SOCKET, _PEER_GROUPS, _GROUPS_BYTES)
    except OSError as error:
        return error.errno == errno.ENOPROTOOPT  # Linux before 4.13; else there are too many
    others = struct.unpack(f"={len(told) // 4}I", told)
    mine = os.getegid()
    return group == mine and {group, *others} == {mine, *os.getgroups()}


# Asking.


def ask(message: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
    """Send a message to the resident process and return its answer.

    Raises:
        NoResident: There is none, or it did not take the message.
        Unanswered: It took the message and did not answer in time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        return _ask(connection, message, seconds=seconds)


def _ask(
    connection: socket.socket, message: Mapping[str, Any], *, seconds: float
) -> dict[str, Any]:
    connection.settimeout(_CONNECT_SECONDS)
    try:
        connection.connect(find_socket())
        check_peer(connection)
        send(connection, message)
    except OSError as error:
        raise NoResident(str(error)) from error
    connection.settimeout(seconds)
    try:
        return receive(connection)
    except (OSError, NoResident) as error:
        raise Unanswered(str(error)) from error


def run_command(arguments: Sequence[str]) -> int | None:
    """Let the resident process run a command; write what it prints.

    Where there is none, one is started for the next command.

    Returns:
        The exit code; None where the command has to be run here.
    """
    if arguments[:2] == ["hook", "run"] and arguments[3:4] and arguments[3] in _EVENTS:
        return _run_hook(arguments)
    if not is_wanted() or arguments[:1] == ["hook"] or not _may_be_asked(arguments):
        return None
    if arguments[0] == "mcp":
        return _run_session(arguments)
    try:
        answer = _find_answer(arguments)
    except Unanswered as error:
        sys.stderr.write(
            f"The resident process took the command and did not answer ({error}). Look with "
            "`ekphory list --limit 1` whether it was written, before running it again.\n"
        )
        return 1
    if answer is None or answer.get("alone"):
        return None
    _write(sys.stdout, str(answer["out"]))
    _write(sys.stderr, str(answer["err"]))
    return int(answer["status"])


def _find_answer(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the resident process's answer; None where there is none and nothing was written.

    Raises:
        Unanswered: It took a write and did not say what became of it.
    """
    writes = arguments[0] in _WRITING
    request = _make_request(arguments)
    if request is None:
        return None
    try:
        return ask(request, seconds=_WRITE_SECONDS if writes else _READ_SECONDS)
    except NoResident:
        pass
    except Unanswered:
        if writes:
            raise
    start()  # one that still runs keeps its socket
    return None


def _run_session(arguments: Sequence[str]) -> int | None:
    """Let the resident process speak with whoever started this one, over standard input and output.

    Returns:
        The exit code; None where the session has to be served here.
    """
    if any(each.rpartition("=")[2] == "http" for each in arguments) or "--help" in arguments:
        return None
    request = _make_request(arguments)
    if request is None:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            answer = _ask(connection, request, seconds=_SESSION_SECONDS)
        except NoResident:
            start()
            return None
        except Unanswered:
            return None
        if "session" in answer:
            connection.settimeout(None)
            return _pass_on(connection)
    return None  # with the same error, or alone


def _pass_on(connection: socket.socket) -> int:
    """Pass on both ways until the other side has answered all and standard input has ended."""
    import select

    sources: list[Any] = [0, connection]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if connection in ready:
            part = connection.recv(_PIPE_BYTES)
            if not part:
                break
            try:
                _write_bytes(1, part)
            except BrokenPipeError:
                return 0
        if 0 in ready:
            part = os.read(0, _PIPE_BYTES)
            if part:
                connection.sendall(part)
            else:
                sources.remove(0)
                connection.shutdown(socket.SHUT_WR)
    if 0 not in sources:
        return 0
    sys.stderr.write("The resident process has ended, and this session with it. Start it again.\n")
    return 1


def _write_bytes(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _run_hook(arguments: Sequence[str]) -> int | None:
    """Run a hook in the resident process, or in one of its own; its tool never waits long.

    Returns:
        0; None where it has to be run here.
    """
    import time

    text = _read_stdin()
    if os.environ.pop(_DETACHED, None):
        return None  # nobody waits
    until = time.monotonic() + HOOK_SECONDS
    answer: Mapping[str, Any] = {"alone": True}
    if is_wanted():
        answer = _find_answer_to_hook(arguments, text, until)
    if "out" in answer:
        _write(sys.stdout, str(answer["out"]))
        return 0
    if arguments[3:4] != ["prompt"]:
        _run_detached(arguments, text)
        return 0
    if "late" in answer:
        _note_late(arguments, answer["late"])
        return 0
    _end_soon(until - time.monotonic(), arguments)
    return None


def _find_answer_to_hook(arguments: Sequence[str], text: str, until: float) -> dict[str, Any]:
    """Return the answer to a hook, which waits for the process to start, and not for long.

    Without one, `late` says why, or `alone` that the command has to be run here.
    """
    import time

    if not _may_be_asked(arguments) or len(text) > MOST_BYTES // 2:
        return {"alone": True}
    request = _make_request(arguments, stdin=text)
    if request is None:
        return {"alone": True}
    request["variables"][WAITS_UNTIL] = str(time.time() + until - time.monotonic())
    started = False
    while (left := until - time.monotonic()) > 0:
        try:
            return ask(request, seconds=left)
        except Unanswered:
            return {"late": "busy"}
        except Refused:
            return {"alone": True}  # none can come
        except NoResident:
            if not started:
                start()
                started = True
            time.sleep(_POLL_SECONDS)
    return {"late": "starting"}


def _run_detached(arguments: Sequence[str], text: str) -> None:
    """Run a hook in a process that its tool does not wait for; it gets the payload by a pipe."""
    import subprocess

    child = subprocess.Popen(  # noqa: S603  the command that was given, without a shell
        [sys.executable, "-m", "ekphory", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, _DETACHED: "1"},
        start_new_session=True,
    )
    if child.stdin is not None:
        child.stdin.write(text.encode("utf-8", "replace"))
        child.stdin.close()


def _end_soon(seconds: float, arguments: Sequence[str]) -> None:
    """End this process when its tool would wait too long; what was recalled late is not told."""
    import threading
    import time

    def end() -> None:
        try:
            if WAITS_UNTIL in os.environ:
                _note_late(arguments, "alone")
        finally:
            os._exit(0)

    os.environ[WAITS_UNTIL] = str(time.time() + seconds)
    timer = threading.Timer(max(seconds, 0.0), end)
    timer.daemon = True
    timer.start()


def wait_no_more() -> None:
    """Say that the tool of this hook has its answer, be it none."""
    os.environ.pop(WAITS_UNTIL, None)


# Prompts that came too late. The process ends with them: it has no time to open any store.


def _note_late(arguments: Sequence[str], why: str) -> None:
    """Note that a prompt got nothing in time: one write, and no import that takes any."""
    import time

    late = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "store": find_store(arguments),
        "host": arguments[2],
        "event": arguments[3],
        "did": _WHY_LATE[why],
    }
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        make_socket_folder()
        file = os.open(os.path.join(_find_folder(), _LATE_FILE), appended, 0o600)
    except (OSError, NoResident):
        return  # where nothing can be written, nothing can be noted
    try:
        if os.fstat(file).st_size > _MOST_LATE_BYTES:
            os.ftruncate(file, 0)
        os.write(file, (json.dumps(late) + "\n").encode())
    except OSError:
        pass  # likewise
    finally:
        os.close(file)


def read_late(stores: Iterable[str]) -> list[dict[str, Any]]:
    """Return the prompts of some stores that came too late, the newest first.

    Args:
        stores: As `find_store` names them; the empty name is the default one.
    """
    try:
        with open(os.path.join(_find_folder(), _LATE_FILE), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.endswith("}\n")]
    except (OSError, ValueError):
        return []
    named = set(stores)
    return [line for line in reversed(lines) if line["store"] in named]


def _may_be_asked(arguments: Sequence[str]) -> bool:
    if not arguments or arguments[0] not in COMMANDS:
        return False
    given = {each.partition("=")[0] for each in arguments[1:]}
    return not given.intersection(_ALONE)


def _make_request(arguments: Sequence[str], **more: object) -> dict[str, Any] | None:
    """Return what is asked of the resident process; None where the command has to be run here."""
    try:
        store, folder, variables = find_store(arguments), os.getcwd(), _variables()
    except OSError:
        return None  # the command itself says what is wrong
    if "://" in store:
        return None  # a store on object storage is opened with the caller's own credentials
    return {
        "run": list(arguments),
        "version": __version__,
        "settings": hash_settings(),
        "store": store,
        "identity": identify(store) if store else None,
        "folder": folder,
        "variables": variables,
        "terminal": [sys.stdout.isatty(), sys.stderr.isatty()],
        **more,
    }


def _read_stdin() -> str:
    """Return what comes on standard input, and keep it for a command that runs here after all."""
    import io

    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.stdin = io.StringIO(text)
    return text


def _variables() -> dict[str, str]:
    given = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    if sys.stdout.isatty() and "COLUMNS" not in given:
        given["COLUMNS"] = str(os.get_terminal_size(sys.stdout.fileno()).columns)
    return given


def find_store(arguments: Sequence[str]) -> str:
    """Return the store that a command line or the environment names, as an absolute path.

    Empty where none does: the default one is meant.
    """
    named = ""
    for place, argument in enumerate(arguments):
        if argument == "--store" and place + 1 < len(arguments):
            named = arguments[place + 1]
        elif argument.startswith("--store="):
            named = argument.partition("=")[2]
    named = named or _read_variable("STORE")
    return named if "://" in named else _make_absolute(named)


def _make_absolute(path: str) -> str:
    return path and os.path.abspath(os.path.expanduser(path))


def _write(stream: Any, text: str) -> None:  # noqa: ANN401  a text stream or what stands for it
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        discard(stream)


def discard(stream: Any) -> None:  # noqa: ANN401  likewise
    """Send what a stream has buffered nowhere, once the reader of the pipe is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def start() -> None:
    """Start the resident process beside this one, unless there is no place for its socket."""
    try:
        make_socket_folder()
        path = find_socket()
    except NoResident:
        return
    start_once([sys.executable, "-m", "ekphory.daemon"], path.replace(".sock", ".lock"))


def start_once(command: Sequence[str], lock_path: str) -> None:
    """Start a process that nobody waits for, unless one that was started so is still running.

    Where none can be started, as on a disk that is read alone, all goes on without it.

    The lock is taken here and inherited: a process that begins to run has yet to import much, and
    on a busy machine many would be started before the first one could take it.
    """
    import subprocess  # for this alone

    held = _take_lock(lock_path)
    if held is None:
        return
    try:
        subprocess.Popen(  # noqa: S603  a fixed command, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, INHERITED_LOCK: "1"},
            pass_fds=held,
            start_new_session=True,
        )
    except OSError:
        pass  # no memory or no process is left; the next command tries again
    finally:
        for each in held:
            os.close(each)


def _take_lock(path: str) -> tuple[int, ...] | None:
    """Return what holds a lock now, nothing on Windows; None where another has it, or none can."""
    if sys.platform == "win32":
        return ()
    import fcntl  # likewise

    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return (lock,)


def release(store: str) -> None:
    """Make the resident process close its handles on a store, if there is one.

    For what needs every file of the store: a backup, a restore, a purge. So one that runs is asked
    with `EKPHORY_DAEMON=0` too.

    Raises:
        Unanswered: It was asked and did not answer.
    """
    is_itself = os.environ.get(RESIDENT) == str(os.getpid())
    if is_itself or not _has_sockets() or "://" in store:
        return
    try:
        ask({"release": _make_absolute(store)}, seconds=_WRITE_SECONDS)
    except NoResident:
        return
