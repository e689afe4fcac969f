import pytest

from recollect.demo import DEMO_NOW, DemoQuestion, demo_questions, demo_records
from recollect.memory import Memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with Memory(tmp_path_factory.mktemp("demo") / "store") as opened:
        report = opened.add_many(demo_records())
        assert (report.added, report.skipped, report.failed) == (123, 0, [])
        yield opened


@pytest.mark.parametrize("question", demo_questions(), ids=lambda question: question.text)
def test_an_expected_memory_is_among_the_first_three(memory, question: DemoQuestion):
    found = [hit.id for hit in memory.search(question.text, k=3, now=DEMO_NOW)]
    # One lookup finds where a chain begins; following it to the end is the agent's work.
    assert set(found) & {*question.expected, *question.chain[:1]}


def test_the_passport_is_forgotten_once_it_is_no_longer_valid(memory):
    question = "How long is Mara's passport valid?"
    assert memory.search(question, k=1, now=DEMO_NOW).hits[0].id == "fact-passport"
    later = {hit.id for hit in memory.search(question, k=123, now="2036-06-03")}
    assert "fact-passport" not in later
