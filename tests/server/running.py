"""A real server on a free port of this machine, in a thread."""

import json
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import uvicorn

from ekphory.catalog.access_keys import AccessKeys
from ekphory.server.app import create_app
from ekphory.server.options import ServerOptions
from ekphory.server.serving import server_config
from ekphory.service.handles import ServiceModels
from ekphory.service.memory_service import MemoryService
from ekphory.testing import HashEmbedder, OverlapReranker

API = "/api/v2"


@dataclass
class RunningServer:
    """Where a server or the front of a cluster answers, its keys, and the service behind it."""

    url: str
    store: str
    service: MemoryService | None
    client: httpx.Client = field(repr=False)
    keys: AccessKeys = field(repr=False)

    def post(self, path, body=None, *, key=None, **headers):
        """Ask a path under /api/v2."""
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return self.client.post(API + path, json={} if body is None else body, headers=headers)

    def answer(self, path, body=None, *, status=200, **settings):
        """Ask, and give the answer's JSON, or None where it has no body."""
        answered = self.post(path, body, **settings)
        assert answered.status_code == status, answered.text
        return answered.json() if answered.content else None

    def refusal(self, path, body=None, *, key=None, **headers):
        """Ask for what must be refused, and return the status and the message."""
        answered = self.post(path, body, key=key, **headers)
        detail = answered.json()["detail"]
        return answered.status_code, detail if isinstance(detail, str) else detail["message"]


def models(**changed):
    """Models without weights."""
    return ServiceModels(**{"embedder": HashEmbedder(), "reranker": OverlapReranker(), **changed})


@contextmanager
def running_server(store, *, used=None, extraction=None, document=None, **options):
    """Serve a store until the block ends."""
    options = ServerOptions(store=str(store), **options)
    service = MemoryService(
        store, models=used or models(), extraction=extraction, document=document
    )
    with running_application(create_app(service, options), options) as client:
        yield RunningServer(str(client.base_url), str(store), service, client, service.keys)


@contextmanager
def running_application(application, options):
    """Let any application answer until the block ends; yields a client of it."""
    config = server_config(lambda: application, options, log=None)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=url, timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def read_object(process):
    """Return the JSON object that a process says first, over several lines."""
    lines = []
    while not lines or lines[-1] != "}\n":
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr.read()
    return json.loads("".join(lines))
