"""LangGraph's long-term memory, `BaseStore`, kept in an ekphory store."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ekphory.errors import (
    FilterError,
    InvalidInput,
    MemoryNotFound,
    MissingExtra,
    StoreClosed,
    StoreError,
)
from ekphory.filters.tree import And, Comparison, Field, Filter, In, MetadataField
from ekphory.memory import Memory
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.scope import LONGEST_NAME, SCOPE_FIELDS, Scope, owned_like
from ekphory.search import MOST_HITS
from ekphory.types import MemoryRecord, Scalar, is_storable, now_utc
from ekphory.write import LONGEST_TEXT

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
except ImportError as error:
    raise MissingExtra("langgraph", "A store of LangGraph") from error


if TYPE_CHECKING:
    from langgraph.store.base import MatchCondition


# What is searched of a value

WHOLE = "$"
"""The field that stands for the whole value."""


def extract_text(value: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """Return the texts of these fields, a line each; None where there is nothing to search.

    Args:
        value: What is stored.
        fields: Paths as LangGraph writes them (`title`, `messages[*].content`), `$` for all.

    Raises:
        InvalidInput: There is more text than a memory holds.
    """
    parts = [part for field in fields for part in _read_texts(value, field)]
    # What UTF-8 cannot carry is kept in the value, where JSON escapes it.
    text = "\n".join(parts).replace("\0", " ").encode("utf-8", "replace").decode()
    if len(text) > LONGEST_TEXT:
        raise InvalidInput(
            "value",
            value,
            f"has {len(text):,} characters to search, more than {LONGEST_TEXT:,}",
            "Name the fields to search, index=['title'], or none, index=False",
        )
    return text if strip_recall_blocks(text).strip() else None


def _read_texts(value: Mapping[str, Any], field: str) -> list[str]:
    if field != WHOLE:
        return get_text_at_path(value, field)
    leaves = list(_iterate_leaves(value, ""))
    if len(leaves) == 1:
        return [text for _, text in leaves]
    return [f"{name}: {text}" for name, text in leaves]


def _iterate_leaves(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Return every text, number and truth value within, each with the names that lead to it."""
    match value:
        case Mapping():
            for key, part in value.items():
                yield from _iterate_leaves(part, f"{name}.{key}" if name else str(key))
        case list() | tuple():
            for part in value:
                yield from _iterate_leaves(part, name)
        case str() if value.strip():
            yield name, value
        case bool():
            yield name, "true" if value else "false"
        case int() | float():
            yield name, str(value)


# Namespaces as paths

Namespace = tuple[str, ...]

END_OF_LABEL = "/"
"""Stands behind every label of a path."""
_ESCAPED = re.compile("[%/\\x00\\ud800-\\udfff]")


