import pytest


def test_an_added_memory_says_its_id(ekphory):
    result = ekphory.run("add", "The oven is broken", "--id", "oven")
    assert (result.exit_code, result.stdout) == (0, "Added oven\n")


def test_adding_it_again_says_that_it_is_there(ekphory):
    ekphory.run("add", "The oven is broken", "--id", "oven")
    result = ekphory.run("add", "The oven is broken", "--id", "oven")
    assert (result.exit_code, result.stdout) == (0, "Already there: oven\n")


def test_the_report_as_json(ekphory):
    assert ekphory.json("add", "The oven is broken", "--id", "oven") == {
        "added": 1,
        "skipped": 0,
        "failed": [],
        "ids": ["oven"],
        "sampled": [],
    }


def test_a_dash_reads_the_text_from_standard_input(ekphory):
    ekphory.run("add", "-", "--id", "note", stdin="Zoë said:\nbring bread\n")
    assert ekphory.json("get", "note")["text"] == "Zoë said:\nbring bread"


def test_standard_input_that_is_not_utf8_is_refused(ekphory):
    sentence = ekphory.failure("add", "-", stdin=b"caf\xe9")
    assert sentence == r"text=b'\xe9': must be UTF-8. Convert the text"


def test_every_field_is_kept(ekphory):
    ekphory.run(
        "add", "Turn the valve left", "--id", "valve", "--at", "2026-03-01T10:00:00+02:00",
        "--producer", "Anna", "--produced-for", "Ben", "--role", "user", "--sequence", "4",
        "--pool", "shared_rules", "--type", "procedural", "--importance", "0.75",
        "--expires-at", "2090-01-01", "--source", "handbook", "--org", "acme",
        "--project", "boiler", "--agent", "plumber", "--user", "anna", "--session", "monday",
        "--metadata", "floor=2", "--metadata", "room=cellar",
    )  # fmt: skip
    kept = ekphory.json("get", "valve")
    assert kept.pop("created_at") > "2026"
    assert kept == {
        "id": "valve",
        "text": "Turn the valve left",
        "at": "2026-03-01T08:00:00+00:00",
        "expires_at": "2090-01-01T00:00:00+00:00",
        "org": "acme",
        "project": "boiler",
        "agent": "plumber",
        "user": "anna",
        "session": "monday",
        "pool": "shared_rules",
        "type": "procedural",
        "importance": 0.75,
        "predicted": [],
        "producer": "Anna",
        "produced_for": "Ben",
        "role": "user",
        "sequence": 4,
        "parent_id": None,
        "path": None,
        "heading": None,
        "lines": None,
        "source": "handbook",
        "supersedes": None,
        "superseded_by": None,
        "metadata": {"floor": 2, "room": "cellar"},
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((" ",), "text=' ': is empty. Give the text to remember"),
        (
            ("x", "--type", "fact"),
            "type='fact': no such type. Use one of episodic, semantic, procedural, unknown",
        ),
        (
            ("x", "--importance", "7"),
            "importance=7.0: lies outside [0, 1]. Give a number from 0 to 1",
        ),
        (
            ("x", "--metadata", "user=eve"),
            "metadata.user='eve': metadata cannot set the scope. Give user as a field of its own",
        ),
        (
            ("x", "--project", " "),
            "project=' ': a scope field is text of 1 to 10,000 characters without NUL. "
            "Leave it out to unbind",
        ),
    ],
)
def test_a_field_that_cannot_be_stored_is_named(ekphory, arguments, sentence):
    assert ekphory.failure("add", *arguments) == sentence


def test_a_time_that_cannot_be_read_is_named(ekphory):
    assert ekphory.failure("add", "x", "--at", "yesterday").startswith("at='yesterday': cannot")


def test_a_store_path_that_is_a_file_is_refused(ekphory, tmp_path):
    (tmp_path / "notes.txt").write_text("no store")
    sentence = ekphory.failure("add", "x", "--store", str(tmp_path / "notes.txt"))
    assert sentence.endswith("is a file. Give a directory, new or of ekphory")
    assert (tmp_path / "notes.txt").read_text() == "no store"
