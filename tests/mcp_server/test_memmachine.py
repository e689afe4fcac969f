"""MemMachine's three tools under their own names."""

import itertools

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def agent(offered):
    return offered("memmachine", org="home", project="chat", user=f"mara {next(_numbers)}")


def episodes(agent, query, **settings):
    data = agent.data("search_memory", query=query, **settings)
    assert data["status"] == 0
    assert data["content"]["episodic_memory"]["short_term_memory"] == {
        "episodes": [],
        "episode_summary": [""],
    }
    return data["content"]["episodic_memory"]["long_term_memory"]["episodes"]


def test_they_have_memmachines_names(agent):
    assert list(agent.tools()) == ["add_memory", "search_memory", "delete_memory"]


def test_a_memory_is_added_found_and_deleted(agent):
    added = agent.call("add_memory", content="I love pizza")
    assert added == ({"status": 200, "message": "Success"}, ["Success"])
    (episode,) = episodes(agent, "What food?", top_k=5)
    assert (episode["content"], episode["producer_role"]) == ("I love pizza", "user")
    assert episode["producer_id"].startswith("mara ")
    agent.call("delete_memory", episodic_memory_uids=[episode["uid"]])
    assert episodes(agent, "What food?") == []


def test_what_is_found_comes_with_an_escaped_block(agent):
    agent.call("add_memory", content="I <b>love</b> pizza")
    _, (block, _) = agent.call("search_memory", query="pizza")
    assert "I &lt;b&gt;love&lt;/b&gt; pizza" in block


def test_all_are_deleted_or_none(agent):
    agent.call("add_memory", content="I love pizza")
    (episode,) = episodes(agent, "pizza")
    told = agent.refusal("delete_memory", episodic_memory_uids=[episode["uid"], "nothing"])
    assert "no such memory" in told
    assert len(episodes(agent, "pizza")) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({}, "episodic_memory_uids="), ({"semantic_memory_uids": ["7"]}, "Feature not found")],
)
def test_a_deletion_that_names_nothing_is_refused(agent, arguments, told):
    assert agent.refusal("delete_memory", **arguments).startswith(told)


def test_an_empty_scope_is_the_configured_one(agent):
    agent.call("add_memory", content="I love pizza", org_id="", proj_id="", user_id="")
    assert len(episodes(agent, "pizza", org_id="")) == 1


@pytest.mark.parametrize("name", ["org_id", "proj_id", "user_id"])
def test_any_other_scope_is_refused(agent, name):
    told = agent.refusal("add_memory", content="I love pizza", **{name: "other"})
    assert told.startswith(f"{name}='other': the scope comes from the server's configuration")
