"""A pipeline described in words and plain data."""

import json

import pytest

from ekphory.retrieval.pipeline import CANONICAL_STAGES, describe
from ekphory.retrieval.presets import PRESETS


def test_a_stage_that_is_missing_stands_as_unused():
    described = {stage.number: stage for stage in describe(PRESETS["balanced"])}
    assert set(described) == set(CANONICAL_STAGES)
    assert (described[13].name, described[13].used) == ("diversify", False)


def test_a_stage_says_what_it_does_with_which_settings():
    gate = next(stage for stage in describe(PRESETS["memory_spark"]) if stage.number == 11)
    assert gate.purpose == (
        "Decides from the first stage's scores; as published, from how far the best cosines spread."
    )
    assert gate.settings["mode"] == "hard"
    assert gate.settings["thresholds"] == {"low": 0.02, "high": 0.08}
    assert gate.settings["learned"] is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_setting_is_plain_data(name):
    settings = [dict(stage.settings) for stage in describe(PRESETS[name])]
    assert json.loads(json.dumps(settings)) == settings


def test_the_canonical_names_are_those_of_the_stages():
    named = {(stage.number, stage.name) for stage in PRESETS["memory_spark"].stages}
    assert {each for each in CANONICAL_STAGES.items() if each[0] < 15} <= named
