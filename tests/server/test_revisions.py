"""What supersedes what, over REST."""

import pytest

ALSO_OVER_A_CLUSTER = True


@pytest.fixture
def moved(say):
    """The ids of what somebody said of where they live, the older first."""
    (rome,) = say("I live in Rome", timestamp="2024-01-05T10:00:00Z")
    (bonn,) = say("I live in Bonn", timestamp="2025-09-05T10:00:00Z")
    return rome, bonn


@pytest.fixture
def ranked(server, project):
    """The ids that the inspector's search gives, best first."""

    def search(query):
        hits = server.answer("/inspect/search", {**project, "query": query})["hits"]
        return [hit["memory"]["id"] for hit in hits], hits

    return search


def test_a_memory_is_superseded_and_the_decision_taken_back(server, project, moved, ranked):
    rome, bonn = moved
    before, _ = ranked("I live in Rome")
    made = server.answer("/memories/supersede", {**project, "old": rome, "by": bonn})
    assert (made["older"], made["newer"], made["kind"]) == (rome, bonn, "replaces")
    after, hits = ranked("I live in Rome")
    assert after == before[::-1]
    assert hits[1]["reasons"][0]["sentence"] == (
        "Superseded: since 2025-09-05 hit 1 holds in its place."
    )
    undone = server.answer("/memories/unsupersede", {**project, "revision": made["id"]})
    assert undone == {"undone": 1}
    assert ranked("I live in Rome")[0] == before


@pytest.mark.parametrize("memory", ["long_term", "short_term"])
def test_an_episode_that_was_found_says_in_its_metadata_what_holds_in_its_place(
    server, project, moved, found, memory
):
    rome, bonn = moved
    decided = {**project, "old": rome, "by": bonn, "at": "2025-08-01T00:00:00Z"}
    server.answer("/memories/supersede", decided)
    if memory == "long_term":
        off = {**project, "enabled": False}
        server.answer("/memory/episodic/short_term/config", off, status=204)
    for query in ("I live in Rome", "tea"):
        episodes = found(query)["episodic_memory"][f"{memory}_memory"]["episodes"]
        told = {each["uid"]: each["metadata"] for each in episodes}
        assert told[bonn] == {}
        assert told[rome] == {
            "superseded_by": bonn,
            "superseded_since": "2025-08-01T00:00:00+00:00",
        }


def test_an_episode_that_is_listed_says_in_its_metadata_what_holds_in_its_place(
    server, project, moved
):
    rome, bonn = moved

    def listed():
        episodes = server.answer("/memories/list", project)["content"]["episodic_memory"]
        return {each["uid"]: (each["metadata"], each["filterable_metadata"]) for each in episodes}

    decided = {**project, "old": rome, "by": bonn, "at": "2025-08-01T00:00:00Z"}
    made = server.answer("/memories/supersede", decided)
    told = {"superseded_by": bonn, "superseded_since": "2025-08-01T00:00:00+00:00"}
    assert listed() == {rome: (told, {}), bonn: ({}, {})}
    server.answer("/memories/unsupersede", {**project, "revision": made["id"]})
    assert listed() == {rome: ({}, {}), bonn: ({}, {})}


def test_all_decisions_of_a_batch_are_taken_back_at_once(server, project, moved, ranked):
    rome, bonn = moved
    before, _ = ranked("I live in Rome")
    made = server.answer("/memories/supersede", {**project, "old": rome, "by": bonn})
    assert ranked("I live in Rome")[0] == before[::-1]
    undone = server.answer("/memories/unsupersede", {**project, "batch": made["batch"]})
    assert undone == {"undone": 1}
    assert ranked("I live in Rome")[0] == before


def test_a_timeline_tells_the_states_in_order(server, project, moved):
    rome, bonn = moved
    server.answer("/memories/supersede", {**project, "old": rome, "by": bonn, "at": 1_757_000_000})
    states = server.answer("/memories/timeline", {**project, "topic": "I live"})["states"]
    assert [state["uid"] for state in states] == [rome, bonn]
    assert states[0]["until"] == "2025-09-04T15:33:20Z"
    assert states[1]["until"] is None


def test_a_profile_has_its_evidence(server, project):
    said = {"types": ["semantic"], "messages": [{"content": "I like tea"}]}
    (uid,) = [each["uid"] for each in server.answer("/memories", {**project, **said})["results"]]
    (fact,) = server.answer("/memories/profile", project)["profile"]
    assert (fact["text"], fact["evidence"]) == ("I like tea", [uid])


def test_there_are_no_conflicts_where_nothing_was_compared(server, project, moved):
    assert server.answer("/memories/conflicts", project) == {"conflicts": []}
    assert server.answer("/memories/settle", project) == {"settled": True}


def test_what_cannot_be_decided_is_refused(server, project, moved):
    rome, _ = moved
    status, message = server.refusal("/memories/supersede", {**project, "old": rome, "by": rome})
    assert (status, "is the same memory" in message) == (422, True)
    status, _ = server.refusal("/memories/supersede", {**project, "old": rome, "by": "nothing"})
    assert status == 404
    status, message = server.refusal("/memories/unsupersede", project)
    assert (status, "give revision or batch" in message) == (422, True)


def test_a_project_that_is_not_there_has_no_timeline(server):
    nowhere = {"org_id": "nobody", "project_id": "nowhere", "topic": "home"}
    assert server.refusal("/memories/timeline", nowhere)[0] == 404
