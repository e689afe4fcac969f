"""The official client, connected to a server; every call is a plain function call."""

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.server.running import read_object

MCP = (sys.executable, "-m", "ekphory", "mcp")
KEPT = {name: value for name, value in os.environ.items() if not name.startswith("EKPHORY_")}
# Not by the resident process, which tests of its own are about.
KEPT["EKPHORY_DAEMON"] = "0"


@dataclass
class Connected:
    """A client, and the thread in which it runs."""

    client: Client
    portal: object = field(repr=False)

    def ask(self, name, /, **arguments):
        """Call a tool, and return the SDK's result."""
        return self.portal.call(self.client.call_tool, name, arguments)

    def call(self, name, /, **arguments):
        """Call a tool that must succeed, and return its data, with the texts for the model."""
        result = self.ask(name, **arguments)
        texts = [block.text for block in result.content]
        assert not result.is_error, texts
        return result.structured_content, texts

    def data(self, name, /, **arguments):
        return self.call(name, **arguments)[0]

    def refusal(self, name, /, **arguments):
        """Call a tool that must fail, and return what the model is told."""
        result = self.ask(name, **arguments)
        assert result.is_error
        assert result.structured_content is None
        (told,) = result.content
        return told.text

    def tools(self):
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def recalled(self, query, **settings):
        return [hit["text"] for hit in self.data("recall", query=query, **settings)["hits"]]


@contextmanager
def connected(server, *needed, **settings):
    """Connect to whatever the official client can connect to, inside of what it needs open."""
    with ExitStack() as entered:
        portal = entered.enter_context(start_blocking_portal())
        for each in (*needed, Client(server, **settings)):
            client = entered.enter_context(portal.wrap_async_context_manager(each))
        yield Connected(client, portal)


@contextmanager
def over_stdio(store, *options, log=Path(os.devnull), **environment):
    """Start `ekphory mcp` and speak to it over its pipes."""
    parameters = StdioServerParameters(
        command=MCP[0], args=[*MCP[1:], "--store", str(store), *options], env=KEPT | environment
    )
    with (
        log.open("w", encoding="utf-8") as errors,
        connected(stdio_client(parameters, errlog=errors)) as client,
    ):
        yield client


@contextmanager
def over_http(url, key=None, **settings):
    """Speak to a server that listens, with or without a key."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    with connected(streamable_http_client(url, http_client=http), http, **settings) as client:
        yield client


@contextmanager
def listening(store, *options):
    """Run `ekphory mcp --transport http`, and yield what it says about where it listens."""
    command = [*MCP, "--store", str(store), "--transport", "http"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=KEPT,
    )
    try:
        yield read_object(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def ended(*options):
    """Run `ekphory mcp` where it cannot begin, and return what it says on standard error."""
    done = subprocess.run(
        [*MCP, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=KEPT,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr
