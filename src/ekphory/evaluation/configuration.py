"""One configuration of Memory-Spark's benchmark: its switches, and the pipeline they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.rerank_blend import Blend
from ekphory.retrieval.reranker_gate import PUBLISHED_THRESHOLDS, GateThresholds
from ekphory.retrieval.stage import Stage
from ekphory.retrieval.stages.clean_query import CleanQuery
from ekphory.retrieval.stages.cut import Cut
from ekphory.retrieval.stages.diversify import Diversify
from ekphory.retrieval.stages.expand_query import ExpandQuery
from ekphory.retrieval.stages.fuse import Fuse, FusionMethod
from ekphory.retrieval.stages.gate_reranker import GateReranker
from ekphory.retrieval.stages.hyde import Hyde
from ekphory.retrieval.stages.rerank import Rerank
from ekphory.retrieval.stages.search_pools import Arms, SearchPools

HITS = 10
"""How many hits each search asks for; each arm finds four times as many."""
POOL = 4 * HITS
FUSED = 2 * HITS
"""How many fused candidates are left for reranker and diversity."""

Model = Literal["language model", "reranker"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate before the reranker."""

    mode: Literal["hard", "soft"]
    thresholds: GateThresholds = PUBLISHED_THRESHOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One configuration.

    Attributes:
        id, label: As upstream names it.
        fusion: How the arms become one; a single arm runs alone.
        hyde: Whether a hypothetical document replaces the query's vector.
        wordings: How many other wordings are searched.
        blend: How a reranker's scores are blended in; None reranks nothing.
        reads: How many candidates the reranker reads.
        gate: When it reads; None for always.
        diversity: λ of the diversity; None orders by relevance alone.
        same_as: A configuration with other words for the same switches.
        at_head: The configuration that upstream's newest commit really runs for this one.
        published: NDCG@10 on SciFact that upstream reports, with its own models.
    """

    id: str
    label: str
    fusion: FusionMethod = "dense"
    hyde: bool = False
    wordings: int = 0
    blend: Blend | None = None
    reads: int = POOL
    gate: Gate | None = None
    diversity: float | Literal["adaptive"] | None = None
    same_as: str | None = None
    at_head: str | None = None
    published: float | None = None

    @property
    def needs(self) -> tuple[Model, ...]:
        """Which models it cannot do without."""
        models: list[Model] = ["language model"] if self.hyde or self.wordings else []
        return (*models, "reranker") if self.blend else tuple(models)

    def pipeline(self) -> Pipeline:
        """Build the pipeline that does what the label says."""
        single: dict[str, Arms] = {"dense": "dense", "lexical": "lexical"}
        arms = single.get(self.fusion, "both")
        stages: list[Stage] = [CleanQuery()]
        if self.hyde:
            stages.append(Hyde(use="replace"))
        if self.wordings:
            stages.append(ExpandQuery(wordings=self.wordings))
        stages.append(SearchPools(depth=POOL, depth_per_hit=0, arms=arms))
        stages.append(Fuse(method=self.fusion, list_per_hit=POOL // HITS))
        if self.gate is not None:
            stages.append(GateReranker(mode=self.gate.mode, thresholds=self.gate.thresholds))
        if self.blend is not None:
            stages.append(Rerank(candidates=self.reads, blend=self.blend, query_form="question"))
        if self.diversity is not None:
            per_hit = self.reads // HITS
            stages.append(Diversify(trade_off=self.diversity, among_per_hit=per_hit))
        return Pipeline(self.id, [*stages, Cut()], summary=self.label)
