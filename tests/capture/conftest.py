import pytest
from tests.capture.readers import Reader

from ekphory.capture import selection as module


@pytest.fixture
def read_as(monkeypatch):
    """Makes the capture read texts as a test says."""

    def patch(by_text):
        monkeypatch.setattr(module, "bundled_capture_reader", lambda: Reader(by_text))

    return patch
