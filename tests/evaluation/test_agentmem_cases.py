import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.agentmem_cases import (
    LEXICAL,
    RULES,
    LabelledText,
    conversation_cases,
    labelled_turns,
    read_turn_labels,
)
from ekphory_lab.evaluation.datasets import UNKNOWN, Dataset, EvaluationQuery, Passage
from ekphory_lab.evaluation.loaders import load_conversation

START = datetime(2025, 1, 1, tzinfo=UTC)
TURNS = [
    ("Ann", 0, "We painted the old boat blue"),
    ("Bob", 0, "What a lovely boat that is"),
    ("Ann", 0, "The boat needs 3 new ropes"),
    ("Ann", 0, "I sailed the boat with Clara"),
    ("Bob", 30, "My boat was never painted"),
    ("Ann", 30, "The painted fence is old"),
    ("Bob", 30, "Blue is a nice colour"),
    ("Ann", 30, "See you at the harbour"),
    ("Bob", 30, "Bring sandwiches and tea"),
]


def dataset(turns=TURNS, relevant=(0,)):
    passages = tuple(
        Passage(
            id=str(place),
            text=text,
            speaker=speaker,
            at=START + timedelta(days=days),
            session=str(days),
            sequence=place,
        )
        for place, (speaker, days, text) in enumerate(turns)
    )
    query = EvaluationQuery(pool="p", id="q", text="Which colour was the boat painted?")
    gains = {str(place): 1 for place in relevant}
    return Dataset(
        name="chat", pools={"p": passages}, queries=(query,), qrels={query.key: gains},
        source=UNKNOWN, files=(),
    )  # fmt: skip


def kinds(case):
    return {each.kind: each.candidate.text for each in case.distractors if each.kind != LEXICAL}


def test_every_kind_names_a_turn_that_fits_it():
    (case,) = conversation_cases(dataset()).cases
    assert kinds(case) == {
        "adjacent_turn": "Bob: What a lovely boat that is",
        "number_or_negation": "Bob: My boat was never painted",
        "other_entity": "Ann: I sailed the boat with Clara",
        "another_time": "Ann: The painted fence is old",
        "other_speaker": "Bob: Blue is a nice colour",
        "same_speaker_and_topic": "Ann: The boat needs 3 new ropes",
    }


def test_a_case_has_eight_candidates_no_two_alike():
    (case,) = conversation_cases(dataset()).cases
    assert len({each.text for each in case.candidates}) == 8
    assert case.answer.text == "Ann: We painted the old boat blue"


def test_no_other_evidence_is_a_distractor():
    (case,) = conversation_cases(dataset(relevant=(0, 4))).cases
    assert all("never painted" not in each.text for each in case.candidates)


def test_a_kind_without_a_turn_is_counted_and_its_place_filled():
    turns = [turn for turn in TURNS if "Clara" not in turn[2]]
    found = conversation_cases(dataset(turns))
    assert found.missing == {**dict.fromkeys(RULES, 0), "other_entity": 1}
    assert [each.kind for each in found.cases[0].distractors].count(LEXICAL) == 2


def test_the_age_is_counted_from_the_newest_turn():
    (case,) = conversation_cases(dataset()).cases
    assert case.answer.days_ago == 30


@pytest.mark.parametrize("turns", [TURNS[:7], [*TURNS[:6], *[TURNS[6]] * 3]])
def test_a_conversation_with_too_few_different_turns_makes_no_case(turns):
    assert conversation_cases(dataset(turns)).cases == ()


def test_a_hundred_real_turns_are_labelled_and_none_twice():
    labels = read_turn_labels()
    assert len({(each.dataset, each.pool, each.id) for each in labels}) == 100
    assert Counter(each.dataset for each in labels) == {"locomo_dev": 50, "realtalk": 50}


@pytest.fixture
def label_file(tmp_path):
    row = {"dataset": "chats", "pool": "a", "id": "D1:1", "importance": 0.75, "type": "episodic"}

    def write(**changed):
        (tmp_path / "labels.jsonl").write_text(json.dumps(row | changed))
        return tmp_path / "labels.jsonl"

    return write


def test_the_text_comes_from_the_set(label_file, conversation_folder):
    labels = read_turn_labels(label_file())
    (found,) = labelled_turns(labels, [load_conversation(conversation_folder)])
    assert found == LabelledText("Ann: I adopted a grey cat", 0.75, "episodic")


def test_a_labelled_turn_that_its_set_lacks_is_named(label_file, conversation_folder):
    labels = read_turn_labels(label_file(id="D9:9"))
    with pytest.raises(DatasetError, match="D9:9"):
        labelled_turns(labels, [load_conversation(conversation_folder)])


@pytest.mark.parametrize(("field", "value"), [("importance", 2), ("type", "odd")])
def test_a_wrong_label_is_named_with_its_line(label_file, field, value):
    with pytest.raises(DatasetError, match=rf"labels.jsonl:1: {field}="):
        read_turn_labels(label_file(**{field: value}))
