"""Records that a memory knows by their ids: what is unchanged, what has changed, what is older."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from ekphory.detect import CALLER
from ekphory.errors import InvalidInput
from ekphory.filters.tree import And, Comparison, Contains, Field, Filter, In
from ekphory.importers.report import OLDER_RECORD, OLDER_TEXT, Tally, describe_failure
from ekphory.importers.source import (
    CHANGED_AT,
    EndedRecord,
    ImportedRecord,
    WholeText,
    read_moment,
)
from ekphory.scope import get_owner, name_default, owned_in_any_session
from ekphory.transfer import REVISIONS_KEY
from ekphory.types import Failure, MemoryRecord, WriteReport, now_utc
from ekphory.write import make_draft

if TYPE_CHECKING:
    from ekphory.memory import Memory

TEXT_ALONE = ("text",)
"""What is compared of messages: a conversation that gets another title changes no message."""
ALL_CHANGEABLE = ("text", "at", "type", "importance", "expires_at", "metadata")
_CHANGE_MOMENTS = (CHANGED_AT, "expired_at")
_IDS_A_QUERY = 500
_ALL = 2**31 - 1
_CLOSE = 1e-6

Identity = tuple[str | None, ...]
Known = dict[Identity, dict[str | None, MemoryRecord]]
"""What is stored, by its owner and id, and by its session."""
_Changed = tuple[str, MemoryRecord | None]
"""A new text, and what was said in its place."""


class KnownRecords:
    """Compares the records of an import with what a memory has under their ids.

    A record that says something else becomes a new version of its memory, unless the memory is
    newer, or has had that version before.
    """

    def __init__(self, memory: Memory, tally: Tally, compared: Sequence[str]) -> None:
        """Take what to write to.

        Args:
            memory: Where to write.
            tally: Counts what becomes of the records.
            compared: Names of the fields in which a record may have changed.
        """
        self._memory = memory
        self._tally = tally
        self._compared = compared
        self._outdated: list[str] = []

    # Texts, whose passages are looked for before anything is written.

    def take_texts(self, records: Sequence[ImportedRecord]) -> list[ImportedRecord]:
        """Update the texts that are known; return the records that are to be added.

        Args:
            records: Of a chunk; the passages of a text stand in a row, and no text comes twice.
        """
        # Of each text one passage, which tells its title and its source.
        texts = {each.part_of: each.fields for each in reversed(records) if each.part_of}
        known = self._find_passages(texts) if texts else {}
        waiting: list[ImportedRecord] = []
        for text, passages in groupby(records, lambda record: record.part_of):
            if text is None or text.name not in known:
                waiting += passages
            else:
                waiting += self._take_text(list(passages), known[text.name])
        return waiting

    def _find_passages(
        self, texts: Mapping[WholeText, Mapping[str, object]]
    ) -> dict[str, list[MemoryRecord]]:
        """Return what is stored of some texts, in order, by their names."""
        names = sorted(text.name for text in texts)
        sources = tuple(sorted({str(fields["source"]) for fields in texts.values()}))
        found: dict[str, list[MemoryRecord]] = {}
        for some in _in_parts(names):
            which = And((In(Field("session"), some), In(Field("source"), sources)))
            for held in self._list(which):
                found.setdefault(held.session or "", []).append(held)
        for text, fields in texts.items():
            if text.group and text.name not in found:
                earlier = self._find_by_title(text, str(fields["path"]))
                found |= {text.name: earlier} if earlier else {}
        for passages in found.values():
            passages.sort(key=lambda record: (record.sequence or 0, _moment_of(record)))
        return found

    def _find_by_title(self, text: WholeText, title: str) -> list[MemoryRecord]:
        """Return the text of that title that its group held, and does not hold under its name."""
        prefix = f"{text.group}/"
        titled = Comparison(Field("path"), "eq", title)
        held: dict[str, list[MemoryRecord]] = {}
        for record in self._list(And((Contains(Field("session"), prefix), titled))):
            session = record.session or ""
            if session.startswith(prefix) and session not in text.others:
                held.setdefault(session, []).append(record)
        return max(held.values(), key=_latest, default=[])

    def _list(self, which: Filter) -> list[MemoryRecord]:
        which = And((owned_in_any_session(self._memory.scope), which))
        return self._memory.list(filter=which, limit=_ALL, order="written")

    def _take_text(
        self, passages: Sequence[ImportedRecord], stored: Sequence[MemoryRecord]
    ) -> list[ImportedRecord]:
        """Update a text passage by passage; return those that are to be added."""
        try:
            drafts = [(each, self._read(each)) for each in passages]
        except InvalidInput:
            return list(passages)  # refused, with its reason, when it is written
        said = [(each, draft) for each, draft in drafts if draft is not None]
        held = {record.sequence: record for record in stored}
        pairs = [(each, draft, held.get(draft.sequence)) for each, draft in said]
        changed = [pair for pair in pairs if not self._says_already(*pair)]
        there = {record.id for _, _, record in pairs if record is not None}
        taken = {record.id for record in stored}
        gone = taken - there
        moment = _moment_given(passages[0].fields)
        before = [(draft.text, record) for _, draft, record in changed]
        if (changed or gone) and self._is_older(moment, _latest(stored), before):
            for _ in passages:
                self._tally.leave_out(OLDER_TEXT)
            return []
        self._tally.add(skipped=len(passages) - len(changed))
        waiting = []
        for each, draft, record in changed:
            if record is not None and _lie_alike(record, draft):
                self._update(each, record, _change_of_text(each.fields, draft))
                continue
            if record is not None:
                gone.add(record.id)
            waiting.append(_name_anew(each, stored[0], taken))
        self._outdated += sorted(gone)
        return waiting

    def _says_already(
        self, each: ImportedRecord, draft: MemoryRecord, record: MemoryRecord | None
    ) -> bool:
        """Return whether a passage has these words, or somebody has corrected them in it.

        Its text may have changed elsewhere: that it is newer takes no correction back.
        """
        if record is None or record.text == draft.text:
            return record is not None
        if each.fields.get("at") is None or record.at != record.created_at:
            return False  # an import gave it these words, with a moment of theirs
        return draft.text in [before.text for before in self._earlier(record)]

    def _is_older(
        self, moment: datetime | None, latest: datetime, changed: Sequence[_Changed]
    ) -> bool:
        """Return whether the memory is newer, or has said each of these texts before."""
        if moment is not None and moment != latest:
            return moment < latest
        return bool(changed) and all(
            record is not None and text in [each.text for each in self._earlier(record)]
            for text, record in changed
        )

    def forget_outdated(self, waiting: Sequence[ImportedRecord], report: WriteReport) -> None:
        """Forget the passages that others were written in place of, or that are gone.

        Args:
            waiting: What was added, by now.
            report: What became of it; where a passage was refused, nothing is forgotten.
        """
        ids, self._outdated = self._outdated, []
        if any(waiting[failure.index].part_of for failure in report.failed):
            return
        for some in _in_parts(ids):
            which = And((owned_in_any_session(self._memory.scope), In(Field("id"), some)))
            self._tally.add(forgotten=self._memory.forget(filter=which))

    # Records of their own, which are looked for where some were there already.

    def take_records(self, records: Sequence[ImportedRecord], report: WriteReport) -> None:
        """Update the memories of records that were there already, and say something else now.

        Args:
            records: What was handed to the memory.
            report: What became of it; what it counts as skipped is counted by `tally`.
        """
        if not report.skipped:
            return
        refused = {failure.index for failure in report.failed}
        known: list[tuple[ImportedRecord, MemoryRecord]] = []
        for place, record in enumerate(records):
            named = record.fields.get("id") is not None and record.part_of is None
            if named and place not in refused and (draft := self._read(record)) is not None:
                known.append((record, draft))
        stored = self._find({draft.id for _, draft in known})
        for record, draft in known:
            held = stored.get(_identity(draft), {})
            # Where a handle is bound to no session, an id that another session has is not added.
            session = draft.session if draft.session in held else next(iter(held), None)
            if session in held:
                held[session] = self._take_record(record, draft, held[session])

    def _take_record(
        self, record: ImportedRecord, draft: MemoryRecord, held: MemoryRecord
    ) -> MemoryRecord:
        """Return the memory as it is after its record was compared with it."""
        changes = self._compare(record.fields, draft, held)
        if not changes:
            return held
        self._tally.add(skipped=-1)
        moment, latest = _moment_given(record.fields), _moment_of(held)
        is_older = moment is not None and moment < latest
        if not is_older and moment in (None, latest):
            earlier = self._earlier(held)
            is_older = any(not self._compare(record.fields, draft, each) for each in earlier)
        if is_older:
            self._tally.leave_out(OLDER_RECORD)
            return held
        if "text" in changes:
            changes |= _change_of_text(record.fields, draft)
        return self._update(record, held, changes)

    def _compare(
        self, fields: Mapping[str, object], draft: MemoryRecord, held: MemoryRecord
    ) -> dict[str, Any]:
        """Return the fields that a record gives, and that the memory has otherwise.

        What a model predicted is nothing that a record says.
        """
        told = [name for name in self._compared if fields.get(name) is not None]
        given = [name for name in told if name not in draft.predicted]
        changes = {
            name: getattr(draft, name)
            for name in given
            if name != "at" and not _agree(getattr(draft, name), getattr(held, name))
        }
        if "at" in given and _moment_given(fields) != _moment_of(held):
            changes["at"] = draft.at
        return changes

    def _find(self, ids: set[str]) -> Known:
        parts = (In(Field("id"), some) for some in _in_parts(sorted(ids)))
        pages = (self._memory.list(filter=some, limit=_ALL, order="written") for some in parts)
        known: Known = {}
        for page in pages:
            for record in page:
                known.setdefault(_identity(record), {})[record.session] = record
        return known

    # Both.

    def _read(self, record: ImportedRecord) -> MemoryRecord | None:
        """Return a record as it would be stored; None where nothing is left of its text."""
        draft = make_draft(record.fields, scope=self._memory.scope, now=now_utc())
        return None if draft.is_only_recalled else draft.record

    def _earlier(self, record: MemoryRecord) -> list[MemoryRecord]:
        if record.supersedes is None:
            return []
        try:
            return self._memory.history(record.id)[1:]
        except InvalidInput:
            return []  # several sessions use its id: refused, with that reason, when it is updated

    def _update(
        self, record: ImportedRecord, held: MemoryRecord, changes: Mapping[str, Any]
    ) -> MemoryRecord:
        try:
            after = self._memory.update(held.id, **changes)
        except InvalidInput as error:
            failure = Failure(0, held.id, error.field, str(error))
            self._tally.list(describe_failure(record, failure))
            return held
        self._tally.add(updated=1)
        return after


def describe_end(ended: EndedRecord, *, batch: str) -> dict[str, object]:
    """Return a record with the decision that another one does not hold any more.

    Args:
        ended: The one that does not hold. The record is that one itself where something holds in
            its place; else one that says since when it does not hold.
        batch: What the decisions of an import have in common.

    Returns:
        Its fields, as `Memory.add_exported` takes them.
    """
    fields, now = ended.fields, now_utc()
    decision: dict[str, object] = {
        "older": fields["id"],
        "newer": ended.successor or f"{fields['id']}/ended",
        "batch": batch,
        "kind": "replaces" if ended.successor else "ends",
        "state": "active",
        "probability": 1.0,
        "decided_by": CALLER,
        "decided_at": now,
        "since": ended.since,
    }
    told = fields | {"created_at": now, REVISIONS_KEY: [decision]}
    if ended.successor:
        return told
    metadata = {**cast("Mapping[str, object]", fields.get("metadata") or {}), "ended": fields["id"]}
    # Said by a product, so that it ends no other fact that a person told.
    told |= {"role": "system", "metadata": metadata}
    text = f"No longer holds since {ended.since:%Y-%m-%d}: {fields['text']}"
    return told | {"id": decision["newer"], "text": text, "at": ended.since}


def _in_parts(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(names), _IDS_A_QUERY):
        yield tuple(names[start : start + _IDS_A_QUERY])


def _identity(record: MemoryRecord) -> Identity:
    return name_default((*get_owner(record), record.id))


def _agree(given: object, held: object) -> bool:
    if isinstance(given, float) and isinstance(held, float):
        return math.isclose(given, held, rel_tol=0, abs_tol=_CLOSE)
    return given == held


def _moment_of(record: MemoryRecord) -> datetime:
    """Return when what a memory says was written or changed last."""
    return max(filter(None, (record.at, *_changes_in(record.metadata))))


def _moment_given(fields: Mapping[str, object]) -> datetime | None:
    """Return the same of a record; None where it does not say."""
    metadata = fields.get("metadata")
    told = _changes_in(metadata) if isinstance(metadata, Mapping) else ()
    at = fields.get("at")
    moments = (at if isinstance(at, datetime) else read_moment(at), *told)
    return max(filter(None, moments), default=None)


def _changes_in(metadata: Mapping[str, object]) -> Iterable[datetime | None]:
    return (read_moment(metadata.get(name)) for name in _CHANGE_MOMENTS)


def _latest(records: Iterable[MemoryRecord]) -> datetime:
    return max(map(_moment_of, records))


def _change_of_text(fields: Mapping[str, object], draft: MemoryRecord) -> dict[str, Any]:
    """Return what a new text brings with it: its moment, and its metadata."""
    changes: dict[str, Any] = {"text": draft.text}
    changed = read_moment(draft.metadata.get(CHANGED_AT))
    if changed is not None or fields.get("at") is not None:
        changes["at"] = draft.at if changed is None else max(draft.at, changed)
    if fields.get("metadata") is not None:
        changes["metadata"] = draft.metadata
    return changes


def _lie_alike(record: MemoryRecord, draft: MemoryRecord) -> bool:
    """Return whether a passage lies where the one lies whose place it takes."""
    return record.path == draft.path and (not draft.lines or record.lines == draft.lines)


def _name_anew(record: ImportedRecord, beside: MemoryRecord, taken: set[str]) -> ImportedRecord:
    """Return a passage of a known text under an id that none has: one that was updated keeps it."""
    name = str(record.fields["id"])
    while name in taken:
        name += "+"
    taken.add(name)
    return replace(record, fields={**record.fields, "id": name, "session": beside.session})
