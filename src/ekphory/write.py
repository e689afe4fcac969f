"""Writing memories: check, skip what is there, embed, append durably, report."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, Self

import numpy as np

from ekphory.engine import Engine
from ekphory.errors import InvalidInput, ScopeError
from ekphory.models.embedder import FloatMatrix
from ekphory.models.late_bound import PredictedTraits, read_passages, traits_by_memory
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.retrieval.lexical import passage_terms
from ekphory.scope import LONGEST_NAME, SCOPE_FIELDS, Scope, owner_of
from ekphory.store.protocol import Presence, StoredMemory, first_key
from ekphory.types import (
    DEFAULT_POOL,
    MEMORY_TYPES,
    Failure,
    MemoryRecord,
    Predictable,
    Scalar,
    WriteReport,
    encode_metadata,
    is_storable,
    now_utc,
    to_microseconds,
    to_utc,
)

# What a caller writes: checked field by field, and turned into a memory of the handle's scope.

LONGEST_TEXT = 1_000_000
_BEFORE_1970 = 1 << 46
"""Added to milliseconds since 1970, so that earlier moments sort first too."""
_POOL_NAME = re.compile(r"[\w][\w.:-]{0,99}")
_OPTIONAL_TEXTS = ("parent_id", "path", "heading", "lines", "source")
_TEXTS = ("producer", "produced_for", "role")
_PREDICTABLE: frozenset[Predictable] = frozenset({"type", "importance"})
_WRITABLE = (
    "id text at expires_at org project agent user session pool type importance predicted "
    "producer produced_for role sequence parent_id path heading lines source metadata"
).split()


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked record that has not been written yet.

    Attributes:
        record: The memory as it will be stored.
        thread: Number of its session within its scope; 0 for none.
        fingerprint: Digest of all that identifies a record without an id; None where the caller
            gave an id, which then alone decides.
        left_out: Which of `type` and `importance` the caller did not give, so that a model may.
    """

    record: MemoryRecord
    thread: int
    fingerprint: str | None
    left_out: frozenset[Predictable] = frozenset()

    @property
    def is_only_recalled(self) -> bool:
        """Whether the text held nothing but recalled memories, so that nothing is to be stored."""
        return not self.record.text.strip()


