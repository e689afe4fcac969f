import json
from collections import Counter

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.agentmem_cases import labelled_turns, read_turn_labels
from ekphory_lab.evaluation.loaders import load_conversation


def test_a_hundred_real_turns_are_labelled_and_none_twice():
    labels = read_turn_labels()
    assert len({(each.dataset, each.pool, each.id) for each in labels}) == 100
    assert Counter(each.dataset for each in labels) == {"locomo_dev": 50, "realtalk": 50}


def test_labels_hold_no_text():
    with_text = [each for each in read_turn_labels() if not each.id.startswith("D")]
    assert with_text == []


def test_the_text_comes_from_the_set(tmp_path, conversation_folder):
    file = tmp_path / "labels.jsonl"
    row = {"dataset": "chats", "pool": "a", "id": "D1:1", "importance": 0.75, "type": "episodic"}
    file.write_text(json.dumps(row))
    (found,) = labelled_turns(read_turn_labels(file), [load_conversation(conversation_folder)])
    assert (found.text, found.importance, found.type) == (
        "Ann: I adopted a grey cat", 0.75, "episodic",
    )  # fmt: skip


def test_labels_of_a_set_that_is_not_there_are_passed_over():
    assert labelled_turns(read_turn_labels(), []) == ()


def test_a_labelled_turn_that_its_set_lacks_is_named(tmp_path, conversation_folder):
    file = tmp_path / "labels.jsonl"
    row = {"dataset": "chats", "pool": "a", "id": "D9:9", "importance": 0, "type": "unknown"}
    file.write_text(json.dumps(row))
    with pytest.raises(DatasetError, match="D9:9"):
        labelled_turns(read_turn_labels(file), [load_conversation(conversation_folder)])


@pytest.mark.parametrize(("field", "value"), [("importance", 2), ("type", "odd")])
def test_a_wrong_label_is_named_with_its_line(tmp_path, field, value):
    row = {"dataset": "d", "pool": "p", "id": "1", "importance": 0, "type": "unknown"}
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps(row | {field: value}))
    with pytest.raises(DatasetError, match=rf"labels.jsonl:1: {field}="):
        read_turn_labels(file)
