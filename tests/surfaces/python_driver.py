"""Memory in Python."""

import pytest

from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.memory import Memory

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
        record = self.memory.update(name, **changes)
        return record.id

    def forget(self, name):
        self.memory.forget(name)

    def missing(self, name):
        return self._missing(self.memory.forget, name)

    def missing_for_get(self, name):
        return self._missing(self.memory.get, name)

    def missing_for_update(self, name):
        return self._missing(self.memory.update, name, text="mine now")

    def refused(self, *, k=5, where=None):
        return self._refused(self.memory.search, "drink", k=k, filter=where)

    def refused_text(self, text):
        return self._refused(self.memory.add, text)

    def refused_importance(self, importance):
        return self._refused(self.memory.add, "tea", importance=importance)

    def refused_type(self, type):  # noqa: A002  the field's name
        return self._refused(self.memory.add, "tea", type=type)

    def _refused(self, verb, *arguments, **settings):
        with pytest.raises(InvalidInput) as failure:
            verb(*arguments, **settings)
        return failure.value.field

    def _missing(self, verb, *arguments, **settings):
        with pytest.raises(MemoryNotFound):
            verb(*arguments, **settings)
        return "id"


class PythonChatDriver(PythonDriver):
    """The same, where what is said is said in a chat, so that its neighbours tell more of it."""

    def add(self, *, name, text, **fields):
        self.memory.add_messages([{"content": text, "id": name, **fields}])
