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
from tests.training.tiny_encoder import (
    TOKENIZER_CONFIG,
    tiny_tokenizer,
    vocabulary,
    write_tiny_encoder,
)

from ekphory.errors import InvalidInput, ModelError
from ekphory.memory import Memory
from ekphory.models.agent_embedder import Embedder
from ekphory.models.late_bound import normalised
from ekphory.models.loading import load_embedder
from ekphory.models.torch_embedder import TorchEmbedder

pytestmark = pytest.mark.torch


@pytest.fixture
def source(tmp_path):
    return write_tiny_embedder(tmp_path / "source")


@pytest.fixture
def embedder(source):
    return Embedder.from_pretrained(source)


@pytest.fixture
def plain(tmp_path):
    """A model of sentence-transformers, with no components beside it."""
    directory = write_tiny_embedder(tmp_path / "plain")
    (directory / "ekphory_components.safetensors").unlink()
    return directory


@pytest.fixture
def agentrank(tmp_path):
    """A directory as AgentRank 0.1.3 saves it."""
    directory = tmp_path / "agentrank"
    directory.mkdir()
    write_tiny_encoder(directory)
    settings = {key: value for key, value in TOKENIZER_CONFIG.items() if "max" not in key}
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


def assert_alike(found, expected, *, most=1e-5):
    assert np.abs(found - expected).max() <= most


@pytest.mark.parametrize(("layout", "scale"), [("source", 1.0), ("agentrank", 0.1)])
def test_ages_and_types_are_those_of_the_formula(layout, scale, tmp_path, request):
    embedder = Embedder.from_pretrained(request.getfixturevalue(layout))

    vectors = embedder.encode(TEXTS, days_ago=[0, 20, 400], memory_type="procedural")

    assert_alike(vectors, bound_reference(TEXTS, [0, 4, 9], [2, 2, 2], scale=scale))
    importance = tiny_components().importance_of(pooled(TEXTS))
    assert_alike(embedder.importance(TEXTS), importance)
    embedder.save_pretrained(tmp_path / "saved")
    # The float weights survive being loaded as ONNX and saved again.
    Embedder.from_pretrained(tmp_path / "saved").save_pretrained(tmp_path / "again")
    for folder, runtime in (("saved", "onnx"), ("saved", "torch"), ("again", "torch")):
        loaded = Embedder.from_pretrained(tmp_path / folder, runtime=runtime)
        same = loaded.encode(TEXTS, days_ago=[0, 20, 400], memory_type="procedural")
        assert_alike(same, vectors, most=1e-4 if runtime == "onnx" else 1e-6)
        assert_alike(loaded.importance(TEXTS), importance)


def test_weights_on_the_disk_are_read_without_a_bar_and_others_bars_stay(source, capsys):
    from transformers.utils import logging

    logging.enable_progress_bar()
    Embedder.from_pretrained(source)

    assert capsys.readouterr().err == ""
    assert logging.is_progress_bar_enabled()


def test_what_is_saved_loads_in_plain_libraries(embedder, tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    embedder.save_pretrained(tmp_path / "saved")

    whole = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert_alike(whole.encode(TEXTS), embedder.encode(TEXTS))
    assert_alike(whole.encode_query(TEXTS), embedder.encode_query(TEXTS))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    inputs = tokenizer([TEXTS[0]], padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        outputs = AutoModel.from_pretrained(tmp_path / "saved")(**inputs)
    assert_alike(outputs.last_hidden_state.mean(dim=1).numpy(), pooled(TEXTS[:1]))


def test_changed_weights_take_the_place_of_an_onnx_model(source, tmp_path):
    import torch

    Embedder.from_pretrained(source).save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "onnx" / "model_O4.onnx").write_bytes(b"not ekphory's")
    changed = TorchEmbedder(str(source))
    with torch.no_grad():
        changed._model[0].auto_model.get_input_embeddings().weight.mul_(2)

    Embedder(changed).save_pretrained(tmp_path / "saved", formats=["transformers"])

    assert_alike(Embedder.from_pretrained(tmp_path / "saved").encode(TEXTS), changed.encode(TEXTS))
    assert [path.name for path in (tmp_path / "saved" / "onnx").iterdir()] == ["model_O4.onnx"]


def test_a_plain_model_takes_the_place_of_one_with_components(embedder, plain, tmp_path):
    embedder.save_pretrained(tmp_path / "saved")
    model = Embedder.from_pretrained(plain)

    model.save_pretrained(tmp_path / "saved", formats=["transformers"])

    loaded = Embedder.from_pretrained(tmp_path / "saved")
    assert loaded.late_bound is None
    assert_alike(loaded.encode(TEXTS), model.encode(TEXTS))
    assert not (tmp_path / "saved" / "onnx").exists()


def test_agentranks_models_have_no_type_head_and_a_pooling_of_their_own(agentrank, tmp_path):
    embedder = Embedder.from_pretrained(agentrank)
    with pytest.raises(ModelError, match="no type head"):
        embedder.memory_type(TEXTS)
    by_mean = embedder.encode(TEXTS)
    write_agentrank_components(agentrank, pooling="cls")

    by_first_token = Embedder.from_pretrained(agentrank)

    assert np.abs(by_first_token.encode(TEXTS) - by_mean).max() > 0.01
    # ONNX is written for mean pooling alone.
    by_first_token.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "modules.json").is_file()
    assert not (tmp_path / "saved" / "onnx").exists()


