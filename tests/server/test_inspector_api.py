"""What the inspector's page is told by the server."""

from itertools import pairwise

import pytest
from tests.server.running import models

from ekphory.retrieval.presets import PRESETS

CHAIN = "Where was the father of Rembrandt's wife born?"


@pytest.fixture
def examined(server, project):
    """Examines a search in the test's project."""

    def examine(query, *, status=200, **settings):
        asked = {**project, "query": query, **settings}
        return server.answer("/inspect/search", asked, status=status)

    return examine


@pytest.fixture
def outlined(server, project):
    """Counts the memories of the test's project."""
    return lambda **selected: server.answer("/inspect/outline", {**project, **selected})


@pytest.mark.slow
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_stage_of_every_preset_is_told(say, examined, preset):
    say("I drink tea", "It rained")
    stages = examined("tea?", preset=preset)["stages"]
    assert {each["number"] for each in stages} == set(range(16))
    used = [each for each in stages if each["status"] != "absent"]
    assert [each["name"] for each in used[1:]] == [each.name for each in PRESETS[preset].stages]
    assert all(each["purpose"] for each in used[1:])
    assert all(one["begins"] <= other["begins"] for one, other in pairwise(used))


def test_a_hit_comes_with_its_numbers_and_reasons(say, examined):
    say("I drink tea", metadata={"topic": "drinks"})
    (hit,) = examined("tea")["hits"]
    assert hit["memory"]["metadata"] == {"topic": "drinks"}
    assert hit["memory"]["age"] == "just now"
    assert 0 <= hit["score"] <= 1
    assert {"cosine", "lexical", "fused", "probability"} <= set(hit["scores"])
    assert [each["kind"] for each in hit["reasons"]][:2] == ["meaning", "words"]


def test_the_empty_question_gives_the_newest_and_runs_no_stage(say, examined):
    say("first", "second")
    answer = examined("")
    assert [hit["text"] for hit in answer["hits"]] == ["second", "first"]
    assert {each["status"] for each in answer["stages"][1:]} == {"skipped", "absent"}
    assert answer["hits"][0]["reasons"][0]["kind"] == "newest"


def test_the_agents_events_name_memories_that_are_told_too(say, examined):
    say("Rembrandt's wife was Saskia van Uylenburgh", "Saskia's father was Rombertus")
    answer = examined(CHAIN, agent_mode=True, top_k=1)
    told = {each["memory"]["id"] for each in answer["hits"]}
    told |= {each["id"] for each in answer["others"]}
    searches = [each["data"] for each in answer["agent"]["events"] if "memory_ids" in each["data"]]
    assert searches
    assert {each for search in searches for each in search["memory_ids"]} <= told


def test_a_search_of_the_inspector_leaves_no_trace(server, say, examined):
    def kept():
        return server.service._database.read("SELECT count(*) FROM traces")[0][0]

    say("tea")
    before = kept()
    examined("tea")
    assert kept() == before


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"preset": "fats"}, "Did you mean 'fast'?"),
        ({"filter": "type ="}, "filter"),
        ({"pools": ["nowhere"]}, "no such pool"),
        ({"min_score": 2}, "min_score"),
        ({"time": "filter", "preset": "rrf"}, "reads no time"),
    ],
)
@pytest.mark.usefixtures("made_project")
def test_what_cannot_be_searched_is_refused_in_words(examined, settings, said):
    assert said in examined("tea", status=422, **settings)["detail"]["message"]


@pytest.mark.usefixtures("made_project")
def test_memories_are_counted_by_pool_type_importance_and_time_within_the_filters(outlined, say):
    empty = outlined()
    assert (empty["total"], empty["bars"], empty["unit"]) == (0, [], None)
    say("old", timestamp="2020-01-01T00:00:00Z")
    say("new", timestamp="2026-06-01T00:00:00Z")
    outline = outlined()
    assert (outline["total"], outline["unit"]) == (2, "quarter")
    assert sum(outline["types"].values()) == sum(outline["importance"]) == 2
    assert outline["pools"] == {"agent_memory": 2}
    assert sum(sum(bar["counts"].values()) for bar in outline["bars"]) == 2
    assert outline["bars"][0]["begins"].startswith("2020-01-01")
    # A count is of what the other filters let through.
    narrow = outlined(since="2026-01-01", pool="reference_code")
    assert (narrow["total"], narrow["pools"], narrow["bars"]) == (0, {"agent_memory": 1}, [])


