"""A cross-encoder of random weights, as a run's folder `model` holds it."""

import numpy as np
from safetensors.numpy import save_file
from tests.training.tiny_encoder import HIDDEN, write_tiny_encoder

from ekphory_lab.training.reranker.export import HEAD_FILE


def write_tiny_cross_encoder(directory):
    """Write it and give its directory."""
    directory.mkdir()
    write_tiny_encoder(directory)
    random = np.random.default_rng(5)

    def matrix(*shape):
        return random.normal(0, 0.3, shape).astype(np.float32)

    head = {
        "projection.weight": matrix(HIDDEN, HIDDEN),
        "projection.bias": matrix(HIDDEN),
        "match.weight": np.full((1, 1), 10, np.float32),
        "match.bias": np.full(1, -5, np.float32),
        "dense.weight": matrix(HIDDEN, HIDDEN),
        "dense.bias": matrix(HIDDEN),
        "out.weight": matrix(1, HIDDEN),
    }
    save_file(head, directory / HEAD_FILE)
    return directory
