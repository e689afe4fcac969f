"""What every store must do, as tests to inherit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.cases import read_cases

from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    Filter,
    In,
    IsNull,
    MetadataField,
    Not,
)
from ekphory.retrieval.lexical import TERMS_VERSION, passage_terms
from ekphory.store.protocol import (
    NEVER,
    SCHEMA_VERSION,
    Store,
    StoredMemory,
    StoreIdentity,
    first_key,
)
from ekphory.testing import HashEmbedder
from ekphory.types import MemoryRecord, Scalar, decode_metadata, to_microseconds

_CASES = read_cases(__file__)
CONTRACT_IDENTITY = StoreIdentity(SCHEMA_VERSION, TERMS_VERSION, HashEmbedder().identity)
"""What a store that `StoreContract` tests has to be made with."""

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def contract_record(number: int) -> MemoryRecord:
    """Return memory `m<number>`, of that day of January 2026 (the 29th is the 1st again)."""
    at = FIRST_DAY + timedelta(days=(number - 1) % 28)
    return MemoryRecord(id=f"m{number}", text=f"memory {number}", at=at, created_at=at)


def contract_row(key: int, record: MemoryRecord | None = None, *, windows: int = 1) -> StoredMemory:
    """Return the row of a record, that of `contract_record(key)` where none is given."""
    kept = record or contract_record(key)
    texts = [f"{kept.indexed_text} window {number}" for number in range(windows)]
    terms = passage_terms(kept.indexed_text)
    return StoredMemory(key, kept, 0, terms, HashEmbedder().encode(texts))


def full_record() -> MemoryRecord:
    """Return a memory in which no field is left out."""
    return MemoryRecord(**dict(_CASES["full record"]), predicted=frozenset({"importance"}))


def owned_record(number: int, user: str) -> MemoryRecord:
    """Return memory `m<number>` of a user."""
    return replace(contract_record(number), user=user)


def history_record(number: int) -> MemoryRecord:
    """Return memory `m<number>` as an earlier version."""
    return replace(contract_record(number), id=f"m{number}~1", superseded_by=f"m{number}")


def successor_record(number: int) -> MemoryRecord:
    """Return the version that takes the place of memory `m<number>`."""
    return replace(contract_record(number), text="changed", supersedes=f"m{number}~1")


_EVERYTHING: Filter = And(())


class StoreContract:
    """What every store must do; to be inherited by a pytest class with a fixture `store`.

    The fixture gives a new, empty store made with `CONTRACT_IDENTITY`.

    Example:
        class TestMyStore(StoreContract):
            @pytest.fixture
            def store(self, tmp_path):
                return MyStore(tmp_path, CONTRACT_IDENTITY)
    """

    def test_a_new_store_holds_nothing(self, store: Store) -> None:
        assert store.identity == CONTRACT_IDENTITY
        assert store.count(_EVERYTHING) == 0
        assert store.select(_EVERYTHING, order="newest") == []
        assert (store.fetch([1]), _keys_of_every_read(store)) == ({}, [[], [], [], []])
        columns = store.scan(_EVERYTHING)
        assert (columns.terms.shape, columns.pool.shape) == ((0,), (0,))
        assert store.scan_vectors(_EVERYTHING).vectors.shape == (0, 32)
        assert store.vectors_of([1]).vectors.shape == (0, 32)

    def test_every_field_of_a_memory_comes_back(self, store: Store) -> None:
        full = full_record()
        store.append([contract_row(1, full)])
        assert store.fetch([1]) == {1: full}
        assert store.select(_EVERYTHING, order="newest") == [full]

    def test_scanned_records_are_whole_and_in_the_order_of_keys(self, store: Store) -> None:
        full = full_record()
        store.append([contract_row(2, contract_record(2)), contract_row(1, full)])
        block = store.scan_records(_EVERYTHING)
        assert block.keys.tolist() == [1, 2]
        assert block.at(np.array([1, 0])) == [contract_record(2), full]
        assert block.nbytes > 0

    def test_scanned_records_can_be_left_without_some(self, store: Store) -> None:
        store.append([contract_row(1), contract_row(2), contract_row(3)])
        block = store.scan_records(_EVERYTHING).without(np.array([1, 3, 7]))
        assert block.keys.tolist() == [2]
        assert block.at(np.array([0])) == [contract_record(2)]

    def test_scanned_fields_are_plain_and_in_the_order_of_keys(self, store: Store) -> None:
        full = full_record()
        store.append([contract_row(2, contract_record(2)), contract_row(1, full)])
        store.supersede(2, history_record(2), contract_row(9, successor_record(2)))
        names = ("session", "pool", "importance", "created_at")
        found = store.scan_fields(_EVERYTHING, names)
        assert found["key"].tolist() == [1, 9]
        assert found["session"].tolist() == [full.session, ""]
        assert found["pool"].tolist() == [full.pool, successor_record(2).pool]
        assert found["importance"][0] == pytest.approx(full.importance)
        assert found["created_at"][0] == to_microseconds(full.created_at)
        assert store.scan_fields(In(Field("id"), ("nobody",)), names)["pool"].tolist() == []
        (told, _) = store.scan_fields(_EVERYTHING, ("metadata",))["metadata"].tolist()
        assert decode_metadata(told) == full.metadata

    def test_a_text_is_found_in_any_case_where_that_is_asked_for(self, store: Store) -> None:
        store.append([contract_row(1, replace(contract_record(1), text="It's ÜBER Dog's bed"))])
        in_any_case = Contains(Field("text"), "über dog's", any_case=True)
        assert store.count(in_any_case) == 1
        assert store.count(replace(in_any_case, any_case=False)) == 0

    def test_an_entry_of_a_list_is_found_whole_and_no_part_of_another(self, store: Store) -> None:
        for key, named in (
            (1, "person: Ann; place: Bonn"),
            (2, "person: Anna"),
            (3, "person: Ann"),
        ):
            named_record = replace(contract_record(key), metadata={"entities": named})
            store.append([contract_row(key, named_record)])
        store.append([contract_row(4, replace(contract_record(4), metadata={}))])
        ann = Contains(MetadataField("entities"), "person: Ann", whole=True)
        assert store.keys(ann).tolist() == [1, 3]
        assert store.keys(replace(ann, text="place: Bonn")).tolist() == [1]
        assert store.keys(replace(ann, text="PERSON: ANNA", any_case=True)).tolist() == [2]
        assert store.keys(And((Not(ann), IsNull(Field("superseded_by"))))).tolist() == [2, 4]
        assert store.keys(replace(ann, text="")).tolist() == []

    def test_scanned_records_leave_out_history_and_earlier_keys(self, store: Store) -> None:
        store.append([contract_row(1), contract_row(5)])
        _supersede(store, 5, by=9)
        assert store.scan_records(_EVERYTHING).keys.tolist() == [1, 9]
        assert store.scan_records(_EVERYTHING, after_key=1).keys.tolist() == [9]

    def test_the_kinds_of_metadata_values_come_back(self, store: Store) -> None:
        metadata: Mapping[str, Scalar] = {"text": "2", "whole": 2, "real": 2.0, "flag": True}
        store.append([contract_row(1, replace(contract_record(1), metadata=metadata))])
        kinds = {key: type(value) for key, value in store.fetch([1])[1].metadata.items()}
        assert kinds == {"text": str, "whole": int, "real": float, "flag": bool}

    def test_what_was_left_out_comes_back_as_none(self, store: Store) -> None:
        store.append([contract_row(1)])
        found = store.fetch([1])[1]
        assert (found.user, found.session, found.sequence, found.expires_at) == (None,) * 4
        assert (found.producer, found.metadata, found.predicted) == ("", {}, frozenset())

    def test_memories_of_one_moment_are_ordered_by_their_writing(self, store: Store) -> None:
        same_moment = replace(contract_record(3), at=FIRST_DAY)
        store.append([contract_row(1), contract_row(2)])
        store.append([contract_row(3, same_moment)])
        assert _ids(store.select(_EVERYTHING, order="newest")) == ["m2", "m3", "m1"]
        assert _ids(store.select(_EVERYTHING, order="oldest")) == ["m1", "m3", "m2"]
        assert _ids(store.select(_EVERYTHING, order="written")) == ["m1", "m2", "m3"]

    def test_a_page_is_cut_out_of_the_order(self, store: Store) -> None:
        store.append([contract_row(key) for key in range(1, 7)])
        assert _ids(store.select(_EVERYTHING, order="newest", limit=2, offset=1)) == ["m5", "m4"]
        assert _ids(store.select(_EVERYTHING, order="oldest", limit=9, offset=4)) == ["m5", "m6"]
        assert store.select(_EVERYTHING, order="oldest", limit=2, offset=6) == []

    def test_a_condition_limits_every_read(self, store: Store) -> None:
        _append_of(store, "alice", "bob")
        alice = _equals("user", "alice")
        assert _ids(store.select(alice, order="newest")) == ["m1"]
        assert (store.count(alice), _keys_of_every_read(store, alice)) == (1, [[1]] * 4)

    def test_quotes_and_other_scripts_are_found_as_they_were_written(self, store: Store) -> None:
        odd = "it's \"é\" 日本 😀 \\ % ' OR TRUE --"
        store.append([contract_row(1, replace(contract_record(1), id=odd)), contract_row(2)])
        assert store.keys(_equals("id", odd)).tolist() == [1]

    def test_fetching_leaves_out_what_is_not_there(self, store: Store) -> None:
        store.append([contract_row(1)])
        assert list(store.fetch([7, 1])) == [1]
        assert store.fetch([]) == {}

    def test_every_write_gives_a_new_version_and_no_read_does(self, store: Store) -> None:
        versions = [store.version()]
        store.append([contract_row(1), contract_row(2)])
        versions.append(store.version())
        _supersede(store, 1, by=3)
        versions.append(store.version())
        store.delete([2])
        versions.append(store.version())
        store.select(_EVERYTHING, order="newest")
        assert (len(set(versions)), _keys_of_every_read(store)[1]) == (4, [3])
        assert store.version() == versions[-1]

    def test_the_ranking_columns_hold_what_was_written(self, store: Store) -> None:
        ends = datetime(2030, 1, 1, tzinfo=UTC)
        second = replace(full_record(), expires_at=ends, sequence=4)
        store.append([contract_row(1), replace(contract_row(2, second), thread=77)])
        columns = store.scan(_EVERYTHING)
        assert columns.key.tolist() == [1, 2]
        assert columns.thread.tolist() == [0, 77]
        assert columns.sequence.tolist() == [0, 4]
        assert columns.at.tolist() == [to_microseconds(FIRST_DAY), to_microseconds(second.at)]
        assert columns.expires_at.tolist() == [NEVER, to_microseconds(ends)]
        assert columns.importance.tolist() == [0.5, 0.25]
        assert columns.importance_given.tolist() == [True, False]
        assert columns.pool.tolist() == ["agent_memory", "shared_rules"]
        assert columns.type.tolist() == ["unknown", "procedural"]

    def test_the_terms_of_all_rows_follow_one_another(self, store: Store) -> None:
        first = replace(contract_row(1), terms=np.array([7, 7, 4294967295], np.uint32))
        nothing = replace(contract_row(2), terms=np.array([], np.uint32))
        third = replace(contract_row(3), terms=np.array([5], np.uint32))
        store.append([first, nothing, third])
        columns = store.scan(_EVERYTHING)
        assert columns.terms.tolist() == [7, 7, 4294967295, 5]
        assert columns.term_counts.tolist() == [3, 0, 1]

    def test_a_scan_can_start_after_a_key(self, store: Store) -> None:
        store.append([contract_row(1), contract_row(2)])
        store.append([contract_row(3, windows=2)])
        assert store.scan(_EVERYTHING, after_key=1).key.tolist() == [2, 3]
        assert store.scan_vectors(_EVERYTHING, after_key=2).keys.tolist() == [3, 3]
        assert store.scan(_EVERYTHING, after_key=3).key.tolist() == []

    def test_a_long_memory_has_a_vector_for_each_window_and_counts_once(self, store: Store) -> None:
        rows = [contract_row(1), contract_row(2, windows=3), contract_row(3)]
        store.append(rows)
        found = store.scan_vectors(_EVERYTHING)
        assert found.keys.tolist() == [1, 2, 2, 2, 3]
        for row in rows:
            assert np.array_equal(found.vectors[found.keys == row.key], row.vectors)
        halved = store.scan_vectors(_EVERYTHING, precision=np.float16)
        assert halved.vectors.dtype == np.float16
        assert np.allclose(halved.vectors, found.vectors, atol=1e-3)
        assert (store.count(_EVERYTHING), store.keys(_EVERYTHING).tolist()) == (3, [1, 2, 3])
        assert store.scan(_EVERYTHING).key.tolist() == [1, 2, 3]
        assert _ids(store.select(_EVERYTHING, order="newest")) == ["m3", "m2", "m1"]

    def test_the_vectors_of_chosen_memories_can_be_read(self, store: Store) -> None:
        rows = [contract_row(1), contract_row(2, windows=2), contract_row(3)]
        store.append(rows)
        found = store.vectors_of([3, 2, 99])
        assert sorted(found.keys.tolist()) == [2, 2, 3]
        assert np.array_equal(found.vectors[found.keys == 2], rows[1].vectors)

    def test_the_nearest_are_found(self, store: Store) -> None:
        axis = np.eye(32, dtype=np.float32)
        for key, length in ((1, 0.2), (2, 0.9), (3, 0.5)):
            store.append([replace(contract_row(key), vectors=axis[:1] * np.float32(length))])
        assert sorted(store.nearest(_EVERYTHING, axis[0], limit=2).tolist()) == [2, 3]

    def test_presence_is_told_by_id(self, store: Store) -> None:
        _append_of(store, "alice", "bob")
        found = store.present(_equals("user", "alice"), ["m1", "m2", "m9"], [])
        assert [(entry.key, entry.id, entry.owner[3]) for entry in found] == [(1, "m1", "alice")]
        assert found[0].expires_at == NEVER

    def test_presence_is_told_by_fingerprint(self, store: Store) -> None:
        store.append([replace(contract_row(1), fingerprint="f1"), contract_row(2)])
        found = store.present(_EVERYTHING, [], ["f1", "f2"])
        assert [(entry.key, entry.fingerprint) for entry in found] == [(1, "f1")]
        assert store.present(_EVERYTHING, [], []) == []

    def test_an_earlier_version_is_kept_under_its_key_and_not_ranked(self, store: Store) -> None:
        store.append([contract_row(1, windows=2), contract_row(2)])
        _supersede(store, 1, by=3)
        assert store.fetch([1, 3]) == {1: history_record(1), 3: successor_record(1)}
        assert store.count(_EVERYTHING) == 3
        assert store.scan(_EVERYTHING).key.tolist() == [2, 3]
        assert store.scan_vectors(_EVERYTHING).keys.tolist() == [2, 3]

    def test_an_earlier_version_is_present_by_fingerprint_alone(self, store: Store) -> None:
        first = replace(contract_row(1, windows=2), fingerprint="f1", thread=5)
        store.append([first])
        _supersede(store, 1, by=2)
        assert np.array_equal(store.vectors_of([1]).vectors, first.vectors)
        by_id = store.present(_EVERYTHING, ["m1", "m1~1"], [])
        by_fingerprint = store.present(_EVERYTHING, [], ["f1"])
        assert [(entry.key, entry.id) for entry in by_id] == [(2, "m1")]
        assert [(entry.key, entry.id) for entry in by_fingerprint] == [(1, "m1")]

    def test_what_was_deleted_is_gone_from_every_read(self, store: Store) -> None:
        deleted = replace(contract_row(1, windows=2), fingerprint="f1")
        store.append([deleted, contract_row(2)])
        store.delete([1])
        assert _ids(store.select(_EVERYTHING, order="written")) == ["m2"]
        assert (store.count(_EVERYTHING), _keys_of_every_read(store)) == (1, [[2]] * 4)
        assert (store.fetch([1]), store.vectors_of([1]).keys.tolist()) == ({}, [])
        assert store.present(_EVERYTHING, ["m1"], ["f1"]) == []

    def test_deleting_what_is_gone_does_nothing(self, store: Store) -> None:
        store.append([contract_row(1)])
        store.delete([5])
        store.delete([])
        assert store.count(_EVERYTHING) == 1

    def test_thousands_can_be_deleted_at_once(self, store: Store) -> None:
        store.append([contract_row(key) for key in range(1, 2502)])
        store.delete(range(1, 2501))
        assert store.keys(_EVERYTHING).tolist() == [2501]

    def test_a_key_is_never_given_out_twice(self, store: Store) -> None:
        handed_out: list[int] = []
        for _ in range(3):
            handed_out.append(first_key(after=store.version()))
            store.append([contract_row(handed_out[-1]), contract_row(handed_out[-1] + 1)])
            assert first_key(after=store.version()) > handed_out[-1] + 1
            store.delete([handed_out[-1], handed_out[-1] + 1])
            store.purge()
        assert first_key(after=store.version()) > handed_out[2] > handed_out[1] > handed_out[0]

    def test_purging_keeps_what_was_not_deleted(self, store: Store) -> None:
        kept = [contract_row(1, full_record()), contract_row(3, windows=2)]
        store.append([kept[0], contract_row(2), kept[1]])
        store.delete([2])
        store.purge()
        assert store.fetch([1, 2, 3]) == {row.key: row.record for row in kept}
        assert np.array_equal(store.vectors_of([3]).vectors, kept[1].vectors)
        assert store.identity == CONTRACT_IDENTITY

    def test_upkeep_changes_no_row(self, store: Store) -> None:
        for key in range(1, 41):
            store.append([contract_row(key)])
        store.delete([7])
        before = store.select(_EVERYTHING, order="written")
        store.maintain()
        store.build_index()
        store.repair()
        assert store.select(_EVERYTHING, order="written") == before

    def test_health_counts_memories_history_and_vectors(self, store: Store) -> None:
        store.append([contract_row(1), contract_row(2, windows=3)])
        _supersede(store, 1, by=3)
        health = store.health()
        assert (health.memories, health.history, health.vectors) == (2, 1, 5)

    def test_health_names_the_scopes_that_hold_nothing_to_find(self, store: Store) -> None:
        expired = replace(owned_record(1, "alice"), expires_at=FIRST_DAY)
        store.append([contract_row(1, expired), contract_row(2, owned_record(2, "bob"))])
        assert store.health().orphaned_scopes == ("user=alice",)


class DurableStoreContract(StoreContract):
    """For stores that outlive their handle; also wants a fixture `reopen`.

    `reopen()` opens the store of the fixture `store` anew, the first handle staying open.
    """

    def test_what_was_written_is_there_when_opened_again(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        store.append([contract_row(1, full_record())])
        assert reopen().fetch([1]) == {1: full_record()}
        assert reopen().identity == CONTRACT_IDENTITY

    def test_another_handle_sees_a_write_once_it_asks_for_the_version(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        other = reopen()
        store.append([contract_row(1)])
        assert other.version() == store.version()
        assert other.keys(_EVERYTHING).tolist() == [1]

    @pytest.mark.parametrize("changes", ["the reader", "another handle"])
    def test_an_earlier_version_is_found_by_a_handle_that_knows_all_ids(
        self, store: Store, reopen: Callable[[], Store], changes: str
    ) -> None:
        other = reopen()
        store.append([contract_row(1)])
        _look_up_often(store, "m1")
        writer = store if changes == "the reader" else other
        writer.version()
        _supersede(writer, 1, by=2)
        # A write of somebody else, after which nothing is known of what was looked up.
        other.version()
        other.append([contract_row(3)])
        _look_up_often(store, "m1")
        assert store.select(_equals("id", "m1~1"), order="written") == [history_record(1)]

    def test_a_key_is_never_given_out_twice_by_another_handle(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        first = first_key(after=store.version())
        store.append([contract_row(first)])
        store.delete([first])
        assert first_key(after=reopen().version()) > first


def _equals(name: str, value: str) -> Filter:
    return Comparison(Field(name), "eq", value)


def _append_of(store: Store, *users: str) -> None:
    store.append(
        [contract_row(key, owned_record(key, user)) for key, user in enumerate(users, start=1)]
    )


def _supersede(store: Store, key: int, *, by: int) -> None:
    store.supersede(key, history_record(key), contract_row(by, successor_record(key)))


def _look_up_often(store: Store, name: str) -> None:
    """Look an id up so often that the store takes in all ids."""
    for _ in range(4):
        store.version()
        store.present(_EVERYTHING, [name], [])


def _keys_of_every_read(store: Store, where: Filter = _EVERYTHING) -> list[list[int]]:
    direction = np.ones(32, np.float32)
    return [
        store.keys(where).tolist(),
        store.scan(where).key.tolist(),
        store.scan_vectors(where).keys.tolist(),
        store.nearest(where, direction, limit=9).tolist(),
    ]


def _ids(records: Sequence[MemoryRecord]) -> list[str]:
    return [record.id for record in records]
