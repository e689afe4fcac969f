"""The same mistake in several agents' pools is counted, and nothing else of it is told."""

import dataclasses
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.cases import read_cases
from tests.models.tiny_components import write_tiny_onnx_embedder

from ekphory.errors import EmbedderMismatch, InvalidInput, StoreWarning
from ekphory.memory import Memory
from ekphory.mistakes import RepeatedMistake
from ekphory.models.agent_embedder import Embedder
from ekphory.retrieval import snapshot
from ekphory.testing import HashEmbedder
from ekphory.types import to_plain_data

ALSO_OVER_A_SERVER = True
TEXT = "retried a 404\nFix: give up at once"


@pytest.fixture
def make_mistake(open_memory):
    """Keeps a mistake in the pool of whoever is named."""

    def make(at="2026-03-01", text=TEXT, pool="agent_mistakes", **scope):
        with open_memory(**scope) as memory:
            return memory.add(text, at=at, pool=pool, type="procedural").ids[0]

    return make


def test_a_mistake_of_several_agents_is_told_with_how_many_how_often_and_when(
    open_memory, make_mistake
):
    make_mistake("2026-03-05", project="p", agent="a")
    make_mistake("2026-03-01", project="p", agent="b")
    make_mistake("2026-04-02", project="p", agent="b")
    assert open_memory(project="p").repeated_mistakes() == (
        RepeatedMistake(
            2, 3, datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC)
        ),
    )  # fmt: skip


def test_users_count_as_agents_do_and_sessions_do_not(open_memory, make_mistake):
    make_mistake(project="p", agent="a", user="mara", session="1")
    make_mistake(project="p", agent="a", user="mara", session="2")
    assert open_memory(project="p").repeated_mistakes() == ()
    make_mistake(project="p", agent="a", user="ben")
    assert [each.owners for each in open_memory(project="p").repeated_mistakes()] == [2]


def test_those_without_a_name_count_as_one(open_memory, make_mistake):
    make_mistake("2026-03-01", project="p")
    make_mistake("2026-03-02", project="p")
    assert open_memory(project="p").repeated_mistakes() == ()


def test_the_most_common_come_first_and_the_rarer_than_wanted_not_at_all(open_memory, make_mistake):
    for agent in "ab":
        make_mistake(project="p", agent=agent, text="forgot the lease")
    for agent in "abc":
        make_mistake(project="p", agent=agent)
    memory = open_memory(project="p")
    assert [each.owners for each in memory.repeated_mistakes()] == [3, 2]
    assert [each.owners for each in memory.repeated_mistakes(least=3)] == [3]
    assert memory.repeated_mistakes(least=4) == ()


def test_a_mistake_that_is_shared_is_not_told(open_memory, make_mistake):
    made = make_mistake(project="p", agent="a")
    make_mistake(project="p", agent="b")
    with open_memory(project="p", agent="a") as memory:
        memory.promote(made, pool="shared_mistakes")
    assert open_memory(project="p").repeated_mistakes() == ()


def test_a_mistake_that_another_project_shares_is_told(open_memory, make_mistake):
    for agent in "ab":
        make_mistake(project="p", agent=agent)
    make_mistake(project="q", agent="a", pool="shared_mistakes")
    assert len(open_memory().repeated_mistakes()) == 1


@pytest.mark.parametrize("pool", ["agent_memory", "agent_tools", "shared_knowledge"])
def test_what_is_in_other_pools_is_no_mistake(open_memory, make_mistake, pool):
    make_mistake(project="p", agent="a")
    make_mistake(project="p", agent="b", pool=pool)
    assert open_memory(project="p").repeated_mistakes() == ()


def test_a_mistake_that_is_forgotten_or_changed_is_not_counted(open_memory, make_mistake):
    make_mistake(project="p", agent="a")
    gone = make_mistake(project="p", agent="b")
    changed = make_mistake(project="p", agent="c")
    with open_memory(project="p") as memory:
        memory.forget(gone)
        memory.update(changed, text="forgot the lease")
        assert memory.repeated_mistakes() == ()


def test_a_mistake_that_has_expired_is_not_counted(tmp_path):
    with (
        Memory(tmp_path, agent="a", embedder=HashEmbedder()) as lasting,
        Memory(tmp_path, agent="b", embedder=HashEmbedder()) as passing,
        Memory(tmp_path, embedder=HashEmbedder()) as memory,
    ):
        lasting.add(TEXT, pool="agent_mistakes")
        passing.add(
            TEXT, pool="agent_mistakes", expires_at=datetime.now(UTC) + timedelta(seconds=0.3)
        )
        time.sleep(0.3)
        assert memory.repeated_mistakes() == ()


