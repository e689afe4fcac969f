"""Importing a path into a memory: read, write in chunks, report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.documents.tree import UNREAD_CODE, is_unread_code
from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.chats import read_chatgpt, read_claude
from ekphory.importers.detect import Format, choose_format
from ekphory.importers.documents import import_documents
from ekphory.importers.ekphory_export import read_export
from ekphory.importers.locomo import read_locomo
from ekphory.importers.memory_products import read_langmem, read_mem0, read_zep
from ekphory.importers.report import ImportInterrupted, ImportReport, Tally, failures_file
from ekphory.importers.source import ImportedRecord, Readable, Unreadable
from ekphory.importers.text import read_jsonl, read_text
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.types import WriteReport

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
}
_WHOLE_READERS: dict[Format, Callable[[Path, Callable[[str], None]], Iterator[Readable]]] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "ekphory": read_export,
}
"""Those that tell what they pass over."""


_CHATS: frozenset[Format] = frozenset({"chatgpt", "claude"})
"""In these people say passwords and keys, which are cut out."""

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

    An import is idempotent: run again, after an interruption or later, it adds what is missing.

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
        The numbers of records added, skipped and failed, and where the failures are listed.

    Raises:
        InvalidInput: The path is missing, empty, or not in the format.
        MissingExtra: A folder holds nothing but source code, and `[code]` is not installed.
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
            tally.leave_out(UNREAD_CODE.reason)
        write: Write = memory.add_exported if chosen == "ekphory" else memory.add_many
        if chosen in _CHATS:
            write = partial(memory.add_many, redact=True)
        selected = (conversation, memory.scope.project)
        records = _read_records(source, chosen, selected, tally.leave_out)
        return _run(memory.scope, write, records, tally, tell)


def count_records(path: Path, chosen: Format, conversation: str | None, project: str | None) -> int:
    """Count what an import will add, skip or refuse; the import reports what breaks the input.

    Args:
        path, chosen, conversation: As for `import_path`, its format chosen.
        project: That of the memory.
    """
    count = 0
    with suppress(InvalidInput):
        for _ in _read_records(path, chosen, (conversation, project), lambda _: None):
            count += 1
    return count


def _read_records(
    path: Path,
    chosen: Format,
    selected: tuple[str | None, str | None],
    on_left_out: Callable[[str], None],
) -> Iterator[Readable]:
    """Read a path in a format; of LoCoMo a conversation for a project."""
    if chosen == "locomo":
        conversation, project = selected
        return read_locomo(path, conversation=conversation, project=project)
    if chosen in _WHOLE_READERS:
        return _WHOLE_READERS[chosen](path, on_left_out)
    return _READERS[chosen](path)


def _run(
    scope: Scope, write: Write, records: Iterator[Readable], tally: Tally, on_progress: OnProgress
) -> ImportReport:
    """Write all records and give the report."""
    try:
        for number, chunk in enumerate(_gather_chunks(records, tally.fail)):
            report = write([record.fields for record in chunk])
            if number == 0:
                _refuse_misfit(scope, chunk, report)
            tally.count(chunk, report)
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
        raise ScopeError(
            name,
            chunk[0].fields.get(name),
            f"no record fits the bound {name}={bound!r} ({len(chunk)} tried); nothing was written",
            f"Bind no {name}, so that each record keeps its own",
        )


def _count_characters(fields: Mapping[str, object]) -> int:
    versions = fields.get("versions")
    texts = [fields, *(versions if isinstance(versions, list) else [])]
    return sum(len(str(entry.get("text", ""))) for entry in texts)


def _gather_chunks(
    records: Iterator[Readable], on_unreadable: Callable[[Unreadable], None]
) -> Iterator[list[ImportedRecord]]:
    """Gather records into chunks, bounded in number and in length of text."""
    chunk: list[ImportedRecord] = []
    characters = 0
    try:
        for record in records:
            if isinstance(record, Unreadable):
                on_unreadable(record)
                continue
            chunk.append(record)
            characters += _count_characters(record.fields)
            if len(chunk) == CHUNK_RECORDS or characters >= _CHUNK_CHARACTERS:
                yield chunk
                chunk, characters = [], 0
    except InvalidInput:
        # What was read before the input broke is still written.
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
