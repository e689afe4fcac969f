import json

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.loaders import load_conversation, load_locomo, mark_label_errors
from ekphory_lab.evaluation.runner import evaluate, to_json
from ekphory_lab.evaluation.systems import bm25_system

BOAT = {"question_id": "locomo_7_qa1", "question": "What happened to the boat?"}


@pytest.fixture
def dataset(conversation_folder):
    return load_conversation(conversation_folder)


@pytest.fixture
def listing(tmp_path):
    def write(*entries):
        file = tmp_path / "label_errors.json"
        file.write_text(json.dumps(entries))
        return file

    return write


def test_a_listed_question_is_found_by_position_and_text_in_any_conversation(dataset, listing):
    elsewhere = {"question_id": "locomo_0_qa5", "question": "Who is not in this set?"}
    marked = mark_label_errors(dataset, listing(BOAT, elsewhere))
    assert marked.label_errors == {("a", "1")}
    assert marked.queries == dataset.queries


def test_the_figures_are_given_with_and_without_the_wrong_labels(dataset, listing):
    report = evaluate(mark_label_errors(dataset, listing(BOAT)), bm25_system())
    assert report.overall.queries == 3
    assert report.without_label_errors.queries == 2
    assert to_json(report)["without_label_errors"]["queries"] == 2


def test_without_a_list_nothing_is_said_about_wrong_labels(dataset):
    report = evaluate(dataset, bm25_system())
    assert report.without_label_errors is None
    assert to_json(report)["without_label_errors"] is None


def test_a_list_about_other_questions_is_refused(dataset, listing):
    other = BOAT | {"question_id": "locomo_7_qa2"}
    with pytest.raises(DatasetError, match="of 1 questions listed, 0 are among the 3 queries"):
        mark_label_errors(dataset, listing(other))


def test_a_list_of_all_questions_is_refused(dataset, listing):
    entries = [
        {"question_id": f"locomo_0_qa{query.id}", "question": query.text}
        for query in dataset.queries
    ]
    with pytest.raises(DatasetError, match="3 are among the 3 queries"):
        mark_label_errors(dataset, listing(*entries))


@pytest.mark.parametrize("entry", [3, {}, {"question_id": "qa1", "question": "Who?"}])
def test_an_entry_of_another_form_is_named(dataset, listing, entry):
    with pytest.raises(DatasetError, match=r"label_errors\.json: entry 1 is"):
        mark_label_errors(dataset, listing(BOAT, entry))


@pytest.mark.parametrize("content", ["", "{}", "\x00"])
def test_a_file_of_another_form_is_refused(dataset, tmp_path, content):
    (tmp_path / "label_errors.json").write_text(content)
    with pytest.raises(DatasetError, match=r"label_errors\.json: not"):
        mark_label_errors(dataset, tmp_path / "label_errors.json")


def test_a_missing_file_is_named(dataset, tmp_path):
    with pytest.raises(DatasetError, match=r"nowhere\.json: no such file"):
        mark_label_errors(dataset, tmp_path / "nowhere.json")


def test_the_audit_of_locomo_lists_85_of_760_questions(shared_data):
    folder = shared_data / "locomo_dev"
    dataset = load_locomo(folder / "locomo.json")
    assert len(mark_label_errors(dataset, folder / "label_errors.json").label_errors) == 85
