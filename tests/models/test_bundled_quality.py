"""What rounding and plain loading may cost, on the benchmark beside the repository."""

import shutil
from pathlib import Path

import pytest

from ekphory.models.agent_embedder import Embedder
from ekphory.models.loading import load_embedder
from ekphory.models.onnx_models import load_bundled
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import dense_system

LOCOMO_DEV = Path(__file__).parents[3] / "shared" / "data" / "locomo_dev"
# Of the trained weights by sentence-transformers in 32-bit float, and of which export.
FLOAT_MAP, REVISION = 0.588, "86c4fd8a26b4e8a6"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def benchmark():
    if not LOCOMO_DEV.is_dir():
        pytest.skip(f"{LOCOMO_DEV} is not there")
    return load_conversation(LOCOMO_DEV)


def dense_map(benchmark, model):
    return evaluate(benchmark, dense_system(model)).overall.scores["MAP"].mean


def test_the_float_figure_is_that_of_the_weights_which_are_bundled():
    assert load_bundled().record.revision == REVISION


def test_the_bundled_model_loses_at_most_one_hundredth_of_its_dense_map(benchmark):
    assert dense_map(benchmark, load_bundled()) >= 0.99 * FLOAT_MAP


@pytest.mark.torch
@pytest.mark.timeout(600)  # 32-bit floats, beside other tests on few cores.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_plain_encoder_without_its_projection_finds_as_much(benchmark, tmp_path):
    Embedder.from_pretrained("bundled").save_pretrained(tmp_path / "whole")
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tmp_path / "whole" / name, plain / name)

    # Without modules sentence-transformers takes AutoModel and the mean over its tokens.
    assert dense_map(benchmark, load_embedder(str(plain))) >= 0.99 * FLOAT_MAP
