"""What the server uses is read from a file, changed over HTTP, and chosen for projects and sets."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest
from memmachine_client import MemMachineClient
from tests.cases import read_cases
from tests.models.embedding_service import running_embeddings
from tests.server.running import models, running_server
from tests.services.wire import Reply, running_service

from ekphory.config import Settings, read_settings
from ekphory.errors import InvalidInput, ServiceError
from ekphory.memory import Memory
from ekphory.models.chat import ChatMessage
from ekphory.models.loading import load_configured_embedder
from ekphory.models.services import HttpEmbedder, HttpSettings
from ekphory.service.configuration import read_configuration, read_places
from ekphory.service.handles import Place

_numbers = itertools.count(1)
HOME = {"org_id": "home", "project_id": "chat"}
CASES = read_cases(__file__)


@pytest.fixture
def service():
    """An embedding service: a text's vector tells its length, and nothing of its meaning."""
    with running_embeddings() as running:
        yield running


@pytest.fixture
def client(server):
    with MemMachineClient(base_url=server.url, max_retries=0) as one:
        yield one


@pytest.fixture
def by_length(client, service):
    """Declares that service as an embedder, and returns its name."""
    name = f"by-length {next(_numbers)}"
    config = {"api_key": "k", "model": "length", "base_url": f"{service.host}/v1"}
    added = client.config().add_embedder(name, "openai", {**config, "dimensions": None})
    assert (added.success, added.status.value) == (True, "ready")
    return name


def episodes(memory, query):
    episodic = memory.search(query).content.episodic_memory
    return [each.content for each in episodic.long_term_memory.episodes]


def test_a_project_uses_the_embedder_that_it_names(client, by_length, project, server):
    chat = client.create_project(**project, embedder=by_length)
    assert client.get_project(**project).config.embedder == by_length
    memory = chat.memory()
    memory.configure_episodic_memory(short_term_memory_enabled=False)
    memory.add("tea")
    assert episodes(memory, "tea") == ["tea"]
    # Its vectors lie in a store of their own; the server's own holds nothing of it.
    names = {"org": project["org_id"], "project": project["project_id"]}
    with server.service.memory(Place(*names.values())) as own:
        assert own.count() == 1
    with Memory(server.store, **names, embedder=models().embedder) as main:
        assert main.count() == 0
    assert chat.delete() is True
    # It was taken out with its memories.
    remade = client.create_project(**project, embedder=by_length).memory()
    assert remade.list().content.episodic_memory == []


def test_the_verbs_reach_what_rest_wrote_into_a_project_with_its_own_embedder(
    client, by_length, project, server
):
    chat = client.create_project(**project, embedder=by_length).memory()
    chat.add("tea")
    with Memory(server.url, org=project["org_id"], project=project["project_id"]) as verbs:
        assert [each.text for each in verbs.list()] == ["tea"]
        verbs.add("coffee")
    said = chat.list().content.episodic_memory
    assert [each.content for each in said] == ["tea", "coffee"]


def test_an_organisation_holds_what_projects_with_their_own_embedders_hold(
    client, by_length, project, server
):
    client.create_project(**project, embedder=by_length).memory().add("tea")
    server.answer("/memories", {**project, "project_id": "b", "messages": [{"content": "milk"}]})
    elsewhere = {"org_id": "elsewhere", "project_id": "c"}
    client.create_project(**elsewhere, embedder=by_length).memory().add("coffee")
    assert server.service.count(project["org_id"]) == 2


def test_a_deleted_project_with_its_own_embedder_leaves_nothing_in_the_main_store(
    client, by_length, project, server
):
    made = client.create_project(**project, embedder=by_length)
    scope = {"org": project["org_id"], "project": project["project_id"]}
    with Memory(server.store, **scope, embedder=models().embedder) as beside:
        beside.add("tea")
        assert made.delete() is True
        assert beside.list() == []
    status, _ = server.refusal("/projects/get", project)
    assert status == 404


def test_an_embedder_that_is_in_use_is_not_taken_out(client, by_length, project, server):
    made = client.create_project(**project, embedder=by_length)
    path = f"/api/v2/config/resources/embedders/{by_length}"
    assert server.client.delete(path).status_code == 422
    made.delete()
    client.config().delete_embedder(by_length)
    assert server.client.delete(path).status_code == 404
    status, message = server.refusal("/projects", {**project, "config": {"embedder": by_length}})
    assert (status, "must be a model that is here" in message) == (422, True)


