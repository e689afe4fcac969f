import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.models.tiny_components import tiny_components

from ekphory.errors import ModelError
from ekphory.models.late_bound import (
    COMPONENTS_FILE,
    EmbedderComponents,
    Linear,
    read_components,
    write_components,
)

PARTS = ("weight", "bias")


@pytest.fixture
def path(tmp_path):
    write_components(tiny_components(), tmp_path)
    return tmp_path / COMPONENTS_FILE


def test_components_come_back_as_they_were_written(path):
    found, written = read_components(path.parent), tiny_components()

    assert np.array_equal(found.age, written.age)
    assert np.array_equal(found.importance[1].bias, written.importance[1].bias)
    assert np.array_equal(found.memory_type.weight, written.memory_type.weight)


def test_the_file_names_the_tensors_as_the_trainer_does(path):
    layers = ("importance.0", "importance.2", "memory_type", "projection")

    assert sorted(load_file(path)) == sorted(
        ["age.weight", "type.weight", *(f"{name}.{part}" for name in layers for part in PARTS)]
    )


def test_a_directory_without_the_file_has_none(tmp_path):
    assert read_components(tmp_path) is None


def test_a_model_without_heads_can_be_written(tmp_path):
    whole = tiny_components()
    write_components(EmbedderComponents(whole.age, whole.type, whole.projection), tmp_path)

    found = read_components(tmp_path)

    assert found.importance is None
    assert found.type_logits_of(np.ones((1, 32), np.float32)) is None


@pytest.mark.parametrize("name", ["age.weight", "type.weight", "projection.bias"])
def test_a_missing_tensor_is_named(path, name):
    tensors = load_file(path)
    del tensors[name]
    save_file(tensors, path)

    with pytest.raises(ModelError, match=name):
        read_components(path.parent)


def test_a_tensor_of_another_shape_is_named(path):
    save_file(load_file(path) | {"type.weight": np.zeros((3, 32), np.float32)}, path)

    with pytest.raises(ModelError, match=r"type.weight is \(3, 32\), not \(4, 32\)"):
        read_components(path.parent)


def test_a_file_that_is_cut_short_is_refused(path):
    path.write_bytes(path.read_bytes()[:100])

    with pytest.raises(ModelError, match="cannot be read as safetensors"):
        read_components(path.parent)


def test_the_importance_is_a_sigmoid_over_two_layers():
    one = np.eye(2, dtype=np.float32)
    components = EmbedderComponents(
        age=np.zeros((10, 2), np.float32),
        type=np.zeros((4, 2), np.float32),
        projection=Linear(one, np.zeros(2, np.float32)),
        importance=(
            Linear(one, np.array([0, -1], np.float32)),
            Linear(np.array([[2, 5]], np.float32), np.array([-1], np.float32)),
        ),
    )

    # ReLU gives (0.5, 0), so the logit is 2 * 0.5 - 1
    assert components.importance_of(np.array([[0.5, 0.5]], np.float32)) == pytest.approx([0.5])


def test_age_and_type_are_projected_without_the_bias():
    components = tiny_components()

    parts = components.late_bound()

    with_age = components.content(components.age[:1])
    assert np.abs(parts.age[:1] + components.projection.bias - with_age).max() <= 1e-6
