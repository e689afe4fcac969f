"""Clients of a server, all in one process: as cheap as they can be, since they share its cores."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from uvicorn.loops.auto import auto_loop_factory

from ekphory.bench.serving.load import Answers

PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
"""After a refusal a client waits so long: less than it is told, or there would be no overload."""
_OK = 200
_REFUSALS = (429, 503)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    says_when: bool


@dataclass(slots=True)
class _Tally:
    """What all clients got, who wait so many seconds for an answer."""

    patience: float
    milliseconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    unannounced: int = 0
    answered: list[bytes] = field(default_factory=list)

    def note(self, request: bytes, answer: _Answer, milliseconds: float) -> None:
        if answer.status == _OK:
            self.milliseconds.append(milliseconds)
            self.answered.append(request)
            return
        self.failed[str(answer.status)] += 1
        if answer.status in _REFUSALS and not answer.says_when:
            self.unannounced += 1


class _Connection:
    """One connection that is kept open, and made anew when it breaks."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> _Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, found, rest = head.partition(b"content-length:")
        if found:
            await reader.readexactly(int(rest.split(b"\r\n", 1)[0]))
        if b"\r\nconnection: close" in head:
            await self.close()
        return _Answer(int(head[9:12]), b"\r\nretry-after:" in head)

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def post(path: str, body: bytes) -> bytes:
    """Give a whole HTTP request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def ask(
    url: str,
    requests: Iterable[bytes],
    *,
    clients: int,
    seconds: float,
    patience: float = PATIENCE_SECONDS,
) -> Answers:
    """Let clients send requests in turn, each one after the other, until the time is over.

    Args:
        url: Where the server listens.
        requests: Whole requests; with the last one, clients stop before the time is over.
        clients: How many ask at once.
        seconds: After so long no new request is sent; those under way are waited for.
        patience: A request that takes longer, in seconds, counts as a timeout.
    """
    (answers,) = ask_at_once(url, [(requests, clients)], seconds=seconds, patience=patience)
    return answers


def ask_at_once(
    url: str,
    kinds: Sequence[tuple[Iterable[bytes], int]],
    *,
    seconds: float,
    patience: float = PATIENCE_SECONDS,
) -> list[Answers]:
    """Send several kinds of requests at the same time, each with so many clients, as `ask` does."""

    async def all_of_them() -> list[Answers]:
        return await asyncio.gather(
            *(
                _ask(url, iter(requests), _Tally(patience), clients=clients, seconds=seconds)
                for requests, clients in kinds
            )
        )

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(all_of_them())


async def _ask(
    url: str, requests: Iterator[bytes], tally: _Tally, /, *, clients: int, seconds: float
) -> Answers:
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(
        *(_client(_Connection(url), requests, tally, until=began + seconds) for _ in range(clients))
    )
    return Answers(
        milliseconds=tally.milliseconds,
        seconds=time.perf_counter() - began,
        failed=dict(tally.failed),
        client_cpu=time.process_time() - cpu,
        unannounced=tally.unannounced,
        answered=tally.answered,
    )


async def _client(
    connection: _Connection, requests: Iterator[bytes], tally: _Tally, /, *, until: float
) -> None:
    for request in requests:
        started = time.perf_counter()
        if started >= until:
            break
        try:
            async with asyncio.timeout(tally.patience):
                answer = await connection.ask(request)
        except TimeoutError:
            tally.failed["timeout"] += 1
            await connection.close()
            continue
        except (OSError, asyncio.IncompleteReadError):
            tally.failed["connection lost"] += 1
            await connection.close()
            continue
        tally.note(request, answer, (time.perf_counter() - started) * 1000)
        if answer.status != _OK:
            await asyncio.sleep(_PAUSE_SECONDS)
    await connection.close()
