"""What the reranker's gate would do and has done."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.models.reranker import SMALL_RERANKER
from ekphory.retrieval.calibration import GATE_FILES, FittedFile, FittedGate, GateBand, read_gate
from ekphory.retrieval.gate import GateThresholds
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.testing import HashEmbedder, OverlapReranker


class KnownReranker(OverlapReranker):
    """States a revision, as rerankers of a directory do."""

    model_id = "overlap-reranker@1"


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", "20")
    models = {"embedder": HashEmbedder(), "reranker": OverlapReranker()}
    with Memory(tmp_path, org="home", project="chat", **models) as opened:
        opened.add("The oven is broken")
        opened.add("The sink leaks")
        yield opened


def gated(stage):
    """Memory-Spark's preset with another gate."""
    stages = [
        stage if isinstance(each, GateReranker) else each for each in PRESETS["memory_spark"].stages
    ]
    return Pipeline("gated", stages)


def test_the_default_preset_has_no_gate(memory):
    status = memory.gate_status()
    assert (status.preset, status.mode, status.thresholds) == ("balanced", None, None)
    assert status.in_words()[0].startswith("balanced has no gate")


def test_memory_sparks_gate_has_its_published_thresholds(memory):
    status = memory.gate_status(preset="memory_spark")
    assert (status.mode, status.thresholds) == ("hard", GateThresholds(0.02, 0.08))
    assert status.embedder == HashEmbedder().identity.model_id
    assert (status.reranker, status.learned) == ("overlap-reranker", None)
    assert status.in_words() == [
        "memory_spark has the gate hard, which reranks where the best 5 cosines spread: "
        "0.02 to 0.08.",
        f"The mode auto has no gate that was learned for overlap-reranker with {status.embedder}.",
        "No decision is recorded.",
    ]


def test_a_learned_gate_is_told_for_the_models_that_it_was_learned_with(tmp_path):
    models = {"embedder": HashEmbedder().identity.model_id, "reranker": "overlap-reranker@1"}
    file = FittedFile(kind="gate", command="ekphory train gate", models=models, data={}, seed=0)
    band = GateBand("probability_gap", GateThresholds(low=0.01, high=0.5))
    learned = FittedGate(file, band)
    auto = gated(GateReranker(mode="auto", learned=learned))
    with Memory(tmp_path, embedder=HashEmbedder(), reranker=KnownReranker()) as memory:
        status = memory.gate_status(preset=auto)
    assert (status.mode, status.thresholds, status.learned) == ("auto", None, band)
    assert "would rerank where probability_gap is from 0.01 to 0.5" in status.in_words()[1]


def test_the_bundled_models_have_a_gate_that_was_learned_for_them(tmp_path):
    with Memory(tmp_path) as memory:
        status = memory.gate_status()
    assert status.reranker == SMALL_RERANKER
    assert status.learned == read_gate(GATE_FILES[SMALL_RERANKER]).band


def test_what_the_gate_decided_is_counted_in_recorded_searches_of_the_project(memory, tmp_path):
    everything = gated(GateReranker(mode="hard", thresholds=GateThresholds(low=-1.0, high=2.0)))
    nothing = gated(GateReranker(mode="hard", thresholds=GateThresholds(low=1.5, high=2.0)))
    for preset in (everything, everything, nothing, "balanced"):
        memory.search("what does not work?", preset=preset)
    decided = {"hard-gate-pass": 2, "hard-gate-low": 1}
    assert memory.gate_status(preset=everything).decided == decided
    assert memory.gate_status().decided == {}
    told = memory.gate_status(preset=everything).in_words()[-1]
    assert told == "Decided in recorded searches: hard-gate-low 1, hard-gate-pass 2."
    models = {"embedder": HashEmbedder(), "reranker": OverlapReranker()}
    with Memory(tmp_path, org="home", project="other", **models) as other:
        assert other.gate_status(preset=everything).decided == {}


def test_without_a_reranker_there_is_none_to_gate(tmp_path):
    with Memory(tmp_path, embedder=HashEmbedder(), reranker="none") as memory:
        status = memory.gate_status(preset="memory_spark")
    assert (status.reranker, status.learned) == (None, None)


def test_a_preset_that_does_not_exist_is_refused(memory):
    with pytest.raises(InvalidInput, match="no such preset"):
        memory.gate_status(preset="best")
