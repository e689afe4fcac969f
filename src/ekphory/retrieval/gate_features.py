"""What of the first stage's scores may tell whether a reranker has anything to gain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ekphory.retrieval.reranker_gate import NEAREST

GateFeature = Literal["cosine_spread", "probability_spread", "probability_gap", "best_probability"]


def gate_feature(
    name: GateFeature, scores: Mapping[str, NDArray[np.floating]], *, nearest: int = NEAREST
) -> float:
    """Compute one feature; 0 without candidates.

    | name | what it is |
    |---|---|
    | `cosine_spread` | largest minus smallest of the five largest cosines, as Memory-Spark's |
    | `probability_spread` | the same of the five largest probabilities |
    | `probability_gap` | the largest probability minus the second |
    | `best_probability` | the largest probability |

    Args:
        name: Which.
        scores: `cosine` and `probability` of the candidates, in any order.
        nearest: Over how many of the largest a spread is taken.
    """
    values = scores["cosine" if name == "cosine_spread" else "probability"]
    largest = np.sort(values)[::-1][:nearest].astype(np.float64)
    if not len(largest):
        return 0.0
    if name == "best_probability":
        return float(largest[0])
    last = largest[:2] if name == "probability_gap" else largest
    return float(largest[0] - last[-1])
