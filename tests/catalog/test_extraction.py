import pytest

from ekphory.catalog.database import MIGRATIONS, Database
from ekphory.catalog.extraction import (
    Consolidations,
    ExtractionQueue,
    FailedExtraction,
    FeatureGroup,
)

HOME, WORK = ("home", "chat"), ("home", "work")


@pytest.fixture
def queue(database):
    return ExtractionQueue(database)


def order(queue, now=100.0):
    """Takes out every job that is due, and returns their episodes."""
    episodes = []
    while (job := queue.next(now)) is not None:
        episodes.append(job.episode)
        queue.finish(job)
    return episodes


def test_jobs_come_in_the_order_in_which_they_were_added_and_each_episode_once(queue):
    queue.add(HOME, "org", ["a"])
    queue.add(HOME, "org", ["a", "b"])
    queue.add(WORK, "project", ["c"])
    assert queue.next(0.0).reach == "org"
    assert order(queue) == ["a", "b", "c"]


def test_behind_a_job_that_waits_its_project_waits_and_no_other(queue):
    queue.add(HOME, "org", ["a", "b"])
    queue.add(WORK, "org", ["c"])
    queue.put_off(queue.next(0.0), due=50.0)
    assert order(queue, now=10.0) == ["c"]
    assert (queue.next(50.0).episode, queue.next(50.0).attempts) == ("a", 1)
    assert order(queue, now=50.0) == ["a", "b"]


def test_steps_that_are_done_are_remembered(queue):
    queue.add(HOME, "org", ["a"])
    job = queue.next(0.0)
    queue.note_done(job, "one")
    queue.note_done(job, "two")
    assert queue.next(0.0).done == {"one", "two"}


def test_a_job_that_was_given_up_holds_nothing_up_and_is_shown_to_its_project(queue):
    queue.add(HOME, "org", ["a", "b"])
    queue.give_up(queue.next(0.0), "junk")
    assert queue.failed(HOME, limit=5) == [FailedExtraction("a", "junk", 1)]
    assert queue.failed(WORK, limit=5) == []
    assert (queue.length(HOME), queue.length(WORK)) == ((1, 1), (0, 0))
    assert order(queue) == ["b"]
    assert queue.ask_again(WORK) == 0
    assert queue.ask_again(HOME) == 1
    assert order(queue) == ["a"]


def test_a_project_that_is_dropped_has_no_jobs(queue):
    queue.add(HOME, "org", ["a"])
    queue.add(WORK, "org", ["b"])
    job = queue.next(0.0)
    queue.drop(HOME)
    assert not queue.holds(job)
    assert queue.length() == (1, 0)


GROUP = FeatureGroup(
    org="home", project=None, set_id="s", category="kitchen", tag="food", user=None
)


def test_groups_of_several_users_and_of_none_have_sizes_of_their_own(database):
    sizes = Consolidations(database)
    for size, user in enumerate((None, "", "mara", "mara"), start=1):
        sizes.note(GROUP._replace(user=user), size)
    assert [sizes.size(GROUP._replace(user=user)) for user in (None, "", "mara")] == [1, 2, 4]


def test_sizes_that_an_earlier_version_noted_are_those_of_no_user(tmp_path, monkeypatch):
    monkeypatch.setattr("ekphory.catalog.database.MIGRATIONS", MIGRATIONS[:2])
    earlier = Database(tmp_path / "catalog.sqlite3")
    earlier.write("INSERT INTO consolidations VALUES ('home', NULL, 's', 'kitchen', 'food', 8)")
    earlier.close()
    monkeypatch.undo()
    assert Consolidations(Database(tmp_path / "catalog.sqlite3")).size(GROUP) == 8
