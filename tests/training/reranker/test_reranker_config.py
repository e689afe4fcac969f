import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.training.reranker.config import CONFIGS
from ekphory_lab.training.reranker.preparation import KNOWN_SOURCES
from ekphory_lab.training.run_files import config_named


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_a_configuration_draws_from_sources_that_exist(config):
    assert set(config.mix) <= set(KNOWN_SOURCES)
    assert sum(config.mix.values()) == pytest.approx(1.0)


def test_most_questions_of_the_refined_run_are_about_written_conversations():
    assert CONFIGS["refined"].mix["conversations"] > 0.5


def test_an_unknown_configuration_is_named():
    with pytest.raises(InvalidInput, match="large"):
        config_named(CONFIGS, "large")
