"""What a model says that each hop gave."""

from hypothesis import given
from hypothesis import strategies as st
from tests.prompting.hits import hit

from ekphory.agent.llm_session import read_final_words
from ekphory.agent.provider import Found

WIFE = hit("Rembrandt married Saskia")
ROOF = hit("The roof leaks")
FOUND = [Found("wife of Rembrandt", (ROOF, WIFE)), Found("roof", (ROOF,))]
TEXT = """[StageResult] Query: Wife of Rembrandt? | Answer: Saskia | Confidence: 0.9 | Reason: a
She was Saskia.
Sufficient: yes"""


def test_a_line_becomes_a_hop_with_the_memory_that_states_it():
    words = read_final_words(TEXT, FOUND)
    (hop,) = words.hops
    assert (hop.answer, hop.confidence, hop.memory_ids) == ("Saskia", 0.9, (WIFE.id,))
    assert words.response == "She was Saskia.\nSufficient: yes"
    assert words.sufficient


def test_a_model_that_tells_no_hops_has_one_for_each_query():
    hops = read_final_words("Done.", FOUND).hops
    assert [(hop.query, hop.memory_ids) for hop in hops] == [
        ("wife of Rembrandt", (ROOF.id,)),
        ("roof", (ROOF.id,)),
    ]


def test_a_model_may_say_that_it_is_not_enough():
    assert not read_final_words("Nothing found.\nSufficient: no", FOUND).sufficient


@given(st.text(max_size=300))
def test_whatever_a_model_says_is_read(text):
    words = read_final_words(f"[StageResult] Query: a | Answer: {text} | Confidence: {text}", FOUND)
    assert all(0 <= hop.confidence <= 1 for hop in words.hops)
