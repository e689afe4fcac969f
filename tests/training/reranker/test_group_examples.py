from random import Random

import pytest
from tests.training.reranker.rerank_examples import TURNS, WordCounts, chat_group

from ekphory_lab.training.question_groups import GroupBuilder, Placement
from ekphory_lab.training.reranker.sources import CandidateCounts, group_examples


def examples(seed, **counts):
    return list(
        group_examples(chat_group(), WordCounts(), Random(seed), counts=CandidateCounts(**counts))
    )


def every_example():
    return [found for seed in range(60) for found in examples(seed)]


def test_turns_know_the_turns_around_them():
    placements = chat_group().placements

    assert placements[0] == Placement(0, None, TURNS[1])
    assert placements[1] == Placement(0, TURNS[0], TURNS[2])
    assert placements[5] == Placement(0, TURNS[4], None)


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


def test_no_more_candidates_compete_than_wanted():
    for found in examples(5, hard=2, random=1):
        assert len(found.candidates) == 4


def test_the_same_seed_gives_the_same_examples():
    assert examples(7) == examples(7)


@pytest.mark.parametrize("kind", ["temporal_interference", "entity_confusion", "coreference"])
def test_hard_cases_are_among_them(kind):
    kinds = {each.kind for found in every_example() for each in found.candidates}

    assert kind in kinds


def test_a_decoy_of_another_time_has_the_words_of_the_answer_and_another_date():
    for found in every_example():
        answers = {each.passage.text: each.passage.at for each in found.candidates if each.relevant}
        for each in found.candidates:
            if each.kind == "temporal_interference":
                assert not each.relevant
                assert each.passage.at != answers[each.passage.text]


def test_some_questions_need_their_context():
    questions = {found.query.text for found in every_example() if found.query.context}

    assert any("Bo" not in text and "Ada" not in text for text in questions)


def test_neighbours_and_dates_are_there_for_most_and_not_for_all():
    passages = [each.passage for found in every_example() for each in found.candidates]

    assert {passage.before is None for passage in passages} == {True, False}
    assert {passage.at is None for passage in passages} == {True, False}
