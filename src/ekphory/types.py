"""The values that travel between the modules, timestamps among them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

from ekphory.errors import InvalidInput, shorten

MemoryType = Literal["episodic", "semantic", "procedural", "unknown"]
TimeUse = Literal["boost", "filter", "ignore"]
"""What a time in the query's words does: lifts what lies in it, hides the rest, or nothing."""
ResultOrder = Literal["score", "ranks", "time", "diversity", "pins", "newest", "chain", "stages"]
"""What a list of hits is ordered by; only by `score` do they never rise."""
Predictable = Literal["type", "importance"]
"""What the embedder may fill in where the caller leaves it out."""
Scalar = str | int | float | bool
"""What a metadata value may be."""
Progress = Callable[[int, int], None]
"""Is called with how much is done, and of how much."""

MEMORY_TYPES: tuple[MemoryType, ...] = ("episodic", "semantic", "procedural", "unknown")


def ignore_progress(done: int, total: int) -> None:
    """Do nothing with a progress that nobody asked for."""
    del done, total


def to_plain_data(value: object) -> object:
    """Turn dataclasses, moments, paths and sets of names into what JSON has.

    NaN and infinity become null; a set becomes a sorted list.
    """
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: to_plain_data(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain_data(entry) for key, entry in value.items()}
    if isinstance(value, Iterable):
        parts = sorted(value) if isinstance(value, frozenset) else value
        return [to_plain_data(entry) for entry in parts]
    if isinstance(value, datetime | Path):
        return value.isoformat() if isinstance(value, datetime) else str(value)
    return value


def from_plain_data(hint: Any, value: Any) -> Any:  # noqa: ANN401  any type, and what JSON has
    """Return the value of a type that `to_plain_data` made this of.

    Raises:
        AttributeError, LookupError, TypeError, ValueError: It was made of another type.
    """
    return _reader_of(hint)(value)


@lru_cache
def _reader_of(hint: Any) -> Callable[[Any], Any]:  # noqa: ANN401  any type
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _reader_of_union([part for part in parts if _reader_of(part) is not _keep])
    if origin in (tuple, list, frozenset):
        read = _reader_of(parts[0])
        return lambda value: origin(map(read, value))
    if origin is Mapping:
        read = _reader_of(parts[1])
        return lambda value: {name: read(entry) for name, entry in value.items()}
    if is_dataclass(hint):
        make: Any = hint
        own = {name: _reader_of(part) for name, part in get_type_hints(hint).items()}
        return lambda value: make(**{name: own[name](entry) for name, entry in value.items()})
    return datetime.fromisoformat if hint is datetime else _keep


def _reader_of_union(parts: Sequence[Any]) -> Callable[[Any], Any]:
    """Return what reads None and one of these types; of several, that with the same fields."""
    if len(parts) > 1:
        readers = {frozenset(each.name for each in fields(part)): part for part in parts}
        return lambda value: from_plain_data(readers[frozenset(value)], value)
    read = _reader_of(parts[0]) if parts else _keep
    return lambda value: None if value is None else read(value)


