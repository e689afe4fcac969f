"""What a key reaches of the inspector's records, counts and changes."""

import pytest

from ekphory.memory import Memory


@pytest.fixture
def recorded(server, project, say, monkeypatch):
    """Records one search of the server."""
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", "50")
    say("I drink tea")
    server.answer("/memories/search", {**project, "query": "tea?"})
    return project


def queries(server, project, **settings):
    found = server.answer("/inspect/searches", project, **settings)
    return [each["query"] for each in found["searches"]]


def key_for(server, project, rights="read"):
    names = {"org": project["org_id"], "project": project["project_id"]}
    return server.service.keys.create(**names, rights=rights).text


def test_a_recorded_search_is_shown_to_its_own_project_alone(server, recorded):
    own, other = key_for(server, recorded), server.service.keys.create(org="elsewhere").text
    assert queries(server, recorded, key=own) == ["tea?"]
    number = server.answer("/inspect/searches", recorded)["searches"][0]["id"]
    asked = {"org_id": "elsewhere", "project_id": "chat", "number": number}
    assert server.refusal("/inspect/searches", recorded, key=other)[0] == 403
    assert server.refusal("/inspect/searches/get", asked, key=other)[0] == 404


def test_a_search_of_a_scope_without_names_is_shown_to_unbound_callers_alone(server, recorded):
    default = {"org_id": "default", "project_id": "default"}
    with Memory(server.store, embedder=server.service.models.embedder) as memory:
        memory.search("tea of all?")
    assert queries(server, default) == ["tea of all?"]
    server.answer("/projects", default, status=201)
    assert queries(server, default, key=key_for(server, default)) == []


def test_an_opened_record_has_the_hits_and_stages_of_then(server, recorded):
    number = server.answer("/inspect/searches", recorded)["searches"][0]["id"]
    opened = server.answer("/inspect/searches/get", {**recorded, "number": number})
    assert [hit["text"] for hit in opened["hits"]] == ["I drink tea"]
    assert opened["recorded"]["surface"] == "server"
    assert {"fuse", "cut"} <= {stage["name"] for stage in opened["stages"]}
    assert opened["gone"] == 0


def test_records_go_with_their_project(server, recorded):
    server.answer("/projects/delete", recorded, status=204)
    server.answer("/projects", recorded, status=201)
    assert queries(server, recorded) == []


def test_records_are_cleared_in_a_scope_that_no_project_was_made_for(server, monkeypatch):
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", "50")
    with Memory(server.store, embedder=server.service.models.embedder, project="bare") as memory:
        memory.search("tea of nobody?")
    bare = {"org_id": "default", "project_id": "bare"}
    assert server.answer("/inspect/searches/clear", {**bare, "text": "coffee"}) == {"cleared": 0}
    assert server.answer("/inspect/searches/clear", bare) == {"cleared": 1}


def test_what_is_taken_back_stays_in_its_own_project(server, project, say):
    say("I drink tea")
    (memory,) = server.answer("/inspect/memories", project)["memories"]
    undo = server.answer("/inspect/forget", {**project, "id": memory["id"]})["undo"]
    elsewhere = {"org_id": "elsewhere", "project_id": "chat", "undo": undo}
    assert server.refusal("/inspect/take_back", elsewhere)[0] == 422
    server.answer("/inspect/take_back", {**project, "undo": undo})
    assert server.answer("/inspect/memories", project)["memories"] == [memory]


def test_what_forget_did_not_give_is_refused_in_one_sentence(server, project):
    told = "undo={}: its id must be as `forget` in this project gave it. Send it back unchanged"
    assert server.refusal("/inspect/take_back", {**project, "undo": {}}) == (422, told)


def test_the_growth_that_a_bound_key_sees_is_of_its_project(server, project, say):
    say("I drink tea", "It rained")
    headers = {"Authorization": f"Bearer {key_for(server, project)}"}
    growth = server.client.get("/api/v2/inspect/growth", headers=headers).json()
    assert growth["total"] == 2
    assert list(growth["counts"]) == [f"{project['org_id']} / chat"]
