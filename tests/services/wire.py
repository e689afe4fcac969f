"""A local HTTP service that answers as it is told, and can be told to misbehave."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What is answered.

    `delay` is waited before it, `missing_bytes` are announced and never sent, and with `drip` the
    body comes one byte at a time, so many seconds apart.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    missing_bytes: int = 0
    drip: float = 0.0


@dataclass
class Request:
    """What was asked."""

    path: str
    headers: dict[str, str]
    body: Any


def says(content: Any) -> Reply:
    """Answer with this content as JSON."""
    return Reply(body=json.dumps(content).encode())


class WireService:
    """Uses up its `replies`, and then answers by `answer`; keeps what it was asked."""

    def __init__(self, host: str, answer: Callable[[Request], Reply]) -> None:
        self.host = host
        self.answer = answer
        self.replies: list[Reply] = []
        self.asked: list[Request] = []
        self.stopping = threading.Event()

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.asked]

    def reply(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.replies.pop(0) if self.replies else self.answer(request)


@contextmanager
def running_service(
    answer: Callable[[Request], Reply] = lambda _: Reply(),
) -> Iterator[WireService]:
    """Run a service on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.service = WireService(f"http://127.0.0.1:{server.server_port}", answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.service
    finally:
        server.service.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        request = Request(self.path, dict(self.headers), json.loads(content))
        try:
            self.give(self.server.service.reply(request))
        except ConnectionError:
            self.close_connection = True  # the client had no patience, as some tests want it

    def do_GET(self) -> None:
        self.give(self.server.service.reply(Request(self.path, dict(self.headers), None)))

    def give(self, reply: Reply) -> None:
        self.server.service.stopping.wait(reply.delay)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body) + reply.missing_bytes))
        self.end_headers()
        for piece in pieces(reply):
            self.wfile.write(piece)
            self.server.service.stopping.wait(reply.drip)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  as inherited
        """Keep the test's output clean."""


def pieces(reply: Reply) -> list[bytes]:
    if not reply.drip:
        return [reply.body]
    return [reply.body[place : place + 1] for place in range(len(reply.body))]
