"""A table that nobody wrote to is not asked again, and one that somebody wrote to always is."""

import os
import time

import pytest

from ekphory.errors import StoreError
from ekphory.filters.tree import And
from ekphory.store.lance import LanceStore
from ekphory.store.lance_table import CommitFiles
from ekphory.testing.store_contract import CONTRACT_IDENTITY, contract_row


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def unasked(monkeypatch):
    """Make every further question to a table an error."""

    def refuse():
        def asked(self):
            raise AssertionError("the table was asked again")

        monkeypatch.setattr("lancedb.table.LanceTable.checkout_latest", asked)

    return refuse


def _changed(folder, *, seconds_ago):
    moment = time.time() - seconds_ago
    os.utime(folder, (moment, moment))


def _opened(directory):
    return LanceStore.open(str(directory), CONTRACT_IDENTITY)


def test_a_folder_gives_the_names_of_its_files(tmp_path):
    (tmp_path / "18446744073709551614.manifest").touch()
    assert CommitFiles(tmp_path).names() == {"18446744073709551614.manifest"}


def test_a_folder_that_has_been_left_alone_is_not_listed_again(tmp_path):
    _changed(tmp_path, seconds_ago=10)
    files = CommitFiles(tmp_path)
    assert files.names() == frozenset()
    before = tmp_path.stat()
    (tmp_path / "1.manifest").touch()
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert files.names() == frozenset()


def test_a_file_that_comes_into_a_folder_left_alone_is_seen_at_once(tmp_path):
    _changed(tmp_path, seconds_ago=10)
    files = CommitFiles(tmp_path)
    for number in range(1, 20):
        (tmp_path / f"{number}.manifest").touch()
        assert len(files.names()) == number
        assert len(files.names()) == number


def test_a_file_that_comes_in_the_same_tick_of_the_clock_is_seen(tmp_path):
    _changed(tmp_path, seconds_ago=0)
    files = CommitFiles(tmp_path)
    assert files.names() == frozenset()
    before = tmp_path.stat()
    (tmp_path / "1.manifest").touch()
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert files.names() == {"1.manifest"}


@pytest.mark.parametrize("folder", [None, "missing"])
def test_where_there_is_no_folder_no_names_are_told(tmp_path, folder):
    assert CommitFiles(folder and tmp_path / folder).names() is None


def test_a_table_that_was_left_alone_is_asked_once(directory, unasked):
    store = _opened(directory)
    store.append([contract_row(1)])
    version = store.version()
    unasked()
    assert [store.version(), store.version()] == [version, version]


def test_a_handle_need_not_ask_for_what_it_wrote_itself(directory, unasked):
    store = _opened(directory)
    before = store.version()
    unasked()
    store.append([contract_row(1)])
    store.append([contract_row(2)])
    assert store.version() == before + 2
    assert store.keys(And(())).tolist() == [1, 2]


def test_every_write_of_another_handle_is_seen_at_once(directory):
    writer, reader = _opened(directory), _opened(directory)
    for key in range(1, 31):
        reader.version()
        writer.append([contract_row(key)])
        assert reader.version() == writer.version()
        assert reader.count(And(())) == key


def test_what_another_handle_wrote_before_a_write_of_ours_is_seen_after_it(directory):
    ours, theirs = _opened(directory), _opened(directory)
    ours.version()
    theirs.append([contract_row(1)])
    ours.append([contract_row(2)])
    assert ours.version() == theirs.version()
    assert ours.keys(And(())).tolist() == [1, 2]


def test_what_another_handle_hides_or_rewrites_is_seen_at_once(directory):
    writer, reader = _opened(directory), _opened(directory)
    writer.append([contract_row(1), contract_row(2)])
    reader.version()
    writer.delete([1])
    assert reader.version() == writer.version()
    assert reader.keys(And(())).tolist() == [2]
    writer.purge()
    assert reader.version() == writer.version()
    assert reader.keys(And(())).tolist() == [2]


def test_a_table_whose_folder_is_gone_is_told_as_before(directory):
    store = _opened(directory)
    store.append([contract_row(1)])
    store.version()
    directory.rename(directory.with_name("moved"))
    with pytest.raises(StoreError, match="cannot read the store"):
        store.version()
