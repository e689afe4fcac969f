"""The gate of `auto` lies in a file, and holds for the two models that the file names."""

from dataclasses import replace

import pytest

from ekphory.errors import ModelError
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.loading import load_embedder
from ekphory.models.reranker import TINY_RERANKER, bundled_reranker, model_id
from ekphory.retrieval.calibration import (
    GATE_FILE,
    FittedFile,
    FittedGate,
    GateBand,
    read_fitted,
    read_gate,
    write_fitted,
)
from ekphory.retrieval.gate import GateThresholds
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.testing.models import OverlapReranker
from retrieval.states import records, state_of, with_candidates

EMBEDDER = EmbedderIdentity("ekphory-small", "1f", 384)


class NamedReranker(OverlapReranker):
    """States a revision, as rerankers of a directory do."""

    model_id = "tiny@2e"


FILE = FittedFile(
    kind="gate",
    command="ekphory train gate --data DIR",
    models={"embedder": "ekphory-small@1f", "reranker": "tiny@2e"},
    data={"sgd.jsonl": "ab12"},
    seed=0,
    values={"feature": "best_probability", "low": 0.0, "high": 0.9},
)
BAND = GateBand("best_probability", GateThresholds(low=0.0, high=0.9))


def test_a_gate_is_read_from_its_file(tmp_path):
    write_fitted(tmp_path / "gate.json", FILE)
    assert read_gate(tmp_path / "gate.json") == FittedGate(FILE, BAND)


def test_a_gate_holds_for_the_models_that_its_file_names():
    assert FittedGate(FILE, BAND).band_for(EMBEDDER, NamedReranker()) == BAND


def test_a_gate_of_another_revision_of_the_embedder_is_refused():
    with pytest.raises(ModelError, match=r"ekphory-small@1f, and ekphory-small@9d is in use"):
        FittedGate(FILE, BAND).band_for(replace(EMBEDDER, revision="9d"), NamedReranker())


def test_a_search_with_another_revision_than_the_gates_is_refused():
    file = replace(FILE, models={"embedder": "hash-embedder@0", "reranker": "tiny@2e"})
    given = state_of(*records("a", "b"), reranker=NamedReranker())
    given = with_candidates(given, [0.6, 0.4], cosine=[0.6, 0.4])
    with pytest.raises(ModelError, match="hash-embedder@0, and hash-embedder@"):
        GateReranker(mode="auto", learned=FittedGate(file, BAND)).skip_reason(given)


def test_models_of_other_names_have_no_gate():
    assert (
        FittedGate(FILE, BAND).band_for(replace(EMBEDDER, name="my-own"), NamedReranker()) is None
    )


def test_a_model_that_states_no_revision_has_no_gate():
    assert FittedGate(FILE, BAND).band_for(EMBEDDER, OverlapReranker()) is None


@pytest.mark.parametrize(
    "values", [{}, {"feature": "length", "low": 0, "high": 1}, {**FILE.values, "low": "x"}]
)
def test_a_file_without_a_band_is_refused_by_its_name(tmp_path, values):
    write_fitted(tmp_path / "gate.json", replace(FILE, values=values))
    with pytest.raises(ModelError, match=r"gate\.json: must have the values feature, low and high"):
        read_gate(tmp_path / "gate.json")


def test_the_packages_gate_is_that_of_the_bundled_models():
    file = read_fitted(GATE_FILE, kind="gate")
    reranker = bundled_reranker(TINY_RERANKER)
    assert file.models == {
        "embedder": load_embedder(None).identity.model_id,
        "reranker": model_id(reranker),
    }


def test_balanced_uses_the_packages_gate():
    (gate,) = (stage for stage in BALANCED.stages if isinstance(stage, GateReranker))
    band = read_gate().band_for(load_embedder(None).identity, bundled_reranker(TINY_RERANKER))
    assert (gate.mode, gate.learned) == ("auto", None)
    assert (band.feature, band.thresholds.high) == (
        read_fitted(GATE_FILE, kind="gate").values["feature"],
        read_fitted(GATE_FILE, kind="gate").values["high"],
    )
