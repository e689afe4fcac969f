"""What is learned from written chains."""

from contextlib import ExitStack
from dataclasses import replace

import pytest

from ekphory.agent.evidence import FEATURES, HOPS_FILE, READ_FEATURES, read_weights
from ekphory.models.onnx_models import load_bundled
from ekphory.retrieval.calibration import read_fitted
from ekphory_lab.training.hops import find_steps, hop_scopes, learn_hops


@pytest.mark.long
def test_hops_are_learned_from_questions_of_one_and_of_several_memories():
    scopes = [replace(scope, questions=scope.questions[:20]) for scope in hop_scopes(seed=0)[:2]]
    assert [len(scope.questions) for scope in scopes] == [20, 20]
    embedder = load_bundled()
    with ExitStack() as kept_open:
        found = find_steps(scopes, embedder, kept_open)
        file = learn_hops(found, seed=0, embedder=embedder)
    assert set(file.values["unread"]["hop"]) == {*FEATURES, "intercept"}
    assert set(file.values["read"]["hop"]) == {*READ_FEATURES, "intercept"}
    # What the chain's memory leads to is likelier the earlier that its lookup finds it.
    assert file.values["unread"]["hop"]["meaning"] > 0
    assert 0 < file.values["follow"] < 1


def test_the_weights_that_come_with_ekphory_are_those_of_the_command():
    file = read_fitted(HOPS_FILE, kind="hops")
    assert file.command == "ekphory train hops --seed 0"
    assert set(file.data) == {"chains", "conversations"}
    weights = read_weights()
    assert set(weights.unread.hop) == {*FEATURES, "intercept"}
    assert weights.read is not None
    assert set(weights.read.hop) == {*READ_FEATURES, "intercept"}
    assert 0 < weights.stop < weights.follow < 1
