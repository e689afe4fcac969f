"""Where several processes answer, each has connections of its own."""

import select
import socket
import sys

import pytest

from ekphory.server.serving import listeners_in_place_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they share one")


@pytest.fixture
def open_sockets():
    sockets = []
    yield sockets
    for each in sockets:
        each.close()


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_connections_are_dealt_out_among_the_listeners_of_one_address(open_sockets, family, host):
    alone = socket.create_server((host, 0), family=family)
    address = alone.getsockname()[:2]
    listeners = listeners_in_place_of(alone, count=2)
    open_sockets += listeners
    assert {each.getsockname()[:2] for each in listeners} == {address}
    open_sockets += [socket.create_connection(address) for _ in range(64)]
    assert all(_waiting(each) >= 10 for each in listeners)


def test_a_listener_for_one_process_stays_as_it_is(open_sockets):
    alone = socket.create_server(("127.0.0.1", 0))
    open_sockets.append(alone)
    assert listeners_in_place_of(alone, count=1) == [alone]


def _waiting(listener):
    """Take all connections that wait at a listener, and return how many."""
    taken = 0
    while select.select([listener], [], [], 0)[0]:
        listener.accept()[0].close()
        taken += 1
    return taken
