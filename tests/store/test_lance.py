"""The store on LanceDB keeps the contract, and outlives its handle."""

import pytest

from recollect.store.lance import LanceStore
from recollect.testing import CONTRACT_IDENTITY, DurableStoreContract


class TestLanceStore(DurableStoreContract):
    @pytest.fixture
    def store(self, reopen):
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: LanceStore.open(str(tmp_path / "store"), CONTRACT_IDENTITY)
