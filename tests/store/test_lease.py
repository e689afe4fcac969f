"""Where no file can be locked, a lease lets one process write."""

from datetime import timedelta

import pytest

from recollect.errors import StoreLocked
from recollect.store import lease
from recollect.store.lease import WriterLease


def test_a_lease_can_be_held_again_and_again(tmp_path):
    writer = WriterLease(str(tmp_path))
    for _ in range(3):
        writer.hold()


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path):
    WriterLease(str(tmp_path)).hold()
    with pytest.raises(
        StoreLocked, match=r"one process writes at a time, and .* process \d+ until"
    ):
        WriterLease(str(tmp_path)).hold()


def test_a_lease_that_was_given_back_is_free(tmp_path):
    first = WriterLease(str(tmp_path))
    first.hold()
    first.give_back()
    WriterLease(str(tmp_path)).hold()


def test_a_lease_that_ran_out_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "LEASE_TIME", timedelta(seconds=-1))
    first, second = WriterLease(str(tmp_path)), WriterLease(str(tmp_path))
    first.hold()
    monkeypatch.setattr(lease, "LEASE_TIME", timedelta(minutes=10))
    second.hold()
    with pytest.raises(StoreLocked, match="one process writes at a time"):
        first.hold()


def test_a_writer_that_is_active_renews_its_lease(tmp_path, monkeypatch):
    writer = WriterLease(str(tmp_path))
    monkeypatch.setattr(lease, "LEASE_TIME", timedelta(milliseconds=1))
    writer.hold()
    monkeypatch.setattr(lease, "LEASE_TIME", timedelta(minutes=10))
    writer.hold()
    with pytest.raises(StoreLocked):
        WriterLease(str(tmp_path)).hold()


def test_giving_back_what_is_not_held_does_nothing(tmp_path):
    WriterLease(str(tmp_path)).give_back()