def test_a_chain_of_small_differences_joins_no_more_than_is_near_to_one_in_its_midst(tmp_path):
    chain = (
        "one two three four five six seven eight nine ten",
        "one two three four five six seven eight nine red",
        "one two three four five six seven eight big red",
        "one two three four five six seven old big red",
    )
    with Memory(tmp_path, project="p", embedder=HashEmbedder(dimension=2048)) as memory:
        memory.add_many(
            {"text": text, "agent": str(number), "pool": "agent_mistakes"}
            for number, text in enumerate(chain)
        )
        assert [each.owners for each in memory.repeated_mistakes()] == [3]


def test_a_scope_too_large_for_memory_is_compared_too(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "RESIDENT_ROWS", 3)
    with Memory(tmp_path / "store", project="p", embedder=HashEmbedder()) as memory:
        memory.add_many(
            {"text": TEXT, "agent": str(number), "pool": "agent_mistakes"} for number in range(5)
        )
        assert [each.owners for each in memory.repeated_mistakes()] == [5]


def test_age_and_type_make_no_difference(tmp_path):
    embedder = Embedder.from_pretrained(write_tiny_onnx_embedder(tmp_path / "tiny"))
    with Memory(tmp_path / "store", project="p", embedder=embedder) as memory:
        memory.add_many(
            {"text": TEXT, "agent": kind, "type": kind, "at": at, "pool": "agent_mistakes"}
            for kind, at in (("procedural", "2020-01-01"), ("episodic", datetime.now(UTC)))
        )
        assert [each.owners for each in memory.repeated_mistakes()] == [2]


def test_without_the_model_of_the_vectors_it_is_refused(tmp_path):
    with Memory(tmp_path / "store", embedder=HashEmbedder()) as memory:
        memory.add(TEXT, pool="agent_mistakes")
    with (
        pytest.warns(StoreWarning),
        Memory(tmp_path / "store", embedder=HashEmbedder(dimension=48)) as memory,
        pytest.raises(EmbedderMismatch, match="Make them anew with `ekphory reembed`"),
    ):
        memory.repeated_mistakes()


# Isolation.


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"project": "p"}, {"project": "q"}),
        ({"org": "home", "project": "p"}, {"org": "else", "project": "p"}),
        ({"project": "p"}, {}),
    ],
)
def test_mistakes_of_different_projects_are_never_compared(
    open_memory, make_mistake, first, second
):
    make_mistake(**first, agent="a")
    make_mistake(**second, agent="b")
    for scope in ({}, first, second):
        assert open_memory(**scope).repeated_mistakes() == ()


def test_a_handle_of_one_project_is_told_nothing_of_another(open_memory, make_mistake):
    for agent in "ab":
        make_mistake(org="home", project="q", agent=agent)
    assert open_memory(org="home", project="p").repeated_mistakes() == ()
    assert open_memory(org="else").repeated_mistakes() == ()
    assert len(open_memory(org="home").repeated_mistakes()) == 1


@pytest.mark.parametrize("bound", ["agent", "user", "session"])
def test_a_handle_of_one_owner_is_refused(open_memory, bound):
    memory = open_memory(project="p", **{bound: "x"})
    with pytest.raises(InvalidInput, match="the project as a whole") as refused:
        memory.repeated_mistakes()
    assert refused.value.field == bound


@pytest.mark.parametrize("least", [1, 0, -2, True])
def test_less_than_two_is_refused(memory, least):
    with pytest.raises(InvalidInput, match="least"):
        memory.repeated_mistakes(least=least)


def test_neither_who_nor_what_is_told(open_memory, make_mistake):
    ids = [make_mistake(project="home", agent=name, user="mara") for name in ("ann", "bob")]
    (found,) = open_memory(project="home").repeated_mistakes()
    assert {field.name for field in dataclasses.fields(found)} == {
        *("owners", "memories", "first", "last")
    }
    for told in (repr(found), str(to_plain_data(found))):
        for secret in (*ids, "retried", "404", "ann", "bob", "mara", "home"):
            assert secret not in told


# What is nearly the same, by the bundled model.

CASES = read_cases(__file__)


def count_repeated(store, pairs):
    """Return how many of the pairs count as the same mistake, each in a project of its own."""
    with Memory(store, reranker="none") as memory:
        memory.add_many(
            {"text": text, "project": str(number), "agent": agent, "pool": "agent_mistakes"}
            for number, pair in enumerate(pairs)
            for agent, text in zip("ab", pair, strict=True)
        )
        return len(memory.repeated_mistakes())


def test_two_of_three_mistakes_in_other_words_count_as_the_same(tmp_path):
    assert count_repeated(tmp_path / "store", CASES["the same"]) >= 8


def test_mistakes_that_share_their_topic_alone_are_different(tmp_path):
    assert count_repeated(tmp_path / "store", CASES["different"]) == 0