@pytest.mark.parametrize(
    ("kind", "name", "provider", "part"),
    [
        ("rerankers", "words", "bm25", {"reranker_ids": ["words"]}),
        ("embedders", "meaning", "ekphory", {"embedder_id": "meaning"}),
    ],
)
def test_a_model_that_is_part_of_a_reranker_is_not_taken_out(tmp_path, kind, name, provider, part):
    path = "/api/v2/config/resources"
    with running_server(tmp_path / "store") as server:
        config = {"model": "bundled"} if provider == "ekphory" else {}
        declared = {"name": name, "provider": provider, "config": config}
        assert server.client.post(f"{path}/{kind}", json=declared).status_code == 201
        whole = "rrf-hybrid" if kind == "rerankers" else "embedder"
        user = {"name": "whole", "provider": whole, "config": part}
        assert server.client.post(f"{path}/rerankers", json=user).status_code == 201
        refused = server.client.delete(f"{path}/{kind}/{name}")
        assert (refused.status_code, "in use by the reranker whole" in refused.text) == (422, True)
        assert server.client.delete(f"{path}/rerankers/whole").status_code == 200
        assert server.client.delete(f"{path}/{kind}/{name}").status_code == 200


def test_a_project_that_names_no_models_has_those_of_the_servers_next_start(tmp_path):
    asked = {**HOME, "query": "tea", "types": ["episodic"]}
    with running_server(tmp_path / "store") as server:
        made = server.answer("/projects", HOME, status=201)["config"]
        assert made["reranker"] == "overlap-reranker"
        server.answer("/memories", {**HOME, "messages": [{"content": "tea"}]})
    with running_server(tmp_path / "store", used=models(reranker=None)) as server:
        assert server.answer("/projects/get", HOME)["config"]["reranker"] == ""
        found = server.answer("/memories/search", asked)["content"]["episodic_memory"]
        assert len(found["short_term_memory"]["episodes"]) == 1


def test_a_project_keeps_the_reranker_that_it_names_when_the_default_is_another(configured):
    with configured(Path(__file__).with_suffix(".yaml").read_text()) as server:
        server.answer("/projects", {**HOME, "config": {"reranker": "words"}}, status=201)
        other = {"org_id": "home", "project_id": "other"}
        server.answer("/projects", other, status=201)
        changed = {"reranker": "as_found"}
        server.client.put("/api/v2/config/memory/episodic/long_term", json=changed)
        for project, reranker in ((HOME, "words"), (other, "as_found")):
            server.answer("/memories", {**project, "messages": [{"content": "tea"}] * 2})
            asked = {**project, "query": "tea", "retrieval_trace": True}
            found = server.answer("/memories/search", asked)["content"]["retrieval_trace"]
            read = {each["name"]: each for each in found["searches"][0]["stages"]}["rerank"]
            assert read["detail"]["reranker"] == reranker
            assert server.answer("/projects/get", project)["config"]["reranker"] == reranker


def test_what_is_sent_to_be_ranked_is_read_by_the_reranker_that_is_configured_now(configured):
    asked = {"query": "tea", "documents": ["it rained", "tea is warm"]}
    with configured(Path(__file__).with_suffix(".yaml").read_text()) as server:

        def ranked():
            answer = server.client.post("/rerank", json=asked).json()
            return answer["model"], [each["index"] for each in answer["results"]]

        assert ranked() == ("words", [1, 0])
        long_term = "/api/v2/config/memory/episodic/long_term"
        server.client.put(long_term, json={"reranker": "as_found"})
        assert ranked() == ("as_found", [0, 1])
        listed = server.client.get("/v1/models").json()["data"]
        assert [each["id"] for each in listed] == ["ekphory-small", "as_found"]
        server.client.put(long_term, json={"reranker": ""})
        assert ranked() == ("words", [1, 0])


def test_a_set_that_gets_another_embedder_keeps_its_features(client, by_length, project):
    memory = client.create_project(**project).memory()
    own = memory.get_semantic_set_id(metadata_tags=["user_id"], set_metadata={"user_id": "mara"})
    known = {"set_id": own, "category_name": "profile", "tag": "food", "feature": "dish"}
    feature = memory.add_feature(**known, value="pizza")
    memory.configure_semantic_set(set_id=own, embedder_name=by_length)
    memory.add_feature(**known, value="pasta")
    found = memory.search("dish").content.semantic_memory
    assert sorted(each.value for each in found) == ["pasta", "pizza"]
    assert memory.get_feature(feature).value == "pizza"
    memory.configure_semantic_set(set_id=own, embedder_name="")
    assert memory.update_feature(feature_id=feature, value="bread")
    assert len(memory.list(memory_type=None).content.semantic_memory) == 2
    assert memory.delete_semantic(feature) is True


