import json

import pytest

from .command_line import CommandLine


@pytest.fixture
def notes(tmp_path):
    """Writes a file of these lines, and returns its path, as a text."""

    def write(*lines, name="notes.jsonl"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return str(tmp_path / name)

    return write


ONE, TWO = '{"text": "one"}', '{"text": "two"}'


def test_importing_again_adds_nothing(ekphory, notes):
    result = ekphory.run("import", notes(ONE, TWO))
    assert (result.exit_code, result.stdout) == (0, "2 added, 0 already there, 0 failed.\n")
    again = ekphory.json("import", notes(ONE, TWO), "--format", "jsonl")
    counts = {"added": 0, "updated": 0, "skipped": 2, "failed": 0, "forgotten": 0}
    assert again == counts | {"failures_path": None, "examples": [], "left_out": {}, "places": {}}


def test_what_an_import_updates_and_what_is_older_is_told(ekphory, notes):
    first = '{"id": "a", "text": "Otto is the plumber", "at": "2026-01-01"}'
    second = '{"id": "a", "text": "Otto is the painter", "at": "2026-02-01"}'
    ekphory.run("import", notes(first))
    updated = ekphory.run("import", notes(second)).stdout
    assert updated == "0 added, 1 updated, 0 already there, 0 failed.\n"
    assert ekphory.json("import", notes(second))["updated"] == 0
    older = ekphory.run("import", notes(first)).stdout
    assert older.splitlines() == [
        "0 added, 0 already there, 0 failed.",
        "Left out: 1 × record older than what is stored.",
    ]


def test_a_broken_line_is_listed_and_the_others_are_imported(ekphory, notes, tmp_path):
    result = ekphory.run("import", notes(ONE, '{"text":', TWO))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "2 added, 0 already there, 1 failed.",
        "  notes.jsonl:2: not valid JSON: Expecting value (column 9). Mend this line.",
        f"All failures are listed in {tmp_path / 'ekphory-failed' / 'notes.jsonl'}",
    ]
    listed = ekphory.json("list", "--order", "written")["memories"]
    assert [memory["text"] for memory in listed] == ["one", "two"]


def test_failures_go_to_the_file_that_was_named(ekphory, notes, tmp_path):
    listed = tmp_path / "failures.jsonl"
    ekphory.run("import", notes(ONE, '{"text": ""}'), "--failures", str(listed))
    assert json.loads(listed.read_text())["place"] == "notes.jsonl:2"


def test_notes_with_front_matter_that_cannot_be_read_are_named(ekphory, tmp_path):
    (vault := tmp_path / "vault").mkdir()
    for number in range(7):
        (vault / f"note {number}.md").write_text("---\ndate: {{date}\n---\nThe roof is red.\n")
    assert ekphory.run("import", str(vault)).stdout.splitlines()[1:] == [
        "Left out: 7 × front matter that is not YAML.",
        "  front matter that is not YAML: note 0.md, note 1.md, note 2.md, note 3.md, note 4.md, …",
    ]


GUIDE = "# House\n\nThe boiler was repaired in May.\n\n<!-- draft -->\n"


def folder(tmp_path):
    (tmp_path / "house" / "sub").mkdir(parents=True)
    (tmp_path / "house" / "guide.md").write_text(GUIDE)
    (tmp_path / "house" / "sub" / "note.txt").write_text("Keys hang in the hall.\n")
    return tmp_path / "house"


@pytest.fixture
def imported(ekphory, tmp_path):
    """The command line, a folder that was imported, and what was said."""
    house = folder(tmp_path)
    return ekphory, house, ekphory.run("import", str(house)).stdout


def test_a_folder_is_imported_as_documents_and_found(imported):
    ekphory, _, said = imported
    assert said == "2 added, 0 already there, 0 failed.\nLeft out: 1 × comment.\n"
    (hit,) = ekphory.json("search", "when was the boiler repaired?", "--k", "1")["hits"]
    assert (hit["memory"]["path"], hit["memory"]["heading"]) == ("guide.md", "House")
    assert hit["memory"]["lines"] == "1-3"


def test_a_changed_document_is_replaced_and_a_gone_one_pruned(imported):
    ekphory, house, _ = imported
    (house / "guide.md").write_text(GUIDE.replace("repaired", "replaced"))
    (house / "sub" / "note.txt").unlink()
    result = ekphory.run("import", str(house), "--prune")
    assert result.stdout.startswith("1 added, 2 forgotten, 0 already there, 0 failed.\n")
    assert ekphory.json("list")["total"] == 1


