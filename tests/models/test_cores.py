import os

import pytest

from ekphory.threads import MOST_THREADS, count_usable_cores

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
