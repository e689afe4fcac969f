"""Memory over MemMachine's REST API, which has no users: each has a project of their own."""

from contextlib import ExitStack

from tests.server.running import running_server

from ekphory.config import Settings
from ekphory.service.handles import load_models

# What MemMachine calls a field.
NAMES = {"top_k": "k", "content": "text"}


class RestDriver:
    """One user; what comes back is named as it was when it was added."""

    def __init__(self, store, user):
        self.open = ExitStack()
        used = load_models(Settings(store=str(store)))
        self.server = self.open.enter_context(running_server(store, used=used))
        self.project = {"org_id": "home", "project_id": user}
        self.server.answer("/projects", self.project, status=201)
        # Else the newest memories would come beside those that were found.
        off = {**self.project, "short_term_memory_enabled": False}
        self.server.answer("/memory/episodic/config", off, status=204)
        self.uids = {}

    def close(self):
        self.open.close()

    def add(self, *, name, text, at, producer, type, metadata):  # noqa: A002  the field's name
        message = {"content": text, "timestamp": at, "producer": producer, "metadata": metadata}
        added = self._ask("/memories", messages=[message], types=[type])
        self.uids[name] = added["results"][0]["uid"]

    def search(self, query, *, k, where=None):
        content = self._ask("/memories/search", query=query, top_k=k, **_given(where))["content"]
        episodes = content["episodic_memory"]["long_term_memory"]["episodes"]
        return [(self._name(each["uid"]), each["content"], each["score"]) for each in episodes]

    def list(self, *, where=None):
        content = self._ask("/memories/list", type="episodic", **_given(where))["content"]
        return [(self._name(each["uid"]), each["content"]) for each in content["episodic_memory"]]

    def forget(self, name):
        self._ask("/memories/episodic/delete", status=204, episodic_id=self.uids[name])

    def missing(self, verb, name):
        assert verb == "forget"
        # As with MemMachine's server, what is not there is deleted already: nothing is changed.
        before = self.list()
        deleted = self.uids.get(name, name)
        self._ask("/memories/episodic/delete", status=204, episodic_id=deleted)
        assert self.list() == before
        return "id"

    def refused_search(self, *, k=5, where=None):
        return self._refused("/memories/search", query="drink", top_k=k, **_given(where))

    def refused_add(self, text):
        return self._refused("/memories", messages=[{"content": text}])

    def _ask(self, path, status=200, **fields):
        return self.server.answer(path, {**self.project, **fields}, status=status)

    def _refused(self, path, **fields):
        status, told = self.server.refusal(path, {**self.project, **fields})
        assert status == 422
        told = told.removeprefix("Invalid request payload: ")
        field = told.replace("=", ":").partition(":")[0].rpartition(".")[2]
        return NAMES.get(field, field)

    def _name(self, uid):
        return next(name for name, known in self.uids.items() if known == uid)


def _given(condition):
    return {} if condition is None else {"filter": condition}
