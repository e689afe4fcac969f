"""The encoder in torch: its losses and gradients, and what is saved of it."""

import json
import math

import numpy as np
import pytest
from tests.training.tiny_encoder import TOKENIZER_CONFIG
from tests.training.trainable_encoder import write_modern_encoder, write_trainable_encoder

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.torch


if torch:
    from ekphory.errors import InvalidInput, ModelError
    from ekphory.models.late_bound import read_components
    from ekphory_lab.training.encoder import (
        anchor_loss,
        averaged,
        cached_gradients,
        load_agent_encoder,
        plain_gradients,
        ranking_loss,
        save_agent_encoder,
        teacher_loss,
    )


def test_ranking_is_the_negative_logarithm_of_the_answers_share():
    scores = torch.tensor([[0.0, math.log(3.0)]])

    loss = ranking_loss(scores, torch.tensor([[False, True]]), temperature=1.0)

    assert float(loss) == pytest.approx(-math.log(3 / 4))
    # Several answers share their probability.
    answers = torch.tensor([[True, True, False, False]])
    loss = ranking_loss(torch.zeros(1, 4), answers, temperature=0.05)
    assert float(loss) == pytest.approx(math.log(2))


def test_the_divergence_from_the_teacher_is_that_of_kullback_and_leibler():
    teacher, student = torch.tensor([[0.75, 0.25]]), torch.tensor([[0.5, 0.5]])
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)

    loss = teacher_loss(student.log(), teacher.log(), temperature=1.0)
    assert float(loss) == pytest.approx(expected)
    # The anchor is one minus the mean cosine.
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert float(anchor_loss(vectors, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))) == 0.5


def test_cached_gradients_equal_plain_ones():
    torch.manual_seed(3)
    layer = torch.nn.Linear(8, 4)
    chunks = [torch.randn(size, 8) for size in (3, 5, 2)]
    weights = list(layer.parameters())

    def loss_of(vectors):
        scores = vectors[:4] @ vectors[4:].T
        return ranking_loss(scores, torch.eye(4, 6, dtype=torch.bool), temperature=0.5)

    def gradients():
        return torch.cat([weight.grad.flatten() for weight in weights])

    loss_of(torch.cat([layer(chunk) for chunk in chunks])).backward()
    whole = gradients()
    for accumulate in (plain_gradients, cached_gradients):
        layer.zero_grad()
        accumulate(layer, chunks, loss_of, weights)
        assert (gradients() - whole).abs().max() <= 1e-5


def test_caching_repeats_the_same_dropout():
    layer = torch.nn.Dropout(0.5)
    seen = []

    def encode(chunk):
        seen.append(layer(chunk))
        return seen[-1]

    chunk = torch.ones(1, 64, requires_grad=True)
    cached_gradients(encode, [chunk], lambda vectors: vectors.sum(), [chunk])

    first, second = (vectors.detach() for vectors in seen)
    assert torch.equal(first, second)


TEXTS = ["the cat sat", "a big red house by the sea", "dog"]


@pytest.fixture
def base(tmp_path):
    return write_trainable_encoder(tmp_path / "base")


@pytest.fixture
def changed(base):
    """An encoder none of whose parts says nothing."""
    encoder = load_agent_encoder(base)
    torch.manual_seed(1)
    with torch.no_grad():
        for name in ("projection", "age", "kind"):
            for weight in encoder.parts[name].parameters():
                weight.add_(0.1 * torch.randn_like(weight))
    return encoder


def vectors(encoder):
    with torch.no_grad():
        return encoder.vectors(encoder.tokens(TEXTS, max_tokens=24)).numpy()


def test_a_new_encoder_gives_the_vectors_of_its_base(base):
    encoder = load_agent_encoder(base)
    with torch.no_grad():
        pooled = encoder.pooled(encoder.tokens(TEXTS, max_tokens=24))
        memories = encoder.memory_vectors(pooled, torch.tensor([0, 4, 9]), torch.tensor([0, 1, 3]))

    expected = torch.nn.functional.normalize(pooled, dim=1)
    assert (memories - expected).abs().max() <= 1e-6


def test_what_is_saved_is_what_is_loaded(changed, tmp_path):
    from sentence_transformers import SentenceTransformer

    save_agent_encoder(changed, tmp_path / "saved")

    loaded = load_agent_encoder(tmp_path / "saved")

    state, expected = loaded.parts.state_dict(), changed.parts.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    # Plain sentence-transformers gives the same vectors.
    found = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS)
    assert np.abs(found - vectors(changed)).max() <= 1e-5
    # The components are those that the library reads.
    components = read_components(tmp_path / "saved")
    assert np.array_equal(components.age, changed.parts["age"].weight.detach().numpy())
    assert np.array_equal(components.type, changed.parts["kind"].weight.detach().numpy())
    assert components.importance is not None
    assert components.memory_type is not None


def test_what_sentence_transformers_writes_is_a_base(base, tmp_path):
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(base), device="cpu").save(str(tmp_path / "written"))

    encoder = load_agent_encoder(tmp_path / "written")

    assert encoder.max_tokens == 24
    assert np.abs(vectors(encoder) - vectors(load_agent_encoder(base))).max() <= 1e-6


@pytest.mark.parametrize(
    ("settings", "tokenizer", "window"),
    [
        ({"max_seq_length": 12}, {"model_max_length": 20}, 12),
        ({"max_seq_length": None}, {"model_max_length": 20}, 20),
        ({}, {"model_max_length": 10**30}, 24),
        ({"max_seq_length": 512}, {}, 24),
    ],
)
def test_the_window_is_what_is_named_and_the_encoder_can_read(base, settings, tokenizer, window):
    write_json(base / "sentence_bert_config.json", settings)
    write_json(
        base / "tokenizer_config.json", TOKENIZER_CONFIG | {"model_max_length": None} | tokenizer
    )

    assert load_agent_encoder(base).max_tokens == window


def write_json(path, content):
    path.write_text(json.dumps(content))


def test_a_base_keeps_its_prompts(base, tmp_path):
    from sentence_transformers import SentenceTransformer

    prompts = {"query": "the ", "passage": "a "}
    write_json(base / "config_sentence_transformers.json", {"prompts": prompts})
    save_agent_encoder(load_agent_encoder(base), tmp_path / "saved")

    saved = SentenceTransformer(str(tmp_path / "saved"), device="cpu")

    assert np.abs(saved.encode_query(["cat"]) - saved.encode(["the cat"])).max() <= 1e-6
    assert np.abs(saved.encode_document(["cat"]) - saved.encode(["a cat"])).max() <= 1e-6


def test_modernbert_is_a_base_of_which_nothing_is_dropped_out(tmp_path):
    # A directory without an encoder is refused.
    with pytest.raises(ModelError, match="cannot be loaded as an encoder"):
        load_agent_encoder(tmp_path)
    encoder = load_agent_encoder(write_modern_encoder(tmp_path / "modern"))

    encoder.parts.train()

    assert np.array_equal(vectors(encoder), vectors(encoder))


def test_the_average_lies_between_base_and_trained(base, changed):
    first = load_agent_encoder(base)

    ends = (first.parts["projection"].weight, changed.parts["projection"].weight)
    for share in (0.0, 0.25, 1.0):
        between = averaged(first, changed, share=share).parts["projection"].weight
        assert (between - ((1 - share) * ends[0] + share * ends[1])).abs().max() <= 1e-6
    # A share above one is refused.
    with pytest.raises(InvalidInput, match="share"):
        averaged(first, changed, share=1.5)
