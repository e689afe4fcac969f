"""MemMachine's released client, its command line and its tools, against a real server."""

import json
from datetime import UTC, datetime

import pytest
import requests
from memmachine_client import MemMachineClient
from memmachine_client.cli import main
from memmachine_client.langgraph import (
    MemMachineTools,
    create_add_memory_tool,
    create_search_memory_tool,
)
from memmachine_common.api import EpisodeType, MemoryType
from pydantic import ValidationError


@pytest.fixture(scope="module")
def client(server):
    with MemMachineClient(base_url=server.url, max_retries=0) as one:
        yield one


@pytest.fixture
def chat(client, project):
    return client.create_project(**project, description="a chat")


@pytest.fixture
def memory(chat):
    return chat.memory(metadata={"user_id": "mara", "session_id": "s1"})


def episodes(result):
    episodic = result.content.episodic_memory
    return episodic.short_term_memory.episodes + episodic.long_term_memory.episodes


def status_of(action, *arguments, **settings):
    with pytest.raises(requests.HTTPError) as failure:
        action(*arguments, **settings)
    return failure.value.response.status_code


def test_a_project_is_made_once_read_and_deleted(client, project):
    made = client.create_project(**project, description="first")
    assert client.get_project(**project).description == "first"
    assert status_of(client.create_project, **project) == 409
    assert client.get_or_create_project(**project, description="second").description == "first"
    made.description = "changed here alone"
    made.refresh()
    assert made.description == "first"
    assert made.delete() is True
    assert status_of(client.get_project, **project) == 404
    assert status_of(made.delete) == 404
    # A name with a slash is refused.
    with pytest.raises(ValidationError):
        client.create_project(org_id="a/b", project_id="c")


def test_what_was_said_is_found_with_all_its_fields(memory):
    fields = {"role": "user", "producer": "mara", "produced_for": "bot"}
    kind, metadata = EpisodeType.MESSAGE, {"topic": "food"}
    added = memory.add("I love pizza", **fields, episode_type=kind, metadata=metadata)
    (episode,) = episodes(memory.search("pizza"))
    assert (episode.uid, episode.content) == (added[0].uid, "I love pizza")
    assert (episode.producer_id, episode.producer_role) == ("mara", "user")
    assert (episode.produced_for_id, episode.metadata["topic"]) == ("bot", "food")
    assert 0 <= episode.score <= 1


def test_each_user_finds_their_own(chat):
    ben, eva = (chat.memory(metadata={"user_id": name}) for name in ("ben", "Eva O'Brien"))
    ben.add("I program in Python")
    eva.add("I program in Rust")
    assert [each.content for each in episodes(ben.search("program"))] == ["I program in Python"]
    assert [each.content for each in episodes(eva.search("program"))] == ["I program in Rust"]


def test_a_filter_in_words_is_joined_to_the_clients_own(memory):
    memory.add("coffee at eight", metadata={"time": "morning"})
    memory.add("coffee at four", metadata={"time": "afternoon"})
    found = memory.search("coffee", filter="metadata.time = 'morning'")
    assert [each.content for each in episodes(found)] == ["coffee at eight"]
    listed = memory.list(filter_dict={"metadata.time": "afternoon"})
    assert [each.content for each in listed.content.episodic_memory] == ["coffee at four"]


@pytest.mark.parametrize(
    "content", ["Wörter 🌍 " * 100_000, "测试 🚀 émojis 日本語", "!@#$%^&*()_+-={}|;':\\\""]
)
def test_any_text_comes_back_as_it_was(memory, content):
    (added,) = memory.add(content)
    (listed,) = memory.list().content.episodic_memory
    assert (listed.uid, listed.content) == (added.uid, content)


def test_episodes_are_listed_in_pages(memory, chat):
    for number in range(3):
        memory.add(f"message {number}")
    pages = [memory.list(page_size=2, page_num=page).content for page in (0, 1)]
    contents = [[each.content for each in page.episodic_memory] for page in pages]
    assert contents == [["message 0", "message 1"], ["message 2"]]
    assert chat.get_episode_count() == 3


