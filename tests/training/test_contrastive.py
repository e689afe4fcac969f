"""The losses against hand-computed values, and the gradients of chunks."""

import math

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

if torch:
    from ekphory_lab.training.encoder import (
        add_gradients,
        anchor_loss,
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


def test_the_gradients_of_chunks_are_those_of_all_together():
    torch.manual_seed(3)
    layer = torch.nn.Linear(8, 4)
    chunks = [torch.randn(size, 8) for size in (3, 5, 2)]
    weights = list(layer.parameters())

    def loss_of(vectors):
        scores = vectors[:4] @ vectors[4:].T
        return ranking_loss(scores, torch.eye(4, 6, dtype=torch.bool), temperature=0.5)

    loss_of(torch.cat([layer(chunk) for chunk in chunks])).backward()
    whole = torch.cat([weight.grad.flatten() for weight in weights])
    layer.zero_grad()
    add_gradients(layer, chunks, loss_of, weights)
    found = torch.cat([weight.grad.flatten() for weight in weights])
    assert (found - whole).abs().max() <= 1e-5
