"""A check that a model's weights, tokenizer and layout belong together."""

from __future__ import annotations

from ekphory.errors import ModelError
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.reranker import LocalReranker

PROBES = (
    (
        "What is the capital of China?",
        "The capital of China is Beijing.",
        "Python is a popular programming language.",
    ),
    (
        "Where does the sister of Anna live?",
        "Anna: My sister Clara will live in Lisbon from May on.",
        "Ben: The train to work was late again.",
    ),
)
"""Question, answer, and what is no answer."""


def check_order(model: LocalReranker) -> None:
    """Score known pairs, and refuse a model that puts one the wrong way round.

    Raises:
        ModelError: It does, or gives numbers that are not finite.
    """
    for question, answer, other in PROBES:
        passages = [RerankPassage(answer), RerankPassage(other)]
        right, wrong = model.judge(RerankQuery(question), passages).raw.tolist()
        if not right > wrong:
            raise ModelError(
                f"{model.name}: failed the check at loading: for {question!r} it scores {answer!r} "
                f"with {right:.4g}, not above {other!r} with {wrong:.4g}. Weights, tokenizer and "
                "layout do not belong together, or it is no reranker: export it again, or take "
                "another model."
            )
