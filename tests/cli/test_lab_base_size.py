"""The size `base`, from all-mpnet-base-v2 itself: `make test-base` fetches it and runs this."""

import os
from pathlib import Path

import numpy as np
import pytest

from ekphory.models import Embedder
from ekphory.models.loading import load_embedder
from ekphory.models.onnx_models import OnnxEmbedder

MPNET = Path(os.environ.get("EKPHORY_TEST_MPNET", "build/all-mpnet-base-v2"))
PASSAGES = [
    "We moved from Leipzig to Porto in March.",
    "The dentist wants to see me again in six weeks.",
    "Our cat hides in the laundry basket when it thunders.",
]
QUERIES = ["Where do we live now?", "When is my next dental check?", "What scares the pet?"]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.long,
    pytest.mark.timeout(1_200),
    pytest.mark.skipif(not MPNET.is_dir(), reason=f"{MPNET} is not there: make test-base"),
]


def test_base_is_trained_exported_and_finds_what_its_base_found(train, tmp_path):
    samples, run, exported = (tmp_path / name for name in ("samples.jsonl", "run", "onnx"))
    train("generate", "--count", 40, "--out", samples)
    places = ("--config", "base", "--data", samples, "--base", MPNET, "--target", run)

    told = train("embedder", *places, "--steps", 2)

    assert told.strip() == f"{run / 'model'}: 2 steps"
    aged = Embedder.from_pretrained(run / "model")
    assert aged.encode(PASSAGES[0], days_ago=3, memory_type="episodic").shape == (1, 768)

    train("export", "--source", run / "model", "--target", exported, "--name", "ekphory-base")

    trained, plain = load_embedder(run / "model"), OnnxEmbedder(exported)
    assert plain.identity.dimension == 768
    assert np.abs(plain.encode(PASSAGES) - trained.encode(PASSAGES)).max() <= 1e-4
    similarities = plain.encode_query(QUERIES) @ plain.encode(PASSAGES).T
    assert similarities.argmax(axis=1).tolist() == [0, 1, 2]
