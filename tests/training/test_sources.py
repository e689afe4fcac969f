"""Question groups of all sources, and the streams that are drawn from them."""

from itertools import islice
from random import Random

import numpy as np
import pytest
from tests.training.small_files import READING, ROWS

from ekphory.errors import DatasetError, InvalidInput
from ekphory_lab.training import sources
from ekphory_lab.training.embedder_config import EmbedderConfig, MemoryPart, WrittenPart
from ekphory_lab.training.question_groups import GroupBuilder, Question, QuestionGroup
from ekphory_lab.training.texts import (
    FIRST_NAMES,
    Turn,
    clean_text,
    read_rows,
    turn_passages,
    with_long_messages,
)


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
    (group,) = sources.persona_groups([ROWS["synthetic_persona_chat"]], Random(3))

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
    # A task dialogue answers who offered what.
    (group,) = sources.sgd_groups([ROWS["sgd_train"]], Random(4))
    offered = [
        passages for question, passages in answers(group).items() if "restaurant name" in question
    ]
    assert offered
    assert all("The Ram is nice." in passage for one in offered for passage in one)


def test_a_turn_joined_with_the_next_keeps_its_place():
    turns = [Turn("Ada", "one"), Turn("Bo", "two"), Turn("Ada", "three"), Turn("Bo", "four")]

    for seed in range(20):
        passages, places = turn_passages(turns, {"Ada": "Bo", "Bo": "Ada"}, Random(seed))
        held = [passages[place] for place in places]
        assert all(turn.text in text for turn, text in zip(turns, held, strict=True))


def test_a_summary_is_answered_by_turns_that_share_its_words():
    turns = [
        {"speaker": "MATT", "text": "You hand the black sapphire over to Kima, she nods."},
        {"speaker": "LAURA", "text": "Can somebody pass me some more popcorn please?"},
    ]
    row = {"summary": "Grog gives the black sapphire to Kima.", "turns": turns}
    (group,) = sources.crd3_groups([row] * 11, Random(0))
    handed = "Matt: You hand the black sapphire over to Kima, she nods."
    assert answers(group) == {"Grog gives the black sapphire to Kima.": {handed}}


def test_a_question_on_a_meeting_is_answered_by_its_span():
    turns = [{"speaker": "PhD F", "text": f"this is what we said at number {n}"} for n in range(9)]
    row = {"turns": turns, "queries": [{"query": "What was said?", "spans": [["2", "3"]]}]}

    (group,) = sources.qmsum_groups([row], Random(0))

    assert answers(group) == {
        "What was said?": {f"PhD F: this is what we said at number {n}" for n in (2, 3)}
    }


def test_sentences_around_the_answer_compete():
    rows = [{"query": f"what is {n} ?", "sentence": f"number {n} ."} for n in range(3)]

    (group,) = sources.squad_groups(rows, Random(0))

    assert group.passages == ("number 0.", "number 1.", "number 2.")
    assert answers(group)["what is 1?"] == {"number 1."}


def test_natural_questions_compete_with_passages_that_share_their_words():
    rows = [
        {"query": f"who won the cup in {year}", "title": f"Cup {year}", "passage": f"{team} won."}
        for year, team in ((1990, "Reds"), (1994, "Blues"), (1998, "Greens"))
    ]

    (group,) = sources.nq_groups(rows, Random(0))

    assert answers(group)["who won the cup in 1994"] == {"Cup 1994. Blues won."}
    assert len(group.passages) == 3


def test_a_question_of_a_page_competes_with_its_other_paragraphs():
    (group,) = sources.timeqa_groups([READING["timeqa_train"]], Random(0))

    assert answers(group) == {"Where in 1990?": {"the cat ran in Oslo from 1990 on"}}
    assert len(group.passages) == 2


def test_a_passage_as_good_as_the_answer_is_no_negative():
    scores = np.array([3.0, 2.9, 2.0, 0.0, 1.0])

    assert set(sources.hard_negatives(scores, 0, Random(0))) == {2, 4}


def test_the_stream_is_endless_and_keeps_to_its_shares():
    epochs = {
        "chat": lambda random: sources.persona_groups([ROWS["synthetic_persona_chat"]], random),
        "task": lambda random: sources.sgd_groups([ROWS["sgd_train"]], random),
    }

    groups, again = (
        list(islice(sources.mixed_groups(epochs, {"chat": 0.8, "task": 0.2}, seed=1), 100))
        for _ in range(2)
    )

    assert 70 <= sum(group.source == "synthetic_persona_chat" for group in groups) <= 90
    assert groups == again


