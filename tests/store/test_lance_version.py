"""The newest version of a table is known at once, whoever wrote it."""

import lancedb
import pytest

from ekphory.store.lance import TABLE, LanceStore
from ekphory.store.lance_table import CommitFiles, NewestVersion, commit_file, commits_folder
from ekphory.testing.store_contract import CONTRACT_IDENTITY, contract_row


@pytest.fixture
def store(tmp_path):
    return LanceStore.open(str(tmp_path), CONTRACT_IDENTITY)


@pytest.fixture
def table(tmp_path, store):
    return lancedb.connect(tmp_path).open_table(TABLE)


class Interrupted(CommitFiles):
    """Does something between a look at the folder and what follows from it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.meanwhile = None

    def names(self):
        found = super().names()
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


def test_a_commit_has_the_name_that_lance_gives_it(tmp_path, store):
    store.append([contract_row(1)])
    assert (commits_folder(str(tmp_path), TABLE) / commit_file(store.version())).exists()


def test_on_object_storage_there_is_no_folder_of_commits():
    assert commits_folder("s3://bucket/memories", "memories") is None


def test_without_a_folder_to_look_at_the_table_is_asked_after_a_write_of_ours_too(table, store):
    version = NewestVersion("a store", table, commits=CommitFiles(None))
    version.note_own(version.get() + 1)
    store.append([contract_row(1)])
    store.append([contract_row(2)])
    assert version.get() == store.version()


def test_under_names_of_an_early_format_every_write_is_seen(tmp_path, table, store, monkeypatch):
    monkeypatch.setattr(
        "ekphory.store.lance_table.commit_file", lambda version: f"{version}.manifest"
    )
    folder = commits_folder(str(tmp_path), TABLE)
    version = NewestVersion("a store", table, commits=CommitFiles(folder))
    for key in range(1, 4):
        version.note_own(version.get() + 1)
        store.append([contract_row(key)])
        assert version.get() == store.version()


@pytest.mark.parametrize("others_before", [0, 1])
@pytest.mark.parametrize("others_after", [0, 1])
def test_writes_between_a_look_and_its_answer_are_not_forgotten(
    tmp_path, table, store, others_before, others_after
):
    commits = Interrupted(commits_folder(str(tmp_path), TABLE))
    version = NewestVersion("a store", table, commits=commits)
    version.get()

    def write():
        store.append([contract_row(1)])
        if others_before:
            store.append([contract_row(2)])
        version.note_own(store.version())
        if others_after:
            store.append([contract_row(3)])

    commits.meanwhile = write
    assert version.get() >= store.version() - others_after
    assert version.get() == store.version()
