"""What users rerank: texts, memories, hits or dicts become passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from ekphory.errors import InvalidInput
from ekphory.models.rerank_input import RerankPassage
from ekphory.moments import to_utc
from ekphory.types import MEMORY_TYPES, Hit, MemoryRecord, MemoryType

Document = str | MemoryRecord | Hit | RerankPassage | Mapping[str, Any]
"""A text; a memory; a hit; or a dict of `text` and, where known, `producer`, `at`, `type`,
`before` and `after`, the turns around it as `speaker: text`."""
_FIELDS = ("text", "producer", "at", "type", "before", "after")
_REMEDY = "Give a text, a memory, a hit, or a dict with 'text'"


def rerank_passages(documents: Sequence[Document]) -> list[RerankPassage]:
    """Read documents.

    Raises:
        InvalidInput: It is no list, or holds what is no document.
    """
    if isinstance(documents, str | Mapping) or not isinstance(documents, Sequence):
        raise InvalidInput("documents", documents, "is no list of documents", "Give ['a text']")
    return [_passage(document, place) for place, document in enumerate(documents)]


def told_type(record: MemoryRecord) -> MemoryType | None:
    """Give the type that somebody has said; None for one that is unknown or predicted."""
    return None if "type" in record.predicted else _known(record.type)


def _passage(document: object, place: int) -> RerankPassage:
    if isinstance(document, str):
        return RerankPassage(document)
    if isinstance(document, RerankPassage):
        return document
    if isinstance(document, Hit):
        return _of_record(document.memory)
    if isinstance(document, MemoryRecord):
        return _of_record(document)
    if isinstance(document, Mapping):
        return _of_mapping(document, place)
    raise InvalidInput("documents", document, f"document {place} is none", _REMEDY)


def _of_record(record: MemoryRecord) -> RerankPassage:
    return RerankPassage(record.indexed_text, at=record.at, type=told_type(record))


def _of_mapping(document: Mapping[str, Any], place: int) -> RerankPassage:
    unknown = document.keys() - set(_FIELDS)
    if unknown:
        _refuse(document, f"document {place} has unknown fields {sorted(map(str, unknown))}")
    text, producer = document.get("text"), document.get("producer") or ""
    around = document.get("before"), document.get("after")
    if not isinstance(text, str) or not isinstance(producer, str):
        _refuse(document, f"document {place} has no text, or a producer that is none")
    if any(not isinstance(turn, str | None) for turn in around):
        _refuse(document, f"document {place} has a turn before or after it that is no text")
    return RerankPassage(
        f"{producer}: {text}" if producer else cast(str, text),
        *around,
        at=_moment(document.get("at")),
        type=_type(document.get("type")),
    )


def _refuse(document: Mapping[str, Any], problem: str) -> None:
    raise InvalidInput("documents", document, problem, f"Its fields are {', '.join(_FIELDS)}")


def _moment(value: object) -> datetime | None:
    return None if value is None else to_utc(cast(str, value), field="at")


def _type(value: object) -> MemoryType | None:
    if value is not None and value not in MEMORY_TYPES:
        raise InvalidInput("type", value, "no such type", f"Choose from {', '.join(MEMORY_TYPES)}")
    return None if value is None else _known(value)


def _known(kind: MemoryType) -> MemoryType | None:
    return None if kind == "unknown" else kind
