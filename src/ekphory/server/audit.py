"""The audit log: who read, wrote and forgot what, as hashes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from filelock import FileLock

from ekphory.errors import InvalidInput
from ekphory.importers.source import parse_object
from ekphory.server.request_log import AsgiMessage, JsonLines, Scope, Send, find_route

_FILE_BYTES, _FILES = 64 * 2**20, 16
"""The file and so many earlier ones, of this size, stay."""
_IDS = frozenset(
    {"id", "ids", "uid", "uids", "old", "by", "feature_id"}.union(
        f"{kind}_id{plural}" for kind in ("episodic", "semantic") for plural in ("", "s")
    )
)
"""Fields of requests and answers that hold ids of memories."""
_STREAMED = b"application/x-ndjson"


class AuditFile(RotatingFileHandler):
    """Lines of JSON in a file that is followed by another when it is full.

    Several processes may write it.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            InvalidInput: It cannot be written.
        """
        try:
            super().__init__(path, maxBytes=_FILE_BYTES, backupCount=_FILES, encoding="utf-8")
        except OSError as error:
            problem = f"cannot be written ({error.strerror})"
            raise InvalidInput("audit", str(path), problem, "Name a file in a folder") from error
        self.close()
        self.setFormatter(JsonLines())
        self._turn = FileLock(f"{path}.lock")

    def note(
        self,
        scope: Scope,
        asked: Mapping[str, Any],
        names: tuple[str, str],
        status: int,
        content: bytes,
    ) -> None:
        """Write what was asked, and what was answered.

        Args:
            scope: Of the request.
            asked: Its body.
            names: The organisation and project that it names.
            status: Of the answer.
            content: Its body.

        Raises:
            OSError: It was not written.
        """
        org, project = names
        ids = list(dict.fromkeys([*_find_ids(asked), *_find_ids(parse_object(content))]))
        query = _find_query(asked)
        self.write(
            {
                "request_id": scope["state"]["request_id"],
                "key": scope["state"]["caller"].name,
                "org": org or None,
                "project": project or None,
                "verb": f"{scope['method']} {find_route(scope)}",
                "status": status,
                "query": None if query is None else _digest(query),
                "ids": [_digest(each) for each in ids],
                "count": len(ids),
            }
        )

    def write(self, fields: Mapping[str, Any]) -> None:
        """Write a line.

        Raises:
            OSError: It was not written.
        """
        self.handle(logging.makeLogRecord({"levelname": "INFO", "msg": "audit", "fields": fields}))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line at the end of the newest file, which another process may have begun."""
        with self._turn:
            try:
                super().emit(record)
            finally:
                self.close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  logging's name
        """Raise what went wrong."""
        raise

    def _open(self) -> Any:  # noqa: ANN401  as logging has it
        return open(self.baseFilename, "a", encoding="utf-8", opener=partial(os.open, mode=0o600))


class HeldAnswer:
    """Keeps an answer until it is noted; of one that comes in pieces, nothing but its status."""

    def __init__(self, send: Send, note: Callable[[int, bytes], None]) -> None:
        self._send, self._note = send, note
        self._held: list[AsgiMessage] = []
        self._streams = False

    async def __call__(self, message: AsgiMessage) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            kind = dict(message.get("headers", ())).get(b"content-type", b"")
            self._streams = kind.startswith(_STREAMED)
            if self._streams:
                self._note(message["status"], b"")
        if self._streams:
            await self._send(message)
        else:
            self._held.append(message)

    async def release(self) -> None:
        """Note the answer, and send it."""
        if self._held:
            content = b"".join(message.get("body", b"") for message in self._held)
            self._note(self._held[0]["status"], content)
        for message in self._held:
            await self._send(message)


def _find_ids(value: object) -> Iterator[str]:
    """Yield the ids in a value of JSON."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _IDS:
                yield from _find_ids(inner)
            else:
                several = inner if isinstance(inner, list) else [inner]
                yield from (each for each in several if isinstance(each, str) and each)
    elif isinstance(value, list):
        for inner in value:
            yield from _find_ids(inner)


def _find_query(asked: Mapping[str, Any]) -> str | None:
    arguments = asked.get("arguments")
    inner = arguments if isinstance(arguments, dict) else {}
    found = asked.get("query", inner.get("query"))
    return found if isinstance(found, str) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
