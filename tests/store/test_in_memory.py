"""The reference store keeps the contract that it defines."""

import pytest

from ekphory.store.in_memory import InMemoryStore
from ekphory.testing.store_contract import CONTRACT_IDENTITY, StoreContract


class TestInMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return InMemoryStore(CONTRACT_IDENTITY)