def test_a_feature_lives_and_dies(memory):
    (cited,) = memory.add("I enjoy jazz")
    parts = {"set_id": "mem_project_set_any", "category_name": "profile", "tag": "music"}
    known = {"feature": "favorite_genre", "value": "jazz", "citations": [cited.uid]}
    owner = {"user_id": "mara", "session_id": "s1"}
    feature_id = memory.add_feature(**parts, **known, feature_metadata=owner)
    feature = memory.get_feature(feature_id, load_citations=True)
    assert (feature.category, feature.tag) == ("profile", "music")
    assert (feature.feature_name, feature.value) == ("favorite_genre", "jazz")
    assert feature.metadata.citations == [cited.uid]
    (found,) = memory.search("which genre?").content.semantic_memory
    assert found.metadata.id == feature_id
    listed = memory.list(memory_type=MemoryType.Semantic).content
    assert [each.value for each in listed.semantic_memory] == ["jazz"]
    assert listed.episodic_memory is None
    assert memory.update_feature(feature_id=feature_id, value="classical", tag="taste")
    changed = memory.get_feature(feature_id)
    assert (changed.value, changed.tag) == ("classical", "taste")
    assert changed.feature_name == "favorite_genre"
    assert memory.delete_semantic(feature_id) is True
    assert memory.get_feature(feature_id) is None
    assert status_of(memory.delete_semantic, feature_id) == 404


def test_a_set_type_its_templates_and_its_sets_live_and_die(memory):
    def named(user):
        return memory.get_semantic_set_id(metadata_tags=["user_id"], set_metadata={"user_id": user})

    kind = memory.create_semantic_set_type(metadata_tags=["user_id"], name="users")
    (listed,) = memory.list_semantic_set_types()
    assert (listed.id, listed.tags, listed.is_org_level) == (kind, ["user_id"], False)
    # A template is inherited and can be switched off; a second one of its name is 409.
    habits = {"set_type_id": kind, "category_name": "habits", "prompt": "What do they often do?"}
    template = memory.add_semantic_category_template(**habits)
    assert status_of(memory.add_semantic_category_template, **habits) == 409
    assert [each.id for each in memory.list_semantic_category_templates(kind)] == [template]
    mara = named("mara")
    assert memory.get_semantic_category_set_ids(template) == [mara]
    assert memory.disable_semantic_category(set_id=mara, category_name="habits") is True
    # The same metadata has the same set.
    assert mara == named("mara") != named("ben")
    listed = memory.list_semantic_set_ids(set_metadata={"user_id": "mara"})
    assert mara in [each.id for each in listed]
    assert named("ben") not in [each.id for each in listed]
    assert memory.configure_semantic_set(set_id=mara) is True
    assert memory.delete_semantic_set_type(kind) is True
    assert memory.list_semantic_set_types() == []
    memory.create_semantic_set_type(metadata_tags=["user_id"], is_org_level=True)
    assert [each.is_org_level for each in memory.list_semantic_set_types()] == [True]


def test_a_category_and_its_tag_live_and_die(memory):
    set_id = memory.get_semantic_set_id(metadata_tags=[])
    likes = {"set_id": set_id, "category_name": "likes", "prompt": "What do they like?"}
    category = memory.add_semantic_category(**likes)
    found = memory.get_semantic_category(category)
    assert (found.name, found.prompt) == ("likes", "What do they like?")
    assert memory.get_semantic_category_set_ids(category) == [set_id]
    food = {"category_id": category, "tag_name": "food", "tag_description": "dishes"}
    tag = memory.add_semantic_tag(**food)
    # A second one of its name is 409.
    assert status_of(memory.add_semantic_category, **likes) == 409
    assert status_of(memory.add_semantic_tag, **food) == 409
    assert memory.delete_semantic_tag(tag) is True
    assert memory.delete_semantic_category(category) is True
    assert memory.get_semantic_category(category) is None
    # What is not there is 404.
    kinds = (memory.delete_semantic_set_type, memory.delete_semantic_category)
    for delete in (*kinds, memory.delete_semantic_tag):
        assert status_of(delete, "999") == 404
    assert status_of(memory.update_feature, feature_id="999", value="x") == 404


def test_episodic_memory_is_switched(memory):
    memory.add("I like tea")
    before = memory.get_episodic_memory_config()
    assert (before.enabled, before.long_term_memory_enabled) == (True, True)
    memory.configure_episodic_memory(short_term_memory_enabled=False)
    assert memory.get_episodic_memory_config().short_term_memory_enabled is False
    episodic = memory.search("tea").content.episodic_memory
    assert episodic.short_term_memory.episodes == []
    assert len(episodic.long_term_memory.episodes) == 1
    memory.configure_episodic_memory(enabled=False)
    assert memory.search("tea").content.episodic_memory is None


