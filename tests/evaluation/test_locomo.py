import json

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.loaders import evidence_ids, load_locomo

KNOWN = {"D1:1", "D1:2", "D8:6", "D9:17", "D11:26"}


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (["D1:1"], ["D1:1"]),
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D1:1 D1:2"], ["D1:1", "D1:2"]),
        (["D:11:26"], ["D11:26"]),
        (["D1:02"], ["D1:2"]),
        (["D1:1", "D", "D1:2"], ["D1:1", "D1:2"]),
        (["D1:1", "D1:1"], ["D1:1"]),
        (["D10:19"], []),
        ([], []),
    ],
)
def test_evidence_is_cleaned(evidence, expected):
    assert evidence_ids(evidence, known=KNOWN) == expected


@pytest.fixture
def locomo_file(tmp_path):
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "Look!", "blip_caption": "a red kite"},
            {"dia_id": "D1:2", "speaker": "Bob", "text": "Nice."},
        ],
    }
    questions = [
        {"question": "What did Ann show?", "answer": "a kite", "evidence": ["D1:1"], "category": 4},
        {"question": "Where?", "answer": "?", "evidence": ["D7:1"], "category": 3},
        {"question": "What did Bob show?", "evidence": ["D1:2"], "category": 5},
    ]
    file = tmp_path / "mine.json"
    file.write_text(
        json.dumps([{"sample_id": "conv-1", "conversation": conversation, "qa": questions}])
    )
    return file


def test_the_caption_of_a_shared_photo_is_part_of_the_text(locomo_file):
    first = load_locomo(locomo_file).pools["conv-1"][0]
    assert first.text == "Look! [shares a photo: a red kite]"


def test_questions_without_evidence_in_the_conversation_and_adversarial_ones_are_left_out(
    locomo_file,
):
    dataset = load_locomo(locomo_file)
    assert [(query.id, query.text) for query in dataset.queries] == [("0", "What did Ann show?")]


def test_adversarial_questions_can_be_asked_for(locomo_file):
    dataset = load_locomo(locomo_file, categories={"4", "5"})
    assert [query.category for query in dataset.queries] == ["4", "5"]


def test_an_unknown_file_has_locomos_licence_and_is_unverified(locomo_file):
    dataset = load_locomo(locomo_file)
    assert (dataset.name, dataset.verified, dataset.source.licence) == (
        "mine",
        False,
        "CC BY-NC 4.0",
    )


def test_a_file_that_breaks_off_is_an_error(locomo_file):
    locomo_file.write_text(locomo_file.read_text()[:-40])
    with pytest.raises(DatasetError, match=r"mine\.json"):
        load_locomo(locomo_file)


def test_a_file_without_questions_is_an_error(tmp_path):
    file = tmp_path / "empty.json"
    file.write_text("[]")
    with pytest.raises(DatasetError, match="no query has a relevant passage"):
        load_locomo(file)
