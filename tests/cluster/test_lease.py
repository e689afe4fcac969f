"""One writer a shard: whoever held the lease before writes nothing any more."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

import pytest

from ekphory import write
from ekphory.cluster.objects import Objects
from ekphory.cluster.shards import ShardLease
from ekphory.engine import make_engine
from ekphory.errors import StoreError, StoreLocked
from ekphory.filters.tree import EVERYTHING
from ekphory.scope import Scope
from ekphory.testing import HashEmbedder
from ekphory.types import now_utc

pytestmark = pytest.mark.long

SHORT = 0.4


class PausingLease(ShardLease):
    """A lease whose holder sleeps, once it holds it, until it is woken."""

    is_to_pause = False

    @contextmanager
    def held(self):
        with super().held():
            if self.is_to_pause:
                self.asleep.set()
                assert self.woken.wait(20)
            yield

    def pause(self):
        self.asleep, self.woken, self.is_to_pause = threading.Event(), threading.Event(), True


@pytest.fixture
def open_writer(shards):
    """Opens the first shard as another machine would; its lease lasts for less than a second."""
    opened = []

    def open_one(*, seconds=SHORT):
        lease = PausingLease(Objects(shards.root), "leases/shard-00000", seconds=seconds)
        engine = make_engine(shards.uri(0), HashEmbedder(), lease)
        opened.append(engine)
        return engine, lease

    yield open_one
    for engine in opened:
        engine.writer.close()


def add(engine, *names):
    drafts = [
        write.make_draft({"id": name, "text": f"text of {name}"}, scope=Scope(), now=now_utc())
        for name in names
    ]
    return write.add_drafts(engine, Scope(), drafts).added


def test_it_is_counted_how_often_a_lease_was_taken_and_lost(open_writer):
    (first, lease), (second, other) = open_writer(), open_writer()
    add(first, "a")
    add_at_last(second, "b")
    add_at_last(first, "c")
    assert lease.events == {"lease_taken": 2, "lease_lost": 1}
    assert other.events["lease_taken"] == 1


def add_at_last(engine, *names):
    """Add as often as it takes: others may hold the lease for long."""
    while True:
        with suppress(StoreLocked):
            return add(engine, *names)


def stored(engine):
    engine.store.version()
    return sorted(record.id for record in engine.store.select(EVERYTHING, order="written"))


def test_a_writer_that_slept_through_its_lease_is_refused_and_leaves_nothing(open_writer):
    (sleeper, lease), (other, _) = open_writer(), open_writer()
    add_at_last(sleeper, "before")
    lease.pause()
    with ThreadPoolExecutor(1) as thread:
        asleep = thread.submit(add, sleeper, "asleep")
        assert lease.asleep.wait(20)
        assert add_at_last(other, "meanwhile") == 1
        lease.woken.set()
        with pytest.raises(StoreLocked, match="another process took over while this one was"):
            asleep.result()
    assert stored(other) == stored(sleeper) == ["before", "meanwhile"]


def test_whoever_was_refused_writes_again_once_the_other_is_done(open_writer):
    (sleeper, lease), (other, _) = open_writer(), open_writer()
    lease.pause()
    with ThreadPoolExecutor(1) as thread:
        asleep = thread.submit(add, sleeper, "again")
        assert lease.asleep.wait(20)
        add_at_last(other, "meanwhile")
        lease.woken.set()
        with pytest.raises(StoreError):
            asleep.result()
    lease.is_to_pause = False
    assert add_at_last(sleeper, "again") == 1
    assert add_at_last(other, "again", "last") == 1
    assert stored(sleeper) == ["again", "last", "meanwhile"]


def test_writers_that_take_turns_lose_and_double_nothing(open_writer):
    writers = [open_writer()[0] for _ in range(3)]

    def write_some(number):
        return sum(add_at_last(writers[number], f"{number}-{n}", f"shared-{n}") for n in range(4))

    with ThreadPoolExecutor(3) as threads:
        added = list(threads.map(write_some, range(3)))
    own = [f"{number}-{n}" for number in range(3) for n in range(4)]
    assert stored(writers[0]) == sorted(own + [f"shared-{n}" for n in range(4)])
    # A write that was refused may have lasted: whoever repeats it finds it there.
    assert sum(added) <= 16


def test_who_waits_for_the_lease_reads_what_others_write_meanwhile(open_writer):
    (holder, lease), (waiting, _) = open_writer(seconds=30), open_writer(seconds=10)
    assert add(holder, "first") == 1
    with ThreadPoolExecutor(1) as thread:
        waits = thread.submit(add, waiting, "last")
        assert wait([waits], timeout=1).not_done
        assert add(holder, "meanwhile") == 1
        assert stored(waiting) == ["first", "meanwhile"]
        lease.give_back()
        assert waits.result() == 1
    assert stored(waiting) == stored(holder) == ["first", "last", "meanwhile"]


def test_who_lost_the_lease_is_not_sole_while_it_asks_for_it_again(shards):
    told = []

    class NotingObjects(Objects):
        def put(self, name, content):
            told.append(lease.is_sole())
            super().put(name, content)

    lease = ShardLease(NotingObjects(shards.root), "leases/x", seconds=SHORT)
    other = ShardLease(Objects(shards.root), "leases/x", seconds=SHORT)
    for each in (lease, other, lease):
        with each.held():
            pass
    assert True not in told


def test_a_lease_that_was_given_back_is_taken_at_once(shards):
    first = ShardLease(Objects(shards.root), "leases/x", seconds=30)
    with first.held():
        pass
    first.give_back()
    second = ShardLease(Objects(shards.root), "leases/x", seconds=30)
    with second.held():
        assert second.is_sole()
    assert not first.is_sole()


def test_a_holder_that_writes_again_and_again_keeps_others_waiting(shards):
    holder = ShardLease(Objects(shards.root), "leases/x", seconds=3)
    waiting = ShardLease(Objects(shards.root), "leases/x", seconds=3)
    is_refused = threading.Event()

    def write_again_and_again():
        while not is_refused.wait(0.1):
            with holder.held():
                pass

    with ThreadPoolExecutor(1) as thread:
        writes = thread.submit(write_again_and_again)
        while not holder.is_sole():
            time.sleep(0.01)
        with (
            pytest.raises(StoreLocked, match="has been writing for over 6 seconds"),
            waiting.held(),
        ):
            pass
        is_refused.set()
        writes.result()


def put_lease(shards, content):
    Objects(shards.root).put("leases/x/000000000001", content.encode())


def test_a_lease_that_nobody_renews_is_taken_whatever_the_clock_of_its_holder_said(shards):
    put_lease(shards, json.dumps({"holder": "ahead", "until": time.time() + 3600}))
    lease = ShardLease(Objects(shards.root), "leases/x", seconds=SHORT)
    with lease.held():
        assert lease.events["lease_taken"] == 1


def test_what_is_no_epoch_is_passed_over(shards):
    Objects(shards.root).put("leases/x/.nfs000000000001", b"")
    lease = ShardLease(Objects(shards.root), "leases/x")
    with lease.held():
        assert lease.events["lease_taken"] == 1


@pytest.mark.parametrize("content", ["nonsense", "[]", '{"holder": "x", "until": "soon"}'])
def test_a_lease_that_is_damaged_is_told_and_not_taken(shards, content):
    put_lease(shards, content)
    lease = ShardLease(Objects(shards.root), "leases/x")
    told = "leases/x/000000000001: is not a lease"
    with pytest.raises(StoreError, match=told), lease.held():
        pass
