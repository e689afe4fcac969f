import json


def test_the_report_counts_what_became_of_every_record(recollect, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    result = recollect.run("import", str(tmp_path / "notes.jsonl"))
    assert (result.exit_code, result.stdout) == (0, "2 added, 0 already there, 0 failed.\n")


def test_importing_again_adds_nothing(recollect, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    recollect.run("import", str(tmp_path / "notes.jsonl"))
    assert recollect.json("import", str(tmp_path / "notes.jsonl")) == {
        "added": 0,
        "skipped": 2,
        "failed": 0,
        "failures_path": None,
        "examples": [],
    }


def test_a_broken_line_is_listed_and_the_others_are_imported(recollect, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text":\n{"text": "three"}\n')
    result = recollect.run("import", str(tmp_path / "notes.jsonl"))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "2 added, 0 already there, 1 failed.",
        "  notes.jsonl:2: not valid JSON: Expecting value (column 9). Mend this line.",
        f"All failures are listed in {tmp_path / 'notes.jsonl.failed.jsonl'}",
    ]
    assert [
        memory["text"] for memory in recollect.json("list", "--order", "written")["memories"]
    ] == [
        "one",
        "three",
    ]


def test_failures_go_to_the_file_that_was_named(recollect, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": ""}\n')
    listed = tmp_path / "failures.jsonl"
    recollect.run("import", str(tmp_path / "notes.jsonl"), "--failures", str(listed))
    assert json.loads(listed.read_text())["place"] == "notes.jsonl:2"


def test_the_format_can_be_named(recollect, tmp_path):
    (tmp_path / "notes.log").write_text("first paragraph\n\nsecond paragraph\n")
    result = recollect.run("import", str(tmp_path / "notes.log"), "--format", "text")
    assert result.stdout.endswith(" 0 already there, 0 failed.\n")
    assert result.exit_code == 0


def test_an_unknown_format_is_refused(recollect, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n')
    sentence = recollect.failure("import", str(tmp_path / "notes.jsonl"), "--format", "xml")
    assert sentence == (
        "format='xml': unknown format. Use one of locomo, jsonl, text, chatgpt, claude."
    )


def test_a_missing_file_is_refused_and_makes_no_store(recollect):
    sentence = recollect.failure("import", "nowhere.jsonl")
    assert sentence == "path='nowhere.jsonl': no such file or folder. Check the path."
    assert not recollect.store.exists()
