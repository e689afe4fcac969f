"""The presets: what is in them, and how they are found by name."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.retrieval.calibration import EVEN_CURVES, MEANING_CURVES, WORD_CURVES
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import DEFAULT_PRESET, PRESETS, preset
from ekphory.retrieval.query import CleanQuery
from ekphory.retrieval.stages.rerank import read_at_least


def stages(name):
    return {stage.name: stage for stage in PRESETS[name].stages}


def test_a_preset_is_found_by_its_name_or_is_the_default_one_or_a_pipeline_of_ones_own():
    own = Pipeline("own", [CleanQuery()])
    assert preset(own) is own
    assert preset(None).name == DEFAULT_PRESET == "balanced"
    with pytest.raises(InvalidInput, match=r"preset='balancd'.*Did you mean 'balanced'"):
        preset("balancd")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_it_is_good_for(name):
    assert PRESETS[name].name == name
    assert len(PRESETS[name].summary.split()) > 3


@pytest.mark.parametrize(
    ("name", "turns", "curves"),
    [
        ("balanced", 0.4, MEANING_CURVES),
        ("accurate", 0.75, EVEN_CURVES),
        ("fast", 0.75, WORD_CURVES),
    ],
)
def test_balanced_alone_weighs_words_less_among_turns_and_each_has_curves_for_what_it_fuses(
    name, turns, curves
):
    fuse = stages(name)["fuse"]
    assert (fuse.lexical_weight.documents, fuse.lexical_weight.turns) == (0.75, turns)
    assert fuse.calibration == curves


def test_memory_spark_has_the_published_numbers():
    assert {stage.number for stage in PRESETS["memory_spark"].stages} == set(range(1, 16))
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
def test_our_own_presets_drop_no_hit_and_lift_by_a_tenth_at_most_and_by_age_by_a_five_hundredth(
    name,
):
    own = stages(name)
    assert (own["weigh"].bound, own["weigh"].importance, own["decay"].floor) == (0.1, 0.1, 0.998)
    dropping = {"source dedup", "context dedup", "injection filter", "token budget"}
    assert not dropping & set(own)


def test_a_quick_reranker_can_be_made_to_read_more_and_nothing_else_changes():
    deeper = read_at_least(PRESETS["balanced"], 40)
    changed = [
        (one, other)
        for one, other in zip(PRESETS["balanced"].stages, deeper.stages, strict=True)
        if one is not other
    ]
    assert [(one.candidates, other.candidates) for one, other in changed] == [(10, 40)]
    assert read_at_least(PRESETS["accurate"], 40).stages == PRESETS["accurate"].stages
    assert read_at_least(PRESETS["accurate"], 40) is PRESETS["accurate"]
