"""The default pipeline with one thing changed, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ekphory.retrieval.fitted_probabilities import WORD_CURVES
from ekphory.retrieval.fusion import EVEN_LEXICAL_WEIGHT, LEXICAL_WEIGHT
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import BALANCED, PRESETS
from ekphory.retrieval.resources import OptionalModels
from ekphory.retrieval.stage import Stage
from ekphory.retrieval.stages.classify_query import ClassifyQuery
from ekphory.retrieval.stages.decay import Decay
from ekphory.retrieval.stages.diversify import Diversify
from ekphory.retrieval.stages.favour_time import FavourTime
from ekphory.retrieval.stages.fuse import Fuse
from ekphory.retrieval.stages.list_time import ListTime
from ekphory.retrieval.stages.normalise import Normalise
from ekphory.retrieval.stages.read_time import ReadTime
from ekphory.retrieval.stages.search_pools import SearchPools
from ekphory.retrieval.stages.search_time import SearchTime
from ekphory.retrieval.stages.source_dedup import SourceDedup
from ekphory.retrieval.stages.weigh import Weigh
from ekphory.types import MEMORY_TYPES

Change = Callable[[Sequence[Stage]], Sequence[Stage]]


@dataclass(frozen=True, slots=True)
class Variation:
    """A pipeline that is compared with the default one.

    Attributes:
        name: What is different.
        pipeline: What is run.
        needs: Names of the optional models that it makes no sense without.
    """

    name: str
    pipeline: Pipeline
    needs: frozenset[str] = field(default_factory=frozenset)

    def lacks(self, models: OptionalModels) -> bool:
        """Whether a model that it needs is not there."""
        given = {"reranker": models.reranker, "chat": models.chat}
        return any(given[name] is None for name in self.needs)


def without(kind: type[Stage]) -> Change:
    """Leave a stage out."""
    return lambda stages: [stage for stage in stages if not isinstance(stage, kind)]


def instead(stage: Stage) -> Change:
    """Put a stage in the place of that of the same kind, or where its number belongs."""

    def changed(stages: Sequence[Stage]) -> list[Stage]:
        others = [each for each in stages if type(each) is not type(stage)]
        place = sum(each.number <= stage.number for each in others)
        return [*others[:place], stage, *others[place:]]

    return changed


def varied(name: str, *changes: Change) -> Variation:
    """Change the default pipeline, one change after another."""
    stages: Sequence[Stage] = BALANCED.stages
    for change in changes:
        stages = change(stages)
    return Variation(name, Pipeline(name, stages))


REFERENCE = Variation(BALANCED.name, BALANCED)

STAGE_VARIATIONS: tuple[Variation, ...] = (
    varied("without weights", without(Weigh)),
    varied("without decay", without(Decay)),
    varied(
        "without time",
        without(ReadTime),
        without(SearchTime),
        without(FavourTime),
        without(ListTime),
    ),
    varied("dense arm alone", instead(SearchPools(arms="dense")), instead(Fuse(method="dense"))),
    varied(
        "lexical arm alone",
        instead(SearchPools(arms="lexical")),
        instead(
            Fuse(
                method="lexical",
                lexical_weight=EVEN_LEXICAL_WEIGHT,
                calibration=WORD_CURVES,
            )
        ),
    ),
    varied("half the lexical weight", instead(Fuse(lexical_weight=LEXICAL_WEIGHT.times(0.5)))),
    varied("twice the lexical weight", instead(Fuse(lexical_weight=LEXICAL_WEIGHT.times(2)))),
    varied("reciprocal ranks", instead(Fuse(method="reciprocal_rank"))),
    varied("adaptive reciprocal ranks", instead(Fuse(method="adaptive_reciprocal_rank"))),
    varied("without query classes", without(ClassifyQuery)),
    varied("with source dedup", instead(SourceDedup())),
    varied("with normalisation", instead(Normalise())),
    varied("with MMR, .9", instead(Diversify(trade_off=0.9))),
    varied("with MMR, adaptive", instead(Diversify(trade_off="adaptive"))),
    varied("decay by a hundredth", instead(Decay(floor=0.99))),
    varied("decay by a tenth", instead(Decay(floor=0.9))),
    varied("decay as published", instead(Decay(floor=0.8, rate=0.03, fading=MEMORY_TYPES))),
    varied("search depth 100", instead(SearchPools(depth=100))),
    varied("search depth 1,000", instead(SearchPools(depth=1000))),
)

PRESET_VARIATIONS: tuple[Variation, ...] = tuple(
    Variation(f"preset {name}", pipeline)
    for name, pipeline in PRESETS.items()
    if pipeline is not BALANCED
)