def _keep(value: Any) -> Any:  # noqa: ANN401  what JSON has
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One memory as the store keeps it.

    Attributes:
        id: The caller's id, verbatim, or a sortable one of ours; unique within a scope.
        text: What was said, and what is shown.
        at: When it happened; timezone-aware UTC, microseconds.
        created_at: When it was written; timezone-aware UTC.
        expires_at: From this moment on the memory is hidden; None keeps it.
        org, project, agent, user, session: The scope; None where the writer bound and gave none.
        pool: Named compartment of the scope, with a weight of its own.
        type: Kind of memory; given, or predicted by the embedder.
        importance: In [0, 1]; given, or predicted by the embedder.
        predicted: Which of the two were predicted; the others were given, or have their default.
        producer, produced_for, role: Who said it, to whom, in which chat role.
        sequence: Position within the session.
        parent_id, path, heading, lines, source: Where the text came from.
        supersedes: Id of the earlier version that this one replaced.
        superseded_by: Id of the later version; set on history only.
        metadata: The caller's own scalars; filterable, never part of the identity.
    """

    id: str
    text: str
    at: datetime
    created_at: datetime
    expires_at: datetime | None = None
    org: str | None = None
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    pool: str = "agent_memory"
    type: MemoryType = "unknown"
    importance: float = 0.5
    predicted: frozenset[Predictable] = frozenset()
    producer: str = ""
    produced_for: str = ""
    role: str = ""
    sequence: int | None = None
    parent_id: str | None = None
    path: str | None = None
    heading: str | None = None
    lines: str | None = None
    source: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def index_prefix(self) -> str:
        """What stands before the text where it is searched: `heading: producer: `."""
        return "".join(f"{name}: " for name in (self.heading, self.producer) if name)

    @property
    def indexed_text(self) -> str:
        """What is embedded, indexed and reranked: `heading: producer: text`."""
        return self.index_prefix + self.text


RULES = "shared_rules"
PINNED = "pinned"
"""Key of the metadata that is true for a pinned rule."""


def is_pinned(record: MemoryRecord) -> bool:
    """Return whether a memory is a rule that every search finds."""
    return record.pool == RULES and record.metadata.get(PINNED) is True


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory found by a search.

    Attributes:
        id: The memory's id.
        text: The memory's text.
        score: Calibrated probability in [0, 1] that this memory answers the query.
        scores: Raw scores by the name of what gave them (for example `cosine`, `bm25`, `fused`).
        memory: The whole record.
        superseded_by: Id of the memory that replaces, corrects or ends what this one says; None
            where it stands.
        since: When that took effect; None where it stands.
    """

    id: str
    text: str
    score: float
    scores: Mapping[str, float]
    memory: MemoryRecord
    superseded_by: str | None = None
    since: datetime | None = None

    def __repr__(self) -> str:
        """Show score, text and id on a line."""
        return f"<Hit {self.score:.2f} {shorten(self.text)}, id={shorten(self.id)}>"


