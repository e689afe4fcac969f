"""Named pipelines, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ekphory.errors import InvalidInput, suggest
from ekphory.retrieval import query
from ekphory.retrieval.calibration import EVEN_CURVES, WORD_CURVES
from ekphory.retrieval.fusion import EVEN_LEXICAL_WEIGHT, turns_blend
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.stages import find, relate, rerank, shape, weigh, widen
from ekphory.types import MEMORY_TYPES

# Of what is about equally likely the newer comes first; a stronger decay cost quality wherever it
# was measured, most where facts are updated (docs/ablation.md).
_NEWER_FIRST = weigh.Decay(floor=0.998)

FAST = Pipeline(
    "fast",
    [
        query.CleanQuery(),
        query.ClassifyQuery(),
        query.ReadTime(),
        find.SearchTime(),
        find.SearchPools(arms="lexical"),
        find.Fuse(method="lexical", lexical_weight=EVEN_LEXICAL_WEIGHT, calibration=WORD_CURVES),
        weigh.Weigh(),
        _NEWER_FIRST,
        weigh.FavourTime(),
        weigh.ListTime(),
        rerank.Calibrate(),
        relate.OrderRevisions(),
        shape.Cut(),
    ],
    summary="By words alone, without a model.",
)
BALANCED = Pipeline(
    "balanced",
    [
        query.CleanQuery(),
        query.ClassifyQuery(),
        query.ReadTime(),
        find.SearchTime(),
        find.SearchPools(),
        find.Fuse(),
        weigh.Weigh(),
        _NEWER_FIRST,
        weigh.FavourTime(),
        weigh.ListTime(),
        rerank.Rerank(
            candidates=10, blend=turns_blend(0.3), boosts="as asked", seconds=0.5, asks="quick"
        ),
        rerank.Calibrate(),
        relate.FollowLinks(),
        relate.OrderRevisions(),
        shape.PinRules(),
        shape.Cut(),
    ],
    summary="By meaning and by words, with the best ten read by a quick reranker; the default.",
)
RRF = Pipeline(
    "rrf",
    [
        query.CleanQuery(),
        query.ClassifyQuery(),
        find.SearchPools(),
        find.Fuse(method="reciprocal_rank"),
        weigh.Weigh(),
        _NEWER_FIRST,
        rerank.Calibrate(),
        relate.OrderRevisions(),
        shape.PinRules(),
        shape.Cut(),
    ],
    summary="As the first stage of balanced, but with the arms fused by ranks: for comparison.",
)
ACCURATE = Pipeline(
    "accurate",
    [
        query.CleanQuery(),
        query.ClassifyQuery(),
        query.ReadTime(),
        find.SearchTime(),
        find.SearchPools(depth=400),
        find.Fuse(lexical_weight=EVEN_LEXICAL_WEIGHT, calibration=EVEN_CURVES),
        weigh.Weigh(),
        _NEWER_FIRST,
        weigh.FavourTime(),
        weigh.ListTime(),
        rerank.Rerank(
            candidates=50,
            blend=turns_blend(0.3),
            boosts="as asked",
            seconds=2.0,
            asks="quick first",
        ),
        rerank.RerankAgain(blend=turns_blend(0.2), boosts="as asked", seconds=2.0),
        rerank.Calibrate(),
        relate.OrderRevisions(),
        shape.PinRules(),
        shape.Cut(),
    ],
    summary="As balanced, deeper: forty are read by a quick reranker, and the best dozen of them "
    "by the larger one.",
)
MEMORY_SPARK = Pipeline(
    "memory_spark",
    [
        query.CleanQuery(),
        query.ClassifyQuery(),
        query.ReadTime(),
        widen.Hyde(),
        widen.ExpandQuery(),
        find.SearchTime(),
        find.SearchPools(
            depth=0,
            depth_per_hit=4,
            pool_depth_per_hit={
                "agent_mistakes": 1,
                "shared_mistakes": 1,
                "shared_knowledge": 2,
                "shared_rules": 1,
            },
        ),
        find.Fuse(method="reciprocal_rank", list_per_hit=4),
        weigh.MergePools(),
        weigh.SourceDedup(),
        # The weight of the mistakes, which Memory-Spark takes from their path, is the pool's here.
        weigh.Weigh(
            origin_weights=replace(
                weigh.PUBLISHED_ORIGIN_WEIGHTS, path_parts={"memory/archive/": 0.4}
            ),
            bound=None,
            importance=0.0,
        ),
        weigh.Decay(floor=0.8, rate=0.03, fading=MEMORY_TYPES),
        weigh.FavourTime(),
        weigh.ListTime(),
        weigh.Normalise(),
        rerank.GateReranker(mode="hard"),
        rerank.Rerank(candidates=40, query_form="question"),
        rerank.Calibrate(),
        relate.OrderRevisions(),
        shape.Diversify(trade_off=0.9, among_per_hit=2),
        shape.ExpandParents(among_per_hit=2),
        shape.PinRules(),
        shape.DropKnown(among_per_hit=2),
        shape.FilterInjection(among_per_hit=2),
        shape.FitBudget(tokens=2000),
        shape.Cut(),
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
