"""Memory as tools, through the official client of the Model Context Protocol."""

from contextlib import ExitStack

from tests.mcp_server.connected import connected

from ekphory.config import Settings
from ekphory.mcp_server.memmachine import tools_of
from ekphory.mcp_server.tool import Memories
from ekphory.mcp_server.transports import Calls, protocol_server
from ekphory.scope import Scope

from .python_driver import READ


class McpDriver:
    """One user, whom the server's configuration names."""

    def __init__(self, store, user):
        self.open = ExitStack()
        memories = Memories(Settings(store=str(store)))
        self.open.callback(memories.close)
        scope = Scope(org="home", project="chat", user=user)
        calls = Calls(memories, tools_of("ekphory", memories), scope)
        server = protocol_server(calls, caller_of=lambda _: None, on_end=lambda: None)
        self.agent = self.open.enter_context(connected(server))

    def close(self):
        self.open.close()

    def add(self, *, name, **fields):
        self.agent.call("remember", id=name, **fields)

    def search(self, query, *, k, where=None):
        found = self.agent.data("recall", query=query, k=k, **_given(where))
        return [(hit["id"], hit["text"], hit["score"]) for hit in found["hits"]]

    def list(self, *, where=None):
        page = self.agent.data("list", order="oldest", **_given(where))["memories"]
        return [(each["id"], each["text"]) for each in page]

    def get(self, name):
        (record,) = self.agent.data("list", filter=f"id = '{name}'")["memories"]
        return {field: record[field] for field in READ}

    def update(self, name, **changes):
        return self.agent.data("update", id=name, **changes)["id"]

    def forget(self, name):
        self.agent.call("forget", id=name)

    def missing(self, verb, name, **changes):
        tool = "explain" if verb == "get" else verb
        field, _, told = self.agent.refusal(tool, id=name, **changes).partition("=")
        assert "no such memory" in told
        return field

    def refused_search(self, *, k=5, where=None):
        return self._refused("recall", query="drink", k=k, **_given(where))

    def refused_add(self, text="tea", **fields):
        return self._refused("remember", text=text, **fields)

    def _refused(self, tool, **arguments):
        return self.agent.refusal(tool, **arguments).partition("=")[0]


def _given(condition):
    return {} if condition is None else {"filter": condition}
