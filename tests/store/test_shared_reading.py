import threading
import time

import pytest

from ekphory.store.lance_table import SharedReading


class Source:
    """Counts readings; each may be held up."""

    def __init__(self):
        self.readings = 0
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()

    def read(self):
        self.readings += 1
        number = self.readings
        self.begun.release()
        assert self.go_on.wait(timeout=10)
        return number


def started(shared, answers):
    thread = threading.Thread(target=lambda: answers.append(shared.get()))
    thread.start()
    return thread


def test_one_after_another_each_call_reads_anew():
    shared = SharedReading(Source().read)
    assert [shared.get() for _ in range(3)] == [1, 2, 3]


def test_calls_during_a_reading_share_the_next_one():
    source = Source()
    source.go_on.clear()
    shared, first, later = SharedReading(source.read), [], []
    threads = [started(shared, first)]
    assert source.begun.acquire(timeout=10)
    threads += [started(shared, later) for _ in range(8)]
    # Time for all of them to ask.
    time.sleep(0.3)
    source.go_on.set()
    for thread in threads:
        thread.join(timeout=10)
    assert first == [1]
    assert all(answer >= 2 for answer in later)
    assert source.readings < 9


def test_a_call_never_gets_a_reading_that_began_before_it():
    source = Source()
    shared = SharedReading(source.read)
    wrong = []

    def ask():
        for _ in range(200):
            before = source.readings
            if shared.get() <= before - 1:
                wrong.append(before)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_reading_that_fails_is_told_and_the_next_call_reads_again():
    answers = iter([OSError("gone"), 5])

    def read():
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    shared = SharedReading(read)
    with pytest.raises(OSError, match="gone"):
        shared.get()
    assert shared.get() == 5
