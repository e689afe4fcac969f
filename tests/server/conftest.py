"""One server for the tests of a module; every test has a project of its own."""

import itertools
from contextlib import ExitStack

import pytest
from tests.server.running import running_server

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("served") / "store") as running:
        yield running


@pytest.fixture
def project():
    """The names of a project that no other test uses."""
    return {"org_id": f"org{next(_numbers)}", "project_id": "chat"}


@pytest.fixture
def made_project(server, project):
    """The same, with the project in the catalog."""
    server.answer("/projects", project, status=201)
    return project


@pytest.fixture
def say(server, project):
    """Adds messages to the test's project, and returns their ids."""

    def add(*contents, **fields):
        messages = [{"content": content, **fields} for content in contents]
        added = server.answer("/memories", {**project, "messages": messages})
        return [each["uid"] for each in added["results"]]

    return add


@pytest.fixture
def found(server, project):
    """Searches the test's project, and returns the content of the answer."""

    def search(query, **settings):
        asked = {**project, "query": query, **settings}
        return server.answer("/memories/search", asked)["content"]

    return search


@pytest.fixture
def serving(tmp_path):
    """Starts a server on a store of the test's own, until the test ends."""
    with ExitStack() as running:

        def start(**settings):
            return running.enter_context(running_server(tmp_path / "store", **settings))

        yield start
