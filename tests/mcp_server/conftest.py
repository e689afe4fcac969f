"""One open store for all tests; every test has a user of its own."""

import itertools
from contextlib import ExitStack

import pytest

from ekphory.config import Settings
from ekphory.mcp_server.memmachine import tools_of
from ekphory.mcp_server.tool import Memories
from ekphory.mcp_server.transports import Calls, protocol_server
from ekphory.scope import Scope

from .connected import connected

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def memories(tmp_path_factory):
    opened = Memories(Settings(store=str(tmp_path_factory.mktemp("mcp") / "store")))
    yield opened
    opened.close()


@pytest.fixture
def offered(memories):
    """Connects a client to a set of tools, bound to the scope of the test."""
    with ExitStack() as clients:

        def connect(toolset="ekphory", **scope):
            calls = Calls(memories, tools_of(toolset, memories), Scope(**scope))
            server = protocol_server(calls, caller_of=lambda _: None, on_end=lambda: None)
            return clients.enter_context(connected(server))

        yield connect


@pytest.fixture
def agent(offered):
    """A client of ekphory's own tools, as a user that no other test has."""
    return offered(user=f"user {next(_numbers)}")
