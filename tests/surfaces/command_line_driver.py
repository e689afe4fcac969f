"""Memory on the command line, with `--json`."""

import json

from tests.cli.command_line import CommandLine

from .python_driver import READ


class CommandLineDriver:
    """One user, named by the environment."""

    def __init__(self, store, user):
        self.line = CommandLine(store)
        named = {"ORG": "home", "PROJECT": "chat", "USER": user}
        self.scope = {f"EKPHORY_{name}": value for name, value in named.items()}

    def close(self):
        """Nothing stays open."""

    def add(self, *, name, text, metadata, **fields):
        pairs = [part for item in metadata.items() for part in ("--metadata", "=".join(item))]
        self._run("add", text, "--id", name, *_options(fields), *pairs)

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
        return self._run("update", name, *_options(changes))["id"]

    def forget(self, name):
        self._run("forget", name)

    def missing(self, verb, name, **changes):
        assert self._failure(verb, name, *_options(changes))["type"] == "MemoryNotFound"
        return "id"

    def refused_search(self, *, k=5, where=None):
        return self._failure("search", "drink", "-k", str(k), *_filter(where))["field"]

    def refused_add(self, text="tea", **fields):
        return self._failure("add", text, *_options(fields))["field"]

    def _run(self, *arguments):
        return self.line.json(*arguments, **self.scope)

    def _failure(self, *arguments):
        result = self.line.run(*arguments, "--json", **self.scope)
        assert result.exit_code == 1, result.output
        return json.loads(result.stdout)["error"]


def _options(fields):
    return [part for key, value in fields.items() for part in (f"--{key}", str(value))]


def _filter(condition):
    return [] if condition is None else ["--filter", condition]
