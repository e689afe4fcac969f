"""Named pipelines, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ekphory.errors import InvalidInput, suggest
from ekphory.retrieval.calibration import EVEN_CURVES, WORD_CURVES
from ekphory.retrieval.fusion import EVEN_LEXICAL_WEIGHT
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.rerank import turns_blend
from ekphory.retrieval.stages.find import Fuse, SearchPools, SearchTime
from ekphory.retrieval.stages.link import FollowLinks
from ekphory.retrieval.stages.query import ClassifyQuery, CleanQuery, ExpandQuery, Hyde, ReadTime
from ekphory.retrieval.stages.rerank import (
    Calibrate,
    GateReranker,
    LendInSession,
    Rerank,
    RerankAgain,
)
from ekphory.retrieval.stages.revise import OrderRevisions
from ekphory.retrieval.stages.shape import (
    Cut,
    Diversify,
    DropKnown,
    ExpandParents,
    FilterInjection,
    FitBudget,
    PinRules,
)
from ekphory.retrieval.stages.weigh import (
    PUBLISHED_ORIGIN_WEIGHTS,
    Decay,
    FavourTime,
    ListTime,
    MergePools,
    Normalise,
    SourceDedup,
    Weigh,
)
from ekphory.types import MEMORY_TYPES

# Of what is about equally likely the newer comes first; a stronger decay cost quality wherever it
# was measured, most where facts are updated (docs/ablation.md).
_NEWER_FIRST = Decay(floor=0.998)

FAST = Pipeline(
    "fast",
    [
        CleanQuery(),
        ClassifyQuery(),
        ReadTime(),
        SearchTime(),
        SearchPools(arms="lexical"),
        Fuse(method="lexical", lexical_weight=EVEN_LEXICAL_WEIGHT, calibration=WORD_CURVES),
        Weigh(),
        _NEWER_FIRST,
        FavourTime(),
        ListTime(),
        Calibrate(),
        OrderRevisions(),
        Cut(),
    ],
    summary="By words alone, without a model.",
)
BALANCED = Pipeline(
    "balanced",
    [
        CleanQuery(),
        ClassifyQuery(),
        ReadTime(),
        SearchTime(),
        SearchPools(),
        Fuse(),
        Weigh(),
        _NEWER_FIRST,
        FavourTime(),
        ListTime(),
        Rerank(candidates=10, blend=turns_blend(0.3), boosts="as asked", seconds=0.5, asks="quick"),
        LendInSession(),
        Calibrate(),
        FollowLinks(),
        OrderRevisions(),
        PinRules(),
        Cut(),
    ],
    summary="By meaning and by words, with the best ten read by a quick reranker; the default.",
)
RRF = Pipeline(
    "rrf",
    [
        CleanQuery(),
        ClassifyQuery(),
        SearchPools(),
        Fuse(method="reciprocal_rank"),
        Weigh(),
        _NEWER_FIRST,
        Calibrate(),
        OrderRevisions(),
        PinRules(),
        Cut(),
    ],
    summary="As the first stage of balanced, but with the arms fused by ranks: for comparison.",
)
ACCURATE = Pipeline(
    "accurate",
    [
        CleanQuery(),
        ClassifyQuery(),
        ReadTime(),
        SearchTime(),
        SearchPools(depth=400),
        Fuse(lexical_weight=EVEN_LEXICAL_WEIGHT, calibration=EVEN_CURVES),
        Weigh(),
        _NEWER_FIRST,
        FavourTime(),
        ListTime(),
        Rerank(
            candidates=50,
            blend=turns_blend(0.3),
            boosts="as asked",
            seconds=2.0,
            asks="quick first",
        ),
        RerankAgain(blend=turns_blend(0.2), boosts="as asked", seconds=2.0),
        LendInSession(),
        Calibrate(),
        OrderRevisions(),
        PinRules(),
        Cut(),
    ],
    summary="As balanced, deeper: forty are read by a quick reranker, and the best dozen of them "
    "by the larger one.",
)
MEMORY_SPARK = Pipeline(
    "memory_spark",
    [
        CleanQuery(),
        ClassifyQuery(),
        ReadTime(),
        Hyde(),
        ExpandQuery(),
        SearchTime(),
        SearchPools(
            depth=0,
            depth_per_hit=4,
            pool_depth_per_hit={
                "agent_mistakes": 1,
                "shared_mistakes": 1,
                "shared_knowledge": 2,
                "shared_rules": 1,
            },
        ),
        Fuse(method="reciprocal_rank", list_per_hit=4),
        MergePools(),
        SourceDedup(),
        # The weight of the mistakes, which Memory-Spark takes from their path, is the pool's here.
        Weigh(
            origin_weights=replace(PUBLISHED_ORIGIN_WEIGHTS, path_parts={"memory/archive/": 0.4}),
            bound=None,
            importance=0.0,
        ),
        Decay(floor=0.8, rate=0.03, fading=MEMORY_TYPES),
        FavourTime(),
        ListTime(),
        Normalise(),
        GateReranker(mode="hard"),
        Rerank(candidates=40, query_form="question"),
        Calibrate(),
        OrderRevisions(),
        Diversify(trade_off=0.9, among_per_hit=2),
        ExpandParents(among_per_hit=2),
        PinRules(),
        DropKnown(among_per_hit=2),
        FilterInjection(among_per_hit=2),
        FitBudget(tokens=2000),
        Cut(),
    ],
    summary="The fifteen stages of Memory-Spark with its published numbers, its defects repaired.",
)

PRESETS: Mapping[str, Pipeline] = {
    pipeline.name: pipeline for pipeline in (FAST, BALANCED, ACCURATE, MEMORY_SPARK, RRF)
}
DEFAULT_PRESET = BALANCED.name


def preset(name: str | Pipeline | None) -> Pipeline:
    """Return the pipeline of that name; None gives the default one, and a pipeline is given back.

    Raises:
        InvalidInput: There is no such preset.
    """
    if isinstance(name, Pipeline):
        return name
    chosen = DEFAULT_PRESET if name is None else name
    if not isinstance(chosen, str) or chosen not in PRESETS:
        remedy = f"{suggest(chosen, PRESETS)}Choose one of {', '.join(sorted(PRESETS))}"
        raise InvalidInput("preset", chosen, "no such preset", remedy)
    return PRESETS[chosen]
