"""The tools about what changed, of the set `agents`."""

import itertools

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def agent(offered):
    return offered("agents", user=f"changing {next(_numbers)}")


@pytest.fixture
def moved(agent):
    for name, at, text in (
        ("rome", "2024-01-05", "Mara lives in Rome"),
        ("bonn", "2025-09-05", "Mara lives in Bonn"),
    ):
        agent.call("remember", text=text, id=name, at=at, type="semantic")
    return agent


def test_the_set_has_the_six_tools_and_ten_more(agent):
    assert list(agent.tools())[6:] == [
        "supersede", "unsupersede", "conflicts", "timeline", "profile",
        "learn_mistake", "promote", "capture", "related", "remember_many",
    ]  # fmt: skip


def test_recall_tells_what_is_superseded_in_its_data_and_its_text(moved):
    made = moved.data("supersede", old="rome", by="bonn")["revision"]
    _, texts = moved.call("recall", query="Mara lives in Rome")
    first, second = moved.data("recall", query="Mara lives in Rome")["hits"]
    assert (first["id"], second["id"], second["superseded_by"]) == ("bonn", "rome", "bonn")
    assert 'superseded="since 2025-09-05"' in texts[0]
    assert moved.data("unsupersede", revision=made["id"]) == {"undone": 1}
    first, second = moved.data("recall", query="Mara lives in Rome")["hits"]
    assert (first["id"], "superseded_by" in second) == ("rome", False)


def test_a_list_and_the_recent_memories_tell_what_is_superseded(moved):
    moved.call("supersede", old="rome", by="bonn")
    data, texts = moved.call("list", order="oldest")
    rome, bonn = data["memories"]
    assert (rome["superseded_by"], rome["since"][:10]) == ("bonn", "2025-09-05")
    assert "superseded_by" not in bonn
    assert 'superseded="since 2025-09-05"' in texts[0]
    recent = moved.portal.call(moved.client.read_resource, "ekphory://recent").contents[0].text
    assert recent.count('superseded="since 2025-09-05"') == 1


def test_a_timeline_and_a_profile_are_data(moved):
    moved.call("supersede", old="rome", by="bonn")
    states = moved.data("timeline", topic="where Mara lives")["states"]
    assert [(state["id"], state.get("until", "")[:10]) for state in states] == [
        ("rome", "2025-09-05"), ("bonn", ""),
    ]  # fmt: skip
    _, texts = moved.call("timeline", topic="where Mara lives")
    assert ">Mara lives in Rome</memory>" in texts[0]
    assert texts[1:] == ["Index 1: 2024-01-05 to 2025-09-05", "Index 2: 2025-09-05 to now"]
    _, texts = moved.call("profile")
    assert ">Mara lives in Bonn</memory>" in texts[0]
    (fact,) = moved.data("profile")["profile"]
    assert (fact["text"], fact["evidence"]) == ("Mara lives in Bonn", ["bonn"])
    assert moved.data("conflicts") == {"conflicts": []}


def test_what_cannot_be_decided_is_refused_with_a_remedy(moved):
    assert "is the same memory" in moved.refusal("supersede", old="rome", by="rome")
    assert "there is none in this scope" in moved.refusal("unsupersede", revision="nothing")
