"""A service over a store of the test's own."""

import pytest

from ekphory.service.handles import Place, ServiceModels
from ekphory.service.memory_service import MemoryService
from ekphory.testing import HashEmbedder


@pytest.fixture
def service(tmp_path):
    with MemoryService(tmp_path / "store", models=ServiceModels(embedder=HashEmbedder())) as one:
        yield one


@pytest.fixture
def home():
    return Place("home", "chat")
