import pytest
from tests.capture.readers import Reader

from ekphory.models import captures


@pytest.fixture
def read_as(monkeypatch):
    """Makes the capture read texts as a test says."""

    def patch(by_text):
        monkeypatch.setattr(captures, "bundled_capture_reader", lambda: Reader(by_text))

    return patch
