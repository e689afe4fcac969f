"""A local service that speaks `/v1/embeddings`, and can be told to misbehave."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """What is answered instead of embeddings."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    missing_bytes: int = 0


class EmbeddingService:
    """Gives each text (its length, 1, 0); `replies` are used up before that."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: list[Reply] = []
        self.requests: list[dict] = []
        self.keys: list[str | None] = []

    def answer(self, request: dict) -> Reply:
        rows = [
            {"object": "embedding", "index": index, "embedding": [float(len(text)), 1.0, 0.0]}
            for index, text in enumerate(request["input"])
        ]
        body = {"object": "list", "model": request["model"], "data": rows[::-1]}
        return self.replies.pop(0) if self.replies else Reply(body=json.dumps(body).encode())


@contextmanager
def running_service() -> Iterator[EmbeddingService]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.service = EmbeddingService(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service = self.server.service
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/embeddings":
            self.send_error(404)
            return
        request = json.loads(content)
        service.requests.append(request)
        service.keys.append(self.headers["Authorization"])
        self.give(service.answer(request))

    def give(self, reply: Reply) -> None:
        time.sleep(reply.delay)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body) + reply.missing_bytes))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Keep the test's output clean."""
