"""Memory on the command line, with `--json`."""

import json

from tests.cli.command_line import CommandLine

from .python_driver import READ


class CommandLineDriver:
    """One user, named by the environment."""

    def __init__(self, store, user):
        self.line = CommandLine(store)
        self.scope = {
            "EKPHORY_ORG": "home",
            "EKPHORY_PROJECT": "chat",
            "EKPHORY_USER": user,
        }

    def close(self):
        """Nothing stays open."""

    def add(self, *, name, text, metadata, **fields):
        given = [part for key, value in fields.items() for part in (f"--{key}", str(value))]
        pairs = [part for item in metadata.items() for part in ("--metadata", "=".join(item))]
        self._run("add", text, "--id", name, *given, *pairs)

    def search(self, query, *, k, where=None):
        hits = self._run("search", query, "-k", str(k), *_filter(where))["hits"]
        return [(hit["id"], hit["text"], hit["score"]) for hit in hits]

    def list(self, *, where=None):
        page = self._run("list", "--order", "oldest", *_filter(where))["memories"]
        return [(each["id"], each["text"]) for each in page]

    def get(self, name):
        record = self._run("get", name)
        return {field: record[field] for field in READ}

    def update(self, name, **changes):
        given = [part for key, value in changes.items() for part in (f"--{key}", str(value))]
        return self._run("update", name, *given)["id"]

    def forget(self, name):
        self._run("forget", name)

    def missing(self, name):
        return self._missing("forget", name)

    def missing_for_get(self, name):
        return self._missing("get", name)

    def missing_for_update(self, name):
        return self._missing("update", name, "--text", "mine now")

    def refused(self, *, k=5, where=None):
        return self._failure("search", "drink", "-k", str(k), *_filter(where))["field"]

    def refused_text(self, text):
        return self._failure("add", text)["field"]

    def refused_importance(self, importance):
        return self._failure("add", "tea", "--importance", str(importance))["field"]

    def refused_type(self, type):  # noqa: A002  the field's name
        return self._failure("add", "tea", "--type", type)["field"]

    def _run(self, *arguments):
        return self.line.json(*arguments, **self.scope)

    def _failure(self, *arguments):
        result = self.line.run(*arguments, "--json", **self.scope)
        assert result.exit_code == 1, result.output
        return json.loads(result.stdout)["error"]

    def _missing(self, *arguments):
        assert self._failure(*arguments)["type"] == "MemoryNotFound"
        return "id"


def _filter(condition):
    return [] if condition is None else ["--filter", condition]
