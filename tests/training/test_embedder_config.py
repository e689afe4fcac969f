"""What the configurations of `ekphory train embedder` have together."""

import pytest

from ekphory_lab.training.embedder_config import CONFIGS


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_every_configuration_trains_age_type_and_heads(config):
    assert config.memories.samples_per_step > 0


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_written_passages_come_from_sources_of_the_mix(config):
    assert set(config.written.mix) <= set(config.mix)
