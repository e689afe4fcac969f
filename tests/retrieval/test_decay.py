"""How the ranking falls with age."""

import numpy as np
import pytest

from ekphory.retrieval.stages.weigh import decay_factors


@pytest.mark.parametrize(
    ("days", "factor"),
    [(0, 1.0), (1, 0.994), (7, 0.962), (30, 0.881), (365, 0.800), (100_000, 0.800)],
)
def test_a_memory_fades_to_eight_tenths(days, factor):
    assert decay_factors(np.array([days], float))[0] == pytest.approx(factor, abs=5e-4)


def test_what_lies_ahead_does_not_fade():
    assert decay_factors(np.array([-5.0]))[0] == 1.0


def test_floor_and_rate_can_be_chosen():
    assert decay_factors(np.array([10.0]), floor=0.5, rate=0.1)[0] == pytest.approx(0.684, abs=5e-4)
