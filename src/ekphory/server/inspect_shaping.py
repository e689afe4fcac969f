"""What the service tells the inspector, in the shapes of the wire."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ekphory.agent_trace.retrieval_trace import RetrievalTrace
from ekphory.prompting.age import age_in_words
from ekphory.server.wire.inspect import (
    HealthAnswer,
    InspectSearchAnswer,
    OutlineAnswer,
    ShownAgent,
    ShownBar,
    ShownFinding,
    ShownHit,
    ShownMemory,
    ShownReason,
    ShownStage,
)
from ekphory.service.examination import Examined
from ekphory.service.outline import Outline
from ekphory.service.waterfall import WaterfallRow
from ekphory.service.wire_names import shown_metadata
from ekphory.store.findings import examine
from ekphory.store.store import StoreHealth
from ekphory.types import MemoryRecord


def shown_memory(record: MemoryRecord, now: datetime) -> ShownMemory:
    """Give a memory with its age at a moment."""
    return ShownMemory(
        id=record.id,
        text=record.text,
        at=record.at,
        age=age_in_words(record.at, now),
        created_at=record.created_at,
        expires_at=record.expires_at,
        pool=record.pool,
        type=record.type,
        importance=record.importance,
        predicted=sorted(record.predicted),
        producer=record.producer,
        produced_for=record.produced_for,
        role=record.role,
        agent=record.agent,
        user=record.user,
        session=record.session,
        sequence=record.sequence,
        source=record.source,
        path=record.path,
        heading=record.heading,
        lines=record.lines,
        supersedes=record.supersedes,
        metadata=shown_metadata(record.metadata),
    )


def search_answer(examined: Examined, query: str) -> InspectSearchAnswer:
    """Give a search with all its stages."""
    result = examined.result
    told = zip(result.hits, examined.reasons, strict=True)
    return InspectSearchAnswer(
        query=query,
        preset=examined.preset,
        now=examined.now,
        milliseconds=result.trace.milliseconds,
        abstained=result.abstained,
        order=result.order,
        hits=[
            ShownHit(
                memory=shown_memory(hit.memory, examined.now),
                text=hit.text,
                score=hit.score,
                scores=_numbers(hit.scores),
                reasons=[ShownReason(kind=each.kind, sentence=each.sentence) for each in why],
            )
            for hit, why in told
        ],
        stages=[_stage(row) for row in examined.rows],
        agent=None if result.retrieval_trace is None else _agent(result.retrieval_trace),
        others=[shown_memory(record, examined.now) for record in examined.others],
    )


def outline_answer(outline: Outline) -> OutlineAnswer:
    """Give the counts of a project."""
    return OutlineAnswer(
        total=outline.total,
        pools=dict(outline.pools),
        types=dict(outline.types),
        importance=list(outline.importance),
        unit=outline.timeline.unit,
        bars=[
            ShownBar(begins=bar.begins, ends=bar.ends, counts=dict(bar.counts))
            for bar in outline.timeline.bars
        ],
    )


def health_answer(health: StoreHealth) -> HealthAnswer:
    """Give the state of a store, judged."""
    findings = examine(health)
    numbers = {name: value for name, value in asdict(health).items() if name != "orphaned_scopes"}
    return HealthAnswer(
        healthy=all(finding.state != "repairable" for finding in findings),
        findings=[
            ShownFinding(subject=each.subject, state=each.state, sentence=each.sentence)
            for each in findings
        ],
        numbers=numbers | {"orphaned_scopes": len(health.orphaned_scopes)},
    )


def _stage(row: WaterfallRow) -> ShownStage:
    return ShownStage(
        number=row.number,
        name=row.name,
        status=row.status,
        reason=row.reason,
        candidates_in=row.candidates_in,
        candidates_out=row.candidates_out,
        begins=row.begins,
        milliseconds=row.milliseconds,
        purpose=row.purpose,
        settings=_plain(row.settings),
        detail=_plain(row.detail),
    )


def _agent(trace: RetrievalTrace) -> ShownAgent:
    return ShownAgent(
        provider=trace.provider,
        selected_agent=trace.selected_agent_name,
        confidence=trace.confidence_score,
        milliseconds=trace.milliseconds,
        searches=trace.memory_search_called,
        fallback_trigger_reason=trace.fallback_trigger_reason,
        events=[event.to_dict() for event in trace.events],
    )


def _numbers(scores: Mapping[str, float]) -> dict[str, float]:
    """Only what JSON can carry."""
    return {name: value for name, value in scores.items() if math.isfinite(value)}


def _plain(value: Any) -> Any:  # noqa: ANN401  whatever a stage tells of itself
    """Give what a stage tells of itself as JSON has it; what JSON lacks, as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
