"""A memory kept as one text comes back equal; older tables, which lack the text, stay readable."""

from dataclasses import replace
from datetime import UTC, datetime

import lancedb
from hypothesis import given
from tests.store.strategies import records

from ekphory.filters.tree import And
from ekphory.store.lance import LanceStore
from ekphory.store.lance_rows import decode_record, encode_record
from ekphory.store.protocol import StoreIdentity
from ekphory.testing.store_contract import CONTRACT_IDENTITY, contract_record, contract_row


@given(record=records())
def test_every_memory_comes_back_equal(record):
    assert decode_record(encode_record(record)) == record


def test_a_moment_keeps_its_microseconds_before_and_after_1970():
    early = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    late = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    record = replace(contract_record(1), at=early, expires_at=late)
    assert decode_record(encode_record(record)) == record


def test_what_was_predicted_is_named_in_the_text():
    predicted = replace(contract_record(1), predicted=frozenset({"type", "importance"}))
    assert '"predicted":["importance","type"]' in encode_record(predicted)


def test_where_nothing_was_predicted_the_text_does_not_mention_it():
    assert "predicted" not in encode_record(contract_record(1))


def test_a_text_that_was_written_without_it_reads_as_nothing_predicted():
    old = '{"id":"a","text":"b","at":0,"created_at":0,"type":"semantic","importance":0.75}'
    assert decode_record(old).predicted == frozenset()


def test_a_store_of_the_first_schema_keeps_predicted_values_but_not_that_they_were(store_path):
    first = StoreIdentity(1, CONTRACT_IDENTITY.terms_version, CONTRACT_IDENTITY.embedder)
    store = LanceStore.open(str(store_path), first)
    predicted = replace(contract_record(1), importance=0.75, predicted=frozenset({"importance"}))
    store.append([contract_row(1, predicted)])
    assert store.fetch([1]) == {1: replace(predicted, predicted=frozenset())}


def test_in_a_store_of_the_second_schema_every_importance_counts_as_given(store_path):
    second = StoreIdentity(2, CONTRACT_IDENTITY.terms_version, CONTRACT_IDENTITY.embedder)
    predicted = replace(contract_record(1), importance=0.75, predicted=frozenset({"importance"}))
    LanceStore.open(str(store_path), second).append([contract_row(1, predicted)])
    reopened = LanceStore.open(str(store_path), CONTRACT_IDENTITY)
    reopened.append([contract_row(2, replace(predicted, id="2"))])
    assert reopened.scan(And(())).importance_given.tolist() == [True, True]
    assert reopened.fetch([1]) == {1: predicted}


def test_a_store_of_the_first_schema_is_read_and_written(store_path):
    first = StoreIdentity(1, CONTRACT_IDENTITY.terms_version, CONTRACT_IDENTITY.embedder)
    store = LanceStore.open(str(store_path), first)
    store.append([contract_row(1, contract_record(1))])
    reopened = LanceStore.open(str(store_path), CONTRACT_IDENTITY)
    reopened.append([contract_row(2, contract_record(2))])
    assert reopened.identity.schema_version == 1
    assert "record" not in lancedb.connect(store_path).open_table("memories").schema.names
    assert reopened.fetch([1, 2]) == {1: contract_record(1), 2: contract_record(2)}