def encode_namespace(namespace: Sequence[str]) -> str:
    """Return the namespace as one text: a namespace begins with another if its path does.

    Every label ends with a slash, and what a label has of its own is escaped, so no two namespaces
    have one path: `("a.b",)` is `a.b/`, `("a", "b")` is `a/b/`, and `("a/b",)` is `a%2Fb/`.

    Raises:
        InvalidInput: A label is not a string, or all of them are too long.
    """
    labels = check_labels(namespace)
    escaped = (_ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", label) for label in labels)
    path = "".join(label + END_OF_LABEL for label in escaped)
    if len(path) > LONGEST_NAME:
        raise InvalidInput("namespace", namespace, "is too long", f"Give up to {LONGEST_NAME:,}")
    return path


def check_labels(namespace: Sequence[str]) -> Sequence[str]:
    """Return the namespace, having checked that it is one.

    Raises:
        InvalidInput: It is not a tuple, or a label is not a string.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InvalidInput("namespace", namespace, "must be a tuple", 'Give ("users", "mara")')
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidInput("namespace", namespace, f"{label!r} must be a string", "Give texts")
    return namespace


def fits(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins or ends as the condition says; `*` stands for any one label.

    Raises:
        InvalidInput: The condition is of an unknown kind.
    """
    wanted = condition.path
    places = {"prefix": 0, "suffix": len(namespace) - len(wanted)}
    if condition.match_type not in places:
        raise InvalidInput(
            "match_type", condition.match_type, "is unknown", f"Choose from {', '.join(places)}"
        )
    if len(wanted) > len(namespace):
        return False
    part = namespace[places[condition.match_type] :]
    return all(name in ("*", label) for name, label in zip(wanted, part, strict=False))


# Filters


def check_value_filter(given: Mapping[str, Any]) -> None:
    """Refuse a filter that LangGraph does not know.

    Raises:
        FilterError: It is no mapping, or an operator stands in the place of a field, or is unknown.
    """
    if not isinstance(given, Mapping):
        raise FilterError("filter", given, "must be a mapping", 'Give {"field": "value"}')
    for name, wanted in given.items():
        if _is_operator(name):
            raise FilterError(
                "filter", name, "stands where a field must", 'Give {"field": {"$gt": 1}}'
            )
        _check_condition(wanted)


def passes_filter(given: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether all fields of a value are as a checked filter wants them; a missing one is None."""
    return all(_agrees(value.get(name), wanted) for name, wanted in given.items())


def _check_condition(wanted: object) -> None:
    match wanted:
        case dict() if _has_operator(wanted):
            for name in wanted:
                if name not in _OPERATORS:
                    raise FilterError(
                        "filter", name, "no such operator", f"Use one of {', '.join(_OPERATORS)}"
                    )
        case dict():
            for part in wanted.values():
                _check_condition(part)
        case list() | tuple():
            for part in wanted:
                _check_condition(part)


def _has_operator(wanted: Mapping[str, Any]) -> bool:
    return any(map(_is_operator, wanted))


def _is_operator(name: object) -> bool:
    # A value's keys need not be texts, and so those of a filter need not.
    return isinstance(name, str) and name.startswith("$")


def _agrees(found: object, wanted: object) -> bool:
    match wanted:
        case dict() if _has_operator(wanted):
            return all(_OPERATORS[name](found, bound) for name, bound in wanted.items())
        case dict():
            return isinstance(found, dict) and passes_filter(wanted, found)
        case list() | tuple():
            return (
                isinstance(found, list | tuple)
                and len(found) == len(wanted)
                and all(map(_agrees, found, wanted))
            )
        case _:
            return found == wanted


def _is_in_order(order: Callable[[Any, Any], bool], found: object, bound: object) -> bool:
    """Compare as numbers what can be read so, else as texts; other things have no order."""
    numbers = _read_number(found), _read_number(bound)
    if None not in numbers:
        return order(*numbers)
    return isinstance(found, str) and isinstance(bound, str) and order(found, bound)


_OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": partial(_is_in_order, operator.gt),
    "$gte": partial(_is_in_order, operator.ge),
    "$lt": partial(_is_in_order, operator.lt),
    "$lte": partial(_is_in_order, operator.le),
}


def _read_number(value: object) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


# Items as memories: the value is kept whole, as JSON, in the metadata; the text is what is searched

POOL = "langgraph"
"""What stores of LangGraph hold stands in this pool."""

_IN_POOL = Comparison(Field("pool"), "eq", POOL)

MOST_IDS = 900
"""Ids in one condition, of which a filter takes a thousand values."""
_FOLLOWING = chr(ord(END_OF_LABEL) + 1)


@dataclass(frozen=True, slots=True)
class ItemSpace:
    """The items that handles of exactly this scope put.

    Neither a wider nor a narrower scope shares them: of one namespace and key there is one item.
    """

    scope: Scope

    @property
    def items(self) -> Filter:
        """Holds for all of them."""
        return And((_IN_POOL, owned_like(self.scope)))

    def encode_id(self, namespace: Sequence[str], key: str) -> str:
        """Return the id of an item's memory: the JSON list of its scope, all labels and the key.

        Raises:
            InvalidInput: A label or the key is not a string, or they are too long together.
        """
        if not isinstance(key, str):
            raise InvalidInput("key", key, "must be a string", "Give a str")
        bound = {name: getattr(self.scope, name) for name in SCOPE_FIELDS}
        owner = {name: value for name, value in bound.items() if value is not None}
        parts = [owner, *check_labels(namespace), key]
        readable = json.dumps(parts, ensure_ascii=False)
        # Half of a surrogate pair is text in Python, and cannot be stored as it is.
        name = readable if is_storable(readable) else json.dumps(parts)
        if len(name) > LONGEST_NAME:
            raise InvalidInput(
                "key", key, "is too long with its namespace", f"Give up to {LONGEST_NAME:,}"
            )
        return name

    def filter_beneath(self, prefix: Sequence[str]) -> Filter:
        """Return the condition for items in this namespace and in all within it."""
        path = encode_namespace(prefix)
        if not path:
            return self.items
        end = path.removesuffix(END_OF_LABEL) + _FOLLOWING
        within = (Comparison(Field("path"), "ge", path), Comparison(Field("path"), "lt", end))
        return And((self.items, *within))

    def filter_matching(self, conditions: Iterable[MatchCondition]) -> Filter:
        """Return a condition for all items whose namespace fits, and perhaps for some more."""
        prefixes = (each.path for each in conditions if each.match_type == "prefix")
        fixed = (takewhile(lambda label: label != "*", path) for path in prefixes)
        return And((self.items, *(self.filter_beneath(tuple(labels)) for labels in fixed)))


def filter_ids(ids: Sequence[str]) -> Iterator[Filter]:
    """Return conditions that together hold for the items with these ids."""
    for start in range(0, len(ids), MOST_IDS):
        yield And((_IN_POOL, In(Field("id"), tuple(ids[start : start + MOST_IDS]))))


def decode_id(name: str) -> tuple[Namespace, str]:
    """Return the namespace and the key that an id was made of."""
    _owner, *namespace, key = json.loads(name)
    return tuple(namespace), key


KEPT = datetime(9998, 1, 1, tzinfo=UTC)
"""When a memory expires that shall not: an update can move a moment, and not take it away."""

_VALUE, _CREATED, _MINUTES, _SEARCHABLE = "value", "created_at", "ttl", "searchable"
_NO_TEXT = "(not indexed)"
"""Text of a memory that is not searched, as no memory is without one."""

SEARCHABLE: Filter = Comparison(MetadataField(_SEARCHABLE), "eq", True)


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item that is about to be put, checked.

    Attributes:
        id, path: Where it lies.
        text: What is searched of it; None for nothing.
        value: Its JSON.
        minutes: How long it lives after it was last read or put; None for good.
        at: When it is put.
    """

    id: str
    path: str
    text: str | None
    value: str
    minutes: float | None
    at: datetime

    def metadata(self, *, created_at: datetime) -> dict[str, Scalar]:
        """Return the metadata of its memory."""
        lifetime = {} if self.minutes is None else {_MINUTES: self.minutes}
        return {
            _VALUE: self.value,
            _CREATED: created_at.isoformat(),
            _SEARCHABLE: self.text is not None,
            **lifetime,
        }

    def record(self) -> dict[str, Any]:
        """Return its memory, as `Memory.add_many` takes it; its life begins now."""
        return {
            "id": self.id,
            "text": self.text or _NO_TEXT,
            "at": self.at,
            "pool": POOL,
            "path": self.path,
            "expires_at": None if self.minutes is None else compute_expiry(self.minutes),
            "metadata": self.metadata(created_at=self.at),
        }


def check_item(op: PutOp, *, name: str, fields: Sequence[str], now: datetime) -> NewItem:
    """Check what shall be put.

    Args:
        op: The operation; its value is not None.
        name: The id of the item's memory.
        fields: What is searched where the operation does not say it.
        now: The moment.

    Raises:
        InvalidInput: Something cannot be stored.
    """
    if not isinstance(op.value, Mapping):
        raise InvalidInput("value", op.value, "must be a mapping", 'Give {"text": "…"}')
    if isinstance(op.index, str):
        raise InvalidInput("index", op.index, "must be a list of fields", f"Give [{op.index!r}]")
    searched = fields if op.index is None else op.index or ()
    kept = _to_json(op.value)  # refuses what is nested too deeply to be read
    return NewItem(
        id=name,
        path=encode_namespace(op.namespace),
        text=extract_text(op.value, searched),
        value=kept,
        minutes=_check_minutes(op.ttl),
        at=now,
    )


def compute_expiry(minutes: float | None) -> datetime:
    """Return the moment when an item of that lifetime expires, which is put or read now."""
    now = now_utc()
    if minutes is None or minutes >= (KEPT - now) / timedelta(minutes=1):
        return KEPT
    return now + timedelta(minutes=minutes)


def read_minutes(record: MemoryRecord) -> float | None:
    """Return an item's lifetime; None for one that is kept for good."""
    given = record.metadata.get(_MINUTES)
    return None if given is None else float(given)


def read_creation(record: MemoryRecord) -> datetime:
    """Return the moment at which an item was first put."""
    return datetime.fromisoformat(str(record.metadata[_CREATED]))


def read_value(record: MemoryRecord) -> dict[str, Any]:
    """Return an item's value, a new one each time."""
    value: dict[str, Any] = _decode(json.loads(str(record.metadata[_VALUE])))
    return value


# What JSON cannot say stands as `{"__ekphory__": its kind, "of": how it is written}`

_KIND, _OF = "__ekphory__", "of"
_MOMENT_UNIT = timedelta(microseconds=1)
_WRITTEN: Mapping[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    tuple: (list, tuple),
    set: (list, set),
    frozenset: (list, frozenset),
    bytes: (lambda value: base64.b64encode(value).decode(), base64.b64decode),
    datetime: (datetime.isoformat, datetime.fromisoformat),
    date: (date.isoformat, date.fromisoformat),
    time: (time.isoformat, time.fromisoformat),
    timedelta: (lambda value: value // _MOMENT_UNIT, lambda count: count * _MOMENT_UNIT),
    UUID: (str, UUID),
    Decimal: (str, Decimal),
    float: (repr, float),
}
"""How a value of each type is written in JSON, and read again."""
_TYPES = {kind.__name__: kind for kind in _WRITTEN}


def _encode(value: object) -> object:
    match value:
        case Mapping() if _KIND not in value and all(isinstance(key, str) for key in value):
            return {key: _encode(part) for key, part in value.items()}
        case Mapping():
            pairs = [[_encode(key), _encode(part)] for key, part in value.items()]
            return {_KIND: "dict", _OF: pairs}
        case list():
            return [_encode(part) for part in value]
        case float() if math.isfinite(value):
            return value
        # A named tuple, of which JSON would make a list, equals a plain one.
        case _ if (kind := tuple if isinstance(value, tuple) else type(value)) in _WRITTEN:
            write, _ = _WRITTEN[kind]
            return {_KIND: kind.__name__, _OF: _encode(write(value))}
        case _:
            return value


def _decode(stored: object) -> Any:  # noqa: ANN401  what a caller put
    match stored:
        case {"__ekphory__": "dict", "of": pairs}:
            return {_decode(key): _decode(part) for key, part in pairs}
        case {"__ekphory__": kind, "of": written}:
            _, read = _WRITTEN[_TYPES[kind]]
            return read(_decode(written))
        case dict():
            return {key: _decode(part) for key, part in stored.items()}
        case list():
            return [_decode(part) for part in stored]
        case _:
            return stored


def read_item(record: MemoryRecord) -> dict[str, Any]:
    """Return what LangGraph's `Item` has of a stored item."""
    namespace, key = decode_id(record.id)
    return {
        "value": read_value(record),
        "key": key,
        "namespace": namespace,
        "created_at": read_creation(record),
        "updated_at": record.at,
    }


def _to_json(value: Mapping[str, Any]) -> str:
    try:
        encoded = _encode(value)
        readable = json.dumps(encoded, ensure_ascii=False, allow_nan=False)
        return readable if is_storable(readable) else json.dumps(encoded, allow_nan=False)
    except RecursionError as error:
        remedy = "Give up to 250 levels, or write what is deeper as a text, json.dumps(…)"
        raise InvalidInput("value", value, "is nested too deeply to be kept", remedy) from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "value", value, f"cannot be kept ({error})", "Give texts, numbers, lists and dicts"
        ) from error


def _check_minutes(minutes: float | None) -> float | None:
    if minutes is None:
        return None
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not is_number or not math.isfinite(minutes) or minutes <= 0:
        raise InvalidInput("ttl", minutes, "must be a lifetime", "Give minutes above 0, or None")
    return float(minutes)


# Reading and writing items

_ALL = 2**31 - 1
_ATTEMPTS = 10
_WORTH_WRITING = 0.01
"""A lifetime that is newer by less than this share of itself is left as it is."""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that a search gives, with its probability where a query asked for one."""

    record: MemoryRecord
    score: float | None = None


class Items:
    """Reads and writes the items of a memory's scope, and keeps no earlier versions of them."""

    def __init__(self, memory: Memory, *, preset: str | None) -> None:
        self._memory = memory
        self._space = ItemSpace(memory.scope)
        self._preset = preset

    def get(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return those of these items that there are."""
        lists = [self._memory.list(filter=where, limit=_ALL) for where in filter_ids(ids)]
        return {record.id: record for records in lists for record in records}

    def search(self, op: SearchOp) -> list[FoundItem]:
        """Return a page of items: the likeliest first with a query, without one the newest.

        Items that a query cannot find stand behind all others.

        Raises:
            InvalidInput: The page or the filter cannot be used.
        """
        _check_page(op.limit, op.offset)
        if not op.limit:
            return []
        where, end = self._space.filter_beneath(op.namespace_prefix), op.offset + op.limit
        query = (op.query or "").strip()
        if query:
            return self._rank(query, op, where)[op.offset : end]
        if op.filter:
            return [FoundItem(record) for record in self._list_matching(op, where)[op.offset : end]]
        page = self._memory.list(filter=where, limit=op.limit, offset=op.offset)
        return [FoundItem(record) for record in page]

    def namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """Return a page of the namespaces that hold items, in order and each once.

        Raises:
            InvalidInput: The page or a condition cannot be used.
        """
        _check_page(op.limit, op.offset)
        conditions = op.match_conditions or ()
        records = self._memory.list(filter=self._space.filter_matching(conditions), limit=_ALL)
        held = {decode_id(record.id)[0] for record in records}
        fitting = (each for each in held if all(fits(wanted, each) for wanted in conditions))
        return sorted({each[: op.max_depth] for each in fitting})[op.offset : op.offset + op.limit]

    def _list_matching(self, op: SearchOp, where: Filter) -> list[MemoryRecord]:
        check_value_filter(op.filter or {})
        records = self._memory.list(filter=where, limit=_ALL)
        return [each for each in records if passes_filter(op.filter or {}, read_value(each))]

    def _rank(self, query: str, op: SearchOp, where: Filter) -> list[FoundItem]:
        end = op.offset + op.limit
        if op.filter:
            matching = self._list_matching(op, where)
            ranked = self._rank_among(query, matching, where)
        else:
            ranked = self._search_hits(query, where, k=end)
            if len(ranked) >= end:
                return ranked
            matching = self._memory.list(filter=where, limit=end)
        scored = {found.record.id for found in ranked}
        return ranked + [FoundItem(record) for record in matching if record.id not in scored]

    def _rank_among(
        self, query: str, matching: Sequence[MemoryRecord], where: Filter
    ) -> list[FoundItem]:
        ids = [record.id for record in matching if record.metadata[_SEARCHABLE] is True]
        if not ids:
            return []
        if len(ids) <= MOST_IDS:
            return self._search_hits(query, *filter_ids(ids), k=len(ids))
        # Too many to name: they are most of what the namespace holds, or will rarely be ranked.
        wanted = set(ids)
        hits = self._search_hits(query, where, k=MOST_HITS)
        return [found for found in hits if found.record.id in wanted]

    def _search_hits(self, query: str, where: Filter, *, k: int) -> list[FoundItem]:
        result = self._memory.search(
            query,
            k=min(k, MOST_HITS),
            filter=And((where, SEARCHABLE)),
            preset=self._preset,
        )
        return [FoundItem(hit.memory, hit.score) for hit in result]

    def put(self, items: Sequence[NewItem]) -> None:
        """Write items, in the place of those that are there.

        Raises:
            InvalidInput: An item cannot be stored.
            StoreError: Others wrote the same items all the time.
        """
        left = items
        for _ in range(_ATTEMPTS):
            if not left:
                return
            left = self._write_uncontested(left)
        raise StoreError(
            f"{len(left)} items, {left[0].id} among them, were not put: others write them too, or "
            f"memories that are no items have their ids. Put them again, or rename them."
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Delete those of these items that there are."""
        for where in filter_ids(ids):
            self._memory.forget(filter=where)

    def refresh(self, records: Iterable[MemoryRecord]) -> None:
        """Let items live on that were read; one that is gone meanwhile stays gone."""
        for record in records:
            if _is_worth_prolonging(record):
                with suppress(MemoryNotFound):
                    self._prolong(record)

    def sweep(self) -> int:
        """Delete what has expired; returns how many items."""
        expired = Comparison(Field("expires_at"), "le", now_utc())
        return self._memory.forget(filter=And((self._space.items, expired)))

    def _write_uncontested(self, items: Sequence[NewItem]) -> list[NewItem]:
        """Write what nobody else is writing; return the others."""
        there = self.get([item.id for item in items])
        left = self._add([item for item in items if item.id not in there])
        old = [item for item in items if item.id in there]
        return left + [item for item in old if not self._replace(item, there[item.id])]

    def _add(self, items: Sequence[NewItem]) -> list[NewItem]:
        """Write items that were not there; return those that somebody else wrote meanwhile."""
        if not items:
            return []
        report = self._memory.add_many(item.record() for item in items)
        if report.failed:
            first = report.failed[0]
            raise InvalidInput(first.field, first.id, first.message, "The others were put")
        if not report.skipped:
            return []
        there = self.get([item.id for item in items])
        return [each for each in items if each.id not in there or there[each.id].at != each.at]

    def _replace(self, item: NewItem, before: MemoryRecord) -> bool:
        """Write an item over the one that is there; False if that is gone."""
        try:
            after = self._memory.update(
                item.id,
                text=item.text or _NO_TEXT,
                at=item.at,
                # Given in any case: what stands there may have a lifetime.
                expires_at=compute_expiry(item.minutes),
                metadata=item.metadata(created_at=read_creation(before)),
            )
        except MemoryNotFound:
            return False
        self._drop_version_before(after)
        return True

    def _prolong(self, record: MemoryRecord) -> None:
        while True:
            minutes = read_minutes(record)
            after = self._memory.update(record.id, expires_at=compute_expiry(minutes))
            self._drop_version_before(after)
            if read_minutes(after) == minutes:
                return
            # It was put in between, and has another lifetime now.
            record = after

    def _drop_version_before(self, record: MemoryRecord) -> None:
        if record.supersedes is not None:
            with suppress(MemoryNotFound):
                self._memory.forget(record.supersedes)


def _check_page(limit: int, offset: int) -> None:
    for name, value in (("limit", limit), ("offset", offset)):
        if value < 0:
            raise InvalidInput(name, value, "must be 0 or more", "Count from 0")


def _is_worth_prolonging(record: MemoryRecord) -> bool:
    minutes = read_minutes(record)
    if minutes is None or record.expires_at is None:
        return False
    gain = (compute_expiry(minutes) - record.expires_at) / timedelta(minutes=1)
    return gain >= minutes * _WORTH_WRITING


_log = logging.getLogger("ekphory")


class Sweeper:
    """Calls `sweep` every so many minutes until it is stopped or the store is closed."""

    def __init__(self, sweep: Callable[[], int], *, minutes: float) -> None:
        self._sweep = sweep
        self._seconds = minutes * 60
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ekphory-sweeper", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread; False where it is still at work after that many seconds."""
        self._stopped.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._sweep()
            except StoreClosed:
                return
            except StoreError as error:
                # What has expired is hidden already, so nobody but the disk waits for this.
                _log.warning("expired items are deleted later: %s", error)


class EkphoryStore(BaseStore):
    """A store for LangGraph whose items are durable, and found by what they mean.

        with Memory("./memories", user="mara") as memory:
            graph = builder.compile(store=EkphoryStore(memory))

    Items belong to exactly the scope of `memory`: neither a wider nor a narrower one shares them.
    They are memories of the pool `langgraph`, which the memory's own searches find too. Items that
    have expired are hidden at once.

    Args:
        memory: Where items are kept. It stays the caller's to close.
        fields: What is searched of a value where `put` does not say it: paths such as `title` or
            `messages[*].content`; `$` is the whole value.
        ttl: How long items live: `default_ttl` in minutes, `refresh_on_read`, and
            `sweep_interval_minutes` for `start_ttl_sweeper`.
        preset: The pipeline that answers queries; None for the default.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        fields: Sequence[str] = (WHOLE,),
        ttl: TTLConfig | None = None,
        preset: str | None = None,
    ) -> None:
        if isinstance(fields, str):
            raise InvalidInput("fields", fields, "must be a list", "Give ['title', 'text']")
        self.ttl_config = ttl
        self._fields = tuple(fields)
        self._space = ItemSpace(memory.scope)
        self._items = Items(memory, preset=preset)
        self._sweeper: Sweeper | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer operations, in order.

        As in LangGraph's own stores, all of them read what was there before, and of several that
        put one item the last counts. Nothing is done when something cannot be stored.

        Raises:
            InvalidInput: An operation cannot be understood, or a value not be stored.
        """
        asked = list(ops)
        puts = {self._encode_id(op): op for op in asked if isinstance(op, PutOp)}
        now = now_utc()
        new = [
            check_item(op, name=name, fields=self._fields, now=now)
            for name, op in puts.items()
            if op.value is not None
        ]
        gets = [self._encode_id(op) for op in asked if isinstance(op, GetOp)]
        there = self._items.get(gets)
        read: dict[str, MemoryRecord] = {}
        results = [self._answer(op, there, read) for op in asked]
        self._items.refresh(read.values())
        self._items.delete([name for name, op in puts.items() if op.value is None])
        self._items.put(new)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete the items that have expired from the store; returns how many."""
        return self._items.sweep()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep every so many minutes, in the background, until `stop_ttl_sweeper`.

        Args:
            sweep_interval_minutes: None for the one that the store was made with.

        Raises:
            InvalidInput: There is no interval, or none above 0.
        """
        minutes = sweep_interval_minutes
        if minutes is None:
            minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes is None or minutes <= 0:
            raise InvalidInput(
                "sweep_interval_minutes", minutes, "must be an interval", "Give minutes above 0"
            )
        self.stop_ttl_sweeper()
        self._sweeper = Sweeper(self.sweep_ttl, minutes=minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeping; False where one is still under way after that many seconds."""
        return self._sweeper is None or self._sweeper.stop(timeout)

    def _encode_id(self, op: GetOp | PutOp) -> str:
        return self._space.encode_id(op.namespace, op.key)

    def _answer(
        self, op: Op, there: Mapping[str, MemoryRecord], read: dict[str, MemoryRecord]
    ) -> Result:
        """Return an operation's result, and note in `read` what shall live on for it."""
        match op:
            case GetOp():
                record = there.get(self._encode_id(op))
                if record is None:
                    return None
                read |= {record.id: record} if op.refresh_ttl else {}
                return Item(**read_item(record))
            case SearchOp():
                found = self._items.search(op)
                read |= {each.record.id: each.record for each in found if op.refresh_ttl}
                return [SearchItem(**read_item(each.record), score=each.score) for each in found]
            case ListNamespacesOp():
                return self._items.namespaces(op)
            case PutOp():
                return None
            case _:
                raise InvalidInput(
                    "ops", op, "must be an operation", "Give GetOp, PutOp, SearchOp …"
                )