DISH = {"set_id": "s", "category_name": "profile", "tag": "food", "feature": "dish"}


def values(server, project):
    """What is noted of a project, by the ids of the features."""
    asked = {**project, "type": "semantic", "page_size": 10_000}
    listed = server.answer("/memories/list", asked)["content"]
    return {each["metadata"]["id"]: each["value"] for each in listed["semantic_memory"]}


def test_what_is_noted_while_a_set_gets_another_embedder_is_kept(by_length, project, server):
    note = {**project, **DISH}
    for number in range(10):
        server.answer("/memories/semantic/feature", {**note, "value": f"soup {number}"}, status=201)
    before, ended, noted = values(server, project), Event(), {}

    def go_on():
        while not ended.is_set():
            for made in before:
                changed = {**project, "feature_id": made, "value": f"stew {len(noted)}"}
                server.answer("/memories/semantic/feature/update", changed, status=204)
                noted[made] = changed["value"]
                made = server.answer(
                    "/memories/semantic/feature", {**note, "value": "bread"}, status=201
                )
                noted[made["feature_id"]] = "bread"

    with ThreadPoolExecutor(1) as thread:
        going = thread.submit(go_on)
        moved = {**project, "set_id": "s", "embedder_name": by_length}
        server.answer("/memories/semantic/set/configure", moved, status=204)
        ended.set()
        going.result()
    assert values(server, project) == before | noted


@pytest.mark.parametrize("ended", [False, True])
def test_a_move_of_a_set_that_was_killed_brings_nothing_back(by_length, project, server, ended):
    place = Place(project["org_id"], project["project_id"])
    made = server.answer(
        "/memories/semantic/feature", {**project, **DISH, "value": "soup"}, status=201
    )
    owner = server.service.sets.for_writing(place, "s")
    server.service.features.move(owner, by_length)
    if ended:
        server.service.sets.configure(owner, embedder=by_length, llm=None)
    changed = {**project, **made, "value": "stew"}
    server.answer("/memories/semantic/feature/update", changed, status=204)
    moved = {**project, "set_id": "s", "embedder_name": by_length}
    server.answer("/memories/semantic/set/configure", moved, status=204)
    assert values(server, project) == {made["feature_id"]: "stew"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/memories", {"messages": [{"content": "I live in Oslo."}]}),
        ("/memories/capture", {"messages": [{"role": "user", "content": "I live in Oslo."}]}),
        (
            "/memories/semantic/feature",
            {"category_name": "profile", "tag": "home", "feature": "city", "value": "Oslo"},
        ),
    ],
)
def test_a_project_that_is_written_first_gets_the_embedder_for_new_ones(
    tmp_path, service, path, body
):
    with running_server(tmp_path / "store") as server:
        config = {"api_key": "k", "model": "length", "base_url": f"{service.host}/v1"}
        added = {"name": "by-length", "provider": "openai", "config": config}
        server.client.post("/api/v2/config/resources/embedders", json=added)
        changed = {"episodic_memory": {"long_term_memory": {"embedder": "by-length"}}}
        server.client.put("/api/v2/config/memory", json=changed)
        if "feature" in body:
            named = {**HOME, "metadata_tags": ["user_id"], "set_metadata": {"user_id": "mara"}}
            body = {**body, **server.answer("/memories/semantic/set_id/get", named)}
        assert server.post(path, {**HOME, **body}).is_success
        assert server.answer("/projects/get", HOME)["config"]["embedder"] == "by-length"


def test_what_is_changed_over_http_outlives_the_server(tmp_path):
    with running_server(tmp_path / "store") as server:
        answered = server.client.put(
            "/api/v2/config/memory",
            json={
                "episodic_memory": {
                    # MemMachine's own default.
                    "short_term_memory": {"message_capacity": 64_000, "enabled": False}
                },
                "semantic_memory": {"enabled": False},
            },
        )
        assert answered.json()["success"] is True
    with running_server(tmp_path / "store") as server:
        told = server.client.get("/api/v2/config").json()
        short_term = told["episodic_memory"]["short_term_memory"]
        assert (short_term["message_capacity"], short_term["enabled"]) == (64_000, False)
        server.answer("/memories", {**HOME, "messages": [{"content": "tea"}]})
        found = server.answer("/memories/search", {**HOME, "query": "tea"})["content"]
        assert found["episodic_memory"]["short_term_memory"]["episodes"] == []
        assert "semantic_memory" not in found


