"""The losses against hand-computed values, and cached against plain gradients."""

import math

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

if torch:
    from ekphory_lab.training.encoder import (
        anchor_loss,
        cached_gradients,
        plain_gradients,
        ranking_loss,
        teacher_loss,
    )


def test_ranking_is_the_negative_logarithm_of_the_answers_share():
    scores = torch.tensor([[0.0, math.log(3.0)]])

    loss = ranking_loss(scores, torch.tensor([[False, True]]), temperature=1.0)

    assert float(loss) == pytest.approx(-math.log(3 / 4))


def test_several_answers_share_their_probability():
    scores = torch.zeros(1, 4)

    loss = ranking_loss(scores, torch.tensor([[True, True, False, False]]), temperature=0.05)

    assert float(loss) == pytest.approx(math.log(2))


def test_following_the_teacher_exactly_costs_nothing():
    logits = torch.tensor([[1.0, 2.0, -1.0]])

    assert float(teacher_loss(logits * 0.05, logits, temperature=0.05)) == pytest.approx(
        0, abs=1e-6
    )


def test_the_divergence_from_the_teacher_is_that_of_kullback_and_leibler():
    teacher, student = torch.tensor([[0.75, 0.25]]), torch.tensor([[0.5, 0.5]])
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)

    assert float(teacher_loss(student.log(), teacher.log(), temperature=1.0)) == pytest.approx(
        expected
    )


def test_the_anchor_is_one_minus_the_mean_cosine():
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

    def gradients_by(accumulate):
        layer.zero_grad()
        loss = accumulate(layer, chunks, loss_of, weights)
        return loss, torch.cat([weight.grad.flatten() for weight in weights])

    loss_of(torch.cat([layer(chunk) for chunk in chunks])).backward()
    whole = torch.cat([weight.grad.flatten() for weight in weights])
    for accumulate in (plain_gradients, cached_gradients):
        _, found = gradients_by(accumulate)
        assert (found - whole).abs().max() <= 1e-5


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
