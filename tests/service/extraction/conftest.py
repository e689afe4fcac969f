"""One service that learns from what is said, and the model that it asks; a project a test."""

import itertools
from contextlib import contextmanager

import pytest

from ekphory.service.episodes import EpisodeMessage
from ekphory.service.handles import Place

from .teacher import Teacher, learning_service, taught, until

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    with taught() as wire:
        store = tmp_path_factory.mktemp("learning") / "store"
        with learning_service(store, wire.host) as service:
            yield wire, service


@pytest.fixture
def service(running):
    _, service = running
    yield service
    until(lambda: service.extraction.state().waiting == 0)


@pytest.fixture
def teacher():
    return Teacher()


@pytest.fixture
def wire(running, teacher):
    wire, _ = running
    wire.answer = teacher
    wire.replies.clear()
    wire.asked.clear()
    return wire


@pytest.fixture
def home():
    return Place(f"home {next(_numbers)}", "chat")


def hand_over(service, place, *contents, **fields):
    """Add messages, let them be read, and return their ids."""
    said = [EpisodeMessage(content=content, **fields) for content in contents]
    ids = service.episodes.add(place, said)
    service.extraction.learn_from(place, ids)
    return ids


@pytest.fixture
def tell(service, wire, home):
    """Adds messages, hands them over, and returns their ids."""
    return lambda *contents, place=home, **fields: hand_over(service, place, *contents, **fields)


@pytest.fixture
def learnt(service, home):
    """Waits until all has been read, and returns what is known of a project."""

    def give(place=home):
        until(lambda: service.extraction.state(place).waiting == 0)
        return service.features.page(place, limit=100)

    return give


@pytest.fixture
def apart(tmp_path, wire, home):
    """Starts services on one store of the test's own, beside which nothing runs."""

    @contextmanager
    def start(*said, host=wire.host, **settings):
        with learning_service(tmp_path / "store", host, **settings) as service:
            hand_over(service, home, *said)
            yield service

    return start
