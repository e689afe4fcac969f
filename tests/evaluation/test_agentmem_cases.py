import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.evaluation.conftest import SETS

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.agentmem_cases import (
    LABELS,
    LEXICAL,
    RULES,
    LabelledText,
    conversation_cases,
    labelled_turns,
)
from ekphory_lab.evaluation.loaders import load_conversation

BOAT = load_conversation(Path(__file__).parent / "boat")


def dataset(*, turns=None, relevant=("0",)):
    given = BOAT.pools["p"]
    passages = given if turns is None else tuple(given[place] for place in turns)
    return replace(BOAT, pools={"p": passages}, qrels={("p", "q"): dict.fromkeys(relevant, 1)})


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
    # A case has eight candidates, no two alike.
    assert len({each.text for each in case.candidates}) == 8
    assert case.answer.text == "Ann: We painted the old boat blue"
    # The age is counted from the newest turn.
    assert case.answer.days_ago == 30
    # No other evidence is a distractor.
    (case,) = conversation_cases(dataset(relevant=("0", "4"))).cases
    assert all("never painted" not in each.text for each in case.candidates)


def test_a_kind_without_a_turn_is_counted_and_its_place_filled():
    found = conversation_cases(dataset(turns=(0, 1, 2, 4, 5, 6, 7, 8)))
    assert found.missing == {**dict.fromkeys(RULES, 0), "other_entity": 1}
    assert [each.kind for each in found.cases[0].distractors].count(LEXICAL) == 2


@pytest.mark.parametrize("turns", [range(7), (*range(6), 6, 6, 6)])
def test_a_conversation_with_too_few_different_turns_makes_no_case(turns):
    assert conversation_cases(dataset(turns=turns)).cases == ()


def test_a_hundred_real_turns_are_labelled_and_none_twice():
    labels = [json.loads(line) for line in LABELS.read_text().splitlines()]
    assert len({(each["dataset"], each["pool"], each["id"]) for each in labels}) == 100
    assert Counter(each["dataset"] for each in labels) == {"locomo_dev": 50, "realtalk": 50}


@pytest.fixture
def label_file(tmp_path):
    row = {"dataset": "chats", "pool": "a", "id": "D1:1", "importance": 0.75, "type": "episodic"}

    def write(**changed):
        (tmp_path / "labels.jsonl").write_text(json.dumps(row | changed))
        return tmp_path / "labels.jsonl"

    return write


def test_the_text_comes_from_the_set(label_file):
    chats = [load_conversation(SETS / "chats")]
    (found,) = labelled_turns(chats, label_file())
    assert found == LabelledText("Ann: I adopted a grey cat", 0.75, "episodic")
    # A labelled turn that its set lacks is named.
    with pytest.raises(DatasetError, match="D9:9"):
        labelled_turns(chats, label_file(id="D9:9"))
    # A wrong label is named with its line.
    for field, value in (("importance", 2), ("type", "odd")):
        with pytest.raises(DatasetError, match=rf"labels.jsonl:1: {field}="):
            labelled_turns(chats, label_file(**{field: value}))
