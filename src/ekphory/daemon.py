"""The resident process: runs commands for their callers, with stores and models that stay open.

It listens on a socket that only its user can reach, answers what `resident.py` sends, and ends
when nothing was asked for ten minutes. Whatever it may not or cannot do, the caller does alone.
"""

from __future__ import annotations

import io
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import (
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from ekphory import __version__, resident
from ekphory.cli.app import root_command
from ekphory.cli.options import StoreOptions, open_for_writing
from ekphory.cli.server_commands import SESSION_TAKER, StdioSession
from ekphory.config import default_store
from ekphory.errors import EkphoryError
from ekphory.hooks.running import CaptureWorker, install_worker
from ekphory.memory import Memory
from ekphory.store.lance import TABLE_FOLDER

if TYPE_CHECKING:
    from ekphory.mcp_server.tool import Memories

IDLE_SECONDS = 600.0
MOST_IN_FLIGHT = 32
_MOST_STORES = 4
_MOST_SESSIONS = 16
_ASK_SECONDS = 5.0
"""So long a caller may take to send its request."""
_ALONE = {"alone": True}


class _Shown(io.StringIO):
    """Collects what a command prints, as the caller's terminal or pipe would take it."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        """Return whether the caller prints to a terminal."""
        return self._terminal


class Daemon:
    """Answers one socket.

    Attributes:
        requests: How many were answered.
    """

    def __init__(
        self, path: Path, *, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float]
    ) -> None:
        """Take a path for the socket.

        Args:
            path: In a folder that only the user can enter.
            idle_seconds: After so long without a request it ends.
            clock: Seconds that never go back.
        """
        self.requests = 0
        self._path = path
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._last = clock()
        self._settings = resident.hash_settings()
        # A handle and the table's folder: held open, so that no other can get its inode.
        self._stores: dict[str, tuple[Memory, int]] = {}
        # The session on each connection, its store by the absolute path, and what it acts on.
        self._sessions: dict[socket.socket, tuple[StdioSession, Memories]] = {}
        self._turn = threading.Lock()
        self._in_flight = threading.BoundedSemaphore(MOST_IN_FLIGHT)
        self._ending = threading.Event()

    def serve(self) -> None:
        """Answer until nothing is asked any more, or until told to stop."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            _remove_stale(self._path)
            listener.bind(str(self._path))
            self._path.chmod(0o600)
            listener.listen(MOST_IN_FLIGHT)
            listener.settimeout(min(1.0, self._idle_seconds))
            while not self._ending.is_set() and not self._is_idle():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=self._take, args=(connection,)).start()
            self._path.unlink(missing_ok=True)
        with self._turn:
            for store in list(self._stores):
                self._release(store)
            for connection in self._sessions:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _is_idle(self) -> bool:
        return not self._sessions and self._clock() - self._last > self._idle_seconds

    def _take(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(_ASK_SECONDS)
            try:
                resident.check_peer(connection)
                request = resident.receive(connection)
                if not self._in_flight.acquire(blocking=False):
                    resident.send(connection, _ALONE)
                    return
                try:
                    answer = self._answer(request, connection)
                finally:
                    self._in_flight.release()
                connection.settimeout(_ASK_SECONDS)
                resident.send(connection, answer)
            except (OSError, resident.NoResident):
                return  # the caller is gone, or is none of ours
            finally:
                self._serve_session(connection)

    def _serve_session(self, connection: socket.socket) -> None:
        """Serve the session that was begun on a connection, if one was, until it ends."""
        if connection not in self._sessions:
            return
        from ekphory.mcp_server.transports import serve_connection

        session, memories = self._sessions[connection]
        try:
            connection.settimeout(None)
            serve_connection(connection, memories, session.settings, session.toolset)
        finally:
            with self._turn:
                del self._sessions[connection]
                self._last = self._clock()
            memories.close()

    def _answer(self, request: Mapping[str, Any], connection: socket.socket) -> Mapping[str, Any]:
        if "status" in request:
            return self._status()
        if "stop" in request:
            self._ending.set()
            return self._status()
        before, self._last = self._last, self._clock()
        self.requests += 1
        with self._turn:
            if "release" in request:
                self._release(str(request["release"]))
                return {"released": True}
            answer = self._run(request, connection)
            if answer is _ALONE:
                self._last = before  # whoever goes alone does not need it
            return answer

    def _begin_session(
        self, asked: StdioSession, store: str, connection: socket.socket
    ) -> Mapping[str, Any]:
        """Open what a session needs; it is served once the caller knows."""
        # The catalog of MemMachine's tools stays open between calls.
        if asked.toolset == "memmachine" or len(self._sessions) >= _MOST_SESSIONS:
            return _ALONE
        try:
            from ekphory.mcp_server.tool import Memories

            session = replace(asked, settings=replace(asked.settings, store=store))
            memories = Memories(session.settings, turn=self._turn)
            self._keep_open(store)
        except (ModuleNotFoundError, OSError, EkphoryError):
            return _ALONE  # the command itself says what is wrong
        self._sessions[connection] = session, memories
        return {"session": True}

    def _status(self) -> dict[str, Any]:
        return {
            "running": True,
            "pid": os.getpid(),
            "version": __version__,
            "socket": str(self._path),
            "stores": sorted(self._stores),
            "sessions": len(self._sessions),
            "requests": self.requests,
            "idle_s": round(self._clock() - self._last, 1),
        }

    def _run(self, request: Mapping[str, Any], connection: socket.socket) -> Mapping[str, Any]:
        if request.get("version") != __version__ or request["settings"] != self._settings:
            return _ALONE
        if not resident.is_in_the_same_groups(connection):
            return _ALONE
        store = str(request["store"]) or default_store()
        mine = resident.identify(store)
        # The default store is found by the settings alone.
        if request["store"] and request["identity"] != (list(mine) if mine else None):
            return _ALONE
        asked: list[StdioSession] = []
        context = copy_context()
        context.run(SESSION_TAKER.set, asked.append)  # `ekphory mcp` gives its session away
        shown = [_Shown(terminal=bool(each)) for each in request["terminal"]]
        text = request.get("stdin", "")
        try:
            with _surroundings(request["folder"], request["variables"], text):
                self._keep_open(store)
                with redirect_stdout(shown[0]), redirect_stderr(shown[1]):
                    status = context.run(_execute, request["run"])
                if asked:
                    return self._begin_session(asked[0], store, connection)
        except (OSError, EkphoryError):
            return _ALONE  # the folder is gone, or a file cannot be opened from here
        return {"status": status, "out": shown[0].getvalue(), "err": shown[1].getvalue()}

    def _keep_open(self, store: str) -> None:
        """Hold a handle on the store, so that the command's own finds all open and warm.

        A handle on one that was removed or replaced since is let go of.
        """
        found = resident.identify(f"{store}/{TABLE_FOLDER}")
        if store in self._stores:
            held = os.fstat(self._stores[store][1])
            if found == (held.st_dev, held.st_ino):
                self._stores[store] = self._stores.pop(store)  # the last used comes last
                return
            self._release(store)
        while len(self._stores) >= _MOST_STORES:
            self._release(next(iter(self._stores)))
        if found is not None:
            folder = os.open(f"{store}/{TABLE_FOLDER}", os.O_RDONLY)
            with ExitStack() as failed:
                failed.callback(os.close, folder)
                self._stores[store] = open_for_writing(StoreOptions(store=store)), folder
                failed.pop_all()

    def _release(self, store: str) -> None:
        held = self._stores.pop(store, None)
        if held is not None:
            held[0].close()
            os.close(held[1])
        for session, memories in self._sessions.values():
            if session.settings.store == store:
                memories.release()


def _execute(command: Sequence[str]) -> int:
    """Run a command line; return its exit status."""
    try:
        root_command()(args=command, prog_name="ekphory")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


@contextmanager
def _surroundings(folder: str, variables: Mapping[str, str], text: str) -> Iterator[None]:
    """Run the block in the caller's folder, with the caller's variables and standard input."""
    before = {name: os.environ.get(name) for name in resident.PASSED_ON}
    stdin, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        for name in resident.PASSED_ON:
            _set_variable(name, variables.get(name))
        os.chdir(folder)
        yield
    finally:
        for name, value in before.items():
            _set_variable(name, value)
        sys.stdin = stdin
        os.chdir("/")


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _remove_stale(path: Path) -> None:
    """Remove the socket of a process that has ended; nothing else that has its name."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise resident.NoResident(f"{path} is in the way of the socket")
    path.unlink()


def main() -> int:
    """Serve this installation's socket, unless another process does."""
    os.environ["EKPHORY_DAEMON"] = "0"  # what it runs asks no resident process
    os.environ[resident.RESIDENT] = str(os.getpid())
    try:
        resident.make_socket_folder()
        path = Path(resident.find_socket())
        worker = CaptureWorker()
        is_held = os.environ.pop(resident.INHERITED_LOCK, None) is not None
        lock = filelock.FileLock(path.with_suffix(".lock"), blocking=False)
        with nullcontext() if is_held else lock:
            install_worker(worker)
            Daemon(path, clock=time.monotonic).serve()
            worker.close()
    except (filelock.Timeout, resident.NoResident, OSError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
