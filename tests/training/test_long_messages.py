"""Turns of one speaker put together, and ages drawn for them."""

from random import Random

from ekphory_lab.training.question_groups import Question, QuestionGroup
from ekphory_lab.training.sources import drawn_ages, mixed_groups
from ekphory_lab.training.texts import with_long_messages

CHAT = QuestionGroup(
    "chat",
    ("Ann: I bake bread.", "Bob: I ride.", "Ann: On Sundays.", "Bob: A red bike.", "Ann: Bye."),
    (Question("When does Ann bake?", (0, 2)), Question("What does Bob ride?", (3,))),
)


JOINED = {"long_messages": 1.0}


class AlwaysTwo(Random):
    def randint(self, a, b):
        assert a <= 2 <= b
        return 2


def test_turns_of_a_speaker_become_one_message():
    group = with_long_messages(CHAT, AlwaysTwo())

    assert group.passages == (
        "Ann: I bake bread. On Sundays.",
        "Bob: I ride. A red bike.",
        "Ann: Bye.",
    )


def test_questions_follow_their_answers_into_the_message():
    group = with_long_messages(CHAT, AlwaysTwo())

    assert group.questions == (
        Question("When does Ann bake?", (0,)),
        Question("What does Bob ride?", (1,)),
    )


def test_sentences_without_a_speaker_become_a_paragraph():
    sentences = QuestionGroup("text", ("It rained.", "It was cold."), (Question("Rain?", (0,)),))

    assert with_long_messages(sentences, AlwaysTwo()).passages == ("It rained. It was cold.",)


def test_passages_that_are_long_already_stay_as_they_are():
    short = QuestionGroup("any", ("word " * 59,) * 4, (Question("Which?", (0,)),))
    long = QuestionGroup("any", ("word " * 60,) * 4, (Question("Which?", (0,)),))

    def drawn(group):
        return next(mixed_groups({"any": lambda _: iter([group])}, {"any": 1}, seed=1, **JOINED))

    assert len(drawn(short).passages) < 4
    assert drawn(long) == long


def test_neighbouring_passages_share_a_drawn_age():
    drawn = drawn_ages(60, Random(1))

    assert len(drawn.ages) == len(drawn.types) == 60
    assert len(set(drawn.ages[:6])) == 1
    assert len(set(drawn.ages)) > 1
    assert set(drawn.types) == {0, 1, 2, 3}
