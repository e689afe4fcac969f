"""Changing one stage at a time."""

from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.weigh import Decay, Normalise
from ekphory_lab.evaluation.ablation import (
    STAGE_VARIATIONS,
    ablate,
    ablation_markdown,
    instead,
    load_benchmark,
    varied,
    without,
)


def names(variation):
    return [stage.name for stage in variation.pipeline.stages]


def test_a_stage_that_is_left_out_is_not_run():
    assert "decay" in names(varied("same"))
    assert "decay" not in names(varied("less", without(Decay)))


def test_a_stage_that_is_added_stands_where_its_number_belongs():
    changed = names(varied("more", instead(Normalise())))
    assert changed[changed.index("normalise") - 1] == "list time"
    assert len(changed) == len(BALANCED.stages) + 1


def test_a_stage_that_is_there_is_replaced():
    changed = varied("other", instead(Decay(floor=0.5)))
    decay = next(stage for stage in changed.pipeline.stages if stage.name == "decay")
    assert decay.floor == 0.5
    assert len(changed.pipeline.stages) == len(BALANCED.stages)


def test_every_variation_is_measured_beside_the_default(conversation_folder):
    benchmark = load_benchmark(conversation_folder)
    found = ablate(benchmark, STAGE_VARIATIONS[:2])
    assert [row.variation.name for row in found.rows] == [
        "balanced",
        "without weights",
        "without decay",
    ]
    assert found.rows[0].difference is None
    assert found.rows[1].difference.tests["MAP"].difference == 0.0
    lines = ablation_markdown(found).splitlines()
    assert lines[2].startswith("| variation | MAP | difference")
    assert len(lines) == 2 + 2 + 3
