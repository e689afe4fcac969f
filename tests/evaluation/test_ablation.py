"""Changing one stage at a time."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.retrieval.presets import ACCURATE, BALANCED
from ekphory.retrieval.stages.rerank import Rerank
from ekphory.retrieval.stages.weigh import Decay, Normalise
from ekphory.types import to_plain_data
from ekphory_lab.evaluation.ablation import (
    VARIATIONS,
    ablate,
    ablation_json,
    ablation_table,
    find_variations,
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


@pytest.mark.parametrize(
    ("preset", "varied_by"),
    [
        (BALANCED, ["not read", "half as many read", "twice as many read",
                    "without following links"]),
        (ACCURATE, ["not read", "not read again", "half as many read", "twice as many read"]),
    ],
)  # fmt: skip
def test_what_is_read_is_varied_where_the_preset_has_it(preset, varied_by):
    assert list(find_variations(preset, "reading")) == varied_by


def test_readings_are_taken_at_half_and_twice_without_a_limit_of_time():
    found = find_variations(ACCURATE, "reading")
    read = {
        name: [(s.candidates, s.quick_candidates, s.seconds) for s in each.stages
               if isinstance(s, Rerank)]
        for name, each in found.items() if name.endswith("many read")
    }  # fmt: skip
    assert read == {
        "half as many read": [(25, 20, None), (6, 20, None)],
        "twice as many read": [(100, 80, None), (24, 80, None)],
    }


def test_what_has_no_variations_is_refused():
    with pytest.raises(InvalidInput, match="its first stage has no variations"):
        find_variations(ACCURATE, "first-stage")
    with pytest.raises(InvalidInput, match="Give first-stage or reading"):
        find_variations(BALANCED, "second-stage")


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
