"""The thirty-six configurations of Memory-Spark's benchmark, as data.

Source: kleinpanic/memory-spark, `scripts/run-beir-bench.ts`, with the labels that it gives them.
Here each does what its label says. At upstream's newest commit many do not: what sets neither blend
nor gate falls back to blended ranks behind a hard gate there, whatever its α; `at_head` says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.errors import InvalidInput
from ekphory.evaluation.configuration import FUSED, Configuration, Gate
from ekphory.retrieval.rerank_blend import Blend
from ekphory.retrieval.reranker_gate import GateThresholds


def _scores(share: float) -> Blend:
    return Blend(method="scores", first_stage_share=share)


_CONDITIONAL = Gate("hard", GateThresholds(low=0.0, high=0.15))
_RANKS = Blend()

CONFIGURATIONS: tuple[Configuration, ...] = (
    Configuration(id="A", label="Vector-Only", published=0.7709),
    Configuration(id="B", label="FTS-Only", fusion="lexical", published=0.6587),
    Configuration(id="C", label="Hybrid", fusion="reciprocal_rank"),
    Configuration(
        id="D",
        label="Hybrid + Reranker",
        fusion="reciprocal_rank",
        blend=_scores(0),
        reads=FUSED,
        published=0.7525,
    ),
    Configuration(
        id="E", label="Hybrid + MMR", fusion="reciprocal_rank", reads=FUSED, diversity=0.9
    ),
    Configuration(
        id="F", label="Hybrid + HyDE", fusion="reciprocal_rank", hyde=True, published=0.7278
    ),
    Configuration(
        id="G",
        label="Full Pipeline",
        fusion="reciprocal_rank",
        blend=_scores(0),
        reads=FUSED,
        diversity=0.9,
    ),
    Configuration(id="H", label="Vector → Reranker (no RRF)", blend=_scores(0), at_head="GATE-A"),
    Configuration(
        id="I", label="Adaptive Hybrid (overlap-aware RRF)", fusion="adaptive_reciprocal_rank"
    ),
    Configuration(
        id="J",
        label="Reranker-as-Fusioner (union → rerank)",
        fusion="reciprocal_rank",
        blend=_scores(0),
        published=0.7262,
    ),
    Configuration(id="K", label="Vector → Adaptive MMR", diversity="adaptive"),
    Configuration(
        id="L",
        label="Full Adaptive (overlap RRF → Reranker → Adaptive MMR)",
        fusion="adaptive_reciprocal_rank",
        blend=_scores(0),
        reads=FUSED,
        diversity="adaptive",
    ),
    Configuration(
        id="M", label="Vector → Blended Reranker (α=0.3)", blend=_scores(0.3), at_head="GATE-A"
    ),
    Configuration(
        id="N",
        label="Vector → Blended Reranker (α=0.5)",
        blend=_scores(0.5),
        at_head="GATE-A",
        published=0.7863,
    ),
    Configuration(
        id="O",
        label="Conditional Rerank (skip when confident, α=0.3)",
        blend=_scores(0.3),
        gate=_CONDITIONAL,
        at_head="GATE-A",
    ),
    Configuration(
        id="P",
        label="Adaptive RRF → Conditional Blended Reranker → Adaptive MMR",
        fusion="adaptive_reciprocal_rank",
        blend=_scores(0.3),
        reads=FUSED,
        gate=_CONDITIONAL,
        diversity="adaptive",
        at_head="L",
        published=0.7797,
    ),
    Configuration(
        id="Q",
        label="Vector → Logit-Recovered Blend (α=0.5)",
        blend=_scores(0.5),
        same_as="N",
        at_head="GATE-A",
        published=0.7863,
    ),
    Configuration(
        id="R",
        label="Vector → Pure Logit Reranker (α=0)",
        blend=_scores(0),
        same_as="H",
        at_head="GATE-A",
    ),
    Configuration(
        id="S",
        label="Vector → Logit Blend + Conditional (α=0.3)",
        blend=_scores(0.3),
        gate=_CONDITIONAL,
        same_as="O",
        at_head="GATE-A",
    ),
    Configuration(
        id="T",
        label="Vector → Logit Blend (α=0.3)",
        blend=_scores(0.3),
        same_as="M",
        at_head="GATE-A",
    ),
    Configuration(
        id="U",
        label="Vector → Logit Blend (α=0.4)",
        blend=_scores(0.4),
        at_head="GATE-A",
        published=0.7889,
    ),
    Configuration(
        id="V",
        label="Vector → Logit Blend (α=0.6)",
        blend=_scores(0.6),
        at_head="GATE-A",
        published=0.7885,
    ),
    Configuration(
        id="W", label="Vector → Logit Blend (α=0.7)", blend=_scores(0.7), at_head="GATE-A"
    ),
    Configuration(
        id="X", label="Vector → Logit Blend (α=0.8)", blend=_scores(0.8), at_head="GATE-A"
    ),
    Configuration(id="MQ-A", label="Multi-Query (3) → Vector-Only", wordings=3),
    Configuration(
        id="MQ-B", label="Multi-Query (3) → Logit Blend (α=0.4)", wordings=3, blend=_scores(0.4)
    ),
    Configuration(
        id="MQ-C",
        label="Multi-Query (3) → Logit Blend (α=0.5)",
        wordings=3,
        blend=_scores(0.5),
        at_head="MQ-B",
        published=0.7853,
    ),
    Configuration(
        id="MQ-D",
        label="Multi-Query (3) → Conditional Logit Blend (α=0.4)",
        wordings=3,
        blend=_scores(0.4),
        gate=_CONDITIONAL,
        at_head="MQ-B",
    ),
    Configuration(
        id="RRF-A",
        label="Vector ⊕ Reranker via RRF (k=60, equal weight)",
        blend=_RANKS,
        at_head="GATE-A",
        published=0.7797,
    ),
    Configuration(
        id="RRF-B",
        label="Vector ⊕ Reranker via RRF (k=60, vector=1.5)",
        blend=Blend(first_stage_weight=1.5),
    ),
    Configuration(
        id="RRF-C",
        label="Vector ⊕ Reranker via RRF (k=60, reranker=1.5)",
        blend=Blend(reranker_weight=1.5),
    ),
    Configuration(
        id="RRF-D",
        label="Vector ⊕ Reranker via RRF (k=20, equal weight)",
        blend=Blend(constant=20),
        published=0.7798,
    ),
    Configuration(
        id="GATE-A",
        label="RRF + Hard Gate (skip if spread > 0.08 or < 0.02)",
        blend=_RANKS,
        gate=Gate("hard"),
        published=0.7802,
    ),
    Configuration(
        id="GATE-B",
        label="RRF + Soft Gate (dynamic vector weight from spread)",
        blend=_RANKS,
        gate=Gate("soft"),
    ),
    Configuration(
        id="GATE-C",
        label="RRF + Soft Gate (threshold=0.12, wider confidence window)",
        blend=_RANKS,
        gate=Gate("soft", GateThresholds(low=0.02, high=0.12)),
    ),
    Configuration(
        id="GATE-D",
        label="RRF (vector=1.5) + Soft Gate",
        blend=Blend(first_stage_weight=1.5),
        gate=Gate("soft"),
        published=0.7803,
    ),
)
BASELINE = CONFIGURATIONS[0]
_BY_ID = {configuration.id: configuration for configuration in CONFIGURATIONS}


def configurations(names: Sequence[str]) -> tuple[Configuration, ...]:
    """Give the configurations of these ids in upstream's order; `all` gives every one.

    Raises:
        InvalidInput: There is none of that id, or none was named.
    """
    wanted = {name.strip().upper() for name in names if name.strip()}
    if wanted == {"ALL"}:
        return CONFIGURATIONS
    unknown = sorted(wanted - _BY_ID.keys())
    if unknown or not wanted:
        raise InvalidInput(
            "configs",
            ",".join(unknown or names),
            "no such configuration",
            f"Name some of {', '.join(_BY_ID)}, or all",
        )
    return tuple(each for each in CONFIGURATIONS if each.id in wanted)
