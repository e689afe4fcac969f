"""Results as JSON: complete, with keys that stay."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path

from ekphory.errors import InvalidInput
from ekphory.results import SearchResult


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    text = json.dumps(plain(value), indent=2, ensure_ascii=not encoding.startswith("utf"))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_json(value: object, file: Path) -> None:
    """Write one JSON document to a file, whose folder is made if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(plain(value), indent=2) + "\n", encoding="utf-8")


def plain(value: object) -> object:
    """Turn dataclasses, moments, paths and sets of names into what JSON has.

    NaN and infinity become null; a set becomes a sorted list.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return _plain_scalar(value)


def _plain_scalar(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def search_json(query: str, result: SearchResult) -> dict[str, object]:
    """Give a search's hits and its trace, and what the agent did where it was asked."""
    found: dict[str, object] = {
        "query": query,
        "abstained": result.abstained,
        "order": result.order,
        "hits": result.hits,
        "trace": result.trace.to_dict(),
    }
    if result.retrieval_trace is not None:
        found["retrieval_trace"] = result.retrieval_trace.to_dict()
    return found


def error_json(error: BaseException, message: str) -> dict[str, object]:
    """Give an error with what a program needs to act on it."""
    described: dict[str, object] = {"type": type(error).__name__, "message": message}
    if isinstance(error, InvalidInput):
        described |= {"field": error.field, "value": error.value, "remedy": error.remedy}
    if isinstance(error, KeyboardInterrupt) and (report := getattr(error, "report", None)):
        described["report"] = report
    return {"error": described}
