"""One server for the tests of a module; every test has a project of its own."""

import itertools
from contextlib import ExitStack, contextmanager

import pytest
from tests.server.running import models, running_server

_numbers = itertools.count(1)


def pytest_generate_tests(metafunc):
    """Ask a cluster too, in the modules that say so."""
    is_of_one_store = metafunc.definition.get_closest_marker("one_store")
    if (
        getattr(metafunc.module, "ALSO_OVER_A_CLUSTER", False)
        and "server" in metafunc.fixturenames
        and not is_of_one_store
    ):
        metafunc.parametrize("server", EITHER, indirect=True, scope="module")


OVER_A_CLUSTER = pytest.param(True, id="a cluster", marks=pytest.mark.long)


EITHER = (pytest.param(False, id="one machine"), OVER_A_CLUSTER)
"""Of a fixture that is served by one machine and by a cluster."""


@contextmanager
def served(store, *, over_a_cluster, **settings):
    """Serve a store by one machine or by a cluster until the block ends."""
    if not over_a_cluster:
        with running_server(store, **settings) as running:
            yield running
        return
    from tests.cluster.front import running_cluster

    with running_cluster(store, models(), **settings) as running:
        yield running


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    store = tmp_path_factory.mktemp("served") / "store"
    with served(store, over_a_cluster=getattr(request, "param", False)) as running:
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
