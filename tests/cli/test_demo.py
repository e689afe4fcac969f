from collections import Counter
from datetime import datetime

import pytest

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.cli.demo import DEMO_NOW, DemoQuestion, demo_questions, demo_records
from ekphory.memory import Memory


@pytest.mark.slow
def test_the_demo_ends_well_leaves_the_users_store_alone_and_says_how_to_go_on(shown_demo):
    result, store = shown_demo
    assert result.exit_code == 0, result.output
    assert not store.exists()
    assert "ekphory add" in result.stderr
    assert "ekphory import" in result.stderr


@pytest.mark.slow
def test_the_demo_shows_searches_stages_history_questions_and_chains_hop_by_hop(shown_demo):
    lines = [line.strip() for line in shown_demo[0].stdout.splitlines()]
    assert lines[1].startswith("127 memories of eight conversations added in ")
    assert {
        "By type",
        "What the first search did, as --explain shows it:",
        "What changes is kept as history:",
    } <= set(lines)
    for part in (
        "of 17 questions find an expected memory",
        "✓ wife of Rembrandt → Saskia van Uylenburgh",
        "✓ father of Saskia van Uylenburgh → Rombertus van Uylenburgh",
        "✓ spouse of Leonie Vasquez → Piet Hofstra",
    ):
        assert any(part in line for line in lines), part


@pytest.mark.slow
def test_where_mara_lives_is_her_new_address_and_the_old_one_is_marked_and_found_as_the_past(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("EKPHORY_DETECT_CHANGES", "1")
    with Memory(tmp_path) as memory:
        memory.add_many(demo_records())
        memory.settle()
        now = memory.search("Where does Mara live?", k=3, now=DEMO_NOW)
        before = memory.search("Where did Mara live before?", k=3, now=DEMO_NOW)
    superseded = {hit.id: hit.superseded_by for hit in now}
    assert (now[0].id, superseded["s1-12"]) == ("s6-01", "s6-01")
    assert before[0].id == "s1-12"


@pytest.mark.long
def test_a_kept_demo_can_be_asked_further_and_most_of_its_questions_are_answered(ekphory, tmp_path):
    report = ekphory.json("demo", "--keep", str(tmp_path / "mara"))
    assert (report["added"], len(report["questions"])) == (127, 17)
    assert report["answered"] >= 15
    assert report["captured"]["redactions"] == 1
    assert "always use uv" in report["known"]["hits"][0]["memory"]["text"]
    assert [version["id"] for version in report["history"]] == ["fact-passport", "fact-passport~1"]
    assert ekphory.json("get", "fact-kestrel", "--store", str(tmp_path / "mara"))["text"]


def test_the_conversation_has_eight_sessions_of_turns_in_order_before_the_questions():
    turns = [record for record in demo_records() if "session" in record]
    lengths = {"s1": 13, "s2": 14, "s3": 14, "s4": 13, "s5": 14, "s6": 14, "s7": 13, "s8": 15}
    assert Counter(turn["session"] for turn in turns) == lengths
    moments = [str(turn["at"]) for turn in turns]
    assert moments == sorted(moments)
    assert (moments[0][:7], moments[-1][:7]) == ("2026-01", "2026-09")
    assert max(datetime.fromisoformat(str(each["at"])) for each in demo_records()) < DEMO_NOW


def test_every_question_expects_memories_that_exist():
    questions, known = demo_questions(), {record["id"] for record in demo_records()}
    assert (len(questions), len(known)) == (17, 127)
    assert all(question.expected for question in questions)
    assert {name for one in questions for name in (*one.expected, *one.chain)} <= known


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
