"""What the best hit says of itself, beside how often it is right."""

import pytest
from tests.evaluation.conftest import SETS

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.runner import silent
from ekphory_lab.evaluation.stated_probabilities import (
    AskedScope,
    dataset_scopes,
    known_sets,
    measure_probabilities,
    statement_scopes,
)


def test_a_hundred_persons_are_asked_a_thousand_questions_that_their_memories_answer():
    scopes = list(statement_scopes())
    answered = [answers for scope in scopes for answers in scope.questions.values() if answers]
    assert len(scopes) == 100
    assert len(answered) == 1_000
    assert sum(len(scope.questions) for scope in scopes) == 1_300
    # Every answer is one of the person's memories.
    for scope in scopes:
        ids = {passage["id"] for passage in scope.passages}
        assert all(answers <= ids for answers in scope.questions.values())


SCOPE = AskedScope(
    "notes",
    [{"id": "a", "text": "The bakery opens at six."}, {"id": "b", "text": "Tram nine is late."}],
    {
        "when does the bakery open?": frozenset({"a"}),
        "which tram is late?": frozenset({"a"}),
        "who painted the ceiling?": frozenset(),
    },
)


def test_said_and_right_are_means_over_the_questions_that_have_an_answer():
    (found,) = measure_probabilities({"town": [SCOPE]}, presets=["fast"], progress=silent)
    assert (found.questions, found.unanswered, found.right) == (2, 1, 0.5)
    assert 0 < found.said <= 1
    assert sum(each.candidates for each in found.bins) == 2
    # Sets of few questions are measured together.
    sets = {"town": [SCOPE], "village": [SCOPE]}
    (found,) = measure_probabilities(sets, presets=["fast"], progress=silent)
    assert (found.name, found.questions) == ("smaller sets", 4)


def test_a_folder_of_sets_is_read_by_their_form(tmp_path):
    found = known_sets(SETS)
    assert list(found) == ["2wiki", "boats", "chats", "documents", "locomo", "pets", "town"]
    first, second = dataset_scopes(found["chats"])
    assert len(first.questions) == 2
    assert second.questions == {"Who moved to Lisbon?": frozenset({"D1:1"})}
    # A folder without benchmarks is refused.
    with pytest.raises(DatasetError, match="holds no benchmark"):
        known_sets(tmp_path)
