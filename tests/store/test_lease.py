"""Where no file can be locked, a lease lets one process write."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from ekphory.errors import StoreLocked
from ekphory.store.writer import WriterLease


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch):
    """Only writers that make the first lease at the same moment need time to settle."""
    monkeypatch.setattr("ekphory.store.writer.SETTLING_SECONDS", 0.0)


def lease_that_ran_out(path):
    """Leaves a lease in a directory that its writer let run out, and returns that writer."""
    writer = WriterLease(str(path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ekphory.store.writer.LEASE_TIME", timedelta(seconds=-1))
        writer.hold()
    return writer


def outcomes_of_a_race(*writers):
    """What each of some threads meets that all want the lease at the same moment."""
    start = Barrier(len(writers))

    def outcome(writer):
        start.wait()
        try:
            writer.hold()
        except StoreLocked:
            return "refused"
        return "held"

    with ThreadPoolExecutor(len(writers)) as threads:
        return sorted(threads.map(outcome, writers))


def test_a_lease_can_be_held_again_and_is_free_once_given_back(tmp_path):
    first = WriterLease(str(tmp_path))
    for _ in range(3):
        first.hold()
    first.give_back()
    first.give_back()
    WriterLease(str(tmp_path)).hold()


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path):
    WriterLease(str(tmp_path)).hold()
    with pytest.raises(
        StoreLocked, match=r"one process writes at a time, and .* process \d+ does until"
    ):
        WriterLease(str(tmp_path)).hold()


def test_a_lease_that_ran_out_is_taken_over_until_it_is_given_back(tmp_path):
    first, second = lease_that_ran_out(tmp_path), WriterLease(str(tmp_path))
    second.hold()
    with pytest.raises(StoreLocked, match="one process writes at a time"):
        first.hold()
    second.give_back()
    first.hold()
    with pytest.raises(StoreLocked):
        second.hold()


def test_a_writer_that_is_active_renews_its_lease(tmp_path, monkeypatch):
    writer = WriterLease(str(tmp_path))
    monkeypatch.setattr("ekphory.store.writer.LEASE_TIME", timedelta(milliseconds=1))
    writer.hold()
    monkeypatch.setattr("ekphory.store.writer.LEASE_TIME", timedelta(minutes=10))
    writer.hold()
    with pytest.raises(StoreLocked):
        WriterLease(str(tmp_path)).hold()


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(8))
def test_of_writers_that_find_a_lease_run_out_at_the_same_moment_one_takes_it(tmp_path, attempt):
    lease_that_ran_out(tmp_path)
    others = [WriterLease(str(tmp_path)) for _ in range(3)]
    assert outcomes_of_a_race(*others) == ["held", "refused", "refused"]


@pytest.mark.parametrize("attempt", range(8))
def test_a_late_renewal_and_a_take_over_do_not_both_succeed(tmp_path, attempt):
    late = lease_that_ran_out(tmp_path)
    assert outcomes_of_a_race(late, WriterLease(str(tmp_path))) == ["held", "refused"]


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(4))
def test_of_writers_that_make_the_first_lease_at_the_same_moment_one_holds_it(
    tmp_path, monkeypatch, attempt
):
    monkeypatch.setattr("ekphory.store.writer.SETTLING_SECONDS", 0.3)
    writers = [WriterLease(str(tmp_path)) for _ in range(3)]
    assert outcomes_of_a_race(*writers) == ["held", "refused", "refused"]


@pytest.mark.long
def test_of_two_processes_that_find_a_lease_run_out_one_takes_it(tmp_path, start_child):
    paths = [tmp_path / str(number) for number in range(8)]
    for path in paths:
        lease_that_ran_out(path)
    processes = [start_child("lessee.py", *paths) for _ in range(2)]
    for _ in paths:
        for process in processes:
            process.go()
        met = [process.next_report()["outcome"] for process in processes]
        assert sorted(met) == ["held", "refused"]
