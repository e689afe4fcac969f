"""The command line and the LangGraph tools of MemMachine's released client, all of their verbs."""

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


@pytest.fixture
def run(server, capsys):
    """Runs `mem-cli`; gives what it printed, parsed where it is JSON."""

    def run(*words):
        assert main(["--base-url", server.url, *words]) == 0
        printed = capsys.readouterr().out
        return json.loads(printed) if printed[:1] in ("{", "[") else printed

    return run


@pytest.fixture
def names(project):
    return ["--org-id", project["org_id"], "--project-id", project["project_id"]]


def test_the_command_line_knows_projects(run, names, project):
    made = run("projects", "create", *names, "--description", "a chat")
    assert made["description"] == "a chat"
    assert run("projects", "get", *names)["project_id"] == project["project_id"]
    assert run("projects", "get-or-create", *names)["description"] == "a chat"
    assert project["org_id"] in [each["org_id"] for each in run("projects", "list")]
    assert run("projects", "delete", *names) == {"deleted": True}
    assert project["org_id"] not in [each["org_id"] for each in run("projects", "list")]


def test_the_command_line_lists_filters_and_deletes(run, names):
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


def test_the_command_line_tells_health_and_metrics(run):
    assert run("health")["status"] == "healthy"
    assert "ekphory_requests_total" in run("metrics")


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


@pytest.fixture
def client(server):
    with MemMachineClient(base_url=server.url, max_retries=0) as one:
        yield one


@pytest.fixture
def memory(client, project):
    return client.create_project(**project).memory()


def status_of(action, *arguments, **settings):
    with pytest.raises(requests.HTTPError) as failure:
        action(*arguments, **settings)
    return failure.value.response.status_code


def test_a_second_category_template_or_tag_of_one_name_is_409(memory):
    set_id = memory.get_semantic_set_id(metadata_tags=[])
    kind = memory.create_semantic_set_type(metadata_tags=["user_id"], is_org_level=True)
    add, add_template = memory.add_semantic_category, memory.add_semantic_category_template
    category = add(set_id=set_id, category_name="likes", prompt="p")
    add_template(set_type_id=kind, category_name="likes", prompt="p")
    tag = {"category_id": category, "tag_name": "food", "tag_description": "dishes"}
    memory.add_semantic_tag(**tag)
    assert status_of(add, set_id=set_id, category_name="likes", prompt="p") == 409
    assert status_of(add_template, set_type_id=kind, category_name="likes", prompt="p") == 409
    assert status_of(memory.add_semantic_tag, **tag) == 409


def test_what_is_not_there_is_404(client, project, memory):
    assert status_of(memory.delete_semantic_set_type, "999") == 404
    assert status_of(memory.delete_semantic_category, "999") == 404
    assert status_of(memory.delete_semantic_tag, "999") == 404
    assert status_of(memory.update_feature, feature_id="999", value="x") == 404
    gone = client.get_project(**project)
    gone.delete()
    assert status_of(gone.delete) == 404


def test_of_several_memories_all_are_deleted_or_none(memory):
    first, second = (memory.add(text)[0].uid for text in ("one", "two"))
    missing = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
    assert status_of(memory.delete_episodic, episodic_ids=[first, missing]) == 404
    assert len(memory.list().content.episodic_memory) == 2
    assert memory.delete_episodic(episodic_ids=[first, second]) is True
    assert memory.list().content.episodic_memory == []


def test_times_thresholds_and_set_metadata_are_honoured(memory):
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


def test_a_message_of_a_megabyte_comes_back_whole(memory):
    content = "Wörter 🌍 " * 100_000
    (added,) = memory.add(content)
    (listed,) = memory.list().content.episodic_memory
    assert (listed.uid, listed.content) == (added.uid, content)
