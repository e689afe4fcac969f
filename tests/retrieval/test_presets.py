"""The presets: what is in them, and how they are found by name."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.retrieval.calibration import EVEN_CURVES, MEANING_CURVES, WORD_CURVES
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import DEFAULT_PRESET, PRESETS, preset
from ekphory.retrieval.stages.query import CleanQuery


def stages(name):
    return {stage.name: stage for stage in PRESETS[name].stages}


def test_an_unknown_preset_is_named_with_the_nearest_one():
    with pytest.raises(InvalidInput, match=r"preset='balancd'.*Did you mean 'balanced'"):
        preset("balancd")


def test_no_preset_means_the_default_one():
    assert preset(None).name == DEFAULT_PRESET == "balanced"


def test_a_pipeline_of_ones_own_is_given_back():
    own = Pipeline("own", [CleanQuery()])
    assert preset(own) is own


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_it_is_good_for(name):
    assert PRESETS[name].name == name
    assert len(PRESETS[name].summary.split()) > 3


@pytest.mark.parametrize(("name", "turns"), [("balanced", 0.4), ("fast", 0.75), ("accurate", 0.75)])
def test_balanced_weighs_words_less_among_turns_and_fast_and_accurate_do_not(name, turns):
    fuse = stages(name)["fuse"]
    assert (fuse.lexical_weight.documents, fuse.lexical_weight.turns) == (0.75, turns)


@pytest.mark.parametrize(
    ("name", "curves"),
    [
        ("balanced", MEANING_CURVES),
        ("accurate", EVEN_CURVES),
        ("fast", WORD_CURVES),
    ],
)
def test_each_preset_takes_the_curves_for_what_it_fuses(name, curves):
    assert stages(name)["fuse"].calibration == curves


def test_memory_spark_has_all_fifteen_stages():
    assert {stage.number for stage in PRESETS["memory_spark"].stages} == set(range(1, 16))


def test_memory_spark_has_the_published_numbers():
    spark = stages("memory_spark")
    assert (spark["search pools"].depth_per_hit, spark["source dedup"].threshold) == (4, 0.85)
    assert spark["weigh"].pool_weights == {
        "agent_memory": 1.0,
        "agent_mistakes": 1.6,
        "shared_mistakes": 1.6,
        "shared_knowledge": 0.8,
        "shared_rules": 1.0,
    }
    assert spark["weigh"].bound is None
    assert (spark["decay"].floor, spark["decay"].rate) == (0.8, 0.03)
    gate = spark["reranker gate"]
    assert (gate.mode, gate.thresholds.low, gate.thresholds.high) == ("hard", 0.02, 0.08)
    rerank = spark["rerank"]
    assert (rerank.candidates, rerank.blend.method, rerank.blend.constant) == (40, "ranks", 60)
    assert (spark["diversify"].trade_off, spark["context dedup"].most_shared) == (0.9, 0.4)
    assert spark["token budget"].tokens == 2000


@pytest.mark.parametrize("name", ["balanced", "accurate", "fast", "rrf"])
def test_our_own_presets_lift_and_lower_by_a_tenth_at_most_and_by_age_by_a_five_hundredth(name):
    own = stages(name)
    assert (own["weigh"].bound, own["weigh"].importance, own["decay"].floor) == (0.1, 0.1, 0.998)


@pytest.mark.parametrize("name", ["balanced", "accurate", "fast", "rrf"])
def test_our_own_presets_drop_no_hit(name):
    dropping = {"source dedup", "context dedup", "injection filter", "token budget"}
    assert not dropping & set(stages(name))
