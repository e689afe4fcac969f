"""Putting features in order: when it is asked for, and what comes of a wrong answer."""

import pytest

from .teacher import command, completion

pytestmark = pytest.mark.slow
UNUSABLE = ["none", '{"merged": [{"feature": "all", "value": "all", "from": [1, 9]}]}']


@pytest.fixture
def like(teacher, tell):
    """Lets fruits be learnt, one a message; each is a feature."""

    def add(*numbers):
        for number in numbers:
            fruit = command("add", "interests", f"fruit_{number}", "likes it")
            teacher.knows(f"fruit {number}.", fruit)
        tell(*(f"fruit {number}." for number in numbers))

    return add


def merging(teacher):
    """How many features were shown each time."""
    return [len(data["noted"]) for data in teacher.asked if "message" not in data]


@pytest.mark.parametrize("wrong", UNUSABLE)
def test_a_wrong_answer_fails_no_message_and_is_asked_for_again_once_there_is_more(
    service, teacher, wire, like, learnt, home, wrong
):
    def answer(request):
        good = teacher(request)
        first = merging(teacher) == [4] and "message" not in teacher.asked[-1]
        return completion(wrong) if first else good

    wire.answer = answer
    like(1, 2, 3, 4)
    assert len(learnt()) == 4
    assert service.extraction.state(home).failed == 0
    teacher.mergers = [{"feature": "fruits", "value": "all", "from": [1, 2, 3, 4, 5, 6, 7, 8]}]
    like(5, 6, 7, 8)
    assert [each.value for each in learnt()] == ["all"]
    assert merging(teacher) == [4, 8]


def test_what_was_deleted_since_does_not_put_the_next_order_off(
    service, teacher, like, learnt, home
):
    like(1, 2, 3, 4)
    service.features.delete(home, [each.id for each in learnt()[:3]])
    like(5)
    learnt()
    like(6, 7, 8, 9)
    learnt()
    assert merging(teacher) == [4, 6]