@pytest.mark.usefixtures("made_project")
def test_memories_are_counted_and_chosen_by_what_they_name(server, project, outlined, say):
    say("Ann met Anna", metadata={"entities": "person: Ann; person: Anna"})
    say("Anna is in Bonn", metadata={"entities": "person: Anna; place: Bonn"})
    say("no entity of a capture", metadata={"entities": "whatever: this"})
    say("nobody is here")
    counts = {"person: Anna": 2, "person: Ann": 1, "place: Bonn": 1}
    assert outlined()["entities"] == counts
    narrow = outlined(entity="person: Ann")
    assert (narrow["total"], narrow["entities"]) == (1, counts)
    assert outlined(text="bonn")["entities"] == {"person: Anna": 1, "place: Bonn": 1}
    memories = server.answer("/inspect/memories", {**project, "entity": "person: Ann"})["memories"]
    assert [each["text"] for each in memories] == ["Ann met Anna"]


def test_memories_come_page_by_page_in_order(server, project, say):
    for day in range(1, 6):
        say(f"day {day}", timestamp=f"2026-01-0{day}T00:00:00Z")
    asked = {**project, "page_size": 2, "page_num": 1, "order": "oldest", "since": "2026-01-02"}
    memories = server.answer("/inspect/memories", asked)["memories"]
    assert [each["text"] for each in memories] == ["day 4", "day 5"]


@pytest.mark.parametrize("bound", [{"org": "home"}, {"org": "home", "project": "chat"}])
def test_the_health_of_all_is_not_for_a_bound_key(server, bound):
    key = server.service.keys.create(**bound).text
    headers = {"Authorization": f"Bearer {key}"}
    assert server.client.get("/api/v2/inspect/health", headers=headers).status_code == 403


def test_health_judges_and_counts(server, say):
    say("tea")
    health = server.client.get("/api/v2/inspect/health").json()
    assert health["healthy"] is True
    assert {"contents", "index", "scopes"} <= {each["subject"] for each in health["findings"]}
    assert health["numbers"]["memories"] >= 1


def test_the_page_forbids_everything_that_it_does_not_need(server):
    page = server.client.get("/inspect/", follow_redirects=True)
    assert page.url.path == "/inspect"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_and_its_files_need_no_key(serving):
    kinds = {
        "/inspect": "text/html; charset=utf-8",
        "/inspect/app.js": "text/javascript; charset=utf-8",
        "/inspect/scheme.css": "text/css; charset=utf-8",
        "/inspect/icon.svg": "image/svg+xml",
    }
    server = serving(require_key=True)
    for path, kind in kinds.items():
        headers = server.client.get(path).headers
        assert headers["Content-Type"] == kind
        assert "Content-Security-Policy" in headers


@pytest.mark.parametrize("name", ["__init__.py", "..%2fapp.py", "nothing.js", "%00", "a" * 500])
def test_nothing_but_the_pages_files_is_given(server, name):
    assert server.client.get(f"/inspect/{name}").status_code in (404, 422)


def test_the_service_says_which_preset_a_search_takes_that_names_none(serving, project):
    server = serving(used=models(preset=PRESETS["fast"]))
    server.answer("/projects", project, status=201)
    shown = server.client.get("/api/v2/inspect/presets").json()
    assert [each["name"] for each in shown if each["default"]] == ["fast"]
    answer = server.answer("/inspect/search", {**project, "query": "tea"})
    assert answer["preset"] == "fast"


def test_decisions_are_listed_with_both_memories_and_taken_back(server, project, say):
    say("The bell rings at nine", "The bell rings at ten")
    found = server.answer("/inspect/memories", {**project, "order": "written"})["memories"]
    nine, ten = (each["id"] for each in found)
    made = server.answer("/inspect/supersede", {**project, "old": nine, "by": ten})
    (shown,) = server.answer("/inspect/revisions", project)["revisions"]
    assert (shown["id"], shown["kind"], shown["state"]) == (made["id"], "replaces", "active")
    assert (shown["older"]["text"], shown["newer"]["text"]) == (
        "The bell rings at nine",
        "The bell rings at ten",
    )
    undone = server.answer("/inspect/unsupersede", {**project, "revision": made["id"]})
    assert undone == {"undone": 1}
    assert server.answer("/inspect/revisions", project) == {"revisions": []}