def test_what_holds_no_model_is_refused(agentrank, source, tmp_path):
    # A components file that would run code is refused.
    path = agentrank / "agentrank_components.pt"
    path.write_bytes(pickle.dumps(print, protocol=2))

    with pytest.raises(ModelError, match="cannot load this model"):
        Embedder.from_pretrained(agentrank)
    # Components beside other modules are refused.
    modules = json.loads((source / "modules.json").read_text())
    (source / "modules.json").write_text(json.dumps(modules[:2]))

    with pytest.raises(ModelError, match="not Transformer, Pooling, Dense, Normalize"):
        Embedder.from_pretrained(source)
    # A directory that holds no model is refused.
    (tmp_path / "config.json").write_text("{}")

    with pytest.raises(ModelError, match="cannot load this model"):
        TorchEmbedder(str(tmp_path))


def test_a_plain_model_gives_its_own_vectors_with_its_prompt_and_has_no_age(plain):
    model = load_embedder(plain)

    assert isinstance(model, TorchEmbedder)
    assert_alike(model.encode(TEXTS), normalised(content_reference(TEXTS)))
    assert_alike(model.encode_query(["dog"]), normalised(content_reference(["the dog"])))
    assert model.encode([]).shape == model.encode_query([]).shape == (0, 32)
    assert np.isfinite(model.encode(["", "\0", "\ud800"])).all()
    with pytest.raises(InvalidInput, match="knows neither age nor type"):
        Embedder(model).encode(TEXTS, days_ago=3)


def test_the_identity_follows_the_files_and_long_text_is_split(plain):
    # The identity follows the files.
    before = TorchEmbedder(str(plain)).identity
    (plain / "config_sentence_transformers.json").write_text('{"prompts": {"query": "a "}}')

    after = TorchEmbedder(str(plain)).identity

    assert (before.name, before.dimension) == (after.name, after.dimension) == ("plain", 32)
    assert after.revision != before.revision
    # Long text is split into pieces that fit.
    pieces = TorchEmbedder(str(plain)).windows("the cat sat on a mat " * 9, prefix="dog ")

    assert all(piece.startswith("dog ") for piece in pieces)
    assert all(len(tiny_tokenizer().encode(piece).ids) <= 24 for piece in pieces)
    assert pieces[-1].endswith("a mat ")


def load_static(directory, tokenizer):
    """Load a model that takes the mean of fixed word vectors, as model2vec's do."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    module = StaticEmbedding(tokenizer, np.eye(len(vocabulary()), dtype=np.float32))
    SentenceTransformer(modules=[module], device="cpu").save(str(directory))
    return TorchEmbedder(str(directory))


def test_a_static_model_has_windows_of_512_tokens_and_serves_a_memory(tmp_path):
    static = load_static(tmp_path / "static", tiny_tokenizer())
    pieces = static.windows("the cat sat on a mat " * 100, prefix="dog ")

    assert all(piece.startswith("dog ") for piece in pieces)
    assert [len(piece.split()) for piece in pieces] == [511, 154]
    assert static.windows("the cat sat") == ["the cat sat"]
    with Memory(tmp_path / "store", embedder=static) as memory:
        memory.add_many([{"text": "the cat sat on a mat"}, {"text": "a big red house"}])
        assert memory.search("cat on mat").hits[0].memory.text == "the cat sat on a mat"


def test_a_static_models_truncation_is_its_window(tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer.enable_truncation(4)

    pieces = load_static(tmp_path, tokenizer).windows("the cat sat on a mat")

    assert pieces == ["the cat sat on ", "a mat"]