def make_draft(
    given: Mapping[str, Any], *, scope: Scope, now: datetime, occurrence: int = 0
) -> Draft:
    """Check one record, and take recalled memories out of its text.

    Args:
        given: Field names of `MemoryRecord` and their values; only `text` is required. `predicted`
            marks those of the given values that a model predicted, as a listing does.
        scope: The handle's scope; its bound fields are filled in.
        now: The moment of writing; also when it happened, where `at` is not given.
        occurrence: Tells apart repeated records without an id that are meant to be repeated.

    Raises:
        InvalidInput: A field is unknown or has a value that cannot be stored.
        ScopeError: The record tries to leave the scope.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("record", given, "a record is a dict", 'Give {"text": "…"}')
    values = {name: value for name, value in given.items() if value is not None}
    _refuse_unknown(values)
    text = strip_recall_blocks(_text(values.get("text")))
    owner = {name: scope.fill(name, _name(values, name)) for name in SCOPE_FIELDS}
    at = to_utc(values["at"], field="at") if "at" in values else None
    sequence = _sequence(values.get("sequence"))
    fields: dict[str, Any] = {
        **owner,
        **{name: _optional(values, name, "") for name in _TEXTS},
        **{name: _optional(values, name, None) for name in _OPTIONAL_TEXTS},
        "text": text,
        "pool": _pool(values.get("pool", DEFAULT_POOL)),
        "type": _type(values.get("type", "unknown")),
        "importance": _importance(values.get("importance", 0.5)),
        "predicted": _predicted(values.get("predicted", ())).intersection(values),
        "sequence": sequence,
        "metadata": _metadata(values.get("metadata", {})),
        "expires_at": _expiry(values, now),
    }
    identity = (*owner.values(), fields["producer"], text, _moment_key(at), sequence, occurrence)
    fingerprint = None if "id" in values else _fingerprint(identity)
    memory_id = _own_id(at or now, fingerprint) if fingerprint else _id(values["id"])
    record = MemoryRecord(id=memory_id, at=at or now, created_at=now, **fields)
    return Draft(record, thread_of(record), fingerprint, _PREDICTABLE - values.keys())


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    for name in values:
        if name not in _WRITABLE:
            near = difflib.get_close_matches(str(name), _WRITABLE, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(
                str(name), values[name], "no such field", f"{hint}Your own fields go into metadata"
            )


def _storable(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(name, value, f"must be a string, not {type(value).__name__}", "Give one")
    if not is_storable(value):
        raise InvalidInput(
            name,
            value,
            "holds NUL or half of a surrogate pair, which UTF-8 cannot carry",
            "Remove them, for example with text.encode('utf-8', 'ignore').decode()",
        )
    return value


def _text(value: object) -> str:
    text = _storable("text", "" if value is None else value)
    if not text.strip():
        raise InvalidInput("text", text, "is empty", "Give the text to remember")
    if len(text) > LONGEST_TEXT:
        raise InvalidInput(
            "text",
            text,
            f"has {len(text):,} characters, more than {LONGEST_TEXT:,}",
            "Split it, or import it as a document with `ekphory import`",
        )
    return text


def _id(value: object) -> str:
    memory_id = _storable("id", value)
    if not memory_id or len(memory_id) > LONGEST_NAME:
        raise InvalidInput(
            "id", memory_id, f"has {len(memory_id)} characters", f"Give 1 to {LONGEST_NAME:,}"
        )
    return memory_id


def _name(values: Mapping[str, Any], name: str) -> str | None:
    if name not in values:
        return None
    value = _storable(name, values[name])
    if not value.strip() or len(value) > LONGEST_NAME:
        raise InvalidInput(name, value, "a scope field is non-empty text", "Leave it out to unbind")
    return value


def _optional(values: Mapping[str, Any], name: str, missing: str | None) -> str | None:
    return _storable(name, values[name]) if name in values else missing


def _sequence(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**62:
        raise InvalidInput(
            "sequence", value, "must be an integer of at least 0", "Give a whole number"
        )
    return value


def _pool(value: object) -> str:
    name = _storable("pool", value)
    if not _POOL_NAME.fullmatch(name):
        raise InvalidInput(
            "pool",
            name,
            "must be the name of a pool",
            "Use letters, digits and _ . : -, at most 100",
        )
    return name


def _type(value: object) -> str:
    if value not in MEMORY_TYPES:
        raise InvalidInput("type", value, "no such type", f"Use one of {', '.join(MEMORY_TYPES)}")
    return str(value)


def _importance(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("importance", value, "lies outside [0, 1]", "Give a number from 0 to 1")
    return float(value)


def _predicted(value: object) -> frozenset[Predictable]:
    if not isinstance(value, list | tuple | set | frozenset) or not all(
        name in ("type", "importance") for name in value
    ):
        raise InvalidInput(
            "predicted",
            value,
            "must be a list of predictable fields",
            'Use "type" and "importance"',
        )
    return frozenset(value)


def _metadata(value: object) -> Mapping[str, Scalar]:
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", value, "must be a mapping", "Give names with scalar values")
    for key, entry in value.items():
        place = f"metadata.{key}"
        if not isinstance(key, str) or not key:
            raise InvalidInput("metadata", key, "a key is non-empty text", "Rename the key")
        if key in SCOPE_FIELDS:
            raise ScopeError(
                place, entry, "metadata cannot set the scope", f"Give {key} as a field of its own"
            )
        _storable("metadata", key)
        if isinstance(entry, str):
            _storable(place, entry)
        elif not isinstance(entry, int | float | bool):
            raise InvalidInput(
                place,
                entry,
                "must be a string, a number or a boolean",
                "Use text, a number, true or false",
            )
    # Refuses what cannot be stored exactly, such as whole numbers beyond 2**53.
    encode_metadata(value)
    return dict(value)


def _expiry(values: Mapping[str, Any], now: datetime) -> datetime | None:
    if "expires_at" not in values:
        return None
    moment = to_utc(values["expires_at"], field="expires_at")
    if moment <= now:
        raise InvalidInput(
            "expires_at", moment.isoformat(), "lies in the past", "Give a moment still to come"
        )
    return moment


def _moment_key(at: datetime | None) -> int | None:
    return None if at is None else to_microseconds(at)


def _fingerprint(identity: tuple[object, ...]) -> str:
    return hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).hexdigest()


def _own_id(at: datetime, fingerprint: str) -> str:
    """Return an id that sorts by the moment it is about."""
    milliseconds = to_microseconds(at) // 1000 + _BEFORE_1970
    return f"{milliseconds:013x}-{fingerprint[:16]}"


def thread_of(record: MemoryRecord) -> int:
    """Return the session's number: neighbours are looked for among memories that share it."""
    if record.session is None and record.sequence is None:
        return 0
    owner = [getattr(record, name) for name in SCOPE_FIELDS]
    digest = hashlib.blake2b(json.dumps(owner).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


# Chat messages as drafts: who said what, in which order.


def make_message_drafts(
    messages: Sequence[Mapping[str, Any]],
    *,
    scope: Scope,
    session: str | None,
    pool: str | None,
) -> list[Draft]:
    """Check messages and give them their place in the session.

    Raises:
        InvalidInput: A message is not a mapping, lacks `content`, or cannot be stored.
    """
    if isinstance(messages, Mapping | str) or not isinstance(messages, Sequence):
        raise InvalidInput(
            "messages", messages, "must be a list", 'Give [{"role": "user", "content": "…"}]'
        )
    drafts: list[Draft] = []
    seen: Counter[str] = Counter()
    now = now_utc()
    for place, message in enumerate(messages):
        given = {"session": session, "pool": pool, **_fields(message, place)}
        first = make_draft(given, scope=scope, now=now)
        name = first.fingerprint or first.record.id
        # A message said twice in one call is meant twice, unless it carries an id.
        repeated = make_draft(given, scope=scope, now=now, occurrence=seen[name])
        seen[name] += 1
        drafts.append(_in_order(repeated, to_microseconds(now) + place))
    return drafts


def _in_order(entry: Draft, position: int) -> Draft:
    """Return a message outside any session a sequence, by which it has neighbours."""
    if entry.record.session is not None or entry.record.sequence is not None:
        return entry
    record = replace(entry.record, sequence=position)
    return replace(entry, record=record, thread=thread_of(record))


def _fields(message: Mapping[str, Any], place: int) -> dict[str, Any]:
    if not isinstance(message, Mapping) or "content" not in message:
        raise InvalidInput(
            f"messages[{place}]", message, "has no content", 'Give {"role": …, "content": …}'
        )
    fields = {name: value for name, value in message.items() if name != "content"}
    if fields.get("role") is not None:
        fields.setdefault("producer", fields["role"])
    return {**fields, "text": message["content"]}


# Writing memories: check, skip what is there, embed, append durably, report.

BATCH = 256
LONGEST_WHOLE = 60_000
"""Characters of a text up to which all of its windows are embedded."""
SAMPLED_WINDOWS = 64
"""So many windows of a longer text are embedded, evenly spread over it."""
_PIECE = 4_000

_APPENDS = "appends"
_BLANK = re.compile(r"\s+")

Progress = Callable[[WriteReport], None]
Identity = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft with its terms and vectors."""

    draft: Draft
    terms: np.ndarray[Any, np.dtype[np.uint32]]
    vectors: FloatMatrix


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one commit did.

    Attributes:
        added: How many memories were new.
        ids: Id of each memory in order, that of the one already there where it was not new.
    """

    added: int
    ids: tuple[str, ...]


@dataclass(slots=True)
class _Tally:
    """Counts while a batch job runs."""

    added: int = 0
    skipped: int = 0
    failed: list[Failure] = field(default_factory=list)
    sampled: list[str] = field(default_factory=list)

    def report(self) -> WriteReport:
        return WriteReport(self.added, self.skipped, list(self.failed), sampled=tuple(self.sampled))


class _Appending:
    """Appends one batch while the next is prepared; leaving it waits for the last."""

    def __init__(self, engine: Engine, scope: Scope, tally: _Tally) -> None:
        self._engine = engine
        self._scope = scope
        self._tally = tally
        self._pending: tuple[Future[Outcome], int] | None = None

    def next(self, prepared: list[Prepared]) -> None:
        """Wait for the batch before, and start on this one."""
        self._settle()
        self._pending = submit(self._engine, self._scope, prepared), len(prepared)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._settle()

    def _settle(self) -> None:
        if self._pending is not None:
            (future, size), self._pending = self._pending, None
            outcome = future.result()
            self._tally.added += outcome.added
            self._tally.skipped += size - outcome.added


def add_all(
    engine: Engine,
    scope: Scope,
    records: Iterable[Mapping[str, Any]],
    *,
    on_progress: Progress | None = None,
) -> WriteReport:
    """Write records in batches; while one is appended, the next is embedded.

    At most two batches are in memory at a time.
    """
    tally = _Tally()
    with _Appending(engine, scope, tally) as appending:
        for batch in _batches(_drafts(records, scope, tally)):
            fresh = _without_present(engine, scope, batch)
            tally.skipped += len(batch) - len(fresh)
            tally.sampled += [each.record.id for each in fresh if is_sampled(each.record.text)]
            appending.next(prepare(engine, fresh))
            if on_progress is not None:
                on_progress(tally.report())
    if on_progress is not None:
        on_progress(tally.report())
    return tally.report()


def add_drafts(engine: Engine, scope: Scope, drafts: list[Draft]) -> WriteReport:
    """Write drafts in one commit; the report's ids are theirs, in order.

    Those that hold only recalled memories are skipped, and have no id.
    """
    prepared = prepare(engine, [entry for entry in drafts if not entry.is_only_recalled])
    outcome = submit(engine, scope, prepared).result()
    sampled = tuple(
        name
        for entry, name in zip(prepared, outcome.ids, strict=True)
        if is_sampled(entry.draft.record.text)
    )
    return WriteReport(outcome.added, len(drafts) - outcome.added, [], outcome.ids, sampled)


def prepare(engine: Engine, drafts: list[Draft]) -> list[Prepared]:
    """Embed and split into terms."""
    windows = [_windows(engine, entry) for entry in drafts]
    counts = [len(texts) for texts in windows]
    reading = read_passages(engine.embedder, [text for texts in windows for text in texts])
    parts = np.split(reading.content, np.cumsum(counts)[:-1]) if drafts else []
    traits = traits_by_memory(reading, counts)
    return [
        Prepared(_completed(entry, trait), passage_terms(entry.record.indexed_text), part)
        for entry, part, trait in zip(drafts, parts, traits, strict=True)
    ]


def _completed(entry: Draft, traits: PredictedTraits) -> Draft:
    """Fill in and mark what the caller left out and the model's heads can tell."""
    told = frozenset(name for name in entry.left_out if getattr(traits, name) is not None)
    if not told:
        return entry
    values = {name: getattr(traits, name) for name in told}
    marked = entry.record.predicted | told
    return replace(entry, record=replace(entry.record, **values, predicted=marked))


def submit(engine: Engine, scope: Scope, prepared: list[Prepared]) -> Future[Outcome]:
    """Queue memories to be written; the result says how many of them were new.

    All of them are in one commit, which may be that of others that wait beside them too.
    """
    return engine.writer.submit_to_group(
        (scope, prepared), lambda waiting: _append(engine, waiting), group=_APPENDS
    )


def stored(prepared: Prepared, key: int) -> StoredMemory:
    """Return a prepared memory as the row with that key."""
    entry = prepared.draft
    return StoredMemory(
        key, entry.record, entry.thread, prepared.terms, prepared.vectors, entry.fingerprint
    )


def _append(engine: Engine, waiting: Sequence[tuple[Scope, list[Prepared]]]) -> list[Outcome]:
    version = engine.store.version()
    found: list[Presence] = []
    new: list[Prepared] = []
    written: dict[Identity, str] = {}
    outcomes = []
    for scope, prepared in waiting:
        here = _present(engine, scope, [entry.draft for entry in prepared])
        fresh, ids = _told_apart(prepared, find_alive_ids(here) | written)
        written |= {_identity(entry.draft): entry.draft.record.id for entry in fresh}
        found += here
        new += fresh
        outcomes.append(Outcome(len(fresh), ids))
    if new:
        make_way(engine, found, {_identity(entry.draft) for entry in new})
        first = first_key(after=version)
        engine.store.append([stored(entry, first + place) for place, entry in enumerate(new)])
    return outcomes


def _told_apart(
    prepared: list[Prepared], present: dict[Identity, str]
) -> tuple[list[Prepared], tuple[str, ...]]:
    """Return those that are not present, each once, and the id under which each of all is."""
    fresh: list[Prepared] = []
    ids: list[str] = []
    for entry in prepared:
        identity = _identity(entry.draft)
        if identity not in present:
            present[identity] = entry.draft.record.id
            fresh.append(entry)
        ids.append(present[identity])
    return fresh, tuple(ids)


def _without_present(engine: Engine, scope: Scope, drafts: list[Draft]) -> list[Draft]:
    """Return the drafts that are not stored yet, each once."""
    seen = set(find_alive_ids(_present(engine, scope, drafts)))
    fresh: list[Draft] = []
    for entry in drafts:
        if _identity(entry) not in seen:
            seen.add(_identity(entry))
            fresh.append(entry)
    return fresh


def find_alive_ids(found: list[Presence]) -> dict[Identity, str]:
    """Identities of what is stored, with the ids; what has expired does not count."""
    now = to_microseconds(now_utc())
    return {
        (*entry.owner, name): entry.id
        for entry in found
        if entry.expires_at > now
        for name in (entry.id, entry.fingerprint)
    }


def make_way(engine: Engine, found: list[Presence], wanted: set[Identity]) -> None:
    """Delete expired memories whose id or content is being written anew."""
    now = to_microseconds(now_utc())
    expired = [
        entry.key
        for entry in found
        if entry.expires_at <= now
        and wanted & {(*entry.owner, entry.id), (*entry.owner, entry.fingerprint)}
    ]
    if expired:
        engine.store.delete(expired)


def _present(engine: Engine, scope: Scope, drafts: list[Draft]) -> list[Presence]:
    ids = [entry.record.id for entry in drafts if entry.fingerprint is None]
    fingerprints = [entry.fingerprint for entry in drafts if entry.fingerprint is not None]
    return engine.store.present(scope.own_predicate(), ids, fingerprints) if drafts else []


def _identity(entry: Draft) -> Identity:
    return (*owner_of(entry.record), entry.fingerprint or entry.record.id)


def _drafts(records: Iterable[Mapping[str, Any]], scope: Scope, tally: _Tally) -> Iterator[Draft]:
    for index, given in enumerate(records):
        try:
            entry = make_draft(given, scope=scope, now=now_utc())
        except InvalidInput as error:
            name = given.get("id") if isinstance(given, Mapping) else None
            shown = name if isinstance(name, str) else None
            tally.failed.append(Failure(index, shown, error.field, str(error)))
        else:
            if entry.is_only_recalled:
                tally.skipped += 1
            else:
                yield entry


def _batches(drafts: Iterator[Draft]) -> Iterator[list[Draft]]:
    while batch := list(islice(drafts, BATCH)):
        yield batch


def _windows(engine: Engine, entry: Draft) -> list[str]:
    text, prefix = entry.record.text, entry.record.index_prefix
    if not is_sampled(text):
        return engine.embedder.windows(text, prefix=prefix)
    pieces = [engine.embedder.windows(piece, prefix=prefix) for piece in _pieces(text)]
    return [*(windows[0] for windows in pieces[:-1]), pieces[-1][-1]]


def is_sampled(text: str) -> bool:
    """Whether a text is so long that only some of its windows are embedded.

    Words are found wherever they stand in it; what is meant, where a window was embedded.
    """
    return len(text) > LONGEST_WHOLE


def _pieces(text: str) -> Iterator[str]:
    """Yield pieces from which windows are taken: the text's beginning, its end, and between."""
    last = len(text) - _PIECE
    for place in range(SAMPLED_WINDOWS):
        start = place * last // (SAMPLED_WINDOWS - 1)
        blank = _BLANK.search(text, start, start + _PIECE // 2) if start else None
        yield text[blank.end() if blank else start :][:_PIECE]
