"""The three layouts of a model directory, read and written with torch."""

import json
import pickle

import numpy as np
import pytest
from tests.models.tiny_components import (
    TEXTS,
    bound_reference,
    content_reference,
    pooled,
    tiny_components,
    write_tiny_embedder,
)
from tests.training.tiny_encoder import write_tiny_encoder

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.agent_embedder import Embedder
from ekphory.models.late_bound import normalised
from ekphory.models.torch_embedder import TorchEmbedder

pytestmark = pytest.mark.torch


@pytest.fixture
def source(tmp_path):
    return write_tiny_embedder(tmp_path / "source")


@pytest.fixture
def embedder(source):
    return Embedder.from_pretrained(source)


def test_weights_on_the_disk_are_read_without_a_bar_and_others_bars_stay(source, capsys):
    from transformers.utils import logging

    logging.enable_progress_bar()
    Embedder.from_pretrained(source)

    assert capsys.readouterr().err == ""
    assert logging.is_progress_bar_enabled()


@pytest.fixture
def agentrank(tmp_path):
    """A directory as AgentRank 0.1.3 saves it."""
    directory = tmp_path / "agentrank"
    directory.mkdir()
    write_tiny_encoder(directory)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    settings |= {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    write_agentrank_components(directory, pooling="mean")
    return directory


def write_agentrank_components(directory, *, pooling):
    import torch

    def state(**tensors):
        return {name: torch.tensor(value) for name, value in tensors.items()}

    parts = tiny_components()
    first, second = parts.importance
    head = {"0.weight": first.weight, "0.bias": first.bias}
    head |= {"3.weight": second.weight, "3.bias": second.bias}  # 1 ReLU, 2 dropout
    content = {
        "temporal_embeddings": state(weight=parts.age),
        "memory_type_embeddings": state(weight=parts.type),
        "importance_head": state(**head),
        "projection": state(weight=parts.projection.weight, bias=parts.projection.bias),
        "config": {"pooling": pooling, "hidden_dim": 32},
    }
    torch.save(content, directory / "agentrank_components.pt")


def test_ekphorys_layout_gives_what_the_formula_says(embedder):
    vectors = embedder.encode(TEXTS, days_ago=[0, 20, 400], memory_type="procedural")

    assert np.abs(vectors - bound_reference(TEXTS, [0, 4, 9], [2, 2, 2])).max() <= 1e-5


def test_the_heads_read_the_encoder_before_age_and_type(embedder):
    expected = tiny_components().importance_of(pooled(TEXTS))

    assert np.abs(embedder.importance(TEXTS) - expected).max() < 1e-5
    assert len(embedder.memory_type(TEXTS)) == 3


def test_what_is_saved_loads_in_plain_sentence_transformers(embedder, tmp_path):
    from sentence_transformers import SentenceTransformer

    embedder.save_pretrained(tmp_path / "saved")

    plain = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert np.abs(plain.encode(TEXTS) - embedder.encode(TEXTS)).max() <= 1e-5
    assert np.abs(plain.encode_query(TEXTS) - embedder.encode_query(TEXTS)).max() <= 1e-5


def test_what_is_saved_loads_in_plain_transformers(embedder, tmp_path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    embedder.save_pretrained(tmp_path / "saved")

    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    inputs = tokenizer([TEXTS[0]], padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        outputs = AutoModel.from_pretrained(tmp_path / "saved")(**inputs)
    found = outputs.last_hidden_state.mean(dim=1).numpy()
    assert np.abs(found - pooled(TEXTS[:1])).max() <= 1e-5


def test_what_is_saved_loads_with_onnx_runtime_and_with_torch(embedder, tmp_path):
    embedder.save_pretrained(tmp_path / "saved")

    vectors = embedder.encode(TEXTS, days_ago=5)
    for runtime in ("onnx", "torch"):
        loaded = Embedder.from_pretrained(tmp_path / "saved", runtime=runtime)
        assert np.abs(loaded.encode(TEXTS, days_ago=5) - vectors).max() <= 1e-4
        assert np.abs(loaded.importance(TEXTS) - embedder.importance(TEXTS)).max() <= 1e-5


def test_the_format_onnx_can_be_left_out(embedder, tmp_path):
    embedder.save_pretrained(tmp_path / "saved", formats=["transformers"])

    assert not (tmp_path / "saved" / "onnx").exists()


def test_changed_weights_are_what_is_loaded_where_an_onnx_model_stood_before(source, tmp_path):
    Embedder.from_pretrained(source).save_pretrained(tmp_path / "saved")
    changed = TorchEmbedder(str(source), device="cpu")
    double_word_vectors(changed)

    Embedder(changed).save_pretrained(tmp_path / "saved", formats=["transformers"])

    loaded = Embedder.from_pretrained(tmp_path / "saved")
    assert np.abs(loaded.encode(TEXTS) - changed.encode(TEXTS)).max() <= 1e-5
    assert not (tmp_path / "saved" / "onnx").exists()


def double_word_vectors(embedder):
    import torch

    with torch.no_grad():
        embedder._model[0].auto_model.get_input_embeddings().weight.mul_(2)


def test_files_of_others_in_the_folder_onnx_stay(embedder, tmp_path):
    embedder.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "onnx" / "model_O4.onnx").write_bytes(b"not ekphory's")

    embedder.save_pretrained(tmp_path / "saved", formats=["transformers"])

    assert [path.name for path in (tmp_path / "saved" / "onnx").iterdir()] == ["model_O4.onnx"]


def test_a_plain_model_takes_the_place_of_one_with_components(embedder, source, tmp_path):
    embedder.save_pretrained(tmp_path / "saved")
    (source / "ekphory_components.safetensors").unlink()
    plain = Embedder.from_pretrained(source)

    plain.save_pretrained(tmp_path / "saved", formats=["transformers"])

    loaded = Embedder.from_pretrained(tmp_path / "saved")
    assert loaded.late_bound is None
    assert np.abs(loaded.encode(TEXTS) - plain.encode(TEXTS)).max() <= 1e-5


def test_float_weights_survive_being_loaded_as_onnx_and_saved_again(embedder, tmp_path):
    embedder.save_pretrained(tmp_path / "first")

    Embedder.from_pretrained(tmp_path / "first").save_pretrained(tmp_path / "second")

    loaded = Embedder.from_pretrained(tmp_path / "second", runtime="torch")
    difference = loaded.encode(TEXTS, days_ago=5) - embedder.encode(TEXTS, days_ago=5)
    assert np.abs(difference).max() <= 1e-6


def test_agentranks_layout_gives_what_its_package_computes(agentrank):
    embedder = Embedder.from_pretrained(agentrank)

    vectors = embedder.encode(TEXTS, days_ago=[0, 20, 400], memory_type="procedural")

    expected = bound_reference(TEXTS, [0, 4, 9], [2, 2, 2], scale=0.1)
    assert np.abs(vectors - expected).max() <= 1e-5
    assert embedder.importance(TEXTS).shape == (3,)


def test_agentranks_models_have_no_type_head(agentrank):
    embedder = Embedder.from_pretrained(agentrank)

    with pytest.raises(ModelError, match="no type head"):
        embedder.memory_type(TEXTS)
    assert embedder.encode(TEXTS, days_ago=3).shape == (3, 32)


def test_agentranks_pooling_is_the_one_its_file_names(agentrank):
    by_mean = Embedder.from_pretrained(agentrank).encode(TEXTS)
    write_agentrank_components(agentrank, pooling="cls")

    by_first_token = Embedder.from_pretrained(agentrank)

    assert np.abs(by_first_token.encode(TEXTS) - by_mean).max() > 0.01


def test_a_model_of_agentrank_is_saved_in_ekphorys_layout(agentrank, tmp_path):
    embedder = Embedder.from_pretrained(agentrank)

    embedder.save_pretrained(tmp_path / "saved")

    loaded = Embedder.from_pretrained(tmp_path / "saved", runtime="onnx")
    difference = loaded.encode(TEXTS, days_ago=5) - embedder.encode(TEXTS, days_ago=5)
    assert np.abs(difference).max() <= 1e-4


def test_a_model_with_another_pooling_is_saved_without_onnx(agentrank, tmp_path):
    write_agentrank_components(agentrank, pooling="cls")

    Embedder.from_pretrained(agentrank).save_pretrained(tmp_path / "saved")

    assert (tmp_path / "saved" / "modules.json").is_file()
    assert not (tmp_path / "saved" / "onnx").exists()


def test_a_components_file_that_would_run_code_is_refused(agentrank):
    path = agentrank / "agentrank_components.pt"
    path.write_bytes(pickle.dumps(print, protocol=2))

    with pytest.raises(ModelError, match="cannot load this model"):
        Embedder.from_pretrained(agentrank)


def test_a_plain_model_has_no_age(source):
    (source / "ekphory_components.safetensors").unlink()
    embedder = Embedder.from_pretrained(source)

    expected = normalised(content_reference(TEXTS))
    assert np.abs(embedder.encode(TEXTS) - expected).max() < 1e-5
    with pytest.raises(InvalidInput, match="knows neither age nor type"):
        embedder.encode(TEXTS, days_ago=3)


def test_components_beside_other_modules_are_refused(source):
    modules = json.loads((source / "modules.json").read_text())
    (source / "modules.json").write_text(json.dumps(modules[:2]))

    with pytest.raises(ModelError, match="not Transformer, Pooling, Dense, Normalize"):
        Embedder.from_pretrained(source)