def test_only_an_administrator_of_all_projects_changes_the_configuration(serving):
    server = serving(require_key=True)
    keys, down = server.service.keys, {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    server.service.configuration.put_resource("embedders", "down", "openai", down)
    for settings, status in (
        ({"rights": "write"}, 403),
        ({"rights": "admin", "org": "home"}, 403),
        ({"rights": "admin"}, 200),
    ):
        headers = {"Authorization": f"Bearer {keys.create(**settings).text}"}
        path, body = "/api/v2/config/memory/semantic", {"enabled": True}
        assert server.client.put(path, json=body, headers=headers).status_code == status
        # Nobody else learns why a model cannot be loaded, which may name paths and addresses.
        told = server.client.get("/api/v2/config/resources", headers=headers).json()
        (failed,) = [each for each in told["embedders"] if each["name"] == "down"]
        assert (failed["status"], bool(failed["error"])) == ("failed", status == 200)


@pytest.mark.parametrize(("path", "body", "problem"), CASES["not there"])
def test_what_is_not_there_cannot_be_configured(server, path, body, problem):
    answered = server.client.put(f"/api/v2/config/{path}", json=body)
    assert answered.status_code == 422
    assert problem in answered.text


@pytest.mark.parametrize(("kind", "name", "provider", "config", "problem"), CASES["never"])
def test_a_model_that_could_never_work_is_refused(server, kind, name, provider, config, problem):
    body = {"name": name, "provider": provider, "config": config}
    answered = server.client.post(f"/api/v2/config/resources/{kind}", json=body)
    assert answered.status_code == 422
    assert problem in answered.text
    assert server.client.get("/api/v2/config/resources").text.count('"a"') == 0


def test_a_model_whose_service_is_down_is_told_and_works_when_it_is_up(client, service):
    config, refused = client.config(), f"{service.host}/nowhere"
    own = {"api_key": "geheim", "model": "m", "dimensions": None}
    added = config.add_embedder("late", "openai", {**own, "base_url": refused})
    assert (added.success, added.status.value) == (False, "failed")
    assert "geheim" not in added.error
    assert config.retry_embedder("late").success is False
    again = config.add_embedder("late", "openai", {**own, "base_url": f"{service.host}/v1"})
    assert (again.success, config.retry_embedder("late").success) == (True, True)
    (told,) = [each for each in config.get_resources().embedders if each.name == "late"]
    assert (told.provider, told.status.value, told.error) == ("openai", "ready", None)


@pytest.mark.parametrize("name", ["BAAI/bge-small", "a/retry", "a b:c@d.e-f"])
def test_a_model_of_any_name_that_can_be_declared_is_tried_again_and_taken_out(server, name):
    path = "/api/v2/config/resources/rerankers"
    declared = server.client.post(path, json={"name": name, "provider": "bm25"})
    assert declared.status_code == 201
    for written in (name, quote(name, safe="")):
        tried = server.client.post(f"{path}/{written}/retry")
        assert tried.json() == {"success": True, "status": "ready", "error": None}
    assert server.client.delete(f"{path}/{name}").json()["message"] == f"{name} was taken out."
    assert server.client.delete(f"{path}/{name}").status_code == 404


def test_a_language_model_is_told_as_failed_where_it_is_not_reached(server):
    path, name = "/api/v2/config/resources/language_models", f"writer {next(_numbers)}"
    with running_service() as wire:
        own = {"model": "m", "api_key": "geheim", "base_url": f"{wire.host}/v1"}
        body = {"name": name, "provider": "openai-responses", "config": own}
        added = server.client.post(path, json=body).json()
        assert (added["success"], added["status"]) == (True, "ready")
        assert (wire.asked[0].path, wire.asked[0].body) == ("/v1/models", None)
        # A service without such a list is there; one that refuses the key does not work.
        wire.replies = [Reply(404), Reply(401, b"geheim is wrong")]
        assert server.client.post(f"{path}/{name}/retry").json()["status"] == "ready"
        refused = server.client.post(f"{path}/{name}/retry").json()
        assert (refused["status"], "Check the key" in refused["error"]) == ("failed", True)
        assert "geheim" not in refused["error"]
    gone = server.client.post(f"{path}/{name}/retry").json()
    assert (gone["success"], gone["status"]) == (False, "failed")
    assert "could not be asked" in gone["error"]
    # It is not asked where a model is chosen: a search must not wait for it, nor fail with it.
    assert server.service.configuration.chat(named=name).name == "m"


@pytest.fixture
def configured(tmp_path):
    """Serves a store as a configuration file says."""
    file = tmp_path / "cfg.yml"

    def serve(text):
        file.write_text(text, encoding="utf-8")
        used, document, learnt = read_configuration(Settings(store="unused", config=str(file)))
        assert learnt == "categories"
        return running_server(tmp_path / "store", used=used, document=document)

    return serve


def test_the_sections_of_a_file_are_what_the_server_uses(configured):
    with configured(Path(__file__).with_suffix(".yaml").read_text()) as server:
        told = server.client.get("/api/v2/config").json()
        assert told["episodic_memory"]["long_term_memory"]["reranker"] == "words"
        assert told["episodic_memory"]["short_term_memory"]["message_capacity"] == 3
        names = [each["name"] for each in told["resources"]["rerankers"]]
        assert names == ["words", "as_found", "both"]
        server.answer("/projects", {**HOME, "config": {"reranker": "both"}}, status=201)
        said = ["the oven is broken", "I like tea", "tea with milk", "it rained"]
        messages = [{"content": content} for content in said]
        server.answer("/memories", {**HOME, "messages": messages})
        found = server.answer("/memories/search", {**HOME, "query": "tea", "top_k": 4})
        newest = found["content"]["episodic_memory"]["short_term_memory"]["episodes"]
        assert [each["content"] for each in newest] == said[1:]
        # The reranker of the whole server orders what is sent to it.
        ranked = server.client.post("/rerank", json={"query": "tea", "documents": said}).json()
        assert ranked["model"] == "words"
        assert [each["index"] for each in ranked["results"]][:2] in ([1, 2], [2, 1])


def test_a_model_that_the_file_names_is_listed_once(tmp_path):
    file = tmp_path / "cfg.yml"
    own = '{model: m, base_url: "http://127.0.0.1:9/v1"}'
    file.write_text(
        "semantic_memory: {llm_model: lm}\nresources:\n  language_models:\n"
        f"    lm: {{provider: openai-chat-completions, config: {own}}}\n"
    )
    used, document, _ = read_configuration(Settings(store="unused", config=str(file)))
    with running_server(tmp_path / "store", used=used, document=document) as server:
        told = server.client.get("/api/v2/config/resources").json()["language_models"]
    assert [(each["name"], each["status"]) for each in told] == [("lm", "pending")]


def test_a_file_says_where_the_server_listens_and_keeps_its_projects(tmp_path):
    file = tmp_path / "cfg.yml"
    settings = Settings(store="unused", config=str(file))
    file.write_text(
        "server: {host: localhost, port: 9090}\n"
        "session_manager: {database: mine}\n"
        "resources: {databases: {mine: {provider: sqlite, config: {path: /tmp/sessions.db}}}}\n"
    )
    places = read_places(settings)
    assert (places.host, places.port, str(places.sessions)) == (
        *("localhost", 9090),
        "/tmp/sessions.db",
    )
    file.write_text(file.read_text().replace("sqlite", "postgres"))
    with pytest.raises(ValueError, match="projects and keys are kept in SQLite"):
        read_places(settings)


@pytest.mark.parametrize(("text", "told"), CASES["faulty"])
def test_a_faulty_file_is_refused_before_anything_is_served(tmp_path, text, told):
    file = tmp_path / "cfg.yml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_places(Settings(store="unused", config=str(file)))
    assert str(refused.value).startswith(f"{file}: ")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{agent_session_provider: openai}", "the provider openai needs a language model"),
        ("{agent_session_provider: openai, llm_model: local}", "'local' has none"),
        ("{agent_session_provider: anthropic}", "the provider anthropic needs one"),
    ],
)
def test_an_agent_that_could_hold_no_session_is_refused_at_the_start(tmp_path, section, told):
    model = "{provider: openai-responses, config: {model: m}}"
    file = tmp_path / "cfg.yml"
    file.write_text(
        f"retrieval_agent: {section}\nresources: {{language_models: {{local: {model}}}}}"
    )
    with pytest.raises(InvalidInput, match=told):
        read_configuration(Settings(store="unused", config=str(file)))


