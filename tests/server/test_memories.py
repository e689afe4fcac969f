"""The REST paths as such: statuses, shapes and what the released client does not show."""

import gzip

import pytest
from tests.server.running import running_server

from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

ALSO_OVER_A_CLUSTER = True


def test_memories_of_no_project_go_to_the_universal_one(server):
    server.answer("/memories", {"messages": [{"content": "for everyone"}]})
    named = {"org_id": "universal", "project_id": "universal"}
    assert server.answer("/projects/get", named)["description"] == ""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-05-01T10:00:00+02:00", "2026-05-01T08:00:00Z"),
        ("2026-05-01T10:00:00", "2026-05-01T10:00:00Z"),
        (1_777_629_600, "2026-05-01T10:00:00Z"),
        (1_777_629_600_000, "2026-05-01T10:00:00Z"),
    ],
)
def test_a_timestamp_is_read_in_every_form(say, found, given, kept):
    say("tea", timestamp=given)
    assert found("tea")["episodic_memory"]["short_term_memory"]["episodes"][0]["created_at"] == kept


@pytest.mark.parametrize("given", ["yesterday", 1e300, -1e300, True, [], 10**400])
def test_a_timestamp_that_is_none_is_refused(server, project, given):
    body = {**project, "messages": [{"content": "tea", "timestamp": given}]}
    status, message = server.refusal("/memories", body)
    assert status == 422
    assert message.startswith("Invalid request payload: messages.0.timestamp: ")


def test_a_kind_of_memory_that_is_not_asked_for_is_left_out(say, found):
    say("tea")
    assert list(found("tea", types=["episodic"])) == ["episodic_memory"]
    assert list(found("tea", types=["semantic"])) == ["semantic_memory"]


def test_a_message_of_one_kind_has_that_type(server, project):
    message = {"types": ["semantic"], "messages": [{"content": "I like tea"}]}
    server.answer("/memories", {**project, **message})
    listed = server.answer("/memories/list", {**project, "filter": "type = 'semantic'"})
    assert [each["content"] for each in listed["content"]["episodic_memory"]] == ["I like tea"]


def test_a_threshold_above_every_score_leaves_nothing(server, project, say, found):
    say("tea")
    server.answer("/memory/episodic/short_term/config", {**project, "enabled": False}, status=204)
    episodic = found("tea", score_threshold=5)["episodic_memory"]
    assert episodic["long_term_memory"]["episodes"] == []


def test_the_trace_comes_only_on_request_and_can_always_be_read(server, say, project):
    say("tea")
    body = {**project, "query": "tea"}
    plain = server.post("/memories/search", body)
    assert "retrieval_trace" not in plain.json()["content"]
    for asked, headers in (
        (body | {"retrieval_trace": True}, {}),
        (body, {"X-Retrieval-Trace": "true"}),
    ):
        trace = server.answer("/memories/search", asked, **headers)["content"]["retrieval_trace"]
        assert (trace["agent"], trace["memory_search_called"]) == ("MemMachineSearch", 1)
    kept = server.client.get(f"/api/v2/traces/{plain.headers['X-Trace-ID']}").json()
    assert kept["searches"][0]["preset"] == "balanced"
    assert "tea" not in str(kept)
    assert server.client.get("/api/v2/traces/none").status_code == 404


def test_the_agent_follows_a_question_and_its_kept_trace_holds_no_text(server, say, project):
    say("Rembrandt was married to Saskia.", "Saskia was born in Leeuwarden.")
    asked = {"query": "Where was Rembrandt's wife born?", "agent_mode": True}
    answered = server.post("/memories/search", {**project, **asked, "retrieval_trace": True})
    trace = answered.json()["content"]["retrieval_trace"]
    assert (trace["agent"], trace["provider"]) == ("RetrievalAgent", "local")
    assert trace["orchestrator_completed"] is True
    assert trace["stage_results"][0]["stage_result"] == "Saskia"
    assert trace["stage_result_memory_returned"] is False
    kept = server.client.get(f"/api/v2/traces/{trace['trace_id']}").json()
    assert kept["orchestrator_step_count"] == trace["orchestrator_step_count"]
    assert "Saskia" not in str(kept)


@pytest.mark.one_store
def test_what_a_hop_looks_for_is_looked_for_among_features_too(server, say, project):
    say("Rembrandt was married to Saskia.", "Rembrandt painted in Amsterdam.")
    disputed = [f"Where Rembrandt was born is disputed by {count} wives" for count in (2, 3)]
    for value in (*disputed, "Saskia was born in Leeuwarden"):
        feature = {"set_id": "s", "category_name": "profile", "tag": "people", "feature": "origin"}
        noted = {**project, **feature, "value": value}
        server.answer("/memories/semantic/feature", noted, status=201)

    def known(**asked):
        body = {**project, "query": "Where was Rembrandt's wife born?", "top_k": 2, **asked}
        content = server.answer("/memories/search", body)["content"]
        return [each["value"] for each in content["semantic_memory"]]

    assert sorted(known()) == disputed
    assert "Saskia was born in Leeuwarden" in known(agent_mode=True)


def test_an_error_has_memmachines_shape(server, project):
    made = server.answer("/projects", project, status=201)
    # The same request again has the same answer.
    assert server.answer("/projects", project, status=201) == made
    said, other = "Project already exists", {**project, "description": "another"}
    assert server.answer("/projects", other, status=409)["detail"] == {
        "code": 409,
        "message": said,
        "internal_error": said,
        "exception": "AlreadyThere",
        "trace": "",
    }


