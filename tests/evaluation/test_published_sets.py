"""Small files in the forms in which authors publish their questions with answers."""

import json
from datetime import UTC, datetime

import pytest
from tests.evaluation.conftest import SETS

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.loaders import load_questions

PUBLISHED = SETS / "published"
HOTPOT = json.loads((PUBLISHED / "hotpot_dev.json").read_text())


@pytest.fixture
def write(tmp_path):
    """Writes questions into a file, as an array or as lines by its name."""

    def written(name, questions):
        lines = "".join(f"{json.dumps(each)}\n" for each in questions)
        file = tmp_path / name
        file.write_text(lines if name.endswith(".jsonl") else json.dumps(questions))
        return file

    return written


def test_the_paragraphs_of_all_questions_of_hotpotqa_are_one_corpus():
    dataset = load_questions(PUBLISHED / "hotpot_dev.json")
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


def test_musique_keeps_aliases_and_leaves_out_what_is_not_answerable():
    dataset = load_questions(PUBLISHED / "musique_full.jsonl")
    (query,) = dataset.queries
    assert query.answers == ("Miquette Giraudy", "Giraudy")
    assert query.category == "2hop"
    assert [each.text for each in dataset.pools[""]] == ["Green\nBy Hillage.", "Green\nA colour."]
    assert dataset.qrels == {("", "2hop__1_2"): {"0": 1}}


def test_a_question_of_longmemeval_searches_its_own_sessions(write):
    dataset = load_questions(PUBLISHED / "longmemeval_s.json")
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
    questions = json.loads((PUBLISHED / "longmemeval_s.json").read_text())
    del questions[0]["haystack_sessions"][0][0]["has_answer"]
    dataset = load_questions(write("unmarked.json", questions))
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
