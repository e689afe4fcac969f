"""Handles on a store in a directory of the test's own."""

import os
import threading
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from inspect import signature

import pytest
from hypothesis import settings

# A command that a test runs is run by its own process, unless the test is about the resident one.
os.environ["EKPHORY_DAEMON"] = "0"
# New memories are compared with earlier ones only where a test is about that: it costs most of what
# a small test costs.
os.environ["EKPHORY_DETECT_CHANGES"] = "0"

# How long an example takes says nothing: the machine may be busy.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

pytest.register_assert_rewrite("tests.store.store_contract")

from children.process import Child  # noqa: E402  after the rewriting
from ekphory.memory import Memory  # noqa: E402  likewise
from ekphory.testing import HashEmbedder  # noqa: E402  likewise


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def close_at_end():
    """Takes what was opened and gives it back; it is closed after the test."""
    with ExitStack() as opened:
        yield lambda one: opened.enter_context(closing(one))


def pytest_generate_tests(metafunc):
    """Ask a server too, in the modules that say so; and a cluster what it can answer."""
    if getattr(metafunc.module, "ALSO_OVER_A_SERVER", False) and "where" in metafunc.fixturenames:
        places = ["in this process", pytest.param("over a server", marks=pytest.mark.slow)]
        is_of_one_store = metafunc.definition.get_closest_marker("one_store")
        if not is_of_one_store and "store_path" not in signature(metafunc.function).parameters:
            places.append(pytest.param("over a cluster", marks=pytest.mark.long))
        metafunc.parametrize("where", places)


@pytest.fixture
def where():
    """Whether handles open the store themselves, or ask a server that does."""
    return "in this process"


@pytest.fixture
def open_memory(store_path, close_at_end, where):
    """Opens a handle of any scope and with any models on the test's store."""
    with ExitStack() as serving:

        @cache
        def place():
            if where == "in this process":
                return {"path": store_path, "embedder": HashEmbedder()}
            if where == "over a cluster":
                from tests.cluster.front import running_cluster

                return {"path": serving.enter_context(running_cluster(store_path)).url}
            from tests.server.running import running_server

            return {"path": serving.enter_context(running_server(store_path)).url}

        yield lambda **given: close_at_end(Memory(**place() | given))


@pytest.fixture
def memory(open_memory):
    """A handle that is bound to nothing."""
    return open_memory()


@pytest.fixture
def purging():
    """Wipes memories of a handle from the disk, one after the other, until the block ends."""

    @contextmanager
    def purge(memory):
        ended = threading.Event()

        def wipe():
            while not ended.is_set():
                memory.add("secret", id="secret")
                memory.forget("secret", purge=True)

        thread = threading.Thread(target=wipe)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    return purge


@pytest.fixture
def start_child():
    """Starts a script of `children/` in a process of its own, which does not outlive the test."""
    children = []

    def start(script, *arguments):
        children.append(Child(script, *arguments))
        return children[-1]

    yield start
    for child in children:
        child.end()
