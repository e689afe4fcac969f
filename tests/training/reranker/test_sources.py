"""Examples from question groups."""

from datetime import UTC, datetime
from random import Random

from tests.training.reranker.rerank_examples import TURNS, WordCounts, chat_group

from ekphory_lab.training.question_groups import GroupBuilder, Placement
from ekphory_lab.training.reranker.sources import (
    CandidateCounts,
    draw_session_dates,
    elliptical_question,
    group_examples,
    name_time,
    name_time_apart,
    pronoun_question,
    question_about_another,
    question_after_unrelated,
)

MAY = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)


def test_a_day_a_month_and_a_year_have_words():
    words = [name_time(MAY, grain).words for grain in ("day", "month", "year")]

    assert words == ["on 8 May 2023", "in May 2023", "in 2023"]
    # A month covers its days and no others.
    named = name_time(MAY, "month")
    assert named.covers(datetime(2023, 5, 31, tzinfo=UTC))
    assert not named.covers(datetime(2023, 6, 1, tzinfo=UTC))
    assert not named.covers(datetime(2022, 5, 8, tzinfo=UTC))
    # The widest time that keeps the others out is named.
    others = [datetime(2022, 1, 1, tzinfo=UTC), datetime(2023, 7, 1, tzinfo=UTC)]
    assert name_time_apart(MAY, []).words == "in 2023"
    assert name_time_apart(MAY, others).words == "in May 2023"
    assert name_time_apart(MAY, [MAY]) is None


def test_the_turns_of_a_conversation_share_a_day_and_later_ones_come_later():
    placements = [Placement(0), Placement(0), None, Placement(1)]

    first, second, third, fourth = draw_session_dates(placements, Random(1))

    assert first == second < fourth
    assert third is None


def test_a_pronoun_stands_for_the_subject_and_the_context_names_it():
    found = pronoun_question("Where does Ada work?", "Ada", None, Random(1))

    assert found.text in ("Where does he work?", "Where does she work?")
    assert any("Ada" in turn for turn in found.context)
    # A name elsewhere in the question stays.
    assert pronoun_question("Who did Bo go with to see Ada?", "Ada", None, Random(1)) is None
    # An earlier question and its answer can be the context.
    earlier = ("Where does Ada live?", "Ada: I live in Porto.")

    found = pronoun_question("What is Ada's job?", "Ada", earlier, Random(2))

    assert found.text in ("What is his job?", "What is her job?")
    assert found.context[0].endswith("Where does Ada live?")
    # The pronoun does not contradict the question.
    texts = {
        pronoun_question("What did Ada buy for her dog?", "Ada", None, Random(seed)).text
        for seed in range(20)
    }

    assert texts == {"What did she buy for her dog?"}


def test_an_ellipsis_leaves_the_event_to_the_context():
    found = elliptical_question("When did Ada go hiking?", Random(3))

    assert "Ada" not in found.text
    assert found.context[0].endswith("Did Ada go hiking?")
    # A question with another opening has none.
    assert elliptical_question("What did Ada buy?", Random(3)) is None


def test_the_same_is_asked_about_somebody_else():
    found = question_about_another("Where does Ada work?", "Ada", "Bo", Random(4))

    assert "Ada" in found.text
    assert "work" not in found.text
    assert found.context[0].endswith("Where does Bo work?")
    # A context about something else leaves the question whole.
    found = question_after_unrelated("Where does Ada work?", Random(5))

    assert found.text == "Where does Ada work?"
    assert found.context


def examples(seed, **counts):
    return list(
        group_examples(chat_group(), WordCounts(), Random(seed), counts=CandidateCounts(**counts))
    )


def test_sessions_are_counted_and_do_not_touch():
    builder = GroupBuilder("chats")
    builder.add_session(["a", "b"])
    builder.add_session(["c"])
    builder.add_question("q", [0])

    assert builder.build().placements == (
        Placement(0, None, "b"),
        Placement(0, "a", None),
        Placement(1, None, None),
    )


def test_every_question_has_its_answer_among_the_candidates():
    for found in examples(3):
        answers = [each.passage.text for each in found.candidates if each.relevant]
        assert answers in (["Bo: I work in a car factory near Graz."], [TURNS[4]])
    # No more candidates compete than wanted.
    for found in examples(5, hard=2, random=1):
        assert len(found.candidates) == 4


def test_up_to_three_turns_near_an_answer_compete():
    counts = set()
    for found in [each for seed in range(20) for each in examples(seed, near=3)]:
        (answer,) = (TURNS.index(each.passage.text) for each in found.candidates if each.relevant)
        near = [each.passage.text for each in found.candidates if each.kind == "neighbour"]
        assert all(0 < abs(TURNS.index(text) - answer) <= 2 for text in near)
        counts.add(len(near))
    assert counts == {0, 1, 2, 3}


def test_hard_cases_are_among_them():
    every_example = [found for seed in range(60) for found in examples(seed)]
    kinds = {each.kind for found in every_example for each in found.candidates}
    assert {"temporal_interference", "entity_confusion", "coreference"} <= kinds
    # A decoy of another time has the words of the answer and another date.
    for found in every_example:
        answers = {each.passage.text: each.passage.at for each in found.candidates if each.relevant}
        for each in found.candidates:
            if each.kind == "temporal_interference":
                assert not each.relevant
                assert each.passage.at != answers[each.passage.text]
    # Some questions need their context.
    questions = {found.query.text for found in every_example if found.query.context}
    assert any("Bo" not in text and "Ada" not in text for text in questions)
    # Neighbours and dates are there for most and not for all.
    passages = [each.passage for found in every_example for each in found.candidates]
    assert {passage.before is None for passage in passages} == {True, False}
    assert {passage.at is None for passage in passages} == {True, False}