def test_a_source_that_is_unknown_missing_or_not_compressed_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such source"):
        sources.load_training_data(tmp_path, ["reddit"])
    with pytest.raises(DatasetError, match=r"sgd_train\.jsonl\.gz"):
        sources.load_training_data(tmp_path, ["sgd"])
    (tmp_path / "rows.jsonl.gz").write_text("{}")
    with pytest.raises(DatasetError, match="not compressed JSON Lines"):
        read_rows(tmp_path / "rows.jsonl.gz")


def test_the_marks_of_a_transcript_are_removed():
    assert clean_text("Yeah , {disfmarker} I did n't -lrb- go -rrb- .") == "Yeah, I didn't go."


CHAT = QuestionGroup(
    "chat",
    ("Ann: I bake bread.", "Bob: I ride.", "Ann: On Sundays.", "Bob: A red bike.", "Ann: Bye."),
    (Question("When does Ann bake?", (0, 2)), Question("What does Bob ride?", (3,))),
)


class AlwaysTwo(Random):
    def randint(self, a, b):
        assert a <= 2 <= b
        return 2


def test_turns_of_a_speaker_become_one_message():
    group = with_long_messages(CHAT, AlwaysTwo())

    joined = ("Ann: I bake bread. On Sundays.", "Bob: I ride. A red bike.", "Ann: Bye.")
    assert group.passages == joined
    # Questions follow their answers into the message.
    assert [question.positives for question in group.questions] == [(0,), (1,)]
    # Sentences without a speaker become a paragraph.
    sentences = QuestionGroup("text", ("It rained.", "It was cold."), (Question("Rain?", (0,)),))

    assert with_long_messages(sentences, AlwaysTwo()).passages == ("It rained. It was cold.",)


def test_passages_that_are_long_already_stay_as_they_are():
    short = QuestionGroup("any", ("word " * 59,) * 4, (Question("Which?", (0,)),))
    long = QuestionGroup("any", ("word " * 60,) * 4, (Question("Which?", (0,)),))

    def drawn(group):
        epochs = {"any": lambda _: iter([group])}
        return next(sources.mixed_groups(epochs, {"any": 1}, seed=1, long_messages=1.0))

    assert len(drawn(short).passages) < 4
    assert drawn(long) == long


def test_neighbouring_passages_share_a_drawn_age():
    drawn = sources.drawn_ages(60, Random(1))

    assert len(drawn.ages) == len(drawn.types) == 60
    assert len(set(drawn.ages[:6])) == 1
    assert len(set(drawn.ages)) > 1
    assert set(drawn.types) == {0, 1, 2, 3}


SENTENCES = tuple(f"Sentence {number} of the long paragraph ends here." for number in range(40))


def book(random):
    yield QuestionGroup("book", SENTENCES, (Question("Which is the third?", (3,)),))


class Lengths:
    """A base model: one direction for each number of words."""

    def encode(self, texts):
        return np.eye(200, dtype=np.float32)[[len(text.split()) for text in texts]]

    encode_query = encode


def config(*, passages_per_step=3, aged=0.0):
    part = WrittenPart(passages_per_step=passages_per_step, weight=1.0, mix={"book": 1.0})
    memories = MemoryPart(aged_groups=aged)
    named = {"name": "tiny", "base": "none", "mix": {"book": 1.0}}
    return EmbedderConfig(**named, steps=6, memories=memories, written=part)


def steps(first=0, **settings):
    given = config(**settings), {"book": book}, Lengths()
    return list(sources.written_passages(*given, first=first))


def test_neighbouring_sentences_become_paragraphs_of_8_to_150_words():
    texts = [text for step in steps() for text in step.texts]

    assert len(texts) == 18
    whole = " ".join(SENTENCES)
    assert all(text in whole for text in texts)
    assert all(8 <= len(text.split()) <= 150 for text in texts)
    assert max(len(text.split()) for text in texts) > 60
    # Each has the vector of the base model.
    for step in steps():
        assert [int(row.argmax()) for row in step.base] == [len(t.split()) for t in step.texts]


def test_a_later_start_gives_the_same_steps():
    all_steps, later = steps(), steps(first=4)

    assert [step.texts for step in later] == [step.texts for step in all_steps[4:]]
    # Ages are given where the configuration asks for them.
    assert all(step.given is None for step in steps(aged=0.0))
    assert all(step.given.ages.shape == (3,) for step in steps(aged=1.0))
    # A configuration without written passages has none.
    assert steps(passages_per_step=0) == [None] * 6
