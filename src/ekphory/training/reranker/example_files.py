"""Examples in a file: JSON Lines, compressed; the same examples give the same bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.training.reranker.examples import Candidate, RerankExample
from ekphory.training.training_rows import read_rows


def write_examples(examples: Sequence[RerankExample], path: Path) -> None:
    """Write all or nothing: a stop leaves no half of a file."""
    lines = (json.dumps(_example_row(example)) + "\n" for example in examples)
    partial = path.with_name(f"{path.name}.partial")
    # Without time and name, so that equal content gives an equal hash.
    partial.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    partial.replace(path)


def read_examples(path: Path) -> tuple[RerankExample, ...]:
    """Read what `write_examples` wrote.

    Raises:
        DatasetError: The file is missing or holds something else.
    """
    try:
        return tuple(_example(row) for row in read_rows(path))
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{path}: no examples for a reranker ({type(error).__name__}: {error}). "
            "Give a file that `ekphory train reranker` wrote."
        ) from error


def _example_row(example: RerankExample) -> dict[str, Any]:
    query = example.query
    return {
        "source": example.source,
        "query": {
            "text": query.text,
            "context": list(query.context),
            "now": _written(query.now),
        },
        "candidates": [_candidate_row(candidate) for candidate in example.candidates],
        "labels": list(example.labels),
    }


def _candidate_row(candidate: Candidate) -> dict[str, Any]:
    passage = candidate.passage
    return {
        "text": passage.text,
        "before": passage.before,
        "after": passage.after,
        "at": _written(passage.at),
        "type": passage.type,
        "relevant": candidate.relevant,
        "kind": candidate.kind,
        "lexical": round(candidate.lexical, 5),
        "dense": round(candidate.dense, 5),
        "judged": candidate.judged,
    }


def _example(row: Mapping[str, Any]) -> RerankExample:
    query = row["query"]
    return RerankExample(
        row["source"],
        RerankQuery(query["text"], tuple(query["context"]), _read(query["now"])),
        tuple(_candidate(each) for each in row["candidates"]),
        tuple(row["labels"]),
    )


def _candidate(row: Mapping[str, Any]) -> Candidate:
    return Candidate(
        RerankPassage(row["text"], row["before"], row["after"], _read(row["at"]), row["type"]),
        row["relevant"],
        row["kind"],
        row["lexical"],
        row["dense"],
        row["judged"],
    )


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read(moment: str | None) -> datetime | None:
    return None if moment is None else datetime.fromisoformat(moment)