def test_health_metrics_and_the_configuration_can_be_read(client):
    assert client.health_check()["status"] == "healthy"
    assert "ekphory_requests_total" in client.get_metrics()
    config = client.config()
    assert [each.name for each in config.get_resources().embedders] == ["hash-embedder"]
    assert config.get_config().episodic_memory.long_term_memory.reranker == "overlap-reranker"
    assert config.get_episodic_memory_config().enabled is True
    assert config.get_long_term_memory_config().enabled is True
    assert config.get_short_term_memory_config().message_capacity == 20
    assert config.get_semantic_memory_config().embedding_model == "hash-embedder"


@pytest.fixture
def run(server, capsys):
    """Runs `mem-cli`, and returns what it printed, parsed where it is JSON."""

    def run(*words):
        assert main(["--base-url", server.url, *words]) == 0
        printed = capsys.readouterr().out
        return json.loads(printed) if printed[:1] in ("{", "[") else printed

    return run


@pytest.fixture
def names(project):
    return ["--org-id", project["org_id"], "--project-id", project["project_id"]]


def test_the_command_line_knows_projects_and_memories(run, names, project):
    made = run("projects", "create", *names, "--description", "a chat")
    assert made["description"] == "a chat"
    assert run("projects", "get", *names)["project_id"] == project["project_id"]
    assert run("projects", "get-or-create", *names)["description"] == "a chat"
    assert project["org_id"] in [each["org_id"] for each in run("projects", "list")]
    assert run("projects", "delete", *names) == {"deleted": True}
    assert project["org_id"] not in [each["org_id"] for each in run("projects", "list")]
    # It lists, filters and deletes what is remembered.
    run("projects", "create", *names)
    for topic in ("food", "music"):
        (added,) = run("memory", "add", *names, f"about {topic}", "--metadata", f"topic={topic}")
    filtered = run("memory", "search", *names, "about", "--filter", "metadata.topic=food")
    assert "about food" in json.dumps(filtered)
    assert "about music" not in json.dumps(filtered)
    listed = run("memory", "list", *names)["content"]["episodic_memory"]
    assert [each["content"] for each in listed] == ["about food", "about music"]
    assert run("memory", "delete-episodic", *names, "--id", added["uid"]) == {"deleted": True}
    assert run("projects", "episode-count", *names) == {"count": 1}


def test_the_tools_keep_users_apart_and_give_their_context(server, project):
    tools = MemMachineTools(base_url=server.url, **project, user_id="mara")
    add, search = create_add_memory_tool(tools), create_search_memory_tool(tools)
    assert add("I love hiking", None, {"place": "alps"}, None)["status"] == "success"
    assert add("I hate hiking", "ben", None, None)["status"] == "success"

    def found(user):
        episodic = search("hiking", user, 5)["results"]["episodic_memory"]
        return [each["content"] for each in episodic["short_term_memory"]["episodes"]]

    assert (found(None), found("ben")) == (["I love hiking"], ["I hate hiking"])
    context = tools.get_context()
    assert (context["org_id"], context["metadata"]) == (project["org_id"], {"user_id": "mara"})
    tools.close()


def test_of_several_memories_those_that_are_there_are_deleted(memory):
    first, second = (memory.add(text)[0].uid for text in ("one", "two"))
    missing = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
    assert memory.delete_episodic(episodic_ids=[first, missing]) is True
    assert [each.content for each in memory.list().content.episodic_memory] == ["two"]
    assert memory.delete_episodic(episodic_ids=[second]) is True
    assert memory.list().content.episodic_memory == []
    # One that is not there is deleted already.
    assert memory.delete_episodic(first) is True


def test_times_thresholds_and_set_metadata_are_honoured(chat):
    memory = chat.memory()
    memory.add("tea at home", timestamp=datetime(2026, 3, 1, 8, tzinfo=UTC))
    (listed,) = memory.list().content.episodic_memory
    assert listed.created_at.isoformat() == "2026-03-01T08:00:00+00:00"
    early = memory.search("tea", filter="created_at < date('2026-03-01')")
    assert early.content.episodic_memory.short_term_memory.episodes == []
    own = memory.get_semantic_set_id(metadata_tags=["user_id"], set_metadata={"user_id": "mara"})
    memory.add_feature(set_id=own, category_name="p", tag="t", feature="dish", value="pizza")
    for user, count in (("mara", 1), ("ben", 0)):
        found = memory.search("dish", set_metadata={"user_id": user}).content.semantic_memory
        assert len(found) == count
