"""Memory in Python."""

from contextlib import ExitStack

import pytest
from tests.server.running import running_server

from ekphory.config import Settings
from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.memory import Memory
from ekphory.service.handles import load_models

READ = ("id", "text", "type", "importance", "producer")


class PythonDriver:
    """One user, by a handle of their own."""

    def __init__(self, store, user):
        self.memory = Memory(store, org="home", project="chat", user=user)

    def close(self):
        self.memory.close()

    def add(self, *, name, **fields):
        self.memory.add(fields.pop("text"), id=name, **fields)

    def search(self, query, *, k, where=None):
        hits = self.memory.search(query, k=k, filter=where)
        return [(hit.id, hit.text, hit.score) for hit in hits]

    def list(self, *, where=None):
        return [(each.id, each.text) for each in self.memory.list(filter=where, order="oldest")]

    def get(self, name):
        record = self.memory.get(name)
        return {field: getattr(record, field) for field in READ}

    def update(self, name, **changes):
        return self.memory.update(name, **changes).id

    def forget(self, name):
        self.memory.forget(name)

    def missing(self, verb, name, **changes):
        with pytest.raises(MemoryNotFound):
            getattr(self.memory, verb)(name, **changes)
        return "id"

    def refused_search(self, *, k=5, where=None):
        return self._refused(self.memory.search, "drink", k=k, filter=where)

    def refused_add(self, text="tea", **fields):
        return self._refused(self.memory.add, text, **fields)

    def _refused(self, verb, *arguments, **settings):
        with pytest.raises(InvalidInput) as failure:
            verb(*arguments, **settings)
        return failure.value.field


class PythonChatDriver(PythonDriver):
    """The same, where what is said is said in a chat, so that its neighbours tell more of it."""

    def add(self, *, name, text, **fields):
        self.memory.add_messages([{"content": text, "id": name, **fields}])


class RemoteDriver(PythonDriver):
    """The same, over a server."""

    def __init__(self, store, user):
        self.open = ExitStack()
        used = load_models(Settings(store=str(store)))
        server = self.open.enter_context(running_server(store, used=used))
        self.memory = Memory(server.url, org="home", project="chat", user=user)

    def close(self):
        super().close()
        self.open.close()
