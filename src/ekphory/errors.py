"""Every error that ekphory raises on purpose.

EkphoryError
├── InvalidInput (ValueError)     a value from the caller: names the field, the value and the remedy
│   ├── FilterError               a filter that cannot be read, or compares what cannot be compared
│   └── ScopeError                a record or filter that tries to leave its scope
├── MemoryNotFound (LookupError)  no memory with that id in this scope
├── StoreError                    the store on disk cannot do what was asked
│   ├── EmbedderMismatch          a search by vectors alone, which are of another model
│   ├── SchemaTooNew              the store was written by a newer ekphory
│   ├── StoreLocked               another process holds the writer's lock
│   └── StoreClosed               the handle was closed
├── StoreWarning (UserWarning)    warned of, not raised: a store serves less well than it could
├── ModelError                    a model cannot be loaded or gives impossible output
├── ServiceError                  a remote model service failed, or answered nonsense
│   ├── ServiceUnavailable        not reached, or busy (http_service.py)
│   └── ServiceRefusal            refuses this very request (http_service.py)
├── DatasetError                  a benchmark or training file is missing, changed or malformed
├── NoResident, Unanswered        of the command line and its resident process (resident.py)
└── MissingExtra (ImportError)    an optional dependency is not installed
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class EkphoryError(Exception):
    """Base of all errors that ekphory raises on purpose; its text may be shown to a user."""


class InvalidInput(EkphoryError, ValueError):
    """A value from the caller cannot be used.

    Attributes:
        field: Name of the argument or record field, as the caller knows it.
        value: The offending value, shortened to 80 characters for display.
        remedy: What to do instead.
    """

    def __init__(self, field: str, value: object, problem: str, remedy: str) -> None:
        self.field = field
        self.value = shorten(value)
        self.remedy = remedy
        super().__init__(f"{field}={self.value}: {problem}. {remedy}")


class FilterError(InvalidInput):
    """A filter that cannot be read, or that compares what cannot be compared."""


class ScopeError(InvalidInput):
    """A record or a filter that tries to leave the scope it is bound to."""


class MemoryNotFound(EkphoryError, LookupError):
    """No memory with that id is visible in this scope."""

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        super().__init__(
            f"id={shorten(memory_id)}: no such memory in this scope. "
            "List the scope's ids with `ekphory list`, or bind another scope."
        )


class StoreError(EkphoryError):
    """The store on disk cannot do what was asked."""


class EmbedderMismatch(StoreError):
    """Only vectors were to be searched, and they are of another model than is at hand."""


class StoreWarning(EkphoryError, UserWarning):
    """A store serves less well than it could, and something can be done about it."""


class SchemaTooNew(StoreError):
    """The store was written by a newer ekphory than this one."""


class StoreLocked(StoreError):
    """Another process holds the writer's lock."""


class StoreClosed(StoreError):
    """The handle was closed before this call."""


class ModelError(EkphoryError):
    """A model cannot be loaded, or gives output that it must not give."""


class ServiceError(EkphoryError):
    """A remote model service failed, or answered what its protocol does not allow."""


class DatasetError(EkphoryError):
    """A benchmark or training file is missing, differs from its known hash, or is malformed."""


class MissingExtra(EkphoryError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str, *, package: str = "ekphory") -> None:
        self.extra = extra
        super().__init__(
            f"{needed_for} needs an optional dependency. "
            f"Install it with: pip install '{package}[{extra}]'"
        )


def suggest(given: object, known: Iterable[str]) -> str:
    """Return `Did you mean 'x'? `, as a remedy begins, where a known name is near; else nothing."""
    from difflib import get_close_matches  # slow to load; every command starts with this module

    near = get_close_matches(str(given)[:100].lower(), known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}? " if near else ""


def shorten(value: object) -> str:
    """Return `repr(value)`, cut to 80 characters so that an error never prints a whole text."""
    try:
        shown = repr(value[:100]) if isinstance(value, str | bytes) else repr(value)
    except RecursionError:
        shown = f"a {type(value).__name__} that is nested too deeply"
    return shown if len(shown) <= 80 else shown[:77] + "..."
