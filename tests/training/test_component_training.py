"""Age, type and importance are learned from samples in which nothing else tells."""

import pytest
from tests.training.trainable_encoder import write_trainable_encoder

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

if torch:
    from ekphory_lab.training.component_training import ComponentConfig, train_components
    from ekphory_lab.training.embedder_run import MemoryLossWeights
    from ekphory_lab.training.encoder import load_base_encoder
    from ekphory_lab.training.memories import GeneratedMemory, HardNegative, MemorySample

NEW, OLD = 0.5, 400.0


def silent(*_):
    pass


def sample(query, *, days_ago, other, importance=0.5):
    """Two memories of the same words; only their age tells which one is meant."""
    return MemorySample(
        query,
        GeneratedMemory("the cat sat on a mat", days_ago, "episodic", importance),
        (
            HardNegative(
                "temporal", GeneratedMemory("the cat sat on a mat", other, "episodic", importance)
            ),
        ),
    )


@pytest.fixture
def encoder(tmp_path):
    return load_base_encoder(write_trainable_encoder(tmp_path / "base"))


def test_words_of_a_query_come_to_mean_an_age(encoder):
    samples = [
        sample("the big cat", days_ago=NEW, other=OLD),
        sample("the red cat by sea", days_ago=OLD, other=NEW),
    ]

    config = ComponentConfig(epochs=200, kept=1.0, loss=MemoryLossWeights(lengths=0.0))
    report = train_components(encoder, samples, config=config, progress=silent)

    assert report.first_without == 0.5
    assert report.first_with == 1.0


def test_the_encoder_and_its_projection_stay(encoder):
    before = {name: value.clone() for name, value in encoder.parts.state_dict().items()}

    train_components(
        encoder,
        [sample("the big cat", days_ago=NEW, other=OLD)],
        config=ComponentConfig(epochs=2),
        progress=silent,
    )

    after = encoder.parts.state_dict()
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"age", "kind", "importance", "memory_type"}


def test_importance_is_learned(encoder):
    samples = [sample("the big cat", days_ago=NEW, other=OLD, importance=0.9)]

    report = train_components(encoder, samples, config=ComponentConfig(epochs=100), progress=silent)

    assert report.importance_error < 0.05
    assert report.type_accuracy == 1.0


def test_of_the_vectors_of_age_and_type_a_share_is_kept(encoder):
    samples = [sample("the big cat", days_ago=NEW, other=OLD)]
    lengths = []
    for kept in (1.0, 0.1):
        start = {name: value.clone() for name, value in encoder.parts.state_dict().items()}
        config = ComponentConfig(epochs=5, kept=kept)
        train_components(encoder, samples, config=config, progress=silent)
        lengths.append(float(encoder.parts["age"].weight.detach().norm()))
        encoder.parts.load_state_dict(start)
    assert lengths[1] == pytest.approx(0.1 * lengths[0])
