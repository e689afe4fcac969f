import json
import os
import signal
import subprocess
import sys
import time

import pytest

from .command_line import CommandLine


def test_importing_again_adds_nothing(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    result = ekphory.run("import", str(tmp_path / "notes.jsonl"))
    assert (result.exit_code, result.stdout) == (0, "2 added, 0 already there, 0 failed.\n")
    assert ekphory.json("import", str(tmp_path / "notes.jsonl")) == {
        "added": 0,
        "skipped": 2,
        "failed": 0,
        "failures_path": None,
        "examples": [],
        "forgotten": 0,
        "left_out": {},
    }


def test_a_broken_line_is_listed_and_the_others_are_imported(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text":\n{"text": "three"}\n')
    result = ekphory.run("import", str(tmp_path / "notes.jsonl"))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "2 added, 0 already there, 1 failed.",
        "  notes.jsonl:2: not valid JSON: Expecting value (column 9). Mend this line.",
        f"All failures are listed in {tmp_path / 'notes.jsonl.failed.jsonl'}",
    ]
    listed = ekphory.json("list", "--order", "written")["memories"]
    assert [memory["text"] for memory in listed] == ["one", "three"]


def test_failures_go_to_the_file_that_was_named(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": ""}\n')
    listed = tmp_path / "failures.jsonl"
    ekphory.run("import", str(tmp_path / "notes.jsonl"), "--failures", str(listed))
    assert json.loads(listed.read_text())["place"] == "notes.jsonl:2"


def test_the_format_can_be_named(ekphory, tmp_path):
    (tmp_path / "notes.log").write_text("first paragraph\n\nsecond paragraph\n")
    result = ekphory.run("import", str(tmp_path / "notes.log"), "--format", "text")
    assert result.stdout.endswith(" 0 already there, 0 failed.\n")
    assert result.exit_code == 0


def test_a_missing_file_is_refused_and_makes_no_store(ekphory):
    sentence = ekphory.failure("import", "nowhere.jsonl")
    assert sentence == "path='nowhere.jsonl': no such file or folder. Check the path."
    assert not ekphory.store.exists()


GUIDE = "# House\n\nThe boiler was repaired in May.\n\n<!-- draft -->\n"


def folder(tmp_path):
    (tmp_path / "house" / "sub").mkdir(parents=True)
    (tmp_path / "house" / "guide.md").write_text(GUIDE)
    (tmp_path / "house" / "sub" / "note.txt").write_text("Keys hang in the hall.\n")
    return tmp_path / "house"


def test_a_folder_is_imported_as_documents_and_found(ekphory, tmp_path):
    result = ekphory.run("import", str(folder(tmp_path)))
    assert result.stdout.splitlines() == [
        "2 added, 0 already there, 0 failed.",
        "Left out: 1 × comment.",
    ]
    (hit,) = ekphory.json("search", "when was the boiler repaired?", "--k", "1")["hits"]
    assert (hit["memory"]["path"], hit["memory"]["heading"]) == ("guide.md", "House")
    assert hit["memory"]["lines"] == "1-3"


def test_a_changed_document_is_replaced_and_a_gone_one_pruned(ekphory, tmp_path):
    house = folder(tmp_path)
    ekphory.run("import", str(house))
    (house / "guide.md").write_text(GUIDE.replace("repaired", "replaced"))
    (house / "sub" / "note.txt").unlink()
    result = ekphory.run("import", str(house), "--prune")
    assert result.stdout.startswith("1 added, 2 forgotten, 0 already there, 0 failed.\n")
    assert ekphory.json("list")["total"] == 1


def test_the_options_of_documents_reach_the_import(ekphory, tmp_path):
    house = folder(tmp_path)
    (house / "menu.txt").write_bytes("Das Café öffnet um acht.".encode("cp1252"))
    options = ("--pool", "shared_knowledge", "--name", "manual", "--encoding", "cp1252")
    ekphory.run("import", str(house), *options, "--ocr", "off", "--exclude", "sub")
    assert ekphory.json("list", "--filter", "path = 'sub/note.txt'")["total"] == 0
    found = ekphory.json("list", "--filter", "path = 'menu.txt'")["memories"][0]
    assert (found["pool"], found["session"]) == ("shared_knowledge", "manual/menu.txt")
    assert found["text"] == "Das Café öffnet um acht."


def test_a_document_that_cannot_be_read_is_listed_and_the_exit_code_is_1(ekphory, tmp_path):
    house = folder(tmp_path)
    (house / "broken.pdf").write_bytes(b"nonsense")
    result = ekphory.run("import", str(house))
    assert result.exit_code == 1
    assert "  broken.pdf: not a readable PDF" in result.stdout
    listed = json.loads((tmp_path / "house.failed.jsonl").read_text())
    assert (listed["place"], listed["field"]) == ("broken.pdf", "file")


def test_options_of_documents_are_refused_for_other_formats(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n')
    sentence = ekphory.failure("import", str(tmp_path / "notes.jsonl"), "--prune")
    assert sentence == "prune=True: jsonl has no such option. It is for documents."


def test_the_chat_service_reads_pages_only_where_there_is_one(ekphory, tmp_path):
    sentence = ekphory.failure("import", str(folder(tmp_path)), "--ocr", "chat")
    assert sentence == (
        "ocr='chat': no chat service with a model is known. "
        "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL."
    )
    assert not ekphory.store.exists()


def test_an_export_is_imported_into_another_store_without_loss(kitchen, tmp_path):
    kitchen.run("update", "oven", "--text", "The oven is repaired")
    result = kitchen.run("export", "--target", str(tmp_path / "e.jsonl"))
    assert result.stdout == f"3 memories and 1 earlier version exported to {tmp_path}/e.jsonl.\n"
    other = CommandLine(tmp_path / "other")
    assert other.run("import", str(tmp_path / "e.jsonl")).stdout == (
        "3 added, 0 already there, 0 failed.\n"
    )
    listing = ("list", "--order", "written")
    assert other.json(*listing) == kitchen.json(*listing)
    assert other.json("history", "oven") == kitchen.json("history", "oven")
    assert other.json("import", str(tmp_path / "e.jsonl"), "--format", "ekphory")["skipped"] == 3


def test_an_export_goes_to_standard_output_and_its_summary_to_standard_error(kitchen):
    result = kitchen.run("export")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (lines[0]["memories"], lines[-1]["memories"]) == (3, 3)
    assert result.stderr == "3 memories and 0 earlier versions exported.\n"


def test_the_report_is_json_where_the_export_goes_to_a_file(kitchen, tmp_path):
    report = kitchen.json("export", "--target", str(tmp_path / "e.jsonl"))
    assert report["bytes"] == (tmp_path / "e.jsonl").stat().st_size
    result = kitchen.run("export", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["field"] == "target"


def test_only_the_named_scope_is_exported(kitchen):
    kitchen.run("add", "Of another project", "--project", "cellar")
    shown = kitchen.run("export", "--project", "cellar").stdout
    assert [json.loads(line).get("text") for line in shown.splitlines()][1:-1] == [
        "Of another project"
    ]


@pytest.mark.parametrize("name", ["b", "b.tar"])
def test_a_backup_is_restored_to_a_new_store(kitchen, tmp_path, name):
    taken = kitchen.json("backup", "--target", str(tmp_path / name))
    assert (taken["memories"], taken["history"]) == (3, 0)
    copy = tmp_path / "copy"
    source = str(tmp_path / name)
    result = kitchen.run("restore", "--source", source, "--store", str(copy))
    assert result.stdout.startswith("3 memories and 0 earlier versions (")
    assert result.stdout.endswith(f" restored to {copy}.\n")
    assert CommandLine(copy).json("list") == kitchen.json("list")


def test_a_store_is_never_overwritten_by_a_restore(kitchen, tmp_path):
    kitchen.run("backup", "--target", str(tmp_path / "b"))
    sentence = kitchen.failure("restore", "--source", str(tmp_path / "b"))
    assert sentence.endswith("there is something already. Name a new or an empty folder")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupted_export_leaves_no_half_file(ekphory, tmp_path):
    # Long fields that nobody embeds: the export takes long enough to be interrupted.
    rows = (
        json.dumps({"id": str(number), "text": f"note {number}", "metadata": {"page": "x" * 4_000}})
        for number in range(5_000)
    )
    (tmp_path / "many.jsonl").write_text("\n".join(rows))
    ekphory.run("import", str(tmp_path / "many.jsonl"))
    folder = tmp_path / "exports"
    folder.mkdir()
    exporting = subprocess.Popen(
        [sys.executable, "-m", "ekphory", "export", "--target", str(folder / "e.jsonl")],
        env=ekphory.process_environment(),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while exporting.poll() is None and not any(folder.iterdir()):
        time.sleep(0.001)
    exporting.send_signal(signal.SIGINT)
    _, said = exporting.communicate()
    assert (exporting.returncode, said.startswith("Interrupted.")) == (130, True), said
    assert list(folder.iterdir()) == []