def test_what_only_memmachine_reads_is_passed_over(tmp_path):
    file = tmp_path / "cfg.yml"
    file.write_text(Path(__file__).with_name("memmachine.yaml").read_text())
    read_configuration(Settings(store="unused", config=str(file)))


@pytest.mark.parametrize(
    ("section", "learnt"),
    [
        ("{default_project_categories: []}", "categories"),
        ("{default_user_categories: [profile_prompt]}", "profile"),
        # It says nothing of what is learnt.
        ("{episode_summary_user_prompt_path: summary.txt}", None),
    ],
)
def test_the_categories_of_the_prompts_say_what_is_learnt(tmp_path, section, learnt):
    file = tmp_path / "cfg.yml"
    file.write_text(f"prompt: {section}")
    assert read_configuration(Settings(store="unused", config=str(file)))[2] == learnt


def test_a_prefix_is_sent_before_queries_and_another_before_passages(service):
    settings = HttpSettings(model="m", query_prefix="query: ", passage_prefix="passage: ")
    embedder = HttpEmbedder(f"{service.host}/v1", settings=settings)
    embedder.encode(["tea"])
    embedder.encode_query(["tea?"])
    assert [each["input"] for each in service.bodies][-2:] == [["passage: tea"], ["query: tea?"]]
    # Vectors that were made otherwise are not compared with these.
    plain = HttpEmbedder(f"{service.host}/v1", settings=HttpSettings(model="m"))
    assert plain.identity.revision != embedder.identity.revision
    embedder.close()
    plain.close()


