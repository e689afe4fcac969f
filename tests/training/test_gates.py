"""Gates: the conversations that they are learned on, and their thresholds."""

import gzip
import json

import numpy as np
import pytest
from tests.training.small_files import ROWS

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.reranking.benchmark import GATE_FEATURES, GateCases
from ekphory_lab.training.gates import gate_conversations, learn_gates, learn_thresholds
from ekphory_lab.training.reranker.examples import part_of


def write_training_files(directory):
    for name, row in ROWS.items():
        numbered = [{**row, "id": str(number)} for number in range(640)]
        text = "".join(json.dumps(each) + "\n" for each in numbered)
        (directory / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 1))


def test_conversations_of_all_sources_compete_in_a_pool(tmp_path):
    # A missing file is named.
    with pytest.raises(DatasetError, match="synthetic_persona_chat"):
        gate_conversations(tmp_path)
    write_training_files(tmp_path)
    found = gate_conversations(tmp_path, pools=1)
    assert {passage.id.partition(":")[0] for passage in found.pools["0"]} == set("012345")
    assert {query.category for query in found.queries} >= {"synthetic_persona_chat", "sgd", "qmsum"}
    # Turns keep their speaker and their session.
    [summarised] = ROWS["crd3"]["turns"]
    turns = {passage.text: passage for passage in found.pools["0"]}
    assert turns[summarised["text"]].speaker == "Ada"
    assert turns[summarised["text"]].session is not None
    # Rows that rerankers are trained on are left out.
    held_back = sum(
        part_of({**ROWS["qmsum_train"], "id": str(number)}) == "held_back" for number in range(640)
    )
    found = gate_conversations(tmp_path, pools=100)
    assert len(found.pools) <= held_back < 100


def cases(gains, values, pools=None):
    """Questions of one feature that matters; the others say nothing."""
    features = {name: np.zeros(len(values)) for name in GATE_FEATURES}
    features["probability_gap"] = np.array(values)
    given = pools or [str(place % 4) for place in range(len(values))]
    first_stage = np.full(len(values), 0.5)
    return GateCases(np.array(given), features, first_stage, first_stage + np.array(gains))


VALUES = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 20)


GAINS = np.where(VALUES == 0.3, 0.2, 0.0)


def test_the_band_in_which_reranking_gains_is_found():
    found = learn_thresholds(cases(GAINS, VALUES), "probability_gap")
    assert found.low == pytest.approx(0.3, abs=0.05)
    assert found.high == 0.3
    # What lies beyond everything seen is treated as the nearest.
    found = learn_thresholds(cases(np.full(100, 0.1), VALUES), "probability_gap", keep=1.0)
    assert (found.low, found.high) == (0.0, 2.0)


def test_the_feature_that_skips_most_comes_first():
    best, *others = learn_gates(cases(GAINS, VALUES))
    assert best.feature == "probability_gap"
    assert best.checked.skipped == pytest.approx(0.8)
    assert best.checked.gain_kept == pytest.approx(1.0)
    assert [gate.checked.skipped for gate in others] == [0.0, 0.0, 0.0]


def test_a_reranker_that_gains_nothing_and_a_single_conversation_are_refused():
    with pytest.raises(DatasetError, match=r"from 0\.500 to 0\.400"):
        learn_gates(cases(np.full(100, -0.1), VALUES))
    with pytest.raises(DatasetError, match="two conversations"):
        learn_gates(cases(GAINS, VALUES, pools=["a"] * 100))
