"""Configurations by name, and how the learning rate changes over a run."""

import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.training.embedder_config import CONFIGS as EMBEDDERS
from ekphory_lab.training.reranker.config import CONFIGS as RERANKERS
from ekphory_lab.training.reranker.preparation import KNOWN_SOURCES
from ekphory_lab.training.run_files import config_named, rise_and_fall


def test_the_rate_rises_and_then_falls_to_a_tenth():
    share = rise_and_fall(100, warm_up=0.1)

    assert [round(share(step), 2) for step in (0, 9, 10, 55, 100)] == [0.1, 1.0, 1.0, 0.55, 0.1]


def test_a_configuration_draws_from_sources_that_exist():
    for name, config in EMBEDDERS.items():
        assert set(config.written.mix) <= set(config.mix), name
    for name, config in RERANKERS.items():
        assert set(config.mix) <= set(KNOWN_SOURCES), name
        assert sum(config.mix.values()) == pytest.approx(1.0), name
    # An unknown configuration is named.
    with pytest.raises(InvalidInput, match="large"):
        config_named(RERANKERS, "large")
