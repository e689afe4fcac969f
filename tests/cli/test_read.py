def ids(listed):
    return [memory["id"] for memory in listed["memories"]]


def test_the_newest_memory_is_listed_first(kitchen):
    listed = kitchen.json("list")
    assert ids(listed) == ["knives", "sink", "oven"]
    assert (listed["total"], listed["offset"], listed["order"]) == (3, 0, "newest")


def test_a_page_of_the_list_says_how_to_go_on(kitchen):
    result = kitchen.run("list", "--limit", "1", "--offset", "1", "--order", "oldest")
    assert [line.strip() for line in result.stdout.splitlines()] == [
        "2  Ben: Anna repaired the sink",
        "2026-03-02 00:00Z · episodic · importance 0.9 · id sink",
    ]
    assert result.stderr == "2 to 2 of 3 memories; go on with --offset 2.\n"


def test_a_filter_narrows_the_list(kitchen):
    assert ids(kitchen.json("list", "--filter", "producer = 'Ben'")) == ["sink"]


def test_a_list_without_a_match_is_empty_and_no_error(kitchen):
    result = kitchen.run("list", "--filter", "type = 'procedural'")
    assert (result.exit_code, result.stderr) == (0, "None shown of 0 memories.\n")


def test_an_unknown_order_is_refused(kitchen):
    assert kitchen.failure("list", "--order", "random") == (
        "order='random': no such order. Choose one of newest, oldest, written"
    )


def test_one_memory_is_shown_whole(kitchen):
    shown = dict(
        line.rstrip().split(maxsplit=1) for line in kitchen.run("get", "sink").stdout.splitlines()
    )
    assert shown.pop("created_at") > "2026"
    assert shown == {
        "id": "sink",
        "text": "Anna repaired the sink",
        "at": "2026-03-02T00:00:00+00:00",
        "pool": "agent_memory",
        "type": "episodic",
        "importance": "0.9",
        "producer": "Ben",
    }


def test_a_missing_id_is_an_error(kitchen):
    assert kitchen.failure("get", "attic") == (
        "id='attic': no such memory in this scope. "
        "List the scope's ids with `ekphory list`, or bind another scope."
    )


def test_an_id_of_another_scope_is_missing(ekphory):
    ekphory.run("add", "secret", "--id", "s", "--project", "kitchen")
    assert "no such memory" in ekphory.failure("get", "s", "--project", "garden")


def test_the_history_holds_every_version_newest_first(kitchen):
    kitchen.run("update", "oven", "--text", "The oven works again")
    history = kitchen.json("history", "oven")
    assert [(each["id"], each["text"]) for each in history["versions"]] == [
        ("oven", "The oven works again"),
        ("oven~1", "The oven is broken"),
    ]
    assert [
        line.split()[:2] for line in kitchen.run("history", "oven").stdout.splitlines()[::2]
    ] == [
        ["2", "now"],
        ["1", "was"],
    ]


def test_a_misspelt_store_is_told_and_not_created(ekphory, tmp_path):
    sentence = ekphory.failure("list", "--store", str(tmp_path / "typo"))
    assert sentence.endswith(
        "there is no store. Make one with `ekphory add` or `ekphory import`, "
        "or name another with --store"
    )
    assert not (tmp_path / "typo").exists()
