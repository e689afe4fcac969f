"""Small files in the forms in which authors publish their questions with answers."""

import json
from datetime import UTC, datetime

import pytest
from tests.evaluation.conftest import SETS

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.loaders import load_questions

HOTPOT = [
    {
        "_id": "5a8b",
        "question": "Were Ann and Bob of the same country?",
        "answer": "yes",
        "type": "comparison",
        "level": "hard",
        "supporting_facts": [["Ann", 0], ["Bob", 0]],
        "context": [
            ["Ann", ["Ann was Dutch.", " She sang."]],
            ["Bob", ["Bob was Dutch."]],
            ["Cleo", ["Cleo was Greek."]],
        ],
    },
    {
        "_id": "5a8c",
        "question": "Who sang?",
        "answer": "Ann",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["Ann", 1]],
        "context": [["Ann", ["Ann was Dutch.", " She sang."]], ["Dan", ["Dan was Danish."]]],
    },
]
MUSIQUE = [
    {
        "id": "2hop__1_2",
        "question": "Who is the spouse of the Green performer?",
        "answer": "Miquette Giraudy",
        "answer_aliases": ["Giraudy"],
        "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "Green", "paragraph_text": "By Hillage.", "is_supporting": True},
            {"idx": 1, "title": "Green", "paragraph_text": "A colour.", "is_supporting": False},
        ],
        "question_decomposition": [],
    },
    {
        "id": "2hop__1_2",
        "question": "Who is the spouse of the Blue performer?",
        "answer": "Miquette Giraudy",
        "answer_aliases": [],
        "answerable": False,
        "paragraphs": [],
        "question_decomposition": [],
    },
]
LONGMEMEVAL = [
    {
        "question_id": "e47b",
        "question_type": "single-session-user",
        "question": "How many boats have I got?",
        "answer": 2,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I have two boats", "has_answer": True},
                {"role": "assistant", "content": "Fine", "has_answer": False},
            ],
            [{"role": "user", "content": "It rains"}],
        ],
        "answer_session_ids": ["s1"],
    },
    {
        "question_id": "e47c_abs",
        "question_type": "single-session-user",
        "question": "How many cars have I got?",
        "answer": "You did not mention a car.",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "I have two boats"}]],
        "answer_session_ids": ["s1"],
    },
]


@pytest.fixture
def write(tmp_path):
    """Writes questions into a file, as an array or as lines by its name."""

    def written(name, questions):
        lines = "".join(f"{json.dumps(each)}\n" for each in questions)
        file = tmp_path / name
        file.write_text(lines if name.endswith(".jsonl") else json.dumps(questions))
        return file

    return written


def test_the_paragraphs_of_all_questions_of_hotpotqa_are_one_corpus(write):
    dataset = load_questions(write("hotpot_dev.json", HOTPOT))
    assert dataset.name == "hotpot_dev"
    assert dataset.source.title == "HotpotQA (Yang et al., EMNLP 2018)"
    assert dataset.pools[""] == (
        Passage(id="0", text="Ann\nAnn was Dutch. She sang."),
        Passage(id="1", text="Bob\nBob was Dutch."),
        Passage(id="2", text="Cleo\nCleo was Greek."),
        Passage(id="3", text="Dan\nDan was Danish."),
    )
    assert [(each.category, each.answers) for each in dataset.queries] == [
        ("comparison", ("yes",)),
        ("bridge", ("Ann",)),
    ]
    assert dataset.qrels == {("", "5a8b"): {"0": 1, "1": 1}, ("", "5a8c"): {"0": 1}}


def test_2wikimultihopqa_has_the_same_form_and_its_own_source(write):
    rows = [each | {"evidences": [["Ann", "country", "NL"]]} for each in HOTPOT]
    dataset = load_questions(write("dev.json", rows), categories={"bridge"})
    assert dataset.source.title == "2WikiMultiHopQA (Ho et al., COLING 2020)"
    assert [each.id for each in dataset.queries] == ["5a8c"]


def test_musique_keeps_aliases_and_leaves_out_what_is_not_answerable(write):
    dataset = load_questions(write("musique_full.jsonl", MUSIQUE))
    (query,) = dataset.queries
    assert query.answers == ("Miquette Giraudy", "Giraudy")
    assert query.category == "2hop"
    assert [each.text for each in dataset.pools[""]] == ["Green\nBy Hillage.", "Green\nA colour."]
    assert dataset.qrels == {("", "2hop__1_2"): {"0": 1}}


def test_a_question_of_longmemeval_searches_its_own_sessions(write):
    dataset = load_questions(write("longmemeval_s.json", LONGMEMEVAL))
    (query,) = dataset.queries
    assert query.answers == ("2",)
    assert query.at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert dataset.pools["e47b"][0] == Passage(
        id="0:0",
        text="I have two boats",
        speaker="user",
        at=datetime(2023, 5, 20, 2, 21, tzinfo=UTC),
        session="s1",
        sequence=0,
    )
    assert dataset.qrels == {("e47b", "e47b"): {"0:0": 1}}
    # Where no turn is marked, every turn of the sessions that answer counts.
    del LONGMEMEVAL[0]["haystack_sessions"][0][0]["has_answer"]
    dataset = load_questions(write("unmarked.json", LONGMEMEVAL))
    assert dataset.qrels == {("e47b", "e47b"): {"0:0": 1, "0:1": 1}}


def test_locomos_own_file_gives_its_answers_without_the_adversarial_questions():
    dataset = load_questions(SETS / "locomo" / "locomo.json")
    assert [(each.category, each.answers) for each in dataset.queries] == [("4", ("a kite",))]


@pytest.mark.parametrize(
    ("name", "questions", "problem"),
    [
        ("dev.json", [], "dev.json: it has no question"),
        ("dev.json", [["no", "object"]], "question 0: not an object"),
        ("dev.json", [*HOTPOT, {"_id": "x", "question": "?"}], "question 2: not the form of hot"),
        ("dev.jsonl", [{"paragraphs": [], "id": "x"}], "dev.jsonl:1: question=None"),
    ],
)
def test_a_file_of_another_form_is_refused_and_the_place_named(write, name, questions, problem):
    with pytest.raises(DatasetError, match=problem):
        load_questions(write(name, questions))
