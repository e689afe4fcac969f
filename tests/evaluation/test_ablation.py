"""Changing one stage at a time."""

from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.weigh import Decay, Normalise
from ekphory.types import to_plain_data
from ekphory_lab.evaluation.ablation import (
    VARIATIONS,
    ablate,
    ablation_json,
    ablation_table,
    instead,
    load_benchmark,
    varied,
    without,
)
from ekphory_lab.evaluation.runner import Means


def names(variation):
    return [stage.name for stage in variation.stages]


def test_a_stage_is_left_out_added_or_replaced():
    # What is left out is not run.
    assert "decay" in names(varied("same"))
    assert "decay" not in names(varied("less", without(Decay)))
    # What is added stands where its number belongs.
    changed = names(varied("more", instead(Normalise())))
    assert changed[changed.index("normalise") - 1] == "list time"
    assert len(changed) == len(BALANCED.stages) + 1
    # What is there is replaced.
    changed = varied("other", instead(Decay(floor=0.5)))
    decay = next(stage for stage in changed.stages if stage.name == "decay")
    assert decay.floor == 0.5
    assert len(changed.stages) == len(BALANCED.stages)


def test_every_variation_is_measured_beside_the_default(conversation_folder):
    benchmark = load_benchmark(conversation_folder)
    variations = dict(list(VARIATIONS.items())[:2])
    reports = ablate(benchmark.dataset, variations, Means())
    table = ablation_table(benchmark, reports)
    assert table.header == ("variation", "MAP", "R@20", "p50 / p95 ms", "difference")
    assert [row[0] for row in table.rows] == ["balanced", "without weights", "without decay"]
    assert [row[4][:5] for row in table.rows[:2]] == ["", "+.000"]
    default, changed, _ = to_plain_data(ablation_json(reports))
    assert (default["variation"], default["against_default"]) == ("balanced", None)
    assert changed["variation"] == "without weights"
    assert changed["against_default"]["tests"]["MAP"]["p_value"] == 1.0
