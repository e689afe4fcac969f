"""Exporting a scope: every memory with its earlier versions, as lines of JSON."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ekphory.engine import Engine
from ekphory.errors import InvalidInput
from ekphory.export_format import (
    END_KEY,
    FORMAT_VERSION,
    HEADER_KEY,
    VERSIONS_KEY,
    encode_line,
    memory_content,
)
from ekphory.filters.tree import And, Filter
from ekphory.moments import now_utc
from ekphory.placing import put_in_place
from ekphory.reading import unexpired
from ekphory.scope import Scope
from ekphory.store.lance_snapshot import KeptMemory, LanceSnapshot, newest_state
from ekphory.store.owner import owner_of
from ekphory.store.store import CURRENT, IntArray

Progress = Callable[[int, int], None]
"""Is told how many memories are written, and of how many."""

_MEMORIES_READ = 256
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export holds.

    Attributes:
        target: The file; None where it went to a stream.
        memories: Number of memories.
        versions: Number of earlier versions of them.
        expired: Number of memories that were left out because they have expired.
        bytes: Length of the export.
        sha256: Digest of the lines of memories and versions; equal for equal contents.
    """

    target: Path | None
    memories: int
    versions: int
    expired: int
    bytes: int
    sha256: str


def export_to_file(
    engine: Engine, scope: Scope, target: Path, on_progress: Progress
) -> ExportReport:
    """Write an export beside its target, and put it in place once it is whole and durable.

    Raises:
        InvalidInput: The target is a folder, or lies in none.
    """
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInput(
            "target", str(target), "not a file in an existing folder", "Name such a file"
        )
    with _put_in_place(target) as stream:

        def write(state: LanceSnapshot) -> ExportReport:
            stream.seek(0)
            stream.truncate()
            return _Export(state, scope, stream).write(on_progress, target)

        return newest_state(engine.uri, write, attempts=_ATTEMPTS)


def export_to_stream(
    engine: Engine, scope: Scope, stream: IO[bytes], on_progress: Progress
) -> ExportReport:
    """Write an export to a stream; without its last line it is not whole."""
    return _Export(LanceSnapshot(engine.uri), scope, stream).write(on_progress, None)


def tell_nobody(done: int, total: int) -> None:
    """Take progress that nobody asked for."""
    del done, total


@contextmanager
def _put_in_place(target: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes the target's place at the end, or else leaves no trace."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    # Inside before the file is there: an interrupt the moment after leaves no trace either.
    try:
        with open(part, "xb", opener=_for_its_owner) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        put_in_place(part, target)
    finally:
        part.unlink(missing_ok=True)


def _for_its_owner(path: str, flags: int) -> int:
    """Open a file that its owner alone may read, as the store may be."""
    return os.open(path, flags, 0o600)


class _Versions:
    """Where the earlier versions of a memory are: sixteen bytes for each, however long its id."""

    def __init__(self, state: LanceSnapshot, where: Filter) -> None:
        pairs = ((_digest(successor), row) for row, successor in state.successors(where))
        found = np.fromiter(pairs, np.dtype((np.int64, 2)))
        self._state = state
        self._digests, self._rows = found[np.argsort(found[:, 0], kind="stable")].T

    def of(self, memories: list[KeptMemory]) -> dict[int, list[KeptMemory]]:
        """Read the earlier versions of these memories, oldest first, by the memory's key."""
        wanted = {_successor(memory): memory.key for memory in memories}
        digests = np.array([_digest(successor) for successor in wanted], np.int64)
        rows = self._rows[np.isin(self._digests, digests)]
        found: dict[int, list[KeptMemory]] = {}
        for version in self._state.take(rows):
            # Digests may be the same by chance.
            key = wanted.get((version.record.superseded_by, *_successor(version)[1:]))
            if key is not None:
                found.setdefault(key, []).append(version)
        return found


class _Export:
    """One export: the lines of one state of the store, counted and summed up."""

    def __init__(self, state: LanceSnapshot, scope: Scope, stream: IO[bytes]) -> None:
        self._state = state
        self._scope = scope
        self._stream = stream
        self._digest = hashlib.sha256()
        self._bytes = 0
        self._versions = 0

    def write(self, on_progress: Progress, target: Path | None) -> ExportReport:
        own = self._scope.own_predicate()
        where = And((own, unexpired()))
        rows = self._state.rows(where)
        expired = self._state.count(And((own, CURRENT))) - len(rows)
        self._write_header(len(rows))
        written = 0
        for content in self._memories(where, rows):
            self._digest.update(self._write_line(content))
            if VERSIONS_KEY in content:
                written += 1
                on_progress(written, len(rows))
        sha256 = self._digest.hexdigest()
        counts = {"memories": written, "versions": self._versions, "sha256": sha256}
        self._write_line({END_KEY: FORMAT_VERSION} | counts)
        self._stream.flush()
        return ExportReport(
            target=target,
            memories=written,
            versions=self._versions,
            expired=expired,
            bytes=self._bytes,
            sha256=sha256,
        )

    def _write_header(self, memories: int) -> None:
        from ekphory import __version__

        self._write_line(
            {
                HEADER_KEY: FORMAT_VERSION,
                "ekphory": __version__,
                "exported_at": now_utc().isoformat(),
                "scope": asdict(self._scope),
                "memories": memories,
            }
        )

    def _memories(self, where: Filter, rows: IntArray) -> Iterator[dict[str, object]]:
        versions = _Versions(self._state, where)
        for start in range(0, len(rows), _MEMORIES_READ):
            memories = self._state.take(rows[start : start + _MEMORIES_READ])
            earlier = versions.of(memories)
            for memory in memories:
                its_own = earlier.get(memory.key, [])
                yield _content(memory) | {VERSIONS_KEY: len(its_own)}
                yield from map(_content, its_own)
                self._versions += len(its_own)

    def _write_line(self, content: dict[str, object]) -> bytes:
        line = encode_line(content)
        self._stream.write(line)
        self._bytes += len(line)
        return line


def _content(memory: KeptMemory) -> dict[str, object]:
    return memory_content(memory.record, memory.fingerprint)


def _successor(memory: KeptMemory) -> tuple[str | None, ...]:
    record = memory.record
    return (record.id, record.session, *owner_of(record))


def _digest(successor: tuple[str | None, ...]) -> int:
    digest = hashlib.blake2b(repr(successor).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
