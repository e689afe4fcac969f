import json
import os
import signal
import subprocess
import sys
import time

import pytest

from .command_line import CommandLine


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


def test_a_file_that_is_cut_off_is_told_with_its_line(kitchen, tmp_path):
    lines = kitchen.run("export").stdout.splitlines(keepends=True)
    (tmp_path / "e.jsonl").write_text("".join(lines[:3]))
    result = CommandLine(tmp_path / "other").run("import", str(tmp_path / "e.jsonl"))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "2 added, 0 already there, 1 failed.",
        "  e.jsonl:3: the file is cut off: 2 of 3 memories are in it, and no last line. What could "
        "be read is imported; export again, and import that too.",
    ]


def test_an_export_is_not_read_as_another_format(kitchen, tmp_path):
    kitchen.run("export", "--target", str(tmp_path / "e.jsonl"))
    sentence = kitchen.failure("import", str(tmp_path / "e.jsonl"), "--format", "jsonl")
    assert "not in the format jsonl: it looks like ekphory. Use --format ekphory" in sentence


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
