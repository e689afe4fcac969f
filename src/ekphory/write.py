"""Writing memories: check, skip what is there, embed, append durably, report."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar, get_args

import numpy as np

from ekphory.engine import Engine
from ekphory.errors import InvalidInput, ScopeError, suggest
from ekphory.filters.tree import EVERYTHING
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel, FloatMatrix
from ekphory.models.late_bound import PredictedTraits, average_traits, read_passages
from ekphory.prompting.recall_block import OPENING, strip_recall_blocks
from ekphory.retrieval.lexical import passage_terms
from ekphory.scope import (
    LONGEST_NAME,
    SCOPE_FIELDS,
    Scope,
    are_versions_of,
    check_name,
    get_owner,
    name_default,
)
from ekphory.store.protocol import Presence, StoredMemory, first_key
from ekphory.types import (
    MEMORY_TYPES,
    Failure,
    MemoryRecord,
    Predictable,
    Scalar,
    WriteReport,
    check_records,
    encode_metadata,
    is_storable,
    now_utc,
    to_microseconds,
    to_utc,
)

# Drafts: records checked field by field.

LONGEST_TEXT = 1_000_000
_BEFORE_1970 = 1 << 46
"""Added to milliseconds since 1970, so that earlier moments sort first too."""
_POOL_NAME = re.compile(r"[\w][\w.:-]{0,99}")
_TEXTS = "producer produced_for role parent_id path heading lines source".split()
_PREDICTABLE: frozenset[Predictable] = frozenset(get_args(Predictable))
WRITABLE_FIELDS = (
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
    text = _check_text(values.get("text", ""))
    if OPENING in text:
        text = strip_recall_blocks(text)
    owner: dict[str, Any] = {
        name: scope.fill(name, check_name(name, values[name]) if name in values else None)
        for name in SCOPE_FIELDS
    }
    at = to_utc(values["at"], field="at") if "at" in values else None
    fields: dict[str, Any] = {
        name: check(values[name]) for name, check in _CHECKS.items() if name in values
    }
    if "expires_at" in values:
        fields["expires_at"] = _check_expiry(values["expires_at"], now)
    fields["predicted"] = fields.get("predicted", frozenset()).intersection(values)
    key = None if at is None else to_microseconds(at)
    producer, sequence = fields.get("producer", ""), fields.get("sequence")
    identity = (*owner.values(), producer, text, key, sequence, occurrence)
    fingerprint = None
    if "id" not in values:
        fingerprint = hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).hexdigest()
        fields["id"] = _make_id(at or now, fingerprint)
    record = MemoryRecord(text=text, at=at or now, created_at=now, **owner, **fields)
    return Draft(record, compute_thread(record), fingerprint, _PREDICTABLE - values.keys())


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    for name in values:
        if name not in WRITABLE_FIELDS:
            remedy = f"{suggest(name, WRITABLE_FIELDS)}Your own fields go into metadata"
            raise InvalidInput(str(name), values[name], "no such field", remedy)


def _check_storable(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(name, value, f"must be a string, not {type(value).__name__}", "Give one")
    if not is_storable(value):
        problem = "holds NUL or half of a surrogate pair, which UTF-8 cannot carry"
        remedy = "Remove them, for example with text.encode('utf-8', 'ignore').decode()"
        raise InvalidInput(name, value, problem, remedy)
    return value


def _check_text(value: object) -> str:
    text = _check_storable("text", value)
    if not text.strip():
        raise InvalidInput("text", text, "is empty", "Give the text to remember")
    if len(text) > LONGEST_TEXT:
        problem = f"has {len(text):,} characters, more than {LONGEST_TEXT:,}"
        remedy = "Split it, or import it as a document with `ekphory import`"
        raise InvalidInput("text", text, problem, remedy)
    return text


def _check_id(value: object) -> str:
    memory_id = _check_storable("id", value)
    if not memory_id or len(memory_id) > LONGEST_NAME:
        problem = f"has {len(memory_id)} characters"
        raise InvalidInput("id", memory_id, problem, f"Give 1 to {LONGEST_NAME:,}")
    return memory_id


def _check_sequence(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**62:
        problem = "must be a whole number between -2**62 and 2**62"
        raise InvalidInput("sequence", value, problem, "Give a whole number")
    return value


def _check_pool(value: object) -> str:
    name = _check_storable("pool", value)
    if not _POOL_NAME.fullmatch(name):
        remedy = "Use letters, digits and _ . : -, at most 100"
        raise InvalidInput("pool", name, "must be the name of a pool", remedy)
    return name


def _check_type(value: object) -> str:
    if value not in MEMORY_TYPES:
        raise InvalidInput("type", value, "no such type", f"Use one of {', '.join(MEMORY_TYPES)}")
    return str(value)


def _check_importance(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("importance", value, "lies outside [0, 1]", "Give a number from 0 to 1")
    return float(value)


def _check_predicted(value: object) -> frozenset[Predictable]:
    names = get_args(Predictable)
    if not isinstance(value, list | tuple | set | frozenset) or any(n not in names for n in value):
        problem = "must be a list of predictable fields"
        raise InvalidInput("predicted", value, problem, 'Use "type" and "importance"')
    return frozenset(value)


def _check_metadata(value: object) -> Mapping[str, Scalar]:
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", value, "must be a mapping", "Give names with scalar values")
    for name in SCOPE_FIELDS:
        if name in value:
            problem, remedy = "metadata cannot set the scope", f"Give {name} as a field of its own"
            raise ScopeError(f"metadata.{name}", value[name], problem, remedy)
    # Refuses what cannot be stored, or not exactly, such as whole numbers beyond 2**53.
    encode_metadata(value)
    return dict(value)


def _check_expiry(value: str | datetime, now: datetime) -> datetime:
    moment = to_utc(value, field="expires_at")
    if moment <= now:
        remedy = "Give a moment still to come"
        raise InvalidInput("expires_at", moment.isoformat(), "lies in the past", remedy)
    return moment


_CHECKS: Mapping[str, Callable[[object], object]] = {
    "sequence": _check_sequence,
    **{name: partial(_check_storable, name) for name in _TEXTS},
    "pool": _check_pool,
    "type": _check_type,
    "importance": _check_importance,
    "predicted": _check_predicted,
    "metadata": _check_metadata,
    "id": _check_id,
}
"""What reads a field by itself; what is not given has the default of `MemoryRecord`."""


def _make_id(at: datetime, fingerprint: str) -> str:
    """Return an id that sorts by the moment it is about."""
    milliseconds = to_microseconds(at) // 1000 + _BEFORE_1970
    return f"{milliseconds:013x}-{fingerprint[:16]}"


def compute_thread(record: MemoryRecord) -> int:
    """Return the session's number: neighbours are looked for among memories that share it."""
    if record.session is None and record.sequence is None:
        return 0
    owner = [getattr(record, name) for name in SCOPE_FIELDS]
    digest = hashlib.blake2b(json.dumps(owner).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


# Chat messages.


def make_message_drafts(
    messages: Sequence[Mapping[str, Any]], *, scope: Scope, session: str | None, pool: str | None
) -> list[Draft]:
    """Check messages, and note the place of each in the session.

    Raises:
        InvalidInput: A message is not a mapping, lacks `content`, or cannot be stored.
    """
    if isinstance(messages, Mapping | str) or not isinstance(messages, Sequence):
        problem = "must be a list"
        raise InvalidInput("messages", messages, problem, 'Give [{"role": "user", "content": "…"}]')
    drafts: list[Draft] = []
    seen: Counter[str] = Counter()
    now = now_utc()
    for place, message in enumerate(messages):
        given = {"session": session, "pool": pool, **_read_message(message, place)}
        first = make_draft(given, scope=scope, now=now)
        name = first.fingerprint or first.record.id
        # A message said twice in one call is meant twice, unless it carries an id.
        repeated = make_draft(given, scope=scope, now=now, occurrence=seen[name])
        seen[name] += 1
        if repeated.thread == 0:
            # Outside any session it is placed, so that it has neighbours.
            record = replace(repeated.record, sequence=to_microseconds(now) + place)
            repeated = replace(repeated, record=record, thread=compute_thread(record))
        drafts.append(repeated)
    return drafts


def _read_message(message: Mapping[str, Any], place: int) -> dict[str, Any]:
    if not isinstance(message, Mapping) or "content" not in message:
        problem = "has no content"
        raise InvalidInput(f"messages[{place}]", message, problem, 'Give {"role": …, "content": …}')
    fields = {name: value for name, value in message.items() if name != "content"}
    if fields.get("role") is not None:
        fields.setdefault("producer", fields["role"])
    return {**fields, "text": message["content"]}


# Writing.

BATCH = 256
LONGEST_WHOLE = 60_000
"""Characters of a text up to which all of its windows are embedded."""
SAMPLED_WINDOWS = 64
"""So many windows of a longer text are embedded, evenly spread over it."""
_PIECE = 4_000

_APPENDS = "appends"
_BLANK = re.compile(r"\s+")

ReportProgress = Callable[[WriteReport], None]
Item = TypeVar("Item")
Identity = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft with its terms, its vectors and the model that made them."""

    draft: Draft
    terms: np.ndarray[Any, np.dtype[np.uint32]]
    vectors: FloatMatrix
    embedder: EmbedderIdentity


@dataclass(frozen=True, slots=True)
class CommitOutcome:
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

    def count(self, outcome: CommitOutcome) -> None:
        self.added += outcome.added
        self.skipped += len(outcome.ids) - outcome.added

    def report(self) -> WriteReport:
        return WriteReport(self.added, self.skipped, list(self.failed), sampled=tuple(self.sampled))


def add_all(
    engine: Engine,
    scope: Scope,
    records: Iterable[Mapping[str, Any]],
    *,
    on_progress: ReportProgress | None = None,
) -> WriteReport:
    """Write records in batches; while one is appended, the next is embedded.

    At most two batches are in memory at a time.
    """
    tally = _Tally()
    tell = on_progress or (lambda _report: None)
    pending: Future[CommitOutcome] | None = None
    drafts = _read_drafts(records, scope, tally)
    try:
        while batch := list(islice(drafts, BATCH)):
            fresh = without_present(engine, scope, batch)
            tally.skipped += len(batch) - len(fresh)
            tally.sampled += [each.record.id for each in fresh if is_sampled(each.record.text)]
            prepared = prepare(engine.embedder, fresh)
            if pending is not None:
                tally.count(pending.result())
            pending = submit(engine, scope, prepared)
            tell(tally.report())
    finally:
        # Also where the source breaks: what was read before is written.
        if pending is not None:
            tally.count(pending.result())
    tell(tally.report())
    return tally.report()


def add_drafts(engine: Engine, scope: Scope, drafts: list[Draft]) -> WriteReport:
    """Write drafts in one commit; the report's ids are theirs, in order.

    Those that hold only recalled memories are skipped, and have no id.
    """
    prepared = prepare(engine.embedder, [entry for entry in drafts if not entry.is_only_recalled])
    outcome = submit(engine, scope, prepared).result()
    sampled = tuple(
        name
        for entry, name in zip(prepared, outcome.ids, strict=True)
        if is_sampled(entry.draft.record.text)
    )
    return WriteReport(outcome.added, len(drafts) - outcome.added, [], outcome.ids, sampled)


_PROMOTED = (
    "text at expires_at org project agent user producer role source type importance predicted"
).split()


def promote(engine: Engine, scope: Scope, record: MemoryRecord, *, pool: str) -> str:
    """Copy a memory into a pool that the whole project sees; return the copy's id."""
    metadata = {**record.metadata, "promoted_from": record.id}
    given = {name: getattr(record, name) for name in _PROMOTED}
    given |= {"pool": pool, "metadata": metadata, "id": f"{record.id}-in-{pool}"}
    draft = make_draft(given, scope=scope, now=now_utc())
    return add_drafts(engine, scope, [draft]).ids[0]


def prepare(embedder: EmbeddingModel, drafts: list[Draft]) -> list[Prepared]:
    """Embed and split into terms."""
    read = embed_records(embedder, [entry.record for entry in drafts])
    prepared = []
    for entry, (vectors, traits) in zip(drafts, read, strict=True):
        terms = passage_terms(entry.record.indexed_text)
        prepared.append(Prepared(_fill_in(entry, traits), terms, vectors, embedder.identity))
    return prepared


def embed_records(
    embedder: EmbeddingModel, records: Sequence[MemoryRecord]
) -> list[tuple[FloatMatrix, PredictedTraits]]:
    """Return the vectors of each memory's windows, and what the model predicts of it."""
    windows = [_windows(embedder, record) for record in records]
    counts = [len(texts) for texts in windows]
    reading = read_passages(embedder, [text for texts in windows for text in texts])
    parts = np.split(reading.content, np.cumsum(counts)[:-1]) if records else []
    return list(zip(parts, average_traits(reading, counts), strict=True))


def match_store(engine: Engine, prepared: list[Prepared]) -> list[Prepared]:
    """Return memories with vectors as the store has them by now; the caller holds the lock.

    Those of a model that is not at hand are zeros, until the store is embedded anew.
    """
    stored = engine.store.identity.embedder
    if all(entry.embedder == stored for entry in prepared):
        return prepared
    if stored in engine.embedders:
        return prepare(engine.embedders[stored], [entry.draft for entry in prepared])
    zeros = np.zeros((1, stored.dimension), np.float32)
    return [replace(entry, vectors=zeros, embedder=stored) for entry in prepared]


def _fill_in(entry: Draft, traits: PredictedTraits) -> Draft:
    """Fill in and mark what the caller left out and the model's heads predict."""
    values = {name: getattr(traits, name) for name in entry.left_out}
    values = {name: value for name, value in values.items() if value is not None}
    if not values:
        return entry
    marked = entry.record.predicted | values.keys()
    return replace(entry, record=replace(entry.record, **values, predicted=marked))


def submit(engine: Engine, scope: Scope, prepared: list[Prepared]) -> Future[CommitOutcome]:
    """Queue memories to be written; the result says how many of them were new.

    All of them are in one commit, which may be that of others that wait beside them too.
    """
    return engine.writer.submit_to_group(
        (scope, prepared), lambda waiting: _append(engine, waiting), group=_APPENDS
    )


def to_stored(prepared: Prepared, key: int) -> StoredMemory:
    """Return a prepared memory as the row with that key."""
    entry = prepared.draft
    return StoredMemory(
        key, entry.record, entry.thread, prepared.terms, prepared.vectors, entry.fingerprint
    )


def _append(engine: Engine, waiting: Sequence[tuple[Scope, list[Prepared]]]) -> list[CommitOutcome]:
    version = engine.store.version()
    found: list[Presence] = []
    new: list[Prepared] = []
    # By session: a handle that is bound to one does not see the others, one of none sees all.
    written: defaultdict[str | None, dict[Identity, str]] = defaultdict(dict)
    outcomes = []
    for scope, prepared in waiting:
        drafts = [entry.draft for entry in prepared]
        here = _present(engine, scope, drafts)
        absent, ids = _pick_absent(drafts, _known(here) | written[scope.session])
        fresh = [prepared[place] for place in absent]
        for entry in fresh:
            record = entry.draft.record
            for session in {None, record.session}:
                written[session] |= dict.fromkeys(_known_as(entry.draft), record.id)
        found += here
        new += fresh
        outcomes.append(CommitOutcome(len(fresh), ids))
    if new:
        delete_expired(engine, found, {name for entry in new for name in _identities(entry.draft)})
        append_after(engine, version, new)
    return outcomes


def make_ledger(engine: Engine) -> None:
    """Make the store's ledger where it has none; the caller holds the writer's lock.

    What the store holds by then was written before there were ledgers, and is compared only by
    `conflicts(scan=True)`.
    """
    if engine.ledger.read().judged_to is None:
        keys = engine.store.keys(EVERYTHING)
        engine.ledger.make(judged_to=int(keys[-1]) if len(keys) else 0)


def append_after(engine: Engine, version: int, new: list[Prepared]) -> None:
    """Append memories in one commit, which follows that version."""
    make_ledger(engine)
    first = first_key(after=version)
    rows = enumerate(match_store(engine, new), start=first)
    engine.store.append([to_stored(entry, key) for key, entry in rows])
    engine.detector.wake()


def _pick_absent(
    drafts: list[Draft], present: dict[Identity, str]
) -> tuple[list[int], tuple[str, ...]]:
    """Return the places of those that are not present, each once, and the id of each of all."""
    absent: list[int] = []
    ids: list[str] = []
    for place, entry in enumerate(drafts):
        identities = _known_as(entry)
        known = next((present[each] for each in identities if each in present), None)
        if known is None:
            known = entry.record.id
            present |= dict.fromkeys(identities, known)
            absent.append(place)
        ids.append(known)
    return absent, tuple(ids)


def without_present(engine: Engine, scope: Scope, drafts: list[Draft]) -> list[Draft]:
    """Return the drafts that are not stored yet, each once."""
    absent, _ = _pick_absent(drafts, _known(_present(engine, scope, drafts)))
    return [drafts[place] for place in absent]


def find_alive_ids(found: list[Presence]) -> dict[Identity, str]:
    """Return the identities of what is stored, with the ids; what has expired does not count."""
    now = to_microseconds(now_utc())
    return {
        (*entry.owner, name): entry.id
        for entry in found
        if entry.expires_at > now
        for name in (entry.id, entry.fingerprint)
    }


def delete_expired(engine: Engine, found: list[Presence], wanted: set[Identity]) -> None:
    """Delete expired memories, with their versions, whose id or content is being written anew."""
    now = to_microseconds(now_utc())
    expired = [entry for entry in found if entry.expires_at <= now]
    anew = {
        (*entry.owner, entry.id)
        for entry in expired
        if wanted & {(*entry.owner, entry.id), (*entry.owner, entry.fingerprint)}
    }
    keys = {entry.key for entry in expired if (*entry.owner, entry.id) in anew}
    for record in engine.store.fetch(sorted(keys)).values():
        keys |= set(engine.store.keys(are_versions_of(record)).tolist())
    if keys:
        engine.store.delete(sorted(keys))


def _present(engine: Engine, scope: Scope, drafts: list[Draft]) -> list[Presence]:
    ids = [entry.record.id for entry in drafts]
    fingerprints = [entry.fingerprint for entry in drafts if entry.fingerprint is not None]
    return find_present(engine, scope, ids, fingerprints) if drafts else []


def find_present(
    engine: Engine, scope: Scope, ids: Sequence[str], fingerprints: Sequence[str]
) -> list[Presence]:
    """Return what the scope has stored of these; an earlier version expires with its memory."""
    own = scope.own_predicate()
    found = engine.store.present(own, ids, fingerprints)
    changed = sorted({entry.id for entry in found if entry.is_history})
    if not changed:
        return found
    current = {(entry.owner, entry.id): entry for entry in engine.store.present(own, changed, [])}
    dated = [
        replace(entry, expires_at=memory.expires_at)
        if entry.is_history and (memory := current.get((entry.owner, entry.id)))
        else entry
        for entry in found
    ]
    return list({entry.key: entry for entry in (*current.values(), *dated)}.values())


def _known(found: list[Presence]) -> dict[Identity, str]:
    """Return as what is known what is stored, with the ids."""
    return {name_default(each): name for each, name in find_alive_ids(found).items()}


def _known_as(entry: Draft) -> list[Identity]:
    return [name_default(identity) for identity in _identities(entry)]


def _identities(entry: Draft) -> list[Identity]:
    """Return by what a draft may be there already: its fingerprint, and its id.

    An id of ours is there without its fingerprint where the version that had it was forgotten, or
    where a listing was written back with its ids.
    """
    names = (entry.fingerprint, entry.record.id)
    return [(*get_owner(entry.record), name) for name in names if name is not None]


def _read_drafts(
    records: Iterable[Mapping[str, Any]], scope: Scope, tally: _Tally
) -> Iterator[Draft]:
    def read(given: Mapping[str, Any]) -> Draft:
        return make_draft(given, scope=scope, now=now_utc())

    for entry in read_records(records, read, tally.failed):
        if entry.is_only_recalled:
            tally.skipped += 1
        else:
            yield entry


def read_records(
    records: Iterable[Mapping[str, Any]],
    read: Callable[[Mapping[str, Any]], Item],
    failed: list[Failure],
) -> Iterator[Item]:
    """Yield what `read` makes of each record; add those that it refuses to `failed`."""
    check_records(records)
    for index, given in enumerate(records):
        try:
            item = read(given)
        except InvalidInput as error:
            name = given.get("id") if isinstance(given, Mapping) else None
            shown = name if isinstance(name, str) else None
            failed.append(Failure(index, shown, error.field, str(error)))
        else:
            yield item


def _windows(embedder: EmbeddingModel, record: MemoryRecord) -> list[str]:
    text, prefix = record.text, record.index_prefix
    if not is_sampled(text):
        return embedder.windows(text, prefix=prefix)
    pieces = [embedder.windows(piece, prefix=prefix) for piece in _pieces(text)]
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
