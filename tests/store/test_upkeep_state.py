"""Upkeep that fails is tried again after longer and longer pauses, and says so."""

from ekphory.errors import StoreError
from ekphory.store.writer import NOTE_FILE, UpkeepState


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def test_upkeep_is_due_at_first():
    assert UpkeepState(None).is_due


def test_after_each_failure_the_pause_is_twice_as_long():
    clock = Clock()
    state = UpkeepState(None, clock=clock)
    pauses = []
    for _ in range(4):
        state.note_failure(StoreError("the disk is full"))
        before = clock.seconds
        while not state.is_due:
            clock.seconds += 0.5
        pauses.append(clock.seconds - before)
    assert pauses == [1.0, 2.0, 4.0, 8.0]


def test_no_pause_is_longer_than_ten_minutes():
    clock = Clock()
    state = UpkeepState(None, clock=clock)
    for _ in range(40):
        state.note_failure(StoreError("the disk is full"))
    clock.seconds += 599
    assert not state.is_due
    clock.seconds += 1
    assert state.is_due


def test_a_success_ends_the_pause_and_the_failure():
    state = UpkeepState(None)
    state.note_failure(StoreError("the disk is full"))
    state.note_success()
    assert state.is_due
    assert state.failure is None


def test_failures_are_counted_with_the_last_message():
    state = UpkeepState(None)
    state.note_failure(StoreError("the disk is full"))
    state.note_failure(StoreError("the disk is gone"))
    assert state.failure.attempts == 2
    assert state.failure.message == "the disk is gone"
    assert state.failure.sentence.startswith("Upkeep has failed 2 times since ")


def test_another_process_reads_the_failure_until_one_succeeds(tmp_path):
    writing, reading = UpkeepState(tmp_path), UpkeepState(tmp_path)
    writing.note_failure(StoreError("the disk is full"))
    assert reading.failure == writing.failure
    writing.note_success()
    assert reading.failure is None


def test_a_note_that_cannot_be_read_is_a_failure_too(tmp_path):
    (tmp_path / NOTE_FILE).write_text("{")
    assert "cannot be read" in UpkeepState(tmp_path).failure.message


def test_where_nothing_can_be_noted_this_process_tells_it(tmp_path):
    state = UpkeepState(tmp_path / "gone")
    state.note_failure(StoreError("the disk is gone"))
    assert state.failure.attempts == 1
