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
    assert (state["store"], state["healthy"], state["repaired"]) == (
        str(kitchen.store),
        True,
        False,
    )
    assert state["health"].keys() == {
        "memories", "history", "vectors", "fragments", "small_fragments", "versions", "bytes",
        "vector_index_rows", "orphaned_scopes", "upkeep_failure",
    }  # fmt: skip


def test_a_repair_merges_the_files_and_keeps_every_memory(kitchen):
    assert kitchen.json("doctor")["health"]["fragments"] == 3
    repaired = kitchen.json("doctor", "--repair")
    assert (repaired["repaired"], repaired["health"]["fragments"]) == (True, 1)
    assert kitchen.json("list")["total"] == 3


def test_a_directory_without_a_store_is_told_and_left_alone(recollect, tmp_path):
    (tmp_path / "photos").mkdir()
    assert "there is no store" in recollect.failure("doctor", "--store", str(tmp_path / "photos"))
    assert list((tmp_path / "photos").iterdir()) == []
