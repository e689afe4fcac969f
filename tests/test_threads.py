import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ekphory.threads import MOST_THREADS, Workers, count_usable_cores, once_a_process

ALLOWED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_two_hardware_threads_of_one_core_count_once(tmp_path):
    for cpu in range(256):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text("0-255\n")

    assert count_usable_cores(topology=tmp_path, quota=tmp_path / "none") == 1


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("max 100000", min(ALLOWED, MOST_THREADS)),
        ("nonsense", min(ALLOWED, MOST_THREADS)),
    ],
)
def test_a_containers_quota_limits_the_cores(tmp_path, quota, expected):
    (tmp_path / "cpu.max").write_text(quota)

    assert count_usable_cores(topology=tmp_path, quota=tmp_path / "cpu.max") == expected


def test_there_is_always_at_least_one_core():
    assert 1 <= count_usable_cores() <= MOST_THREADS


def test_workers_give_results_in_order_and_errors():
    # Results keep the order of the items.
    assert Workers(3).map(lambda number: number * number, [3, 1, 2]) == [9, 1, 4]
    # A single item stays in the callers thread.
    assert Workers(3).map(lambda _: threading.get_ident(), ["one"]) == [threading.get_ident()]
    # An error of one item reaches the caller.
    with pytest.raises(ZeroDivisionError):
        Workers(2).map(lambda number: 1 // number, [1, 0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_threads_of_its_own():
    workers = Workers(2)
    workers.map(str, [1, 2])

    child = os.fork()
    if child == 0:
        os._exit(0 if workers.map(str, [1, 2]) == ["1", "2"] else 1)

    assert os.waitpid(child, 0)[1] == 0


def test_what_is_loaded_once_a_process_is_loaded_once_for_each_argument_whoever_asks():
    loaded = []

    @once_a_process
    def load(name):
        time.sleep(0.02)
        loaded.append(name)
        return object()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(load, ["tea", "boat"] * 4))
    assert sorted(loaded) == ["boat", "tea"]
    assert len(set(map(id, found))) == 2
