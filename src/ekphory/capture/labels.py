"""Labels without examples: which of some topics a text is about, read by the bundled reranker."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker

LEAST_PROBABILITY = 0.5
"""From here on a text gets a label."""
MOST_LABELS = 100


def find_labels(texts: Sequence[str], labels: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels that fit each text, in the order of the labels.

    Args:
        texts: What is labelled.
        labels: Names of topics, such as "billing" or "the garden".

    Raises:
        ModelError: The installation has no reranker.
    """
    if not texts or not labels:
        return [()] * len(texts)
    reader = bundled_reranker()
    if reader is None:
        raise ModelError(
            "This installation has no reranker, which reads labels. Reinstall ekphory."
        )
    passages = [RerankPassage(text) for text in texts]
    fitting = [
        reader.score(RerankQuery(f"What is said about {label}?"), passages) >= LEAST_PROBABILITY
        for label in labels
    ]
    return [
        tuple(label for label, fits in zip(labels, fitting, strict=True) if fits[place])
        for place in range(len(texts))
    ]


def check_labels(labels: object) -> None:
    """Raise unless these are names of topics.

    Raises:
        InvalidInput: They are not a list of names, or too many.
    """
    remedy = 'Use names such as ("billing", "health")'
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise InvalidInput("labels", labels, "must be a list of names", remedy)
    if len(labels) > MOST_LABELS:
        raise InvalidInput("labels", len(labels), f"are more than {MOST_LABELS}", remedy)
    for label in labels:
        if not isinstance(label, str) or not label.strip() or ";" in label:
            raise InvalidInput("labels", label, "must be a name without a semicolon", remedy)
