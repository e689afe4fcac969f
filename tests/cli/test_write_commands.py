import pytest
from tests.cases import read_tables

from ekphory.cli.options import read_metadata
from ekphory.errors import InvalidInput


def test_an_added_memory_says_its_id_and_added_again_that_it_is_there(ekphory):
    oven = ("add", "The oven is broken", "--id", "oven")
    results = [ekphory.run(*oven) for _ in range(2)]
    assert [(result.exit_code, result.stdout) for result in results] == [
        (0, "Added oven\n"),
        (0, "Already there: oven\n"),
    ]
    report = ekphory.json("add", "Milk is fresh", "--id", "milk")
    assert report == {"added": 1, "skipped": 0, "failed": [], "ids": ["milk"], "sampled": []}


def test_a_secret_is_cut_out_of_what_is_added_where_that_is_asked_for(ekphory):
    ekphory.run("add", "the wifi password is hedgehog-Lamp-91", "--redact")
    (found,) = ekphory.json("list")["memories"]
    assert found["text"] == "the wifi password is [redacted]"


def test_a_dash_reads_the_text_from_standard_input_which_must_be_utf8(ekphory):
    ekphory.run("add", "-", "--id", "note", stdin="Zoë said:\nbring bread\n")
    assert ekphory.json("get", "note")["text"] == "Zoë said:\nbring bread"
    sentence = ekphory.failure("add", "-", stdin=b"caf\xe9")
    assert sentence == r"text=b'\xe9': must be UTF-8. Convert the text"


def test_every_field_is_kept(ekphory):
    fields = read_tables(__file__)["fields"]
    pairs = [(f"--{name.replace('_', '-')}", str(value)) for name, value in fields.items()]
    moments = ("--at", "2026-03-01T10:00:00+02:00", "--expires-at", "2090-01-01")
    known = ("--metadata", "floor=2", "--metadata", "room=cellar")
    ekphory.run("add", "Turn the valve left", *sum(pairs, ()), *moments, *known)
    kept = ekphory.json("get", "valve")
    assert kept.pop("created_at") > "2026"
    assert {name: value for name, value in kept.items() if value not in (None, [])} == {
        **fields,
        "text": "Turn the valve left",
        "at": "2026-03-01T08:00:00+00:00",
        "expires_at": "2090-01-01T00:00:00+00:00",
        "metadata": {"floor": 2, "room": "cellar"},
    }


def test_a_field_that_cannot_be_stored_is_named(ekphory, tmp_path):
    assert ekphory.failure("add", "x", "--type", "fact") == (
        "type='fact': no such type. Use one of episodic, semantic, procedural, unknown"
    )
    # So is a store path that is a file.
    (tmp_path / "notes.txt").write_text("no store")
    sentence = ekphory.failure("add", "x", "--store", str(tmp_path / "notes.txt"))
    assert sentence.endswith("is a file. Give a directory, new or of ekphory")
    assert (tmp_path / "notes.txt").read_text() == "no store"


def test_an_update_says_where_the_earlier_version_is_and_changes_only_what_is_given(kitchen):
    before = kitchen.json("get", "sink")
    result = kitchen.run("update", "sink", "--importance", "0.1", "--metadata", "floor=2")
    assert result.stdout == "Updated sink; the earlier version is kept as sink~1\n"
    after = kitchen.json("get", "sink")
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"importance", "metadata", "created_at", "supersedes"}
    assert (after["importance"], after["metadata"]) == (0.1, {"floor": 2})


def test_a_forgotten_memory_is_gone(kitchen):
    assert kitchen.run("forget", "oven").stdout == "1 memory forgotten.\n"
    assert "no such memory" in kitchen.failure("get", "oven")
    # Purging leaves no byte of the text.
    assert kitchen.run("forget", "knives", "--purge").stdout == (
        "1 memory forgotten, and its text is wiped from the disk.\n"
    )
    files = [path for path in kitchen.store.rglob("*") if path.is_file()]
    assert files
    assert not any(b"Knives are in the drawer" in path.read_bytes() for path in files)


def test_forgetting_several_needs_yes_where_nobody_can_be_asked(kitchen):
    several = ("forget", "--filter", "importance < 0.8")
    assert kitchen.failure(*several) == (
        "filter='2 memories match': nobody can be asked whether to forget them all. "
        "Add --yes when that is meant"
    )
    assert kitchen.json("list")["total"] == 3
    assert kitchen.json(*several, "--yes") == {"forgotten": 2, "purged": False}
    assert kitchen.json("forget", "--filter", "producer = 'Ben'")["forgotten"] == 1
    assert kitchen.json("list")["total"] == 0


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (["year=2026", "price=1.5", "open=true"], {"year": 2026, "price": 1.5, "open": True}),
        (['zip="01234"', "code=01234"], {"zip": "01234", "code": "01234"}),
        (["name=Anna Lee", "empty="], {"name": "Anna Lee", "empty": ""}),
        (["formula=a=b", "list=[1]"], {"formula": "a=b", "list": "[1]"}),
        (["nothing=null", "size=NaN"], {"nothing": "null", "size": "NaN"}),
        (None, None),
    ],
)
def test_a_value_is_a_json_scalar_or_else_text(pairs, expected):
    assert read_metadata(pairs) == expected


@pytest.mark.parametrize("pair", ["year", "=2026", " =2026"])
def test_a_pair_without_a_key_or_a_value_is_refused(pair):
    with pytest.raises(InvalidInput, match=r"must be key=value\. Write --metadata year=2026"):
        read_metadata([pair])


def test_a_mistake_a_rule_and_what_is_promoted_are_kept_in_their_pools(kitchen):
    kitchen.json("learn-mistake", "left the oven on", "--fix", "set a timer", "--shared")
    kitchen.json("add-rule", "Answer in metric units")
    made = kitchen.json("promote", "oven")["id"]
    pools = {
        each: kitchen.json("list", "--filter", f"pool = '{each}'")["memories"]
        for each in ("shared_mistakes", "shared_rules", "shared_knowledge")
    }
    assert [len(found) for found in pools.values()] == [1, 1, 1]
    assert pools["shared_knowledge"][0]["id"] == made
    assert "shared_knowledge" in kitchen.failure("promote", "oven", "--pool", "agent_memory")


def test_a_mistake_of_several_agents_is_counted_and_not_shown(ekphory):
    for agent, at in (("ann", "2026-03-01"), ("bob", "2026-04-02"), ("bob", "2026-03-09")):
        ekphory.run(
            "add", "left the oven on", "--at", at, "--pool", "agent_mistakes", "--project", "k",
            "--agent", agent,
        )  # fmt: skip
    (found,) = ekphory.json("mistakes", "--project", "k")["mistakes"]
    assert found == {
        "owners": 2,
        "memories": 3,
        "first": "2026-03-01T00:00:00+00:00",
        "last": "2026-04-02T00:00:00+00:00",
    }
    assert ekphory.run("mistakes", "--project", "k").stdout == (
        "2 agents made the same mistake, 3 times between 2026-03-01 and 2026-04-02.\n"
        "Ask them to `ekphory promote ID --pool shared_mistakes`.\n"
    )
    assert ekphory.json("mistakes", "--least", "3") == {"mistakes": []}
    assert "project as a whole" in ekphory.failure("mistakes", "--agent", "ann")
