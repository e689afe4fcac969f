"""`add_many`: any number of records, streamed, with a report."""

import itertools

import pytest


def rows(count):
    return ({"text": f"row {number}", "id": f"r{number}"} for number in range(count))


def test_records_of_an_iterator_are_added(memory):
    report = memory.add_many(rows(600))
    assert (report.added, report.skipped, report.failed) == (600, 0, [])
    assert memory.count() == 600


def test_the_counts_are_integers_and_the_failures_a_list(memory):
    report = memory.add_many(rows(3))
    assert [type(value) for value in (report.added, report.skipped, report.failed)] == [
        int, int, list,
    ]  # fmt: skip


def test_repeating_the_call_skips_all(memory):
    memory.add_many(rows(600))
    report = memory.add_many(rows(600))
    assert (report.added, report.skipped) == (0, 600)
    assert memory.count() == 600


def test_a_record_that_comes_twice_is_skipped_the_second_time(memory):
    report = memory.add_many([*rows(300), *rows(300)])
    assert (report.added, report.skipped) == (300, 300)


def test_failures_in_the_middle_stop_nothing(memory):
    report = memory.add_many(
        [
            {"text": "first"},
            {"text": " ", "id": "empty"},
            {"text": "second", "colour": "red"},
            "no dict",
            {"text": "third", "metadata": {"n": 2**60}},
            {"text": "fourth", "at": "yesterday"},
            {"text": "last"},
        ]
    )
    assert (report.added, report.skipped) == (2, 0)
    assert [(entry.index, entry.id, entry.field) for entry in report.failed] == [
        (1, "empty", "text"),
        (2, None, "colour"),
        (3, None, "record"),
        (4, None, "metadata.n"),
        (5, None, "at"),
    ]
    assert sorted(entry.text for entry in memory.list()) == ["first", "last"]


def test_a_failure_says_what_is_wrong_with_which_value_and_what_to_do(memory):
    failure = memory.add_many([{"text": "x", "importance": 7}]).failed[0]
    assert failure.message == "importance=7: lies outside [0, 1]. Give a number from 0 to 1"


def test_progress_is_told_after_every_batch_and_never_ahead_of_the_disk(memory, open_memory):
    reports = []

    def note(report):
        reports.append((report.added, open_memory().count()))

    memory.add_many(rows(600), on_progress=note)
    assert [added for added, _ in reports] == sorted(added for added, _ in reports)
    assert reports[-1] == (600, 600)
    assert all(on_disk >= added for added, on_disk in reports)


def test_what_was_acknowledged_stays_when_the_source_breaks(memory):
    acknowledged = []

    def broken():
        yield from rows(600)
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        memory.add_many(broken(), on_progress=lambda report: acknowledged.append(report.added))
    kept = memory.count()
    assert kept >= acknowledged[-1] > 0
    assert memory.add_many(rows(600)).added == 600 - kept
    assert memory.count() == 600


def test_a_source_without_end_is_read_only_as_far_as_it_is_written(memory):
    taken = itertools.count()
    reports = []

    def endless():
        for number in taken:
            yield {"text": f"row {number}"}

    class Enough(Exception):
        pass

    def stop(report):
        reports.append(report)
        if report.added >= 512:
            raise Enough

    with pytest.raises(Enough):
        memory.add_many(endless(), on_progress=stop)
    assert next(taken) <= 512 + 3 * 256


def test_records_fill_the_fields_that_the_handle_leaves_open(open_memory):
    project = open_memory(project="apollo")
    project.add_many(
        [{"text": "a", "user": "alice", "id": "1"}, {"text": "b", "user": "bob", "id": "1"}]
    )
    assert open_memory(project="apollo", user="alice").get("1").text == "a"
    assert open_memory(project="apollo", user="bob").get("1").text == "b"


def test_none_counts_as_not_given(memory):
    report = memory.add_many([{"text": "a", "id": None, "at": None, "session": None}])
    assert report.added == 1


def test_nothing_to_add_is_no_work(memory):
    report = memory.add_many([])
    assert (report.added, report.skipped, report.failed) == (0, 0, [])
