"""The store on LanceDB keeps the contract, and outlives its handle."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from ekphory.filters.tree import And
from ekphory.store.lance import LanceStore
from ekphory.testing.store_contract import CONTRACT_IDENTITY, DurableStoreContract, contract_row


class TestLanceStore(DurableStoreContract):
    @pytest.fixture
    def store(self, reopen):
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: LanceStore.open(str(tmp_path / "store"), CONTRACT_IDENTITY)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(8))
def test_stores_that_are_made_at_the_same_moment_are_one_and_lose_nothing(tmp_path, attempt):
    start = Barrier(4)

    def make_and_write(key):
        start.wait()
        LanceStore.open(str(tmp_path / "store"), CONTRACT_IDENTITY).append([contract_row(key)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make_and_write, range(1, 5)))
    store = LanceStore.open(str(tmp_path / "store"), CONTRACT_IDENTITY)
    assert store.keys(And(())).tolist() == [1, 2, 3, 4]
