def test_an_update_says_where_the_earlier_version_is(kitchen):
    result = kitchen.run("update", "oven", "--text", "The oven works again")
    assert result.stdout == "Updated oven; the earlier version is kept as oven~1\n"


def test_an_update_changes_only_what_is_given(kitchen):
    before = kitchen.json("get", "sink")
    after = kitchen.json("update", "sink", "--importance", "0.1", "--metadata", "floor=2")
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"importance", "metadata", "created_at", "supersedes"}
    assert (after["importance"], after["metadata"]) == (0.1, {"floor": 2})


def test_an_update_of_nothing_is_refused(kitchen):
    assert kitchen.failure("update", "oven") == (
        "changes={}: nothing to change. Give at least one field"
    )


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


def test_forgetting_neither_by_id_nor_by_filter_is_refused(kitchen):
    assert kitchen.failure("forget") == (
        "id=None: give an id or a filter, not both. Name what to forget"
    )


def test_forgetting_what_is_not_there_is_an_error(kitchen):
    assert "no such memory" in kitchen.failure("forget", "attic")
