"""Stage 10 ranks the best at 1."""

import pytest

from ekphory.retrieval.stages.weigh import Normalise
from retrieval.states import records, state_of, with_candidates


def test_the_ranking_is_divided_by_its_largest_and_no_probability_is():
    given = with_candidates(state_of(*records("a", "b")), [0.5, 0.2])
    scaled = Normalise().run(given).candidates
    assert scaled.ranking.tolist() == pytest.approx([1.0, 0.4])
    assert scaled.scores["probability"].tolist() == pytest.approx([0.5, 0.2])


def test_a_ranking_of_nothing_is_left_alone():
    given = with_candidates(state_of(*records("a")), [0.0])
    assert Normalise().skip_reason(given) == "the best ranking is not above 0"
