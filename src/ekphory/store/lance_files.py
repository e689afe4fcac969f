"""The files that one state of a Lance store consists of, held open so that none can vanish."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Self

from ekphory.errors import StoreError
from ekphory.filters.tree import Not
from ekphory.store.lance import TABLE
from ekphory.store.lance_snapshot import LanceSnapshot
from ekphory.store.lock import DirectoryLock
from ekphory.store.manifest import manifest_of, needed_files
from ekphory.store.store import CURRENT, StoreIdentity

TABLE_FOLDER = f"{TABLE}.lance"


@dataclass(frozen=True, slots=True)
class HeldFile:
    """One file of a state.

    Attributes:
        path: Where it is below the store's directory, with forward slashes.
        length: In bytes; Lance never changes a file.
        stream: Its content, open, so that it stays when the file is removed.
    """

    path: str
    length: int
    stream: IO[bytes]


@dataclass(frozen=True, slots=True)
class StateFiles:
    """One state of a store as files; to be closed, or used in a `with` block.

    Attributes:
        version: Its number.
        identity: What the store was made with.
        memories, history: How many memories it holds, and how many earlier versions.
        files: All that it needs, and nothing of other states.
    """

    version: int
    identity: StoreIdentity
    memories: int
    history: int
    files: tuple[HeldFile, ...]

    def close(self) -> None:
        """Let go of the files."""
        for held in self.files:
            held.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def hold_newest_state(directory: Path) -> StateFiles:
    """Open all files of the newest state.

    The writer's lock is held for the milliseconds that this takes, since whoever removes files
    holds it. What is open then stays readable, whatever is merged or purged.

    Raises:
        StoreLocked: Another process has been writing for over a minute.
        StoreError: The store cannot be read, or has too many files to open.
    """
    with DirectoryLock(directory).held(), _told_of_files(directory), ExitStack() as opened:
        state = LanceSnapshot(str(directory))
        manifest = manifest_of(directory / TABLE_FOLDER, state.version)
        content = manifest.read_bytes()
        needed = [manifest, *needed_files(directory / TABLE_FOLDER, content)]
        files = tuple(_hold(path, directory, opened) for path in needed)
        _check(state, files, directory)
        memories, history = state.count(CURRENT), state.count(Not(CURRENT))
        opened.pop_all()
    return StateFiles(state.version, state.identity, memories, history, files)


def _check(state: LanceSnapshot, files: tuple[HeldFile, ...], directory: Path) -> None:
    folders = {PurePosixPath(held.path).parent.name for held in files}
    data = sum("/data/" in held.path for held in files)
    if data < state.fragments() or not state.index_folders() <= folders:
        raise StoreError(
            f"{directory}: files of version {state.version} are missing. "
            "`ekphory doctor` tells the state of the store."
        )


def _hold(path: Path, directory: Path, opened: ExitStack) -> HeldFile:
    stream = opened.enter_context(path.open("rb"))
    return HeldFile(
        path.relative_to(directory).as_posix(), os.fstat(stream.fileno()).st_size, stream
    )


@contextmanager
def _told_of_files(directory: Path) -> Iterator[None]:
    """Tell in words what the system says of files."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise StoreError(
                f"{error.filename or directory}: cannot be read ({error.strerror}). `ekphory "
                "doctor --verify` names what is damaged, and `ekphory restore` brings a backup "
                "back."
            ) from error
        raise StoreError(
            f"{directory}: has more files than may be open at once. Merge them with "
            "`ekphory doctor --repair`, or raise the limit with `ulimit -n`."
        ) from error
