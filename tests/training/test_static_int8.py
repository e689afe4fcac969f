import numpy as np
import onnxruntime
import pytest
from tests.training.tiny_encoder import TEXTS, tiny_tokenizer, write_tiny_encoder

from ekphory.models.onnx_graph import FloatArithmetic, Site, build_encoder, load_encoder_weights
from ekphory_lab.training.static_int8 import (
    OUTLIER_CHANNELS,
    StaticInt8Arithmetic,
    fold_value_balance,
    quantise_columns,
    ranges_over,
    text_batches,
)

INPUTS = {
    "input_ids": np.array([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]]),
    "attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tiny")
    write_tiny_encoder(directory)
    return load_encoder_weights(directory)


@pytest.fixture(scope="module")
def ranges(weights):
    tokenizer = tiny_tokenizer()
    tokenizer.enable_padding()
    arithmetic = FloatArithmetic()
    model = build_encoder(weights, arithmetic)
    return ranges_over(model, arithmetic, text_batches(tokenizer, TEXTS))


def pooled(model):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["pooled"], INPUTS)[0]


def test_weights_are_rounded_with_one_scale_for_each_column():
    rounded, scales = quantise_columns(
        np.array([[127.0, 0.0, 1.0], [-50.4, 0.0, -0.5]], np.float32)
    )

    assert rounded.tolist() == [[127, 0, 127], [-50, 0, -64]]
    assert scales == pytest.approx([1, 1, 1 / 127])


def test_folding_the_balance_into_the_values_changes_no_result(weights, ranges):
    folded, folded_ranges = fold_value_balance(weights, ranges)

    before = pooled(build_encoder(weights, FloatArithmetic()))
    after = pooled(build_encoder(folded, FloatArithmetic()))

    assert np.abs(after - before).max() <= 1e-5
    # It evens out the channels.
    site = Site(0, "attention_output")
    before, after = ranges[site].magnitude, folded_ranges[site].magnitude
    assert after.max() / after.min() == pytest.approx(1, abs=1e-3)
    assert before.max() / before.min() > 1.5


def test_the_channels_with_the_largest_range_are_computed_apart(weights, ranges):
    groups = StaticInt8Arithmetic(weights, ranges).outer_groups(0, 128)

    magnitude = ranges[Site(0, "outer")].magnitude
    assert [len(group) for group in groups] == [128 - OUTLIER_CHANNELS, OUTLIER_CHANNELS]
    assert magnitude[groups[0]].max() <= magnitude[groups[1]].min()
    assert sorted(np.concatenate(groups).tolist()) == list(range(128))
