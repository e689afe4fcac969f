from collections import Counter
from dataclasses import fields
from datetime import datetime

from ekphory.cli.demo import DEMO_NOW, demo_questions, demo_records
from ekphory.types import MEMORY_TYPES, MemoryRecord


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


def test_the_chain_to_the_birthplace_goes_through_wife_and_father():
    texts = {record["id"]: str(record["text"]) for record in demo_records()}
    (question,) = (q for q in demo_questions() if "Rembrandt" in q.text)
    marriage, father, birthplace = (texts[memory_id] for memory_id in question.chain)
    assert "Rembrandt married Saskia van Uylenburgh" in marriage
    assert "Saskia's father was Rombertus van Uylenburgh" in father
    assert "Rombertus van Uylenburgh was born in Bergum" in birthplace


def test_the_chain_to_the_company_goes_through_ceo_and_spouse():
    texts = {record["id"]: str(record["text"]) for record in demo_records()}
    (question,) = (q for q in demo_questions() if "Acme" in q.text)
    ceo, spouse, company = (texts[memory_id] for memory_id in question.chain)
    assert "CEO: Leonie Vasquez" in ceo
    assert "Leonie Vasquez is married to Piet Hofstra" in spouse
    assert "Piet Hofstra's company is Blauwdruk Robotics" in company
