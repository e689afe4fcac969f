"""A pipeline in words: which of the fifteen stages it has, what each does, with which settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from types import MappingProxyType

from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.stage import Stage

CANONICAL_STAGES: Mapping[int, str] = MappingProxyType(
    {
        1: "clean query",
        2: "hyde",
        3: "multi-query",
        4: "search pools",
        5: "fuse",
        6: "merge pools",
        7: "source dedup",
        8: "weigh",
        9: "decay",
        10: "normalise",
        11: "reranker gate",
        12: "rerank",
        13: "diversify",
        14: "expand parents",
        15: "context, safety, budget, cut",
    }
)
"""The fifteen stages in the order of Memory-Spark's paper and code."""


@dataclass(frozen=True, slots=True)
class StageDescription:
    """One stage of a pipeline, or one that it does without.

    Attributes:
        number: Place in the canonical order.
        name: The stage's name.
        used: Whether the pipeline has it.
        purpose: What it does, in a sentence; empty where it is not used.
        settings: Its settings by name, as plain data.
    """

    number: int
    name: str
    used: bool
    purpose: str
    settings: Mapping[str, object]


def describe(pipeline: Pipeline) -> list[StageDescription]:
    """Describe all fifteen stages; one that the pipeline lacks stands as unused."""
    described: list[StageDescription] = []
    for number, name in CANONICAL_STAGES.items():
        stages = [stage for stage in pipeline.stages if stage.number == number]
        described += [_described(stage) for stage in stages]
        if not stages:
            described.append(StageDescription(number, name, False, "", {}))
    return described


def _described(stage: Stage) -> StageDescription:
    purpose = (inspect.getdoc(type(stage)) or "").partition("\n\n")[0]
    settings = {
        name: _plain(value) for name, value in vars(stage).items() if name not in ("needs", "gives")
    }
    return StageDescription(stage.number, stage.name, True, " ".join(purpose.split()), settings)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(each) for name, each in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, tuple) else value
