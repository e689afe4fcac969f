import sqlite3
import stat
import threading

import pytest

from ekphory.catalog.database import Database
from ekphory.errors import SchemaTooNew, StoreClosed, StoreError


def add_project(database, name):
    database.write(
        "INSERT INTO projects (org, project, description, config, created_at) "
        "VALUES ('o', ?, '', '{}', '')",
        (name,),
    )


def projects(database):
    return [row["project"] for row in database.read("SELECT project FROM projects")]


def test_what_was_written_is_there_after_opening_again(path, database):
    add_project(database, "p")
    database.close()
    with pytest.raises(StoreClosed):
        projects(database)
    again = Database(path)
    assert projects(again) == ["p"]
    with pytest.raises(sqlite3.IntegrityError):  # a rule of the tables is told as it is
        add_project(again, "p")
    again.close()


def test_only_its_owner_may_read_the_file(path, database):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_statements_of_a_transaction_fail_together(database):
    with pytest.raises(RuntimeError), database.transaction() as connection:
        connection.execute("INSERT INTO projects VALUES ('o', 'p', '', '{}', 1, 1, 1, '')")
        raise RuntimeError
    assert projects(database) == []


def test_threads_and_handles_may_write_at_the_same_time(path, database):
    other = Database(path)
    jobs = [
        threading.Thread(target=add_project, args=(one, f"{name}{number}"))
        for name, one in (("a", database), ("b", other))
        for number in range(10)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(projects(other)) == 20
    other.close()


def test_a_catalog_of_a_newer_ekphory_is_refused(path, database):
    database.write("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew, match="version 99"):
        Database(path)


def test_a_file_that_is_no_catalog_is_an_error_with_its_path(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be one" * 20)
    with pytest.raises(StoreError, match=r"notes\.txt: the catalog cannot be used"):
        Database(tmp_path / "notes.txt")