def test_prefixes_may_stand_in_the_environment(service):
    settings = read_settings(
        {
            "EKPHORY_EMBEDDER": f"{service.host}/v1",
            "EKPHORY_EMBEDDER_MODEL": "m",
            "EKPHORY_EMBEDDER_QUERY_PREFIX": "Instruct: Find what answers\\nQuery: ",
            "EKPHORY_EMBEDDER_PASSAGE_PREFIX": "passage: ",
        }
    )
    embedder = load_configured_embedder(settings)
    embedder.encode(["tea"])
    embedder.encode_query(["tea?"])
    sent = [each["input"] for each in service.bodies][-2:]
    assert sent == [["passage: tea"], ["Instruct: Find what answers\nQuery: tea?"]]
    embedder.close()


def test_a_file_names_models_of_amazon_bedrock(tmp_path, monkeypatch):
    with running_service(titan) as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", service.host)
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", service.host)
        monkeypatch.setenv("THE_SECRET", "geheim")
        file = tmp_path / "cfg.yml"
        file.write_text(OF_BEDROCK)
        models, _, _ = read_configuration(Settings(store="unused", config=str(file)))
        with pytest.raises(ServiceError, match="empty answer"):
            models.chat.complete([ChatMessage("user", "hello")])
    assert service.bodies[-1]["additionalModelRequestFields"] == {"tags": [{"secret": "geheim"}]}
    assert models.embedder.identity.name == "amazon.titan-embed-text-v2:0"
    assert models.chat.name == "openai.gpt-oss-20b-1:0"
    assert models.reranker.name == "bedrock:amazon.rerank-v1:0"
    assert "Credential=AKIAEXAMPLE/" in service.asked[0].headers["Authorization"]


def titan(_):
    return Reply(body=b'{"embedding": [1, 2, 3]}')


OF_BEDROCK = """
episodic_memory:
  long_term_memory: {embedder: titan, reranker: order}
  short_term_memory: {llm_model: gpt}
resources:
  embedders:
    titan:
      provider: amazon-bedrock
      config: &aws
        region: us-west-2
        aws_access_key_id: AKIAEXAMPLE
        aws_secret_access_key: $THE_SECRET
        model_id: amazon.titan-embed-text-v2:0
  language_models:
    gpt:
      provider: amazon-bedrock
      config:
        <<: *aws
        model_id: openai.gpt-oss-20b-1:0
        additional_model_request_fields: {tags: [{secret: $THE_SECRET}]}
  rerankers:
    order:
      provider: amazon-bedrock
      config: {<<: *aws, model_id: "amazon.rerank-v1:0"}
"""
