"""The tool `explain`: how a search came to its hits, or how a memory came to its text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ekphory.errors import InvalidInput
from ekphory.mcp_server.asking import Condition, Count, LeastScore, TimeInWords, Timezone
from ekphory.mcp_server.shown import (
    DEFAULT_TOKENS,
    ShownMemory,
    Withheld,
    as_hits,
    shown_memories,
    without_steering,
)
from ekphory.mcp_server.tool import Answer, Answered, Arguments, Tool
from ekphory.memory import Memory
from ekphory.results import SearchResult
from ekphory.trace import StageTrace, Trace
from ekphory.types import Hit


class Explain(Arguments):
    """What to explain: a question, with the settings it was asked with, or a memory."""

    query: Annotated[str | None, Field(description="The question that recall was asked.")] = None
    id: Annotated[str | None, Field(description="A memory, to see its earlier versions.")] = None
    k: Count = 10
    filter: Condition = None
    min_score: LeastScore = None
    time: TimeInWords = "boost"
    timezone: Timezone = "UTC"


class Stage(BaseModel):
    """What one stage of the search did."""

    name: str
    status: Literal["ran", "skipped", "degraded"]
    reason: str | None = None
    candidates_in: int
    candidates_out: int
    milliseconds: float


class Scored(BaseModel):
    """A hit's probability, and the raw scores that it comes from."""

    id: str
    score: float
    scores: dict[str, float]


class Explained(Answer):
    """The stages and scores of a search, or the versions of a memory, newest first."""

    preset: str | None = None
    stages: list[Stage] | None = None
    hits: list[Scored] | None = None
    versions: list[ShownMemory] | None = None
    withheld: list[Withheld] | None = None


def _run(memory: Memory, given: Explain) -> Answered:
    if given.id is not None and given.query is None:
        return _versions(memory, given.id)
    if given.query is None or given.id is not None:
        raise InvalidInput(
            "query", given.query, "give a query or an id, not both", "Name what to explain"
        )
    found = memory.search(
        given.query,
        k=given.k,
        filter=given.filter,
        min_score=given.min_score,
        time=given.time,
        timezone=given.timezone,
    )
    result, withheld = without_steering(found)
    data = Explained(
        preset=result.trace.preset,
        stages=[_stage(stage) for stage in result.trace.stages],
        hits=[_scored(hit) for hit in result],
        withheld=withheld or None,
    )
    lines = [_in_words(stage) for stage in result.trace.stages]
    hits = [f"hit {place}: {hit.score:.2f}" for place, hit in enumerate(result, start=1)]
    return Answered(data, ("\n".join([*lines, *hits]),))


def _versions(memory: Memory, memory_id: str) -> Answered:
    versions = SearchResult(as_hits(memory.history(memory_id)), Trace("history"))
    result, withheld = without_steering(versions)
    data = Explained(
        versions=shown_memories(hit.memory for hit in result), withheld=withheld or None
    )
    return Answered(data, (result.to_prompt(DEFAULT_TOKENS),))


def _stage(stage: StageTrace) -> Stage:
    return Stage(
        name=stage.name,
        status=stage.status,
        reason=stage.reason,
        candidates_in=stage.candidates_in,
        candidates_out=stage.candidates_out,
        milliseconds=round(stage.milliseconds, 3),
    )


def _scored(hit: Hit) -> Scored:
    return Scored(id=hit.id, score=hit.score, scores=dict(hit.scores))


def _in_words(stage: StageTrace) -> str:
    why = f" ({stage.reason})" if stage.reason else ""
    counts = f"{stage.candidates_in} in, {stage.candidates_out} out"
    return f"{stage.name}: {stage.status}{why}, {counts}, {stage.milliseconds:.1f} ms"


EXPLAIN = Tool(
    name="explain",
    title="Explain",
    use="Explain a recall, or a memory. Use it when recall gave something surprising or nothing, "
    "or when the user asks why something was or was not found: give the same query and settings, "
    "and see what each stage of the search did and every hit's scores. With an id it shows the "
    "memory's earlier versions. Not needed to answer a question.",
    effect="reads",
    arguments=Explain,
    answer=Explained,
    run=_run,
)