def test_a_folder_that_was_emptied_is_pruned(imported):
    ekphory, house, _ = imported
    (house / "guide.md").unlink()
    (house / "sub" / "note.txt").unlink()
    assert "with --prune what was imported from it is forgotten" in ekphory.failure(
        "import", str(house)
    )
    said = ekphory.run("import", str(house), "--prune").stdout
    assert said == "0 added, 2 forgotten, 0 already there, 0 failed.\n"


def test_the_options_of_documents_reach_the_import(ekphory, tmp_path):
    house = folder(tmp_path)
    (house / "menu.txt").write_bytes("Das Café öffnet um acht.".encode("cp1252"))
    options = ("--pool", "shared_knowledge", "--name", "manual", "--encoding", "cp1252")
    ekphory.run("import", str(house), *options, "--ocr", "off", "--exclude", "sub")
    assert ekphory.json("list", "--filter", "path = 'sub/note.txt'")["total"] == 0
    found = ekphory.json("list", "--filter", "path = 'menu.txt'")["memories"][0]
    assert (found["pool"], found["session"]) == ("shared_knowledge", "manual/menu.txt")
    assert found["text"] == "Das Café öffnet um acht."


def test_options_that_do_not_fit_are_refused_and_make_no_store(ekphory, notes, tmp_path):
    assert ekphory.failure("import", notes(ONE), "--prune") == (
        "prune=True: jsonl has no such option. It is for documents."
    )
    assert ekphory.failure("import", str(folder(tmp_path)), "--ocr", "chat") == (
        "ocr='chat': no chat service with a model is known. "
        "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL."
    )
    assert ekphory.failure("import", "nowhere.jsonl") == (
        "path='nowhere.jsonl': no such file or folder. Check the path."
    )
    assert not ekphory.store.exists()


def test_an_export_is_imported_into_another_store_without_loss(kitchen, tmp_path):
    kitchen.run("update", "oven", "--text", "The oven is repaired")
    file, other = str(tmp_path / "e.jsonl"), CommandLine(tmp_path / "other")
    result = kitchen.run("export", "--target", file)
    assert result.stdout == f"3 memories and 1 earlier version exported to {file}.\n"
    assert other.run("import", file).stdout == "3 added, 0 already there, 0 failed.\n"
    for reading in (("list", "--order", "written"), ("history", "oven")):
        assert other.json(*reading) == kitchen.json(*reading)


def test_an_export_of_a_scope_goes_to_standard_output_and_its_summary_to_standard_error(kitchen):
    kitchen.run("add", "Of another project", "--project", "cellar")
    result = kitchen.run("export", "--project", "cellar")
    first, memory, last = (json.loads(line) for line in result.stdout.splitlines())
    assert (first["memories"], memory["text"], last["memories"]) == (1, "Of another project", 1)
    assert result.stderr == "1 memory and 0 earlier versions exported.\n"


def test_the_report_is_json_where_the_export_goes_to_a_file(kitchen, tmp_path):
    report = kitchen.json("export", "--target", str(tmp_path / "e.jsonl"))
    assert report["bytes"] == (tmp_path / "e.jsonl").stat().st_size
    result = kitchen.run("export", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["field"] == "target"


@pytest.mark.parametrize("name", ["b", "b.tar"])
def test_a_backup_is_restored_to_a_new_store_and_never_over_one(kitchen, tmp_path, name):
    backup, copy = str(tmp_path / name), tmp_path / "copy"
    taken = kitchen.json("backup", "--target", backup)
    assert (taken["memories"], taken["history"]) == (3, 0)
    result = kitchen.run("restore", "--source", backup, "--store", str(copy))
    assert result.stdout.startswith("3 memories and 0 earlier versions (")
    assert result.stdout.endswith(f" restored to {copy}.\n")
    assert CommandLine(copy).json("list") == kitchen.json("list")
    sentence = kitchen.failure("restore", "--source", backup)
    assert sentence.endswith("there is something already. Name a new or an empty folder")


def test_a_backup_takes_the_catalog_that_the_configuration_file_names(kitchen, tmp_path):
    sessions, backup = tmp_path / "sessions.sqlite3", tmp_path / "b"
    kitchen.json("keys", "create", "--catalog", str(sessions))
    config = tmp_path / "cfg.yml"
    config.write_text(
        "session_manager: {database: mine}\n"
        f"resources: {{databases: {{mine: {{provider: sqlite, config: {{path: {sessions}}}}}}}}}\n"
    )
    kitchen.json("backup", "--target", str(backup), EKPHORY_CONFIG=str(config))
    assert (backup / "catalog.sqlite3").is_file()
