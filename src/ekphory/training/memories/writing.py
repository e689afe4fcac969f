"""Writes samples to a JSON Lines file, and counts what it writes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ekphory.training.memories.ages import bucket_of
from ekphory.training.memories.sample import GeneratedMemory, MemorySample

_STEP = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingReport:
    """What was written.

    Attributes:
        samples: How many samples.
        seconds: How long it took.
        types: Answers by type.
        buckets: Answers by bucket of their age, from 0 to 9.
        negatives: Hard negatives by kind.
    """

    samples: int
    seconds: float
    types: Mapping[str, int]
    buckets: Mapping[int, int]
    negatives: Mapping[str, int]


def write_samples(
    samples: Iterable[MemorySample], file: Path, *, progress: Callable[[int], None]
) -> WritingReport:
    """Write one JSON object a line; the file's folder is made if need be.

    Args:
        samples: What to write.
        file: Where to; replaced if it exists.
        progress: Is told now and then how many are written.
    """
    types: Counter[str] = Counter()
    buckets: Counter[int] = Counter()
    negatives: Counter[str] = Counter()
    started = time.perf_counter()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as stream:
        for number, sample in enumerate(samples, start=1):
            stream.write(json.dumps(sample_row(sample)) + "\n")
            types[sample.positive.type] += 1
            buckets[bucket_of(sample.positive.days_ago)] += 1
            negatives.update(negative.kind for negative in sample.negatives)
            if number % _STEP == 0:
                progress(number)
    return WritingReport(
        samples=types.total(),
        seconds=round(time.perf_counter() - started, 3),
        types=dict(sorted(types.items())),
        buckets=dict(sorted(buckets.items())),
        negatives=dict(sorted(negatives.items())),
    )


def sample_row(sample: MemorySample) -> dict[str, object]:
    """Give a sample as values that JSON can hold."""
    return {
        "query": sample.query,
        "positive": _memory_row(sample.positive),
        "negatives": [
            {"kind": negative.kind, **_memory_row(negative.memory)} for negative in sample.negatives
        ],
    }


def _memory_row(memory: GeneratedMemory) -> dict[str, object]:
    return {
        "text": memory.text,
        "days_ago": memory.days_ago,
        "type": memory.type,
        "importance": memory.importance,
    }
