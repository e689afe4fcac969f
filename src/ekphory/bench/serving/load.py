"""What a load of searches got, as plain values that go to JSON as they are."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The searches of several callers, each of whom asks again as soon as it has an answer.

    Attributes:
        milliseconds: Of each search that was answered with its hits.
        seconds: How long they asked.
        failed: Searches without hits, by what came instead: a status, or `timeout`.
        server_cpu: CPU seconds of the processes that answered; None where they are not known.
        client_cpu: CPU seconds of the clients, where they are a process of their own.
        unannounced: Refusals that did not say when to come back.
        answered: The requests that were, where they were kept.
    """

    milliseconds: Sequence[float]
    seconds: float
    failed: Mapping[str, int] = field(default_factory=dict)
    server_cpu: float | None = None
    client_cpu: float = 0.0
    unannounced: int = 0
    answered: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load in figures.

    Attributes:
        name: Who answered.
        callers: How many asked at once.
        answered: Searches that were answered with their hits.
        failed, unannounced: As in `Answers`.
        per_second: Answers a second.
        p50, p95, p99: Milliseconds of an answer.
        server_cpu_ms, client_cpu_ms: CPU milliseconds for one answer; None where not known.
        machine_load: What ran on the machine in the last minute; None where it does not tell.
    """

    name: str
    callers: int
    answered: int
    failed: Mapping[str, int]
    unannounced: int
    per_second: float
    p50: float
    p95: float
    p99: float
    server_cpu_ms: float | None
    client_cpu_ms: float | None
    machine_load: float | None

    @classmethod
    def of(cls, name: str, callers: int, turns: Sequence[Answers]) -> Load:
        """Summarise the turns of one load; where nothing was answered, times are NaN."""
        times = [each for turn in turns for each in turn.milliseconds] or [math.nan]
        answered = sum(len(turn.milliseconds) for turn in turns)
        p50, p95, p99 = (round(float(each), 2) for each in np.percentile(times, [50, 95, 99]))
        failed: dict[str, int] = {}
        for turn in turns:
            for what, count in turn.failed.items():
                failed[what] = failed.get(what, 0) + count
        server = [turn.server_cpu for turn in turns if turn.server_cpu is not None]
        return cls(
            name=name,
            callers=callers,
            answered=answered,
            failed=failed,
            unannounced=sum(turn.unannounced for turn in turns),
            per_second=round(answered / sum(turn.seconds for turn in turns), 1),
            p50=p50,
            p95=p95,
            p99=p99,
            server_cpu_ms=_each(sum(server), times) if server else None,
            client_cpu_ms=_each(sum(turn.client_cpu for turn in turns), times),
            machine_load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        )


def _each(seconds: float, times: Sequence[float]) -> float:
    return round(1000 * seconds / len(times), 2)
