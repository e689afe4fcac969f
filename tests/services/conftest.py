"""A service, a clock, and transports between them."""

import pytest
from tests.services.stepped_clock import SteppedClock
from tests.services.wire import running_service

from ekphory.http_service import JsonTransport, Service, ServiceSettings

KEY = "geheim-123"


@pytest.fixture
def wire():
    with running_service() as service:
        yield service


@pytest.fixture
def time():
    return SteppedClock()


@pytest.fixture
def connect(wire, time):
    """Connects to the service; `url` and settings may be others."""
    transports = []

    def connect(url=None, **settings):
        service = Service(
            kind="test service", url=url or f"{wire.host}/v1/test", model="m", api_key=KEY
        )
        chosen = ServiceSettings(**{"timeout": 5.0, "retries": 2, "backoff": 1.0} | settings)
        transports.append(JsonTransport(service, settings=chosen, clock=time.clock))
        return transports[-1]

    yield connect
    for transport in transports:
        transport.close()
