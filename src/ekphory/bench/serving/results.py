"""What one run measured of a server, as plain values that go to JSON as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ekphory.bench.serving.load import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLayout:
    """One store, served and searched in process in turn.

    Attributes:
        scopes: Projects that the memories are spread over.
        rows: How many memories.
        start_seconds: From the start of the server's process until it listened.
        answer_seconds: From its start until it had answered a first request.
        alone: One caller: `Memory.search`, the service that the server stands on, and HTTP.
        together: Many callers: the two in process, in as many threads as the server has, and HTTP.
        mixed: The clients again, some of whom write: the reads and the writes over HTTP.
        writes_lost, writes_doubled: Of the acknowledged writes, how many are not there afterwards,
            and how many more than once.
        overload: Servers with lowered limits, asked by as many clients.
    """

    scopes: int
    rows: int
    start_seconds: float
    answer_seconds: float
    alone: tuple[Load, ...]
    together: tuple[Load, ...]
    mixed: tuple[Load, ...]
    writes_lost: int
    writes_doubled: int
    overload: tuple[Load, ...]

    @property
    def http_adds(self) -> float:
        """Milliseconds that HTTP adds to one caller's median search."""
        _, service, http = self.alone
        return round(http.p50 - service.p50, 2)

    @property
    def shares(self) -> dict[str, float]:
        """The server's answers a second as a share of each of those in process."""
        *inside, http = self.together
        return {each.name: round(http.per_second / each.per_second, 3) for each in inside}


@dataclass(frozen=True, slots=True)
class ServingReport:
    """Everything that one run measured.

    Attributes:
        machine, versions, options: Under what conditions.
        layouts: One for each number of projects.
        seconds: How long it all took.
    """

    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    options: Mapping[str, Any]
    layouts: tuple[ServedLayout, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain data, for JSON."""
        derived = [{"http_adds": each.http_adds, "shares": each.shares} for each in self.layouts]
        plain = asdict(self)
        plain["layouts"] = [a | b for a, b in zip(plain["layouts"], derived, strict=True)]
        return plain
