from random import Random

from ekphory_lab.training.reranker.sources import (
    elliptical_question,
    pronoun_question,
    question_about_another,
    question_after_unrelated,
)


def test_a_pronoun_stands_for_the_subject_and_the_context_names_it():
    found = pronoun_question("Where does Ada work?", "Ada", None, Random(1))

    assert found.text in ("Where does he work?", "Where does she work?")
    assert any("Ada" in turn for turn in found.context)


def test_an_earlier_question_and_its_answer_can_be_the_context():
    earlier = ("Where does Ada live?", "Ada: I live in Porto.")

    found = pronoun_question("What is Ada's job?", "Ada", earlier, Random(2))

    assert found.text in ("What is his job?", "What is her job?")
    assert found.context[0].endswith("Where does Ada live?")


def test_the_pronoun_does_not_contradict_the_question():
    texts = {
        pronoun_question("What did Ada buy for her dog?", "Ada", None, Random(seed)).text
        for seed in range(20)
    }

    assert texts == {"What did she buy for her dog?"}


def test_a_name_elsewhere_in_the_question_stays():
    assert pronoun_question("Who did Bo go with to see Ada?", "Ada", None, Random(1)) is None


def test_an_ellipsis_leaves_the_event_to_the_context():
    found = elliptical_question("When did Ada go hiking?", Random(3))

    assert "Ada" not in found.text
    assert found.context[0].endswith("Did Ada go hiking?")


def test_a_question_with_another_opening_has_no_ellipsis():
    assert elliptical_question("What did Ada buy?", Random(3)) is None


def test_the_same_is_asked_about_somebody_else():
    found = question_about_another("Where does Ada work?", "Ada", "Bo", Random(4))

    assert "Ada" in found.text
    assert "work" not in found.text
    assert found.context[0].endswith("Where does Bo work?")


def test_a_context_about_something_else_leaves_the_question_whole():
    found = question_after_unrelated("Where does Ada work?", Random(5))

    assert found.text == "Where does Ada work?"
    assert found.context
