import gzip
import json
from pathlib import Path

import pytest

from ekphory.errors import DatasetError, InvalidInput
from ekphory.importers.locomo import read_conversations, read_locomo

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "locomo_dev"


def turn(identity, speaker, text, **more):
    return {"dia_id": identity, "speaker": speaker, "text": text, **more}


def sample(sample_id="conv-1", **more):
    look = turn("D2:1", "Ann", "Look!", blip_caption="a photo of a dog")
    talk = {
        **{"speaker_a": "Ann", "speaker_b": "Bo", "session_10": [turn("D10:1", "Bo", "late")]},
        "session_10_date_time": "12:05 am on 3 July, 2023",
        "session_2": [look, turn("D2:2", "Bo", "Nice")],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_11_date_time": "1:00 pm on 1 August, 2023",
    }
    question = {"question": "Who?", "answer": 7, "evidence": ["D2:1"], "category": 1}
    return {"sample_id": sample_id, "qa": [question], "conversation": talk | more}


def written(file, *samples):
    return file("locomo.json", json.dumps(samples))


def test_turns_carry_session_order_moment_listener_and_the_caption_of_a_photo(file):
    records = [record.fields for record in read_locomo(written(file, sample()))]
    assert [(r["id"], r["session"], r["sequence"], r["at"].isoformat()) for r in records] == [
        ("D2:1", "2", 0, "2023-05-08T13:56:00+00:00"),
        ("D2:2", "2", 1, "2023-05-08T13:56:00+00:00"),
        ("D10:1", "10", 2, "2023-07-03T00:05:00+00:00"),
    ]
    assert records[0]["text"] == "Look! [shares a photo: a photo of a dog]"
    assert (records[0]["producer"], records[0]["produced_for"]) == ("Ann", "Bo")


@pytest.mark.parametrize(
    ("settings", "projects"),
    [
        # Each conversation is a project of its own.
        ({}, ["conv-1"] * 3 + ["conv-2"] * 3),
        # One that is selected by name goes into the bound project.
        ({"conversation": "conv-2", "project": "mine"}, ["mine"] * 3),
        # A bound project with the name of a conversation selects it.
        ({"project": "conv-2"}, ["conv-2"] * 3),
    ],
)
def test_a_conversation_goes_into_a_project(file, settings, projects):
    path = written(file, sample("conv-1"), sample("conv-2"))
    assert [record.fields["project"] for record in read_locomo(path, **settings)] == projects


def test_an_unknown_conversation_is_an_error_that_lists_the_known_ones(file):
    with pytest.raises(InvalidInput, match="it holds conv-1"):
        list(read_locomo(written(file, sample()), conversation="conv-9"))


def test_broken_turns_are_reported_and_the_others_are_read(file):
    turns = [turn("D3:1", "Ann", "fine"), {"dia_id": "D3:2", "speaker": "Bo"}]
    path = written(file, sample(session_3=turns, session_3_date_time="1:00 pm on 9 May, 2023"))
    broken = [r for r in read_locomo(path) if not hasattr(r, "fields")]
    assert [(b.place, b.field) for b in broken] == [("conv-1: session 3, turn 1", "text")]


@pytest.mark.parametrize("moment", ["yesterday", "1:00 pm on 31 June, 2023", None])
def test_an_impossible_moment_is_reported(file, moment):
    path, field = written(file, sample(session_2_date_time=moment)), "session_2_date_time"
    broken = [r.field for r in read_locomo(path) if not hasattr(r, "fields")]
    assert broken == [field, field]


def test_questions_are_read_with_their_evidence(file):
    (conversation,) = read_conversations(written(file, sample()))
    (question,) = conversation.questions
    assert (question.text, question.answer, question.category) == ("Who?", "7", 1)
    assert question.evidence == ("D2:1",)


def test_the_typed_reader_raises_on_what_is_not_locomo(file):
    with pytest.raises(DatasetError, match=r"locomo\.json: conversation 0: conversation"):
        list(read_conversations(file("locomo.json", '[{"sample_id": "x"}]')))


def test_the_benchmark_file_gives_exactly_the_turns_of_the_conversation_form():
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not here: it holds LoCoMo in both forms")
    names = ("id", "session", "sequence", "speaker", "text")
    turns = [
        {name: getattr(turn, name) for name in names}
        | {"pool": conversation.id, "at": turn.at.isoformat()}
        for conversation in read_conversations(DATA / "locomo.json")
        for turn in conversation.turns
    ]
    with gzip.open(DATA / "corpus.jsonl.gz", "rt", encoding="utf-8") as corpus:
        assert turns == [json.loads(line) for line in corpus]
