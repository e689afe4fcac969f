"""The tools about pools, and what captures and relates, of the set `agents`."""

import itertools

import pytest

from ekphory.config import Settings
from ekphory.mcp_server.tool import Memories
from ekphory.scope import Scope

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def memories(tmp_path_factory):
    """A store apart: what is promoted is seen by whoever is bound to no project."""
    opened = Memories(Settings(store=str(tmp_path_factory.mktemp("pools") / "store")))
    yield opened
    opened.close()


@pytest.fixture
def agent(offered):
    return offered("agents", project=f"pooling {next(_numbers)}")


def test_a_mistake_is_learnt_and_recalled(agent):
    made = agent.data("learn_mistake", what="retried a 404", fix="give up at once")["id"]
    (hit,) = agent.data("recall", query="retried a 404")["hits"]
    assert (hit["id"], hit["pool"]) == (made, "agent_mistakes")


def test_a_memory_is_promoted_and_a_rule_never(agent):
    agent.call("remember", text="The cache key is the commit", id="key")
    made = agent.data("promote", id="key")["id"]
    assert made == "key-in-shared_knowledge"
    assert "shared_rules" in agent.refusal("promote", id="key", pool="shared_rules")


RULE = {"text": "Say hello first", "pool": "shared_rules", "metadata": {"pinned": True}}


def test_no_tool_pins_a_rule(agent):
    assert "only people do" in agent.refusal("remember", **RULE)
    assert "only people do" in agent.refusal("remember_many", memories=[RULE])
    assert agent.data("list")["total"] == 0
    agent.call("remember", text="Salt the water", pool="shared_rules", id="advice")
    assert "pinned rule" in agent.refusal("update", id="advice", metadata={"pinned": True})
    agent.call("update", id="advice", metadata={"pinned": False})


def test_no_tool_rewrites_a_rule_that_a_person_has_pinned(offered, memories):
    with memories.use(Scope(project="ruled")) as memory:
        rule = memory.add_rule("Answer in metric units")
    agent = offered("agents", project="ruled")
    assert "Ask a person" in agent.refusal("update", id=rule, text="Answer in miles")
    assert agent.recalled("units") == ["Answer in metric units"]


def test_a_dialogue_is_captured_without_its_secret(agent):
    messages = [
        {"content": "hello"},
        {"content": "I'm allergic to hazelnuts, never suggest any"},
        {"content": "the wifi password is hedgehog-Lamp-91"},
    ]
    answer = agent.data("capture", messages=messages)
    assert [1] in [each["evidence"] for each in answer["kept"]]
    assert answer["redactions"] == 1


def test_many_are_remembered_at_once_and_one_that_cannot_be_is_refused_by_itself(agent):
    given = [{"text": "Tea is in the tin"}, {"text": " "}, {"text": "Salt is in the jar"}]
    answer = agent.data("remember_many", memories=given)
    assert (answer["added"], answer["already_there"]) == (2, 0)
    (refused,) = answer["refused"]
    assert (refused["index"], refused["problem"][:4]) == (1, "text")
    assert agent.data("list")["total"] == 2
    assert "memories" in agent.refusal("remember_many", memories=[])


@pytest.mark.parametrize(("redact", "kept"), [(True, "[redacted]"), (False, "hedgehog-Lamp-91")])
def test_secrets_are_cut_out_of_what_is_remembered_where_that_is_asked_for(agent, redact, kept):
    given = {"text": "the wifi password is hedgehog-Lamp-91"}
    agent.call("remember", **given, redact=redact)
    agent.call("remember_many", memories=[{**given, "source": "mail"}], redact=redact)
    listed = [each["text"] for each in agent.data("list")["memories"]]
    assert set(listed) == {f"the wifi password is {kept}"}


def test_what_is_like_a_memory_is_shown(agent):
    agent.call("remember", text="The dog is called Biscuit", id="dog")
    agent.call("remember", text="Biscuit is a brown dog", id="brown")
    (found,) = agent.data("related", id="dog")["memories"]
    assert found["id"] == "brown"
    assert agent.data("related", path="nowhere.md")["memories"] == []


def test_the_gate_tells_when_it_lets_the_reranker_run(agent):
    data, texts = agent.call("gate_status", preset="memory_spark")
    status = data["status"]
    assert (status["mode"], status["thresholds"]) == ("hard", {"low": 0.02, "high": 0.08})
    assert texts[0].startswith("memory_spark has the gate hard")
    assert "mode" not in agent.data("gate_status")["status"]
    assert "no such preset" in agent.refusal("gate_status", preset="best")


def test_a_dialogue_is_captured_with_its_labels(agent):
    messages = [{"content": "I want my invoices as PDF by mail, never on paper"}]
    (first,) = agent.data("capture", messages=messages)["kept"]
    (again,) = agent.data("capture", messages=messages, labels=["invoices"])["kept"]
    assert (first["labels"], again["labels"], again["id"]) == ([], ["invoices"], first["id"])
    (found,) = agent.data("list", filter="m.labels HAS 'invoices'")["memories"]
    assert found["id"] == first["id"]
