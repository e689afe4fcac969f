"""Importing a path into a memory: read, write in chunks, report."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.capture import clean_records
from ekphory.documents.blocks import SkippedPart
from ekphory.documents.tree import is_unread_code
from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.chats import read_chatgpt, read_claude
from ekphory.importers.detect import Format, choose_format
from ekphory.importers.documents import import_documents
from ekphory.importers.ekphory_export import read_export
from ekphory.importers.known import ALL_CHANGEABLE, TEXT_ALONE, KnownRecords, describe_end
from ekphory.importers.locomo import read_locomo
from ekphory.importers.memory_products import read_langmem, read_mem0, read_zep
from ekphory.importers.report import ImportInterrupted, ImportReport, Tally, failures_file
from ekphory.importers.source import EndedRecord, ImportedRecord, Readable, Unreadable, WholeText
from ekphory.importers.text import read_jsonl, read_text
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.types import WriteReport
from ekphory.write import WRITABLE_FIELDS

if TYPE_CHECKING:
    from ekphory.memory import Memory

CHUNK_RECORDS = 256
_CHUNK_CHARACTERS = 4_000_000
_READERS: dict[Format, Callable[[Path], Iterator[Readable]]] = {
    "jsonl": read_jsonl,
    "text": read_text,
    "mem0": read_mem0,
    "zep": read_zep,
    "langmem": read_langmem,
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "ekphory": read_export,
}
_COMPARED: dict[Format, tuple[str, ...]] = dict.fromkeys(
    ("chatgpt", "claude", "locomo", "text"), TEXT_ALONE
)
"""In which fields a record may have changed; of the other formats in all that can change."""

_CHATS: frozenset[Format] = frozenset({"chatgpt", "claude"})
"""In these people say passwords and keys, which are cut out."""

_NOTHING = WriteReport(0, 0, [])

OnProgress = Callable[[ImportReport], None]
Write = Callable[[list[dict[str, object]]], WriteReport]


def import_path(
    memory: Memory,
    path: Path | str,
    *,
    format: Format | None = None,  # noqa: A002 - the name that users know from the command line
    failures_path: Path | None = None,
    on_progress: OnProgress | None = None,
    conversation: str | None = None,
) -> ImportReport:
    """Import a file, folder or export into a memory.

    An import is idempotent: run again, after an interruption or later, it adds what is missing. A
    record of a known id that says something else becomes a new version of its memory, unless it is
    older than the memory, or is a version that the memory has had; then it is left out.

    Args:
        memory: Where to write.
        path: What to import.
        format: The form of the input; None finds it out.
        failures_path: Where to list what failed; by default `ekphory-failed/<input>.jsonl` beside
            the input, or in the current folder where that place cannot be written to. What it
            lists of another input stays.
        on_progress: Called with the report so far after every chunk.
        conversation: LoCoMo only: sample id of the one conversation to import.

    Returns:
        The numbers of records added, updated, skipped and failed, and where the failures are
        listed.

    Raises:
        InvalidInput: The path is missing, empty, or not in the format.
        MissingExtra: It is one document, and what reads it is not installed.
        ScopeError: The memory is bound to a scope that no record of the first chunk fits, such as
            one session where the input has its own; nothing was written.
        ImportInterrupted: Ctrl-C was pressed.
    """
    source = Path(path)
    chosen = choose_format(source, format)
    if chosen != "locomo" and conversation is not None:
        problem = f"{chosen} has no selection"
        raise InvalidInput("conversation", conversation, problem, "Leave it out.")
    tell = on_progress or (lambda _: None)
    if chosen == "documents":
        return import_documents(
            memory,
            source,
            failures_path=failures_path,
            on_progress=lambda progress: tell(progress.report),
        )
    with failures_file(source, failures_path) as failures:
        tally = Tally(failures)
        if is_unread_code(source):
            reads = "pip install 'ekphory[code]' reads them"
            tally.leave_out(f"definitions of source code ({reads})")
        selected = (conversation, memory.scope.project)
        records = _read_records(source, chosen, selected)
        if chosen in _CHATS:
            records = _clean(records)
        return _run(_Target(memory, chosen, tally), records, tell)


def count_records(path: Path, chosen: Format, conversation: str | None, project: str | None) -> int:
    """Count what an import will add, skip or refuse; the import reports what breaks the input.

    Args:
        path, chosen, conversation: As for `import_path`, its format chosen.
        project: That of the memory.
    """
    count = 0
    with suppress(InvalidInput):
        for found in _read_records(path, chosen, (conversation, project)):
            is_replaced = isinstance(found, EndedRecord) and found.successor is not None
            count += not (is_replaced or isinstance(found, SkippedPart))
    return count


def _read_records(
    path: Path, chosen: Format, selected: tuple[str | None, str | None]
) -> Iterator[Readable]:
    """Read a path in a format; of LoCoMo a conversation for a project."""
    if chosen == "locomo":
        conversation, project = selected
        return read_locomo(path, conversation=conversation, project=project)
    return _READERS[chosen](path)


def _clean(found: Iterable[Readable]) -> Iterator[Readable]:
    """Yield what was found of chats without the secrets, what could not be read likewise."""
    waiting: deque[Readable] = deque()

    def as_records() -> Iterator[Mapping[str, object]]:
        session: object = None
        for each in found:
            waiting.append(each)
            if isinstance(each, ImportedRecord):
                session = each.fields.get("session")
                yield each.fields
            elif isinstance(each, Unreadable):
                # What cannot be read of a conversation is listed, and stands among its messages.
                told = {"message": each.message}
                yield {"text": each.content, "session": session, "metadata": told}
            else:
                yield {}

    for cleaned in clean_records(as_records()):
        each = waiting.popleft()
        if isinstance(each, ImportedRecord):
            yield replace(each, fields=dict(cleaned))
        elif isinstance(each, Unreadable):
            yield replace(each, content=cleaned["text"], message=cleaned["metadata"]["message"])
        else:
            yield each


class _Target:
    """Where the records of one import go."""

    def __init__(self, memory: Memory, chosen: Format, tally: Tally) -> None:
        self._memory = memory
        self._chosen = chosen
        self._known = KnownRecords(memory, tally, _COMPARED.get(chosen, ALL_CHANGEABLE))
        self._is_first = True
        self._batch = uuid.uuid4().hex[:16]
        self.tally = tally

    def write(self, chunk: list[ImportedRecord]) -> None:
        """Write a chunk, and count what becomes of it."""
        if self._chosen == "ekphory":
            report = self._add(chunk, self._memory.add_exported)
            # Without what the store sets itself.
            kept = [{name: each.fields.get(name) for name in WRITABLE_FIELDS} for each in chunk]
            self._known.take_records(_replace_fields(chunk, kept), report)
            return
        waiting = self._known.take_texts(chunk)
        report = self._add(waiting, self._memory.add_many) if waiting else _NOTHING
        self._known.forget_outdated(waiting, report)
        self._known.take_records(waiting, report)

    def _add(self, records: list[ImportedRecord], write: Write) -> WriteReport:
        report = write([record.fields for record in records])
        if self._is_first:
            _refuse_misfit(self._memory.scope, records, report)
        self._is_first = False
        self.tally.count(records, report)
        return report

    def end(self, ended: list[EndedRecord]) -> None:
        """Note that records, which were written before, hold no longer.

        Where nothing holds in the place of one, a memory that says so is added.
        """
        pairs = [(one, describe_end(one, batch=self._batch)) for one in ended]
        if replaced := [fields for one, fields in pairs if one.successor is not None]:
            self._memory.add_exported(replaced)
        told = [ImportedRecord(fields, one.place) for one, fields in pairs if one.successor is None]
        if told:
            self._add(told, self._memory.add_exported)


def _replace_fields(
    records: list[ImportedRecord], told: Iterable[Mapping[str, object]]
) -> list[ImportedRecord]:
    pairs = zip(records, told, strict=True)
    return [replace(record, fields=dict(fields)) for record, fields in pairs]


def _run(target: _Target, records: Iterator[Readable], on_progress: OnProgress) -> ImportReport:
    """Write all records and give the report."""
    tally = target.tally
    try:
        for chunk in _gather_chunks(records, tally):
            # What has ended comes after all others.
            if written := [each for each in chunk if isinstance(each, ImportedRecord)]:
                target.write(written)
            if ended := [each for each in chunk if isinstance(each, EndedRecord)]:
                target.end(ended)
            on_progress(tally.report())
    except KeyboardInterrupt as error:
        raise ImportInterrupted(tally.report()) from error
    return tally.report()


def _refuse_misfit(scope: Scope, chunk: list[ImportedRecord], report: WriteReport) -> None:
    """Stop where the bound scope shuts every record out: all that follow would fail alike."""
    fields = {failure.field for failure in report.failed}
    if len(report.failed) < len(chunk) or len(fields) != 1:
        return
    (name,) = fields
    bound = getattr(scope, name) if name in SCOPE_FIELDS else None
    if bound is not None:
        given = chunk[0].fields.get(name)
        remedy = f"Bind no {name}, so that each record keeps its own"
        tried = f"no record fits the bound {name}={bound!r} ({len(chunk)} tried)"
        raise ScopeError(name, given, f"{tried}; nothing was written", remedy)


def _count_characters(fields: Mapping[str, object]) -> int:
    versions = fields.get("versions")
    texts = [fields, *(versions if isinstance(versions, list) else [])]
    return sum(len(str(entry.get("text", ""))) for entry in texts)


def _gather_chunks(
    records: Iterator[Readable], tally: Tally
) -> Iterator[list[ImportedRecord | EndedRecord]]:
    """Gather records into chunks, bounded in number and in length of text, and count all else.

    The passages of a text are in one, and of each text one alone.
    """
    chunk: list[ImportedRecord | EndedRecord] = []
    characters = 0
    texts: dict[str, WholeText] = {}
    try:
        for record in records:
            if isinstance(record, Unreadable | SkippedPart):
                tally.pass_over(record)
                continue
            text = record.part_of if isinstance(record, ImportedRecord) else None
            goes_on = text is not None and texts.get(text.name) is text
            is_full = len(chunk) >= CHUNK_RECORDS or characters >= _CHUNK_CHARACTERS
            if not goes_on and (is_full or (text is not None and text.name in texts)):
                yield chunk
                chunk, characters, texts = [], 0, {}
            if text is not None:
                texts[text.name] = text
            chunk.append(record)
            characters += _count_characters(record.fields)
    except InvalidInput:
        # What was read before the input broke is still written.
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
