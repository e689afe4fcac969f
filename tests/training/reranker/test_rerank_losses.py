import math

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

if torch:
    from ekphory_lab.training.reranker.config import RerankLossWeights
    from ekphory_lab.training.reranker.run import (
        RerankTargets,
        info_nce,
        rerank_loss,
        soft_cross_entropy,
    )


def targets(relevant, labels=None, present=None):
    table = torch.tensor(relevant)
    return RerankTargets(
        torch.ones_like(table).bool() if present is None else torch.tensor(present).bool(),
        table.bool(),
        torch.tensor(labels or relevant).float(),
    )


def test_an_answer_competes_with_the_wrong_and_not_with_other_answers():
    logits = torch.tensor([[2.0, 1.0, 0.0]])

    loss = info_nce(logits, targets([[1, 1, 0]]), temperature=1.0)

    first, second = (-math.log(math.exp(s) / (math.exp(s) + 1)) for s in (2.0, 1.0))
    assert float(loss) == pytest.approx((first + second) / 2)


def test_what_is_absent_does_not_compete():
    logits = torch.tensor([[0.0, 0.0, 9.0], [0.0, 0.0, 0.0]])
    known = targets([[1, 0, 0], [1, 0, 0]], present=[[1, 1, 0], [1, 1, 0]])

    assert float(info_nce(logits, known, temperature=1.0)) == pytest.approx(math.log(2))


def test_soft_labels_are_reached_by_their_own_logits():
    labels = [[0.9, 0.3]]
    exact = torch.tensor([[math.log(9), math.log(3 / 7)]])

    best = soft_cross_entropy(exact, targets([[1, 0]], labels))
    assert float(best) < float(soft_cross_entropy(exact + 0.2, targets([[1, 0]], labels)))
    assert float(best) < float(soft_cross_entropy(exact - 0.2, targets([[1, 0]], labels)))


def test_following_costs_nothing_where_the_two_agree_up_to_a_shift():
    logits = torch.tensor([[2.0, 1.0, 5.0]])
    known = targets([[1, 0, 0]], present=[[1, 1, 0]])
    weights = RerankLossWeights(contrast=0.0, soft=0.0, following=1.0)

    assert float(rerank_loss(logits, known, weights, logits + 3)) == pytest.approx(0, abs=1e-6)
    assert float(rerank_loss(logits, known, weights, logits.flip(1))) > 0.1
