import json

import pytest

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder


def test_a_healthy_store_is_said_to_be_well(kitchen):
    lines = [line.rstrip() for line in kitchen.run("doctor").stdout.splitlines()]
    assert lines[0] == str(kitchen.store)
    assert lines[1] == "✓ 3 memories, 0 earlier versions and 3 vectors."
    assert lines[-3:] == [
        "✓ Every scope holds a memory that can be found.",
        "✓ Upkeep succeeds.",
        "All is well.",
    ]


def test_the_state_as_json(kitchen):
    state = kitchen.json("doctor")
    assert list(state) == ["store", "healthy", "repaired", "health", "findings"]
    assert (state["store"], state["healthy"]) == (str(kitchen.store), True)
    assert state["repaired"] is False
    assert state["health"].keys() == {
        "memories", "history", "vectors", "fragments", "small_fragments", "versions", "bytes",
        "vector_index_rows", "orphaned_scopes", "upkeep_failure", "embedder", "embedder_in_use",
        "unembedded", "previous_embedder", "next_embedders",
    }  # fmt: skip


def test_a_repair_merges_the_files_and_keeps_every_memory(kitchen):
    assert kitchen.json("doctor")["health"]["fragments"] == 3
    repaired = kitchen.json("doctor", "--repair")
    assert (repaired["repaired"], repaired["health"]["fragments"]) == (True, 1)
    assert kitchen.json("list")["total"] == 3


def test_a_directory_without_a_store_is_told_and_left_alone(ekphory, tmp_path):
    (tmp_path / "photos").mkdir()
    assert "there is no store" in ekphory.failure("doctor", "--store", str(tmp_path / "photos"))
    assert list((tmp_path / "photos").iterdir()) == []


def test_a_verified_store_is_said_to_be_what_was_written(kitchen):
    result = kitchen.run("doctor", "--verify")
    assert (result.exit_code, "✓ All 3 rows are what was written." in result.stdout) == (0, True)
    verification = kitchen.json("doctor", "--verify")["verification"]
    assert verification == {"rows": 3, "unverified": 0, "damage": []}


@pytest.fixture
def keyed(ekphory):
    """A store with one memory, of the spare key, and its file."""
    ekphory.run("add", "the spare key is under the mat", "--id", "key")
    (data,) = ekphory.store.glob("memories.lance/data/*.lance")
    return ekphory, data


def damage_of(ekphory):
    """Verify a store that is damaged, and return what is told of the damage."""
    result = ekphory.run("doctor", "--verify", "--json")
    state = json.loads(result.stdout)
    assert (result.exit_code, state["healthy"]) == (1, False)
    (damage,) = state["verification"]["damage"]
    return damage


def test_a_flip_in_a_text_is_told_with_its_memory_and_file_and_fails_the_command(keyed):
    ekphory, data = keyed
    data.write_bytes(data.read_bytes().replace(b"under the mat", b"under the hat"))
    damage = damage_of(ekphory)
    assert damage["ids"] == ["key"]
    assert (ekphory.store / damage["file"]).is_file()
    told = ekphory.run("doctor", "--verify").stdout
    assert "of the memories key: is not what was written." in " ".join(told.split())
    assert "ekphory restore" in told


def test_a_store_whose_files_are_gone_is_verified_and_named(keyed):
    ekphory, data = keyed
    data.unlink()
    assert damage_of(ekphory)["file"] == f"memories.lance/data/{data.name}"


@pytest.fixture
def outdated(ekphory):
    """A store whose vectors are of a model that is not at hand."""
    with Memory(ekphory.store, embedder=HashEmbedder()) as memory:
        memory.add("the spare key is under the mat", id="key")
    return ekphory


@pytest.mark.filterwarnings("default::ekphory.errors.StoreWarning")
def test_a_store_of_another_model_is_searched_and_doctor_names_the_remedy(outdated):
    found = outdated.run("search", "spare key")
    assert "under the mat" in found.stdout
    assert found.stderr.count("hash-embedder@1 (32-d), which is not at hand") == 1
    state = outdated.json("doctor")
    assert state["healthy"] is False
    told = outdated.run("doctor").stdout
    assert "`ekphory reembed` makes them anew with ekphory-small@" in " ".join(told.split())
    assert "All is well" not in told


def test_a_store_is_embedded_anew_and_back_and_what_was_before_is_dropped(outdated):
    report = outdated.json("reembed")
    assert list(report) == ["embedder", "previous", "memories", "embedded", "unembedded"]
    assert report["embedder"].startswith("ekphory-small@")
    assert (report["previous"], report["embedded"]) == ("hash-embedder@1 (32-d)", 1)
    assert outdated.json("doctor")["healthy"] is True
    told = outdated.run("doctor").stdout
    assert "`ekphory reembed --undo` goes back to them" in " ".join(told.split())
    assert outdated.json("reembed", "--undo")["embedder"] == "hash-embedder@1 (32-d)"
    told = outdated.run("reembed").stdout
    assert told.splitlines()[0] == "0 of 1 memories and earlier versions were embedded."
    assert outdated.json("reembed", "--drop-previous")["previous"] is None
    assert "no earlier vectors are kept" in outdated.failure("reembed", "--undo")
    assert "Give one of them" in outdated.failure("reembed", "--undo", "--drop-previous")


def test_a_part_of_a_store_is_not_embedded_anew(outdated):
    assert outdated.failure("reembed", "--project", "home") == (
        "--project='home': names a part of the store, which is embedded as a whole. Leave it out"
    )


def test_the_presets_are_listed(ekphory):
    shown = ekphory.run("pipeline", "list").stdout
    assert all(name in shown for name in ("fast", "balanced", "accurate", "memory_spark", "rrf"))
    assert "the default" in shown
    listed = ekphory.json("pipeline", "list")["presets"]
    assert [each["name"] for each in listed if each["default"]] == ["balanced"]


def test_a_preset_is_shown_stage_by_stage(ekphory):
    shown = ekphory.run("pipeline", "show", "memory_spark").stdout
    assert all(part in shown for part in ("preset memory_spark", "reranker gate", "mode hard"))
    stages = ekphory.json("pipeline", "show", "balanced")["stages"]
    assert (len(stages), stages[0]["name"], stages[6]["settings"]["depth"]) == (
        24,
        "clean query",
        300,
    )


def test_an_unknown_preset_is_told_with_the_nearest_one(ekphory):
    assert "Did you mean 'accurate'?" in ekphory.failure("pipeline", "show", "acurate")
