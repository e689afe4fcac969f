"""What was written before the package was called ekphory is read as what is written today."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from ekphory import legacy
from ekphory.backup import restore
from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.prompting.recall_block import strip_recall_blocks

FILES = Path(__file__).parent / "files"
TEXTS = {
    "lisbon": "I moved to Lisbon in May.",
    "tea": "I take my tea with milk.",
    "key": "The spare key is under the blue pot.",
}


@pytest.fixture
def store(tmp_path):
    return shutil.copytree(FILES / "store", tmp_path / "store")


def texts(memory):
    return {record.id: record.text for record in memory.list()}


def test_a_store_of_old_is_searched_and_written(store):
    # A store of old is searched and written.
    with Memory(store, project="home", user="mara") as memory:
        assert texts(memory) == TEXTS
        assert memory.search("where do I live?", k=1).hits[0].id == "lisbon"
        assert [past.text for past in memory.history("tea")] == [
            "I take my tea with milk.",
            "I take my tea without sugar.",
        ]
        memory.add("The cat is called Momo.", id="cat")
    with Memory(store, project="home", user="mara") as memory:
        assert texts(memory) == TEXTS | {"cat": "The cat is called Momo."}
    # The note of a store of old still tells that versions are lost.
    for manifest in (store / "memories.lance" / "_versions").glob("*.manifest"):
        manifest.unlink()

    with pytest.raises(Exception, match="holds no version of the table"):
        Memory(store, project="home", user="mara").count()


def test_an_export_and_a_backup_of_old_are_read(tmp_path):
    # An export of old is imported.
    with Memory(tmp_path / "new", project="home", user="mara") as memory:
        report = import_path(memory, FILES / "export.jsonl")
        assert (report.added, report.failed) == (3, 0)
        assert texts(memory) == TEXTS
    # A backup of old is restored.
    restore(FILES / "backup.tar", tmp_path / "restored")

    with Memory(tmp_path / "restored", project="home", user="mara") as memory:
        assert texts(memory) == TEXTS


def test_a_key_of_old_is_recognised(store):
    made = json.loads((FILES / "key.json").read_text())
    with closing(Database(store / "catalog.sqlite3")) as database:
        key = AccessKeys(database).recognise(made["key"])
    assert (key.id, key.org, key.rights) == (made["id"], "acme", "read")


def test_a_block_of_old_is_removed_from_a_transcript():
    block = (FILES / "prompt_block.txt").read_text()
    assert "recollect recalled these memories" in block

    assert strip_recall_blocks(f"before\n{block}\nafter") == "before\nafter"


def test_folders_of_old_are_found(tmp_path):
    # A model folder of old is read under its old file name.
    (tmp_path / "recollect_components.safetensors").touch()
    name = legacy.find_written_name(
        "ekphory_components.safetensors", lambda each: (tmp_path / each).is_file()
    )
    assert name == "recollect_components.safetensors"
    # The data folder of old is used until there is one of today.
    (tmp_path / "recollect").mkdir()
    assert legacy.choose_data_folder(tmp_path / "ekphory") == tmp_path / "recollect"
    (tmp_path / "ekphory").mkdir()
    assert legacy.choose_data_folder(tmp_path / "ekphory") == tmp_path / "ekphory"
