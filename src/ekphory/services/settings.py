"""How a remote service is called."""

from __future__ import annotations

from dataclasses import dataclass

from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a remote service is called.

    Attributes:
        timeout: Seconds that connecting, sending, and each wait for a piece of the answer may
            take, and after which an unfinished answer is given up.
        retries: How often a request is repeated after status 408, 429, 5xx or a broken connection.
        backoff: Seconds before the first repeat, doubled each time; `Retry-After` goes before it.
        longest_wait: Most seconds before a repeat, whatever the service asks for.
        most_bytes: Longest answer that is read.
        failures: Calls, each with its repeats, that may fail in a row; after them the service is
            left alone.
        cool_down: Seconds for which it is left alone.
    """

    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 30.0
    most_bytes: int = 32 * 2**20
    failures: int = 5
    cool_down: float = 30.0

    def __post_init__(self) -> None:
        for name in ("timeout", "most_bytes", "failures"):
            self._check(name, getattr(self, name) > 0, "a number above 0")
        for name in ("retries", "backoff", "longest_wait", "cool_down"):
            self._check(name, getattr(self, name) >= 0, "0 or more")

    def _check(self, name: str, is_possible: object, remedy: str) -> None:
        if not is_possible:
            raise InvalidInput(
                name, getattr(self, name), "no service can be called so", f"Give {remedy}"
            )


DEFAULT_SERVICE_SETTINGS = ServiceSettings()
