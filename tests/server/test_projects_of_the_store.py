"""What the library wrote is listed, searched and shown by the server."""

import pytest
from memmachine_client import MemMachineClient
from tests.server.running import running_server

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

HOME = {"org_id": "default", "project_id": "home"}
DEFAULT = {"org_id": "default", "project_id": "default"}
APP = {"org_id": "acme", "project_id": "github.com/acme/app"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server on a store that the library wrote."""
    path = tmp_path_factory.mktemp("written") / "store"
    for text, scope in [
        ("green tea at home", {"project": "home", "user": "mara"}),
        ("black tea anywhere", {}),
        ("tea for the whole app", {"org": "acme", "project": "github.com/acme/app"}),
    ]:
        with Memory(path, embedder=HashEmbedder(), **scope) as memory:
            memory.add(text)
    with running_server(path) as running:
        yield running


def found(served, **asked):
    answer = served.answer("/memories/search", {"query": "tea", **asked})
    episodes = answer["content"]["episodic_memory"]
    both = episodes["long_term_memory"]["episodes"] + episodes["short_term_memory"]["episodes"]
    return [each["content"] for each in both]


def test_the_user_of_what_the_library_wrote_is_shown_and_found_by_the_clients_metadata(served):
    with MemMachineClient(base_url=served.url, max_retries=0) as client:
        project = client.get_project(**HOME)
        mara, ben = (project.memory(metadata={"user_id": name}) for name in ("mara", "ben"))
        (found,) = mara.search("tea").content.episodic_memory.short_term_memory.episodes
        assert (found.content, found.metadata) == ("green tea at home", {"user_id": "mara"})
        (listed,) = mara.list().content.episodic_memory
        assert listed.metadata == listed.filterable_metadata == {"user_id": "mara"}
        assert ben.list().content.episodic_memory == []


def test_projects_that_the_library_made_are_listed(served):
    assert served.answer("/projects/list") == [APP, DEFAULT, HOME]


@pytest.mark.parametrize(
    ("scope", "texts"),
    [
        (HOME, ["green tea at home"]),
        (DEFAULT, ["black tea anywhere"]),
        (APP, ["tea for the whole app"]),
    ],
    ids=["without an organisation", "without both", "with a name that has slashes"],
)
def test_what_the_library_wrote_is_found_and_counted_in_its_project(served, scope, texts):
    assert found(served, **scope) == texts
    assert served.answer("/projects/episode_count/get", scope) == {"count": 1}
    assert served.answer("/inspect/outline", scope)["total"] == 1


@pytest.mark.parametrize(
    ("asked", "status", "named"),
    [
        ({}, 200, '"org_id": "default", "project_id": "default"'),
        ({"project_id": "home"}, 404, '"org_id": "default", "project_id": "home"'),
        ({"org_id": "default"}, 404, '"org_id": "default", "project_id": "default"'),
    ],
    ids=["neither", "a project alone", "an organisation alone"],
)
def test_a_request_that_names_no_org_or_project_and_finds_nothing_is_told_what_python_wrote(
    served, asked, status, named
):
    answer = served.post("/memories/search", {"query": "tea", **asked})
    assert answer.status_code == status
    told = answer.json()["hint"] if status == 200 else answer.json()["detail"]["message"]
    assert told.endswith(f" What Python or the command line wrote is found with {named}.")


@pytest.mark.parametrize("asked", [{}, {"project_id": "home"}, {"org_id": "acme"}])
def test_what_a_key_does_not_reach_is_not_named(served, asked):
    key = served.service.keys.create(org="acme", rights="read").text
    assert "default" not in served.post("/memories/search", {"query": "tea", **asked}, key=key).text


def test_a_key_of_another_organisation_does_not_see_what_names_none(served):
    key = served.service.keys.create(org="acme", rights="read").text
    assert served.answer("/projects/list", key=key) == [APP]
    assert served.refusal("/memories/search", {"query": "tea", **HOME}, key=key)[0] == 403
    # The organisation "default" does not open others.
    assert served.refusal("/memories/search", {"query": "tea", **HOME, "org_id": "home"})[0] == 404


def test_a_project_that_does_not_exist_is_not_found_and_no_read_makes_it(served):
    named = {"org_id": "acme", "project_id": "ap"}
    where = "Choose one that the inspector, or POST /api/v2/projects/list, lists."
    told = (404, f"There is no project 'ap' of organisation 'acme'. {where}")
    for path in ("/memories/search", "/inspect/search"):
        assert served.refusal(path, {"query": "tea", **named}) == told
    for path in ("/memories/list", "/inspect/outline", "/inspect/searches"):
        assert served.refusal(path, named) == told
    for path in ("/projects/get", "/projects/delete", "/projects/episode_count/get"):
        assert served.refusal(path, named) == told
    for path in ("extraction", "extraction/retry", "set_id/list"):
        assert served.refusal(f"/memories/semantic/{path}", named) == told
    assert served.refusal("/inspect/searches/clear", named) == told


def test_a_set_can_be_made_ahead_of_its_project(served):
    ahead = {"org_id": "acme", "project_id": "ahead"}
    made = {"metadata_tags": ["user_id"], "set_metadata": {"user_id": "mara"}}
    set_id = served.answer("/memories/semantic/set_id/get", ahead | made)["set_id"]
    served.answer("/projects", ahead, status=201)
    listed = served.answer("/memories/semantic/set_id/list", ahead)["sets"]
    served.answer("/projects/delete", ahead, status=204)
    assert set_id in {each["id"] for each in listed}


def test_an_empty_project_says_how_to_fill_it(served):
    served.answer("/projects", {"org_id": "acme", "project_id": "new"}, status=201)
    empty = {"org_id": "acme", "project_id": "new"}
    for path in ("/memories/search", "/memories/list", "/projects/episode_count/get"):
        asked = empty | {"query": ""} if path == "/memories/search" else empty
        hint = served.answer(path, asked)["hint"]
        assert hint.startswith("Project 'new' of organisation 'acme' holds no memories yet.")
        assert "`ekphory import FILE --store URL --org ORG --project PROJECT`" in hint
    assert served.answer("/inspect/searches", empty)["total"] == 0
    assert served.answer("/inspect/searches/clear", empty) == {"cleared": 0}
    assert served.answer("/memories/semantic/extraction/retry", empty) == {"waiting": 0}
    served.answer("/projects/delete", empty, status=204)


def test_a_project_that_the_library_made_stays_when_its_last_memory_is_forgotten(served):
    last = {"org_id": "acme", "project_id": "last"}
    with Memory(served.store, embedder=HashEmbedder(), org="acme", project="last") as memory:
        memory.add("the last one", id="last")
    served.answer("/inspect/forget", {**last, "id": "last"})
    assert served.answer("/inspect/outline", last)["total"] == 0
    served.answer("/projects/delete", last, status=204)


def test_deleting_what_is_not_there_makes_no_project(served):
    missing = {"org_id": "acme", "project_id": "missing"}
    asked = {**missing, "episodic_id": "x"}
    assert served.refusal("/memories/episodic/delete", asked)[0] == 404
    assert missing not in served.answer("/projects/list")


def test_parts_of_a_project_that_the_library_made_can_be_switched(served):
    served.answer("/memory/episodic/config", {**HOME, "enabled": False}, status=204)
    assert served.answer("/memory/episodic/config/get", HOME)["enabled"] is False
    served.answer("/memory/episodic/config", {**HOME, "enabled": True}, status=204)


def test_the_servers_address_leads_to_the_inspector(served):
    answer = served.client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "inspect")
