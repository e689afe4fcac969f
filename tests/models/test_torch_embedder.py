import importlib.util
import json

import numpy as np
import pytest
from tests.training.tiny_encoder import (
    TOKENIZER_CONFIG,
    pooled_reference,
    tiny_tokenizer,
    vocabulary,
    write_tiny_encoder,
)

from ekphory.errors import MissingExtra, ModelError
from ekphory.memory import Memory
from ekphory.models.loading import load_embedder
from ekphory.models.torch_embedder import TorchEmbedder

TEXTS = ["the cat sat", "a big red house by the sea", "dog"]
INSTALLED = importlib.util.find_spec("sentence_transformers") is not None


@pytest.fixture
def weights(tmp_path):
    """Write a model as sentence-transformers does: an encoder, mean pooling, prompts."""
    weights = write_tiny_encoder(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    files = {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 12, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "the ", "document": ""}},
        "tokenizer_config.json": TOKENIZER_CONFIG,
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    return weights


@pytest.fixture
def embedder(weights, tmp_path):
    return TorchEmbedder(str(tmp_path), device="cpu")


def reference(weights, texts):
    rows = np.array(
        [pooled_reference(weights, tiny_tokenizer().encode(text).ids) for text in texts]
    )
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.torch
def test_vectors_are_those_of_the_formulas(embedder, weights):
    assert np.abs(embedder.encode(TEXTS) - reference(weights, TEXTS)).max() <= 1e-5


@pytest.mark.torch
def test_the_models_own_query_prompt_is_used(embedder, weights):
    expected = reference(weights, ["the dog"])

    assert np.abs(embedder.encode_query(["dog"]) - expected).max() <= 1e-5


@pytest.mark.torch
def test_the_identity_follows_the_files(embedder, tmp_path):
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "a "}}')

    other = TorchEmbedder(str(tmp_path), device="cpu")

    assert (embedder.identity.name, embedder.identity.dimension) == (tmp_path.name, 32)
    assert other.identity.revision != embedder.identity.revision


@pytest.mark.torch
def test_nothing_to_embed_gives_an_empty_matrix(embedder):
    assert embedder.encode([]).shape == (0, 32)
    assert embedder.encode_query([]).shape == (0, 32)


@pytest.mark.torch
def test_odd_characters_give_finite_vectors(embedder):
    assert np.isfinite(embedder.encode(["", "\0", "\ud800"])).all()


@pytest.mark.torch
def test_long_text_is_split_into_pieces_that_fit(embedder):
    pieces = embedder.windows("the cat sat on a mat " * 4, prefix="dog ")

    assert all(piece.startswith("dog ") for piece in pieces)
    assert all(len(tiny_tokenizer().encode(piece).ids) <= 12 for piece in pieces)
    assert pieces[-1].endswith("a mat ")


@pytest.fixture
def static(tmp_path):
    """A model that takes the mean of fixed word vectors, as model2vec's do."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    module = StaticEmbedding(tiny_tokenizer(), np.eye(len(vocabulary()), dtype=np.float32))
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path / "static"))
    return TorchEmbedder(str(tmp_path / "static"), device="cpu")


@pytest.mark.torch
def test_a_static_model_has_windows_of_512_tokens(static):
    pieces = static.windows("the cat sat on a mat " * 100, prefix="dog ")

    assert all(piece.startswith("dog ") for piece in pieces)
    assert [len(piece.split()) for piece in pieces] == [511, 154]
    assert static.windows("the cat sat") == ["the cat sat"]


@pytest.mark.torch
def test_a_static_model_serves_a_memory(static, tmp_path):
    with Memory(tmp_path / "store", embedder=static) as memory:
        memory.add("the cat sat on a mat")
        memory.add("a big red house")

        hits = memory.search("cat on mat").hits

    assert hits[0].memory.text == "the cat sat on a mat"


@pytest.mark.torch
def test_a_static_models_truncation_is_its_window(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    tokenizer = tiny_tokenizer()
    tokenizer.enable_truncation(4)
    module = StaticEmbedding(tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path))

    pieces = TorchEmbedder(str(tmp_path), device="cpu").windows("the cat sat on a mat")

    assert pieces == ["the cat sat on ", "a mat"]


@pytest.mark.torch
def test_a_directory_without_an_onnx_model_is_loaded_with_torch(weights, tmp_path):
    assert isinstance(load_embedder(tmp_path), TorchEmbedder)


@pytest.mark.torch
def test_a_directory_that_holds_no_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")

    with pytest.raises(ModelError, match="cannot load this model"):
        TorchEmbedder(str(tmp_path), device="cpu")


@pytest.mark.skipif(INSTALLED, reason="the [torch] extra is installed")
def test_without_the_extra_the_remedy_is_named(tmp_path):
    with pytest.raises(MissingExtra, match=r"pip install 'ekphory\[torch\]'"):
        TorchEmbedder(str(tmp_path))
