"""What is stored is found however it came there, also once all names are known."""

from dataclasses import replace

import pytest

from ekphory.filters.tree import And
from ekphory.store.lance import LanceStore
from ekphory.testing.store_contract import (
    CONTRACT_IDENTITY,
    contract_record,
    contract_row,
    history_record,
    successor_record,
)

EVERYTHING = And(())


def opened(tmp_path) -> LanceStore:
    return LanceStore.open(str(tmp_path / "store"), CONTRACT_IDENTITY)


def found(store: LanceStore, *ids: str) -> list[str]:
    store.version()
    return sorted(entry.id for entry in store.present(EVERYTHING, list(ids), []))


@pytest.fixture
def store(tmp_path):
    """A store that has been asked often enough to know all its names."""
    store = opened(tmp_path)
    store.append([contract_row(1), contract_row(2)])
    for _ in range(3):
        assert found(store, "m1", "m9") == ["m1"]
    return store


def test_what_was_written_since_is_found(store):
    store.append([contract_row(3)])
    store.append([contract_row(4)])
    assert found(store, "m3", "m4", "m5") == ["m3", "m4"]


def test_what_another_process_wrote_is_found(store, tmp_path):
    other = opened(tmp_path)
    other.append([contract_row(3)])
    store.append([contract_row(4)])
    other.append([contract_row(5)])
    assert found(store, "m3", "m4", "m5", "m6") == ["m3", "m4", "m5"]


def test_what_was_deleted_is_not_found(store):
    store.delete([1])
    assert found(store, "m1", "m2") == ["m2"]


def test_a_later_version_is_found_by_the_id(store):
    store.supersede(1, history_record(1), contract_row(7, successor_record(1)))
    (entry,) = (store.version(), store.present(EVERYTHING, ["m1"], []))[1]
    assert entry.key == 7


def test_a_fingerprint_is_found_in_history_too(store):
    row = replace(contract_row(3), fingerprint="ab12")
    store.append([row])
    store.supersede(3, history_record(3), contract_row(7, successor_record(3)))
    store.version()
    assert [entry.key for entry in store.present(EVERYTHING, [], ["ab12", "cd34"])] == [3]


def test_names_are_known_after_a_purge(store):
    store.delete([1])
    store.purge()
    store.append([replace(contract_row(8), record=contract_record(8))])
    assert found(store, "m1", "m2", "m8") == ["m2", "m8"]
