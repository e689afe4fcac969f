"""What rounding to 8 bits may cost, on the benchmark beside the repository."""

from pathlib import Path

import pytest

from recollect.evaluation.baselines import dense_system
from recollect.evaluation.conversation import load_conversation
from recollect.evaluation.runner import evaluate
from recollect.models.onnx_embedder import load_bundled

LOCOMO_DEV = Path(__file__).parents[3] / "shared" / "data" / "locomo_dev"
FLOAT_MAP = 0.5484  # the trained model by sentence-transformers in 32-bit float


@pytest.mark.slow
def test_the_bundled_model_loses_at_most_one_hundredth_of_its_dense_map():
    if not LOCOMO_DEV.is_dir():
        pytest.skip(f"{LOCOMO_DEV} is not there")

    report = evaluate(load_conversation(LOCOMO_DEV), dense_system(load_bundled()))

    assert report.overall.estimates["MAP"].mean >= 0.99 * FLOAT_MAP
