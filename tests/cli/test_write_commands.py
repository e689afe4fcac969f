import pytest

from ekphory.cli.options import read_metadata
from ekphory.errors import InvalidInput


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


def test_a_field_that_cannot_be_stored_is_named(ekphory):
    assert ekphory.failure("add", "x", "--type", "fact") == (
        "type='fact': no such type. Use one of episodic, semantic, procedural, unknown"
    )


def test_a_store_path_that_is_a_file_is_refused(ekphory, tmp_path):
    (tmp_path / "notes.txt").write_text("no store")
    sentence = ekphory.failure("add", "x", "--store", str(tmp_path / "notes.txt"))
    assert sentence.endswith("is a file. Give a directory, new or of ekphory")
    assert (tmp_path / "notes.txt").read_text() == "no store"


def test_an_update_says_where_the_earlier_version_is(kitchen):
    result = kitchen.run("update", "oven", "--text", "The oven works again")
    assert result.stdout == "Updated oven; the earlier version is kept as oven~1\n"


def test_an_update_changes_only_what_is_given(kitchen):
    before = kitchen.json("get", "sink")
    after = kitchen.json("update", "sink", "--importance", "0.1", "--metadata", "floor=2")
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"importance", "metadata", "created_at", "supersedes"}
    assert (after["importance"], after["metadata"]) == (0.1, {"floor": 2})


def test_a_forgotten_memory_is_gone(kitchen):
    assert kitchen.run("forget", "oven").stdout == "1 memory forgotten.\n"
    assert "no such memory" in kitchen.failure("get", "oven")


def test_purging_leaves_no_byte_of_the_text(kitchen):
    assert kitchen.run("forget", "oven", "--purge").stdout == (
        "1 memory forgotten, and their text is wiped from the disk.\n"
    )
    files = [path for path in kitchen.store.rglob("*") if path.is_file()]
    assert files
    assert not any(b"The oven is broken" in path.read_bytes() for path in files)


def test_forgetting_several_needs_yes_where_nobody_can_be_asked(kitchen):
    sentence = kitchen.failure("forget", "--filter", "importance < 0.8")
    assert sentence == (
        "filter='2 memories match': nobody can be asked whether to forget them all. "
        "Add --yes when that is meant"
    )
    assert kitchen.json("list")["total"] == 3


def test_forgetting_several_with_yes(kitchen):
    forgotten = kitchen.json("forget", "--filter", "importance < 0.8", "--yes")
    assert forgotten == {"forgotten": 2, "purged": False}
    assert kitchen.json("list")["total"] == 1


def test_forgetting_one_by_a_filter_needs_no_yes(kitchen):
    assert kitchen.json("forget", "--filter", "producer = 'Ben'")["forgotten"] == 1


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("year=2026", {"year": 2026}),
        ("price=1.5", {"price": 1.5}),
        ("open=true", {"open": True}),
        ('zip="01234"', {"zip": "01234"}),
        ("zip=01234", {"zip": "01234"}),
        ("name=Anna Lee", {"name": "Anna Lee"}),
        ("formula=a=b", {"formula": "a=b"}),
        ("empty=", {"empty": ""}),
        ("nothing=null", {"nothing": "null"}),
        ("size=NaN", {"size": "NaN"}),
        ("list=[1]", {"list": "[1]"}),
    ],
)
def test_a_value_is_a_json_scalar_or_else_text(pair, expected):
    assert read_metadata([pair]) == expected


def test_no_pairs_are_no_metadata():
    assert read_metadata(None) is None


@pytest.mark.parametrize("pair", ["year", "=2026", " =2026"])
def test_a_pair_without_a_key_or_a_value_is_refused(pair):
    with pytest.raises(InvalidInput, match=r"must be key=value\. Write --metadata year=2026"):
        read_metadata([pair])
