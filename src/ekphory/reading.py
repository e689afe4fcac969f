"""Reading without ranking: get, list, count, history, always within the scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ekphory.engine import Engine
from ekphory.errors import FilterError, InvalidInput, MemoryNotFound
from ekphory.filters.check import check_filter
from ekphory.filters.evaluate import matches
from ekphory.filters.grammar import parse_filter
from ekphory.filters.storable_text import is_storable
from ekphory.filters.tree import And, Comparison, Field, Filter, IsNull, Or
from ekphory.moments import now_utc
from ekphory.scope import Scope
from ekphory.store.owner import owned_like
from ekphory.store.store import CURRENT, Order
from ekphory.types import MemoryRecord

EVERYTHING: Filter = And(())


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: `limit` memories after the first `offset`, in this order."""

    limit: int
    offset: int
    order: Order

    def __post_init__(self) -> None:
        for name, least in (("limit", 1), ("offset", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(name, value, "is out of range", f"Give at least {least}")
        if self.order not in get_args(Order):
            choices = ", ".join(get_args(Order))
            raise InvalidInput("order", self.order, "no such order", f"Choose one of {choices}")


def condition(given: str | Filter | None, *, scope: Scope) -> Filter:
    """Give a caller's filter, parsed or checked; None lets everything through.

    Raises:
        FilterError: It cannot be read.
        ScopeError: It asks for another org or project than the bound one.
    """
    if given is None:
        return EVERYTHING
    if isinstance(given, str):
        tree = parse_filter(given)
    elif isinstance(given, Filter):
        tree = check_filter(given)
    else:
        raise FilterError("filter", given, "is no filter", "Give text or a tree of filters.tree")
    scope.refuse_leaving(tree)
    return tree


def in_view(scope: Scope, narrower: Filter) -> Filter:
    """Give the scope's current, unexpired memories that match `narrower`."""
    return And((scope.predicate(), CURRENT, unexpired(), narrower))


def get(engine: Engine, scope: Scope, memory_id: str) -> MemoryRecord:
    """Read one memory by its id; history can be read by the ids of its versions."""
    return _only(scope, memory_id, _with_id(engine, scope, memory_id, unexpired()))


def get_even_expired(engine: Engine, scope: Scope, memory_id: str) -> MemoryRecord:
    """Read one memory by its id, also when it is hidden because it has expired."""
    return _only(scope, memory_id, _with_id(engine, scope, memory_id, EVERYTHING))


def _only(scope: Scope, memory_id: str, found: list[MemoryRecord]) -> MemoryRecord:
    if not found:
        raise MemoryNotFound(memory_id)
    if len(found) > 1:
        found = _meant(scope, found)
    if len(found) > 1:
        raise InvalidInput(
            "id",
            memory_id,
            f"{len(found)} narrower scopes within this one use it",
            "Bind the agent, user or session that is meant",
        )
    return found[0]


def list_memories(engine: Engine, scope: Scope, narrower: Filter, page: Page) -> list[MemoryRecord]:
    """Read one page of the scope's memories."""
    engine.store.version()
    return engine.store.select(
        in_view(scope, narrower), order=page.order, limit=page.limit, offset=page.offset
    )


def count(engine: Engine, scope: Scope, narrower: Filter) -> int:
    """How many memories there are to find."""
    engine.store.version()
    return engine.store.count(in_view(scope, narrower))


def history(engine: Engine, scope: Scope, memory_id: str) -> list[MemoryRecord]:
    """Give the memory and its earlier versions, newest first."""
    versions = [get(engine, scope, memory_id)]
    while (earlier := versions[-1].supersedes) is not None:
        named = Comparison(Field("id"), "eq", earlier)
        successor = Comparison(Field("superseded_by"), "eq", versions[0].id)
        found = engine.store.select(
            And((owned_like(versions[0]), successor, named)), order="newest", limit=1
        )
        if not found:
            break
        versions += found
    return versions


def _with_id(engine: Engine, scope: Scope, memory_id: str, narrower: Filter) -> list[MemoryRecord]:
    if not isinstance(memory_id, str) or not memory_id or not is_storable(memory_id):
        raise InvalidInput("id", memory_id, "an id is non-empty text", "Give the memory's id")
    engine.store.version()
    named = Comparison(Field("id"), "eq", memory_id)
    where = And((scope.predicate(), named, narrower))
    return engine.store.select(where, order="newest")


def _meant(scope: Scope, found: list[MemoryRecord]) -> list[MemoryRecord]:
    """Of several with one id, prefer the current ones, and of those what the scope itself owns."""
    current = [record for record in found if record.superseded_by is None] or found
    own = [record for record in current if matches(scope.own_predicate(), record)]
    return own or current


def unexpired() -> Filter:
    """Give the condition for memories that have not expired until now."""
    expiry = Field("expires_at")
    return Or((IsNull(expiry), Comparison(expiry, "gt", now_utc())))
