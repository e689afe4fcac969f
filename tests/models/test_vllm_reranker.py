"""What vLLM answers becomes a logit; the rest of its runtime needs a GPU."""

from dataclasses import dataclass

import pytest

from ekphory.models.vllm_reranker import log_odds


@dataclass
class Answer:
    logprob: float


def test_the_logit_is_the_difference_of_the_two_log_probabilities():
    assert log_odds({9693: Answer(-0.1), 2152: Answer(-2.4)}, yes=9693, no=2152) == pytest.approx(
        2.3
    )


def test_an_answer_without_probability_counts_as_the_model_card_counts_it():
    assert log_odds({9693: Answer(-0.5)}, yes=9693, no=2152) == pytest.approx(9.5)
    assert log_odds({}, yes=9693, no=2152) == 0.0
