"""What is known of one user in a set that many share is out of reach for the others."""

import pytest

from .teacher import command

pytestmark = pytest.mark.slow


@pytest.fixture
def shared(service, home):
    """A category of the whole project."""
    own = service.sets.name_of(home, [], None)
    service.categories.add(home, own, "kitchen", prompt="Who eats what?")


def known(features):
    """What is known: user, value and citations, by user."""
    return sorted((each.metadata["user_id"], each.value, each.citations) for each in features)


@pytest.fixture
def hear(tell):
    """Adds messages about a user from which no profile is learnt."""
    return lambda user, *texts: tell(*texts, role="system", metadata={"user_id": user})


@pytest.mark.parametrize("action", ["add", "update"])
def test_the_same_fact_of_two_users_is_two_features(shared, teacher, hear, learnt, action):
    teacher.knows("pizza", command(action, "food", "dish", "pizza"))
    (maras,) = hear("mara", "I love pizza")
    (bens,) = hear("ben", "I love pizza too")
    assert known(learnt()) == [("ben", "pizza", (bens,)), ("mara", "pizza", (maras,))]
    assert [data["noted"] for data in teacher.asked] == [[], []]


def test_a_user_forgets_only_what_is_their_own(shared, teacher, hear, learnt):
    teacher.knows("pizza", command("add", "food", "dish", "pizza"))
    teacher.knows("forget", command("delete", "food", "dish"))
    (maras,) = hear("mara", "I love pizza")
    hear("ben", "forget the dish")
    assert known(learnt()) == [("mara", "pizza", (maras,))]


def test_features_of_two_users_are_never_merged(shared, teacher, hear, learnt):
    for number in range(1, 5):
        dish = command("add", "food", f"dish_{number}", f"dish {number}")
        teacher.knows(f"dish {number}", dish)
    teacher.mergers = [{"feature": "dishes", "value": "all", "from": [1, 2, 3, 4]}]
    eaten = ["dish 1", "dish 2", "dish 3"]
    hear("mara", *eaten)
    hear("ben", *eaten)
    assert len(known(learnt())) == 6
    hear("ben", "dish 4")
    found = [(user, value) for user, value, _ in known(learnt())]
    assert found == [("ben", "all"), *(("mara", dish) for dish in eaten)]