@dataclass(frozen=True, slots=True)
class Failure:
    """One record that was not written.

    Attributes:
        index: Zero-based position in the input.
        id: The record's id where it has a usable one.
        field: The field at fault.
        message: What is wrong, with the value and the remedy.
    """

    index: int
    id: str | None
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What became of a batch: every record is in exactly one of the three.

    Attributes:
        added: Number of memories written and durable.
        skipped: Number of records that were already there, or held nothing but recalled memories.
        failed: The records that were refused, each with its reason.
        ids: Ids of the memories that one commit wrote (`add_messages`, `add_exported`), in input
            order; `add_many` reads records as they come, and lists none.
        sampled: Ids of those of more than 60,000 characters. Their whole text is stored and
            searched by words, and of their windows 64 are searched by meaning.
    """

    added: int
    skipped: int
    failed: list[Failure]
    ids: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()


# Revisions: what a later memory means for an earlier one.

RevisionKind = Literal["replaces", "corrects", "ends", "restates", "excepts", "plans"]
"""What the newer memory does: gives another value; says that the older one was never true; says
that it is over; says the same again; tells of an exception for a while; tells of an intention."""
RevisionState = Literal["active", "conflict", "undone"]
"""It acts; it waits for somebody to look; it was taken back, or set aside."""
SupersededUse = Literal["recede", "hide", "ignore"]
"""What a search does with what is superseded: puts it below, leaves it out, or nothing."""

SUPERSEDING: tuple[RevisionKind, ...] = ("replaces", "corrects", "ends")
"""After these the older memory does not hold any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One decision on two memories, as the ledger has it.

    Attributes:
        id: Of the decision; the same two memories always have the same.
        batch: What was decided together, and can be undone together.
        older, newer: Ids of the two memories.
        kind: What the newer one does to the older one.
        probability: That this is so, in [0, 1]; 1 where a caller decided.
        decided_by: `caller`, the name of a model, or `chat:` and the name of a language model.
        decided_at: When; timezone-aware UTC.
        state: Whether it acts.
    """

    id: str
    batch: str
    older: str
    newer: str
    kind: RevisionKind
    probability: float
    decided_by: str
    decided_at: datetime
    state: RevisionState


# Traces of searches; the text of memories is never in them.

StageStatus = Literal["ran", "skipped", "degraded"]


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage of one search.

    Attributes:
        number: Place in the canonical order of fifteen stages; 0 for what lies outside it.
        name: The stage's name.
        status: `degraded` when the stage used something lesser than it should have.
        reason: Why it was skipped or degraded.
        candidates_in, candidates_out: Number of candidates before and after.
        milliseconds: Time that the stage took.
        detail: What the stage has to say about itself: settings and counts.
    """

    number: int
    name: str
    status: StageStatus
    reason: str | None
    candidates_in: int
    candidates_out: int
    milliseconds: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """The stages of one search, in the order in which they ran."""

    preset: str
    stages: tuple[StageTrace, ...] = ()

    @property
    def milliseconds(self) -> float:
        """Time that all stages took together."""
        return sum(stage.milliseconds for stage in self.stages)

    @property
    def degraded(self) -> bool:
        """Whether any stage used something lesser than it should have."""
        return any(stage.status == "degraded" for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as plain data, for JSON."""
        # What `dataclasses.asdict` does, in a tenth of its time.
        names = [entry.name for entry in fields(StageTrace)]
        stages = [{name: getattr(stage, name) for name in names} for stage in self.stages]
        for stage in stages:
            stage["detail"] = dict(stage["detail"])
        return {"preset": self.preset, "stages": stages, "milliseconds": self.milliseconds}


# Pools.

AGENT_POOLS = ("agent_memory", "agent_tools", "agent_mistakes")
"""Seen by their own agent only."""

REFERENCE_POOLS = ("reference_library", "reference_code")
"""Hold documents, whose passages stand in a sequence as turns do."""

SHARED_POOLS = ("shared_mistakes", "shared_knowledge", "shared_rules", *REFERENCE_POOLS)
"""Seen by the whole project, whichever agent, user or session wrote them."""

STANDARD_POOLS = AGENT_POOLS + SHARED_POOLS
DEFAULT_POOL = "agent_memory"


_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")


def is_storable(text: str) -> bool:
    """Return whether `text` is free of NUL and of lone surrogates, which UTF-8 cannot carry."""
    return _UNSTORABLE.search(text) is None


def check_count(name: str, value: object, *, least: int = 1, most: int | None = None) -> None:
    """Raise unless this is a number of things.

    Raises:
        InvalidInput: It is not a whole number from `least` on, or more than `most`.
    """
    remedy = f"Give at least {least}" if most is None else f"Give {least} to {most:,}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(name, value, "must be a whole number", remedy)
    if value < least or (most is not None and value > most):
        raise InvalidInput(name, value, "is out of range", remedy)


def check_records(records: object) -> None:
    """Raise unless these are records, one after another.

    Raises:
        InvalidInput: It is one alone, or none at all.
    """
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        remedy = "Give [{'text': '…'}]"
        raise InvalidInput("records", records, "must be a list of records", remedy)


def are_strings(given: object) -> bool:
    """Return whether something is a list, or another sequence, of strings, and none itself."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        return False
    return all(isinstance(entry, str) for entry in given)


# Metadata as one JSON text per memory, in which every key carries the kind of its value.
#
# `{"city": "Rome", "age": 3}` is stored as `{"s:city": "Rome", "n:age": 3}`: Lance's JSON functions
# turn one kind into another ("2" > 1 would hold), so a filter asks for the key of the kind that it
# compares with.

MAX_WHOLE_NUMBER = 2**53
"""Up to here every whole number is exact as a 64-bit float, so 3 and 3.0 compare as equals."""

TEXT_PREFIX = "s:"
NUMBER_PREFIX = "n:"
BOOLEAN_PREFIX = "b:"


def encode_metadata(metadata: Mapping[str, Scalar]) -> str:
    """Return the JSON text under which a memory's metadata is stored.

    Raises:
        InvalidInput: Naming `metadata.<key>`: an empty or unstorable key, a value that is not
            a text, number or boolean, a number that is not finite, or a whole number beyond
            2**53, which would not compare exactly.
    """
    stored = dict(_encode_entry(key, value) for key, value in metadata.items())
    return json.dumps(stored, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode_metadata(text: str | bytes | None) -> dict[str, Scalar]:
    """Return the metadata of a text that `encode_metadata` gave; None stands for none."""
    stored: dict[str, Scalar] = json.loads(text) if text else {}
    return {key[len(TEXT_PREFIX) :]: value for key, value in stored.items()}


def _encode_entry(key: str, value: Scalar) -> tuple[str, Scalar]:
    if not isinstance(key, str) or not key or not is_storable(key):
        problem = "not a usable metadata key"
        remedy = "Use a non-empty text without NUL and lone surrogates."
        raise InvalidInput("metadata", key, problem, remedy)
    match value:
        case bool():
            return BOOLEAN_PREFIX + key, value
        case int() | float():
            return NUMBER_PREFIX + key, _check_number(key, value)
        case str() if is_storable(value):
            return TEXT_PREFIX + key, value
        case str():
            raise _error(key, value, "holds NUL or a lone surrogate", "Remove that character.")
        case _:
            remedy = "Give a text, a number or a boolean; leave the key out where there is none."
            raise _error(key, value, "not a scalar", remedy)


def _check_number(key: str, number: int | float) -> int | float:
    if isinstance(number, float):
        if not math.isfinite(number):
            raise _error(key, number, "not a finite number", "Leave the key out.")
        return number + 0.0  # -0.0 becomes 0.0, so that no store can tell them apart
    if abs(number) > MAX_WHOLE_NUMBER:
        shown = number if number.bit_length() < 256 else "a whole number of more than 256 bits"
        raise _error(key, shown, "whole number beyond 2**53", "Give it as a text.")
    return number


def _error(key: str, value: object, problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"metadata.{key[:40]}", value, problem, remedy)


# Timestamps.

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "Give an ISO 8601 text such as '2026-11-20T10:00:00Z' or a datetime, in the years 1-9998"


def to_utc(value: str | datetime, *, field: str) -> datetime:
    """Read a moment; naive input counts as UTC.

    Args:
        value: ISO 8601 text, or a datetime.
        field: The name the caller knows the value by, for the error.

    Raises:
        InvalidInput: The value is not a timestamp in the years 1 to 9998.
    """
    moment = value if isinstance(value, datetime) else _parse(value, field)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(field, value, "outside the calendar", _REMEDY) from error
    if moment.year > 9998:
        raise InvalidInput(field, value, "year 9999 is a placeholder, not a moment", _REMEDY)
    return moment


def _parse(value: object, field: str) -> datetime:
    if not isinstance(value, str):
        problem = f"must be a timestamp, not {type(value).__name__}"
        raise InvalidInput(field, value, problem, _REMEDY)
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise InvalidInput(field, value, f"cannot be read ({error})", _REMEDY) from error


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970-01-01 UTC, exact."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def now_utc() -> datetime:
    """Return the current moment."""
    return datetime.now(UTC)


def find_zone(timezone: str | tzinfo) -> tzinfo:
    """Return the timezone of a name; a `tzinfo` stays as it is.

    Raises:
        InvalidInput: There is no such timezone.
    """
    if isinstance(timezone, tzinfo):
        return timezone
    if not isinstance(timezone, str):
        raise _unknown_zone(timezone)
    try:
        # ZoneInfo keeps what it has read.
        return UTC if timezone == "UTC" else ZoneInfo(timezone)
    except (ValueError, OSError, KeyError) as error:
        # KeyError is the one that says "no such zone"; a path or an odd byte gives the others.
        raise _unknown_zone(timezone) from error


def _unknown_zone(timezone: object) -> InvalidInput:
    return InvalidInput(
        "timezone", timezone, "there is no such timezone", "Give a name such as 'Europe/Berlin'"
    )


# strftime would take the names from the process's locale.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def format_date(moment: datetime) -> str:
    """Return the day in the moment's own timezone: `8 May 2023`."""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"
