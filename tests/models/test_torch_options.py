"""How models that torch runs are loaded: their type, their attention, and batches by tokens."""

from functools import partial

import numpy as np
import pytest
from tests.models.tiny_components import TEXTS, write_tiny_onnx_embedder
from tests.models.tiny_rerankers import write_cross_encoder, write_first, write_yes_no_model

from ekphory.config import Settings
from ekphory.errors import InvalidInput
from ekphory.models import Embedder, Reranker, TorchOptions
from ekphory.models.loading import load_configured_embedder, load_embedder, load_local_reranker

LONGER = [*TEXTS, "the cat ran to its big red house by the sea", "a mat"]
RERANKERS = pytest.mark.parametrize(
    ("write", "runtime"),
    [(write_cross_encoder, "sentence-transformers"), (write_yes_no_model, "transformers")],
)
DOCUMENTS = ["The capital of China is Beijing.", "Gravity attracts.", "x" * 300, "Tea"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_tiny_onnx_embedder(tmp_path_factory.mktemp("tiny"))


@pytest.mark.torch
@pytest.mark.parametrize("tokens", [1, 12, 10_000])
def test_batches_by_tokens_give_the_same_vectors_in_the_same_order(directory, tokens):
    wanted = Embedder.from_pretrained(directory, runtime="torch").encode(LONGER)

    options = TorchOptions(tokens_per_batch=tokens)
    found = Embedder.from_pretrained(directory, options=options).encode(LONGER)

    assert np.abs(found - wanted).max() <= 1e-5


@pytest.mark.torch
def test_weights_are_held_in_the_type_that_is_named(directory):
    options = TorchOptions(dtype="bfloat16", attn_implementation="eager", device="cpu")
    loaded = load_embedder(directory, options=options)

    encoder = loaded._model[0].auto_model
    assert str(encoder.dtype) == "torch.bfloat16"
    assert encoder.config._attn_implementation == "eager"
    wanted = Embedder.from_pretrained(directory).encode(LONGER)
    assert (loaded.encode(LONGER) * wanted).sum(axis=1).min() > 0.99


@pytest.mark.torch
@pytest.mark.slow
@RERANKERS
def test_rerankers_take_options_and_score_as_before(write, runtime, tmp_path):
    directory = write_first(tmp_path, write, partial(load_local_reranker, runtime=runtime))
    wanted = Reranker.from_pretrained(directory).raw_scores("capital of China", DOCUMENTS)

    eager = {"attn_implementation": "eager"}
    options = TorchOptions(tokens_per_batch=40, model_kwargs=eager, dtype="float32")
    found = Reranker.from_pretrained(directory, runtime=runtime, options=options)

    assert np.abs(found.raw_scores("capital of China", DOCUMENTS) - wanted).max() <= 1e-4


@pytest.mark.torch
@pytest.mark.slow
@RERANKERS
def test_either_attention_gives_the_same_scores(write, runtime, tmp_path):
    directory = write_first(tmp_path, write, partial(load_local_reranker, runtime=runtime))

    eager, fused = (
        Reranker.from_pretrained(
            directory, runtime=runtime, options=TorchOptions(attn_implementation=attention)
        )
        for attention in ("eager", "sdpa")
    )

    used = [each._model._model.config._attn_implementation for each in (eager, fused)]
    assert used == ["eager", "sdpa"]
    found, wanted = (each.raw_scores("capital of China", DOCUMENTS) for each in (fused, eager))
    assert np.abs(found - wanted).max() <= 1e-4


@pytest.mark.torch
def test_either_attention_gives_the_same_vectors(directory):
    eager, fused = (
        load_embedder(directory, options=TorchOptions(attn_implementation=attention))
        for attention in ("eager", "sdpa")
    )

    used = [each._model[0].auto_model.config._attn_implementation for each in (eager, fused)]
    assert used == ["eager", "sdpa"]
    assert np.abs(fused.encode(LONGER) - eager.encode(LONGER)).max() <= 1e-5


@pytest.mark.torch
def test_the_environment_names_options(directory):
    named = {"embedder": str(directory), "embedder_options": '{"tokens_per_batch": 9}'}
    settings = Settings(store="s", **named)
    assert load_configured_embedder(settings)._tokens_per_batch == 9


@pytest.mark.parametrize("text", ["[]", "bfloat16", '{"speed": "high"}'])
def test_options_that_cannot_be_read_are_refused(text):
    settings = Settings(store="s", embedder="some-folder", embedder_options=text)

    with pytest.raises(InvalidInput, match=r"EKPHORY_EMBEDDER_OPTIONS.*Known are device, dtype"):
        load_configured_embedder(settings)


def test_options_are_not_for_onnx_runtime(directory):
    with pytest.raises(InvalidInput, match="are for torch, not for ONNX Runtime"):
        Embedder.from_pretrained(directory, runtime="onnx", options=TorchOptions())
    for load in (Embedder.from_pretrained, Reranker.from_pretrained):
        with pytest.raises(InvalidInput, match=r"engine=.*is for vLLM"):
            load(directory, options=TorchOptions(engine={"max_model_len": 2048}))
    with pytest.raises(InvalidInput, match="stands beside a device_map"):
        TorchOptions(device="cpu", device_map="auto")
    with pytest.raises(InvalidInput, match="tokens_per_batch"):
        TorchOptions(tokens_per_batch=0)


@pytest.mark.long
@pytest.mark.torch
def test_vllm_gives_the_logits_of_transformers(tmp_path):
    pytest.importorskip("vllm")
    load = partial(load_local_reranker, runtime="transformers")
    directory = write_first(tmp_path, partial(write_yes_no_model, head=64), load)
    wanted = Reranker.from_pretrained(directory).raw_scores("capital of China", DOCUMENTS)

    options = TorchOptions(dtype="float32", engine={"max_model_len": 2048, "enforce_eager": True})
    found = Reranker.from_pretrained(directory, runtime="vllm", options=options)

    assert np.abs(found.raw_scores("capital of China", DOCUMENTS) - wanted).max() <= 1e-2
