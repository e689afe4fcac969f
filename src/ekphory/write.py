"""Writing memories: check, skip what is there, embed, append durably, report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import numpy as np

from ekphory.engine import Engine
from ekphory.errors import InvalidInput
from ekphory.models.embedder import FloatMatrix
from ekphory.models.late_bound import PredictedTraits, read_passages, traits_by_memory
from ekphory.records import Draft, draft, thread_of
from ekphory.retrieval.lexical import passage_terms
from ekphory.scope import Scope, owner_of
from ekphory.store.protocol import Presence, StoredMemory, first_key
from ekphory.timestamps import now_utc, to_microseconds
from ekphory.types import Failure, WriteReport

# Chat messages as drafts: who said what, in which order.


def message_drafts(
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
        first = draft(given, scope=scope, now=now)
        name = first.fingerprint or first.record.id
        # A message said twice in one call is meant twice, unless it carries an id.
        repeated = draft(given, scope=scope, now=now, occurrence=seen[name])
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
        fresh, ids = _told_apart(prepared, alive_ids(here) | written)
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
    seen = set(alive_ids(_present(engine, scope, drafts)))
    fresh: list[Draft] = []
    for entry in drafts:
        if _identity(entry) not in seen:
            seen.add(_identity(entry))
            fresh.append(entry)
    return fresh


def alive_ids(found: list[Presence]) -> dict[Identity, str]:
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
            entry = draft(given, scope=scope, now=now_utc())
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
