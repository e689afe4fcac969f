import importlib.util

import pytest

from ekphory_lab.training.embedder_config import CONFIGS

INSTALLED = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(INSTALLED, reason="the [torch] extra is installed")
@pytest.mark.parametrize(
    "arguments",
    [
        ("embedder", "--data", "data", "--base", "base", "--target", "target"),
        ("components", "--model", "model", "--target", "target"),
    ],
)
def test_without_torch_the_extra_is_named(ekphory, arguments):
    assert "ekphory[torch]" in ekphory.failure("train", *arguments)


@pytest.mark.torch
def test_an_unknown_configuration_is_named(ekphory):
    sentence = ekphory.failure(
        "train", "embedder", "--data", "d", "--base", "b", "--target", "t", "--config", "huge"
    )
    assert "huge" in sentence
    assert "small, refined, settled, conversing, anchored, documented, remembering" in sentence


@pytest.mark.parametrize("config", CONFIGS)
def test_the_help_names_every_configuration(ekphory, config):
    assert config in ekphory.run("train", "embedder", "--help").stdout


@pytest.mark.torch
def test_components_are_trained_and_saved(ekphory, tmp_path):
    from tests.training.trainable_encoder import write_trainable_encoder

    from ekphory.models.late_bound import read_components

    model = write_trainable_encoder(tmp_path / "model")
    found = ekphory.json(
        "train", "components", "--model", str(model), "--target", str(tmp_path / "whole"),
        "--count", "20",
    )  # fmt: skip
    assert 0 <= found["report"]["first_with"] <= 1
    assert read_components(tmp_path / "whole").age.any()
