from itertools import islice
from random import Random

import numpy as np
import pytest
from tests.training.conversation_rows import PERSONA_ROW, SGD_ROW

from ekphory.errors import DatasetError, InvalidInput
from ekphory_lab.training.question_groups import (
    GroupBuilder,
    Question,
)
from ekphory_lab.training.sources import (
    crd3_groups,
    hard_negatives,
    load_training_data,
    mixed_groups,
    nq_groups,
    persona_groups,
    qmsum_groups,
    sgd_groups,
    squad_groups,
    timeqa_groups,
)
from ekphory_lab.training.texts import FIRST_NAMES, Turn, clean_text, read_rows, turn_passages


def answers(group):
    return {
        question.text: {group.passages[row] for row in question.positives}
        for question in group.questions
    }


def test_equal_questions_become_one_with_the_answers_of_all():
    builder = GroupBuilder("made here")
    for answer in ("Ada: tea", "Ada: milk"):
        builder.add_question("What does Ada drink?", [builder.add_passage(answer)])

    assert builder.build().questions == (Question("What does Ada drink?", (0, 1)),)


def test_a_chat_answers_what_the_other_asked_and_what_its_personas_say():
    (group,) = persona_groups([PERSONA_ROW], Random(3))

    who = {passage.split(":")[0] for passage in group.passages}
    assert len(who) == 2
    assert who <= set(FIRST_NAMES)
    assert all("[" not in passage for passage in group.passages)
    found = [
        passages
        for question, passages in answers(group).items()
        if question.startswith("What does") and "do for" in question
    ]
    assert any("I work in a car factory." in passage for one in found for passage in one)


def test_a_task_dialogue_answers_who_offered_what():
    (group,) = sgd_groups([SGD_ROW], Random(4))

    offered = [
        passages for question, passages in answers(group).items() if "restaurant name" in question
    ]
    assert offered
    assert all("The Ram is nice." in passage for one in offered for passage in one)


def test_the_same_seed_gives_the_same_groups():
    first, second = (list(persona_groups([PERSONA_ROW], Random(7))) for _ in range(2))

    assert first == second


def test_a_turn_joined_with_the_next_keeps_its_place():
    turns = [Turn("Ada", "one"), Turn("Bo", "two"), Turn("Ada", "three"), Turn("Bo", "four")]

    for seed in range(20):
        passages = turn_passages(turns, {"Ada": "Bo", "Bo": "Ada"}, Random(seed))
        held = [passages.texts[row] for row in passages.rows]
        assert all(turn.text in text for turn, text in zip(turns, held, strict=True))


def test_a_summary_is_answered_by_turns_that_share_its_words():
    row = {
        "summary": "Grog gives the black sapphire to Kima.",
        "turns": [
            {"speaker": "MATT", "text": "You hand the black sapphire over to Kima, she nods."},
            {"speaker": "LAURA", "text": "Can somebody pass me some more popcorn please?"},
        ],
    }

    (group,) = crd3_groups([row] * 11, Random(0))

    assert answers(group) == {
        "Grog gives the black sapphire to Kima.": {
            "Matt: You hand the black sapphire over to Kima, she nods."
        }
    }


def test_a_question_on_a_meeting_is_answered_by_its_span():
    turns = [{"speaker": "PhD F", "text": f"this is what we said at number {n}"} for n in range(9)]
    row = {"turns": turns, "queries": [{"query": "What was said?", "spans": [["2", "3"]]}]}

    (group,) = qmsum_groups([row], Random(0))

    assert answers(group) == {
        "What was said?": {f"PhD F: this is what we said at number {n}" for n in (2, 3)}
    }


def test_sentences_around_the_answer_compete():
    rows = [{"query": f"what is {n} ?", "sentence": f"number {n} ."} for n in range(3)]

    (group,) = squad_groups(rows, Random(0))

    assert group.passages == ("number 0.", "number 1.", "number 2.")
    assert answers(group)["what is 1?"] == {"number 1."}


def test_natural_questions_compete_with_passages_that_share_their_words():
    rows = [
        {"query": f"who won the cup in {year}", "title": f"Cup {year}", "passage": f"{team} won."}
        for year, team in ((1990, "Reds"), (1994, "Blues"), (1998, "Greens"))
    ]

    (group,) = nq_groups(rows, Random(0))

    assert answers(group)["who won the cup in 1994"] == {"Cup 1994. Blues won."}
    assert len(group.passages) == 3


def test_a_question_of_a_page_competes_with_its_other_paragraphs():
    row = {
        "paragraphs": ["He worked in Oslo from 1990 on.", "a b c d e f g h i"],
        "questions": [{"query": "Where did he work in 1990?", "paragraphs": [0]}],
    }

    (group,) = timeqa_groups([row], Random(0))

    assert answers(group) == {"Where did he work in 1990?": {"He worked in Oslo from 1990 on."}}
    assert len(group.passages) == 2


def test_a_passage_as_good_as_the_answer_is_no_negative():
    scores = np.array([3.0, 2.9, 2.0, 0.0, 1.0])

    assert set(hard_negatives(scores, 0, Random(0))) == {2, 4}


def test_the_stream_is_endless_and_keeps_to_its_shares():
    epochs = {
        "chat": lambda random: persona_groups([PERSONA_ROW], random),
        "task": lambda random: sgd_groups([SGD_ROW], random),
    }

    groups = list(islice(mixed_groups(epochs, {"chat": 0.8, "task": 0.2}, seed=1), 100))

    assert 70 <= sum(group.source == "synthetic_persona_chat" for group in groups) <= 90
    assert groups == list(islice(mixed_groups(epochs, {"chat": 0.8, "task": 0.2}, seed=1), 100))


def test_an_unknown_source_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such source"):
        load_training_data(tmp_path, ["reddit"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"sgd_train\.jsonl\.gz"):
        load_training_data(tmp_path, ["sgd"])


def test_a_file_that_is_not_compressed_is_refused(tmp_path):
    (tmp_path / "rows.jsonl.gz").write_text("{}")

    with pytest.raises(DatasetError, match="not compressed JSON Lines"):
        read_rows(tmp_path / "rows.jsonl.gz")


def test_the_marks_of_a_transcript_are_removed():
    assert clean_text("Yeah , {disfmarker} I did n't -lrb- go -rrb- .") == "Yeah, I didn't go."
