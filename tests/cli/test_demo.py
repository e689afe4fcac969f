from collections import Counter
from dataclasses import fields
from datetime import datetime

import pytest

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.cli.demo import DEMO_NOW, DemoQuestion, demo_questions, demo_records
from ekphory.memory import Memory
from ekphory.types import MEMORY_TYPES, MemoryRecord


def test_the_demo_ends_well_and_leaves_the_users_store_alone(shown_demo):
    result, store = shown_demo
    assert result.exit_code == 0, result.output
    assert not store.exists()


def test_the_demo_shows_searches_stages_history_and_questions(shown_demo):
    lines = [line.strip() for line in shown_demo[0].stdout.splitlines()]
    assert lines[1].startswith("127 memories of eight conversations added in ")
    assert "By type" in lines
    assert "What the first search did, as --explain shows it:" in lines
    assert "What changes is kept as history:" in lines
    assert any("of 17 questions find an expected memory" in line for line in lines)


def test_the_demo_ends_by_saying_how_to_go_on(shown_demo):
    assert "ekphory add" in shown_demo[0].stderr
    assert "ekphory import" in shown_demo[0].stderr


def test_a_kept_demo_can_be_asked_further_and_most_of_its_questions_are_answered(ekphory, tmp_path):
    report = ekphory.json("demo", "--keep", str(tmp_path / "mara"))
    assert (report["added"], len(report["questions"])) == (127, 17)
    assert report["answered"] >= 15
    assert [version["id"] for version in report["history"]] == ["fact-passport", "fact-passport~1"]
    assert ekphory.json("get", "fact-kestrel", "--store", str(tmp_path / "mara"))["text"]


def test_the_demo_shows_chains_hop_by_hop(shown_demo):
    text = shown_demo[0].stdout
    assert "✓ wife of Rembrandt → Saskia van Uylenburgh" in text
    assert "✓ father of Saskia van Uylenburgh → Rombertus van Uylenburgh" in text
    assert "✓ spouse of Leonie Vasquez → Piet Hofstra" in text


def test_the_conversation_has_eight_sessions_of_turns_in_order():
    turns = [record for record in demo_records() if "session" in record]
    assert len(turns) == 110
    assert Counter(turn["session"] for turn in turns) == {
        "s1": 13, "s2": 14, "s3": 14, "s4": 13, "s5": 14, "s6": 14, "s7": 13, "s8": 15,
    }  # fmt: skip
    moments = [str(turn["at"]) for turn in turns]
    assert moments == sorted(moments)
    assert (moments[0][:7], moments[-1][:7]) == ("2026-01", "2026-09")


def test_ids_are_unique_and_only_known_fields_are_used():
    records = list(demo_records())
    assert len({record["id"] for record in records}) == len(records) == 127
    assert {name for record in records for name in record} <= {
        field.name for field in fields(MemoryRecord)
    }
    assert {str(record["type"]) for record in records if "type" in record} <= set(MEMORY_TYPES)


@pytest.mark.parametrize(
    ("name", "links"),
    [
        (
            "Rembrandt",
            (
                "Rembrandt married Saskia van Uylenburgh",
                "Saskia's father was Rombertus van Uylenburgh",
                "Rombertus van Uylenburgh was born in Bergum",
            ),
        ),
        (
            "Acme",
            (
                "CEO: Leonie Vasquez",
                "Leonie Vasquez is married to Piet Hofstra",
                "Piet Hofstra's company is Blauwdruk Robotics",
            ),
        ),
    ],
)
def test_a_chain_goes_from_memory_to_memory(name, links):
    texts = {record["id"]: str(record["text"]) for record in demo_records()}
    (question,) = (q for q in demo_questions() if name in q.text)
    assert all(
        link in texts[memory_id] for link, memory_id in zip(links, question.chain, strict=True)
    )


def test_nothing_happens_after_the_moment_of_the_questions():
    assert max(datetime.fromisoformat(str(r["at"])) for r in demo_records()) < DEMO_NOW


def test_one_memory_will_expire():
    ends = {r["id"]: r["expires_at"] for r in demo_records() if "expires_at" in r}
    assert ends == {"fact-passport": "2036-06-02T22:00:00Z"}


def test_every_question_expects_memories_that_exist():
    known = {record["id"] for record in demo_records()}
    questions = demo_questions()
    assert len(questions) == 17
    for question in questions:
        assert question.expected
        assert set(question.expected) | set(question.chain) <= known


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with Memory(tmp_path_factory.mktemp("demo") / "store") as opened:
        report = opened.add_many(demo_records())
        assert (report.added, report.skipped, report.failed) == (127, 0, [])
        yield opened


CHAINS = [question for question in demo_questions() if question.chain]
LOCAL = AgentOptions(settings=AgentSettings(agent_session_provider="local"))


@pytest.mark.parametrize("question", CHAINS, ids=lambda question: question.text)
def test_the_agent_follows_a_chain_to_its_end_in_order(memory, question: DemoQuestion):
    result = memory.search(question.text, k=5, now=DEMO_NOW, agent_mode=True, agent_options=LOCAL)
    hops = result.retrieval_trace.hops
    assert tuple(hop.memory_ids[0] for hop in hops) == question.chain
    # A link that the agent is less sure of than not stands after the others.
    assert {hit.id for hit in result} >= set(question.chain)


def test_the_passport_is_forgotten_once_it_is_no_longer_valid(memory):
    question = "How long is Mara's passport valid?"
    assert memory.search(question, k=1, now=DEMO_NOW).hits[0].id == "fact-passport"
    later = {hit.id for hit in memory.search(question, k=123, now="2036-06-03")}
    assert "fact-passport" not in later
