import json


def test_the_report_counts_what_became_of_every_record(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    result = ekphory.run("import", str(tmp_path / "notes.jsonl"))
    assert (result.exit_code, result.stdout) == (0, "2 added, 0 already there, 0 failed.\n")


def test_importing_again_adds_nothing(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    ekphory.run("import", str(tmp_path / "notes.jsonl"))
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
    assert [
        memory["text"] for memory in ekphory.json("list", "--order", "written")["memories"]
    ] == [
        "one",
        "three",
    ]


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


def test_an_unknown_format_is_refused(ekphory, tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "one"}\n')
    sentence = ekphory.failure("import", str(tmp_path / "notes.jsonl"), "--format", "xml")
    assert sentence == (
        "format='xml': unknown format. Use one of ekphory, locomo, jsonl, documents, text, "
        "chatgpt, claude, mem0, zep, langmem."
    )


def test_a_missing_file_is_refused_and_makes_no_store(ekphory):
    sentence = ekphory.failure("import", "nowhere.jsonl")
    assert sentence == "path='nowhere.jsonl': no such file or folder. Check the path."
    assert not ekphory.store.exists()


def test_a_bound_session_that_no_record_fits_is_told_once(ekphory, tmp_path):
    rows = "".join(json.dumps({"text": f"note {n}", "session": "monday"}) + "\n" for n in range(3))
    (tmp_path / "notes.jsonl").write_text(rows)
    sentence = ekphory.failure("import", str(tmp_path / "notes.jsonl"), "--session", "mine")
    assert sentence == (
        "session='monday': no record fits the bound session='mine' (3 tried); "
        "nothing was written. Bind no session, so that each record keeps its own"
    )


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
    ekphory.run("import", str(house), *options, "--ocr", "off")
    found = ekphory.json("list", "--filter", "path = 'menu.txt'")["memories"][0]
    assert (found["pool"], found["session"]) == ("shared_knowledge", "manual/menu.txt")
    assert found["text"] == "Das Café öffnet um acht."


def test_what_is_excluded_is_not_imported(ekphory, tmp_path):
    house = folder(tmp_path)
    (house / "old.md").write_text("The old boiler leaked.\n")
    ekphory.run("import", str(house), "--exclude", "sub", "--exclude", "old.*")
    assert [found["path"] for found in ekphory.json("list")["memories"]] == ["guide.md"]


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
