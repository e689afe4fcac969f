"""Semantic memory behind a cluster: features, sets, types, categories and tags of projects."""

import asyncio

import pytest
from tests.cluster.front import Replicas
from tests.cluster.test_serving import SEARCH, send

from ekphory.cluster.front import Front
from ekphory.cluster.moving import reshard
from ekphory.cluster.objects import Objects
from ekphory.cluster.operations import erase
from ekphory.cluster.shards import open_shards
from ekphory.errors import StoreError
from ekphory.server.options import ServerOptions
from ekphory.testing import HashEmbedder

pytestmark = pytest.mark.long
SEMANTIC = "/api/v2/memories/semantic"
MARA = {"metadata_tags": ["user_id"], "set_metadata": {"user_id": "mara"}}
BEN = {"metadata_tags": ["user_id"], "set_metadata": {"user_id": "ben"}}


@pytest.fixture
def ask(shards, tmp_path, close_at_end):
    """Sends one request after the other to the front of the shards as they are, and answers."""
    made = {}

    def asking(path, project="home", **body):
        now = open_shards(shards.root, HashEmbedder())
        if now.generation not in made:
            replicas = made[now.generation] = close_at_end(Replicas(now))
            front = Front(now, replicas.ask, errors=(StoreError,))
            options = ServerOptions(store=now.root, catalog=tmp_path / "keys.sqlite3")
            made[now.generation] = replicas, front.application(options)
        named = {"org_id": "acme", "project_id": project, **body}
        [answer] = asyncio.run(send(made[now.generation][1], [(path, named)]))
        return answer

    asking.close = lambda: [replicas.close() for replicas, _ in made.values()]
    return asking


def semantic(ask, path, **body):
    """Ask for what must be answered, and return the answer."""
    status, answer = ask(f"{SEMANTIC}/{path}", **body)
    assert status in (200, 201, 204), answer
    return answer


def add_feature(ask, set_id, value, **named):
    feature = {"category_name": "profile", "tag": "food", "feature": "favourite dish"}
    added = semantic(ask, "feature", set_id=set_id, value=value, **feature, **named)
    return added["feature_id"]


def found_values(ask, project="home"):
    status, answer = ask(SEARCH, project, query="favourite dish")
    assert status == 200, answer
    return sorted(each["value"] for each in answer["content"]["semantic_memory"])


def test_a_feature_is_found_changed_and_seen_in_its_project_alone(ask):
    mara = semantic(ask, "set_id/get", **MARA)["set_id"]
    feature = add_feature(ask, mara, "pizza")
    semantic(ask, "feature/update", feature_id=feature, value="risotto")
    read = semantic(ask, "feature/get", feature_id=feature)
    assert (read["value"], read["set_id"]) == ("risotto", mara)
    assert found_values(ask) == ["risotto"]
    ask("/api/v2/projects", "elsewhere")
    assert found_values(ask, "elsewhere") == []
    assert ask(f"{SEMANTIC}/feature/get", "elsewhere", feature_id=feature)[0] == 404


def make_parts(ask, project):
    """A set type with a template and a tag; return their ids."""
    made = semantic(ask, "set_type", project=project, metadata_tags=["user_id"], name=project)
    template = semantic(
        ask, "category/template", project=project, set_type_id=made["set_type_id"],
        category_name="hobbies", prompt="What they do.",
    )  # fmt: skip
    named = {
        "category_id": template["category_id"],
        "tag_name": "sport",
        "tag_description": "moving",
    }
    tag = semantic(ask, "category/tag", project=project, **named)
    return made["set_type_id"], template["category_id"], tag["tag_id"]


def test_sets_types_categories_and_tags_keep_their_ids_when_shards_change(ask, shards):
    projects = [f"p{number}" for number in range(6)]
    made = {project: make_parts(ask, project) for project in projects}
    assert len({each for ids in made.values() for each in ids}) == 3 * len(projects)
    sets = {each: semantic(ask, "set_id/get", project=each, **MARA)["set_id"] for each in projects}
    for project in projects:
        add_feature(ask, sets[project], f"dish of {project}", project=project)
    ask.close()

    reshard(shards.root, HashEmbedder(), count=2)
    for project, (type_id, category_id, tag_id) in made.items():
        [listed] = semantic(ask, "set_type/list", project=project)["set_types"]
        assert (listed["id"], listed["name"]) == (type_id, project)
        read = semantic(ask, "category/get", project=project, category_id=category_id)
        assert (read["id"], read["name"]) == (category_id, "hobbies")
        known = semantic(ask, "category/set_ids/get", project=project, category_id=category_id)
        assert known["set_ids"] == [sets[project]]
        assert found_values(ask, project) == [f"dish of {project}"]
        assert ask(f"{SEMANTIC}/category/tag/delete", project, tag_id=tag_id)[0] == 204
        assert ask(f"{SEMANTIC}/category/tag/delete", project, tag_id=tag_id)[0] == 404


def test_what_would_be_a_whole_organisations_is_refused(ask):
    status, answer = ask(f"{SEMANTIC}/set_type", metadata_tags=["user_id"], is_org_level=True)
    assert status == 403
    assert "a cluster has nothing of whole organisations" in answer["detail"]["message"]
    of_all = semantic(ask, "set_id/get", metadata_tags=[], is_org_level=True)["set_id"]
    feature = {"category_name": "c", "tag": "t", "feature": "f", "value": "v"}
    assert ask(f"{SEMANTIC}/feature", set_id=of_all, **feature)[0] == 403


def test_the_sets_of_a_person_are_erased_from_the_catalogs(ask, shards):
    for who in (MARA, BEN):
        set_id = semantic(ask, "set_id/get", **who)["set_id"]
        added = {"category_name": "health", "prompt": f"of {who['set_metadata']['user_id']}"}
        category = semantic(ask, "category", set_id=set_id, **added)["category_id"]
        tag = {"tag_name": "pills", "tag_description": "taken"}
        semantic(ask, "category/tag", category_id=category, **tag)
        add_feature(ask, set_id, f"dish of {who['set_metadata']['user_id']}")
    ask.close()

    erase(shards.root, HashEmbedder(), org="acme", user="mara")
    objects = Objects(shards.root)
    stored = b"".join(objects.get(name) for name in objects.names() if "catalogs/" in name)
    assert b"mara" not in stored
    assert b"of ben" in stored
    assert b"pills" in stored