def test_a_body_that_is_no_json_is_refused_with_the_place_of_the_fault(server):
    answered = server.client.post(
        "/api/v2/memories/search",
        content='{"query": tea}',
        headers={"Content-Type": "application/json"},
    )
    assert answered.status_code == 422
    assert answered.json()["detail"]["message"] == (
        "Invalid request payload: the body is not JSON: Expecting value, at character 10"
    )


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, "The body has no Content-Type."),
        (
            {"Content-Type": "application/x-www-form-urlencoded"},
            "The body came as application/x-www-form-urlencoded.",
        ),
        ({"Content-Type": "text/plain"}, "The body came as text/plain."),
    ],
)
def test_a_body_that_does_not_come_as_json_is_refused_with_the_header_to_send(
    server, headers, told
):
    answered = server.client.post(
        "/api/v2/memories/search", content='{"query": "tea"}', headers=headers
    )
    remedy = "Send JSON, with the header Content-Type: application/json"
    assert answered.status_code == 422
    assert answered.json()["detail"]["message"] == f"{told} {remedy}"


@pytest.mark.parametrize(
    ("content", "headers", "told"),
    [
        (
            gzip.compress(b'{"query": "tea"}'),
            {"Content-Encoding": "gzip"},
            "The body is compressed, as its Content-Encoding says. Send it as it is.",
        ),
        (
            '{"query": "Käse"}'.encode("latin-1"),
            {"Content-Encoding": "identity"},
            "The body is not UTF-8. Send JSON as UTF-8.",
        ),
    ],
)
def test_a_body_in_another_coding_is_refused_in_words(server, content, headers, told):
    answered = server.client.post(
        "/api/v2/memories/search",
        content=content,
        headers={"Content-Type": "application/json", **headers},
    )
    assert answered.status_code == 422
    assert answered.json()["detail"]["message"] == told


@pytest.mark.one_store
def test_several_faults_of_a_payload_are_listed(server, project):
    status, message = server.refusal("/memories/search", {"top_k": 0, "org_id": "a\nb"})
    first, *faults = message.splitlines()
    assert (status, first) == (422, "Invalid request payload:")
    assert {line.partition(":")[0] for line in faults} == {"- org_id", "- top_k", "- query"}
    server.service.projects.ensure(*project.values())
    for path, fields, said in (
        ("/memories/search", {"query": "", "filter": "a ="}, "unknown field"),
        ("/projects", {"config": {"embedder": "text-embedding-3"}}, "must be a model that is here"),
    ):
        status, message = server.refusal(path, {**project, **fields})
        assert (status, said in message) == (422, True)


@pytest.mark.parametrize(
    ("path", "fields", "told"),
    [
        (
            "/memories/search",
            {"query": "tea", "limt": 1},
            "limt=1: no such field. Give org_id, project_id, query, top_k, filter, set_metadata, "
            "expand_context, score_threshold, types, agent_mode, retrieval_trace",
        ),
        (
            "/memories/list",
            {"filters": "m.user_id = 'mara'"},
            "filters=\"m.user_id = 'mara'\": no such field. Did you mean 'filter'?",
        ),
        (
            "/memories",
            {"messages": [{"content": "tea", "timestmap": "2020-01-01"}]},
            "messages.0: timestmap='2020-01-01': no such field. Did you mean 'timestamp'?",
        ),
        (
            "/projects",
            {"config": {"rerankr": "small"}},
            "config: rerankr='small': no such field. Did you mean 'reranker'?",
        ),
        (
            "/inspect/forget",
            {"id": "1", "purged": True},
            "purged=True: no such field. Did you mean 'purge'?",
        ),
    ],
)
def test_a_field_that_is_misspelt_is_refused(server, made_project, path, fields, told):
    status, message = server.refusal(path, {**made_project, **fields})
    assert (status, message) == (422, f"Invalid request payload: {told}")


def test_a_project_says_which_models_it_uses(server, project):
    config = server.answer("/projects", project, status=201)["config"]
    assert (config["embedder"], config["reranker"]) == ("hash-embedder", "overlap-reranker")


@pytest.mark.one_store
def test_what_python_has_written_is_found_and_can_be_deleted(server, project, found):
    def newest():
        return found("tea")["episodic_memory"]["short_term_memory"]["episodes"]

    place = {"org": project["org_id"], "project": project["project_id"]}
    with Memory(server.store, embedder=HashEmbedder(), **place) as memory:
        memory.add("tea at five", id="note-7", metadata={"cups": 2})
    (episode,) = newest()
    assert episode["metadata"] == {"cups": "2"}
    body = {**project, "episodic_id": episode["uid"]}
    server.answer("/memories/episodic/delete", body, status=204)
    assert newest() == []


def test_memories_are_there_after_the_server_was_started_again(tmp_path):
    with running_server(tmp_path / "store") as first:
        added = first.answer("/memories", {"messages": [{"content": "tea"}]})["results"]
    with running_server(tmp_path / "store") as second:
        listed = second.answer("/memories/list", {})["content"]["episodic_memory"]
    assert [each["uid"] for each in listed] == [added[0]["uid"]]
