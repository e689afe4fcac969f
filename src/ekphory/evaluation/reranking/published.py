"""Published results on LoCoMo, to stand beside what is measured here.

Source: the model card of IAAR-Shanghai/MemReranker-4B, "LOCOMO Memory Retrieval Benchmark". Its
candidates come from another first stage (the best hundred of BGE-M3), over all ten conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PUBLISHED_MEASURES = (
    "MAP",
    "MRR",
    "NDCG@1",
    "NDCG@3",
    "NDCG@10",
    "NDCG",
    "R@3",
    "R@5",
    "R@20",
    "F1",
)

PUBLISHED_ON_LOCOMO: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "BGE-v2-m3": (0.671, 0.699, 0.607, 0.672, 0.714, 0.736, 0.716, 0.768, 0.863, 0.504),
        "Qwen3-Reranker-0.6B": (
            *(0.643, 0.673, 0.576, 0.638, 0.689, 0.714, 0.681, 0.748, 0.857, 0.472),
        ),
        "Qwen3-Reranker-4B": (
            *(0.689, 0.716, 0.623, 0.691, 0.732, 0.750, 0.735, 0.796, 0.873, 0.522),
        ),
        "Qwen3-Reranker-8B": (
            *(0.721, 0.748, 0.666, 0.724, 0.759, 0.775, 0.763, 0.813, 0.880, 0.552),
        ),
        "GPT-4o-mini": (0.715, 0.742, 0.657, 0.719, 0.753, 0.770, 0.760, 0.812, 0.868, 0.544),
        "Gemini-3-Flash": (0.777, 0.797, 0.737, 0.778, 0.807, 0.816, 0.805, 0.847, 0.892, 0.622),
        "MemReranker-0.6B": (0.715, 0.738, 0.650, 0.717, 0.754, 0.770, 0.758, 0.809, 0.885, 0.555),
        "MemReranker-4B": (0.737, 0.760, 0.679, 0.739, 0.773, 0.786, 0.777, 0.824, 0.889, 0.577),
    }
)
"""Values in the order of `PUBLISHED_MEASURES`, by model."""


def published_rows(dataset: str) -> Mapping[str, Mapping[str, float]]:
    """Give the published values by model and measure; nothing for other sets than LoCoMo."""
    if not dataset.startswith("locomo"):
        return {}
    return {
        model: dict(zip(PUBLISHED_MEASURES, values, strict=True))
        for model, values in PUBLISHED_ON_LOCOMO.items()
    }
