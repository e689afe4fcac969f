import pytest

from ekphory.agent.provider import AgentOptions, AgentSettings
from ekphory.cli.demo import DEMO_NOW, DemoQuestion, demo_questions, demo_records
from ekphory.memory import Memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with Memory(tmp_path_factory.mktemp("demo") / "store") as opened:
        report = opened.add_many(demo_records())
        assert (report.added, report.skipped, report.failed) == (127, 0, [])
        yield opened


CHAINS = [question for question in demo_questions() if question.chain]
LOOKUPS = [question for question in demo_questions() if not question.chain]
LOCAL = AgentOptions(settings=AgentSettings(agent_session_provider="local"))


@pytest.mark.parametrize("question", LOOKUPS, ids=lambda question: question.text)
def test_an_expected_memory_is_among_the_first_three(memory, question: DemoQuestion):
    found = [hit.id for hit in memory.search(question.text, k=3, now=DEMO_NOW)]
    assert set(found) & set(question.expected)


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
