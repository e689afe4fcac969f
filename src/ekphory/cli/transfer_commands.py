"""`ekphory import`, `export`, `backup` and `restore`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from rich.text import Text

from ekphory.cli.command import (
    FAILED,
    command,
    message_console,
    print_result,
    result_console,
    show_note,
    step_bar,
)
from ekphory.cli.options import (
    STANDARD_OUTPUT,
    OutputOptions,
    StoreOptions,
    catalog_for,
    open_existing,
    open_for_writing,
    settings_for,
)
from ekphory.cli.output import format_memory_count, make_printable, print_json
from ekphory.config import Settings, read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from ekphory.backup import BackupReport, RestoreReport
    from ekphory.documents.settings import PageReader
    from ekphory.importers.detect import Format
    from ekphory.importers.documents import DocumentOptions, DocumentProgress
    from ekphory.importers.report import ImportReport
    from ekphory.memory import Memory
    from ekphory.transfer import ExportReport


PageReaderName = Literal["own", "chat", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFlags:
    """What an import of documents does beyond reading them.

    Attributes:
        watch: Follow changes, deletions and renames until Ctrl-C, which loses nothing; --prune is
            part of it.
        prune: Forget documents that were imported from here and are gone.
        pool: Where they go; else by their names, reference_code or reference_library.
        name: What the folder is called in the store, in place of its path, so that it may be moved.
        encoding: Of text files that are not UTF-8, such as cp1252; else it is found out, or they
            are refused where it is not sure.
        exclude (GLOB): Pass over files and folders of this name, such as drafts or '*.tmp.md'; with
            a / of this path below the folder. Repeatable.
        ocr: Who reads scanned pages: own models (the default), the chat service of
            EKPHORY_CHAT_URL, whose model must see, or nobody.
    """

    PANEL = "Documents"

    watch: bool = False
    prune: bool = False
    pool: str | None = None
    name: str | None = None
    encoding: str | None = None
    exclude: list[str] | None = None
    ocr: PageReaderName | None = None

    @property
    def is_mirror(self) -> bool:
        """Whether what is gone is to be forgotten."""
        return self.watch or self.prune

    def refuse_for(self, chosen: str) -> None:
        """Refuse the flags where something else than documents is imported.

        Raises:
            InvalidInput: One was given.
        """
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value != entry.default:
                problem = f"{chosen} has no such option"
                raise InvalidInput(entry.name, value, problem, "It is for documents.")

    def to_options(self, settings: Settings) -> DocumentOptions:
        """Return the options of the import, the chat service from the environment.

        Raises:
            InvalidInput: One cannot be used.
        """
        from ekphory.documents.blocks import Exclusion
        from ekphory.importers.documents import DocumentOptions

        return DocumentOptions(
            pool=self.pool,
            name=self.name,
            gone="forget" if self.is_mirror else "keep",
            encoding=self.encoding,
            page_reader=_find_page_reader(self.ocr or "own", settings),
            exclude=Exclusion(tuple(self.exclude or ())),
        )


def _find_page_reader(name: PageReaderName, settings: Settings) -> PageReader | None:
    from ekphory.documents.settings import find_page_reader

    if name != "chat":
        return find_page_reader(name)
    if not (settings.chat_url and settings.chat_model):
        problem = "no chat service with a model is known"
        raise InvalidInput("ocr", name, problem, "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL.")
    url, model, api_key = settings.chat_url, settings.chat_model, settings.chat_api_key
    return find_page_reader(url, model=model, api_key=api_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFlags:
    """What to read, and where to list what cannot be.

    Attributes:
        input_format (--format FORMAT): ekphory, locomo, jsonl, documents, text, chatgpt, claude,
            mem0, zep or langmem; found out when left out. ekphory is what `ekphory export` wrote.
        failures (FILE): Where to list what failed; else ekphory-failed/PATH.jsonl beside it.
        conversation (ID): LoCoMo: import this conversation only.
    """

    input_format: str | None = None
    failures: Path | None = None
    conversation: str | None = None


@command
def import_records(
    path: Path,
    where: StoreOptions,
    output: OutputOptions,
    documents: DocumentFlags,
    given: ImportFlags,
) -> None:
    """Remember what a file, folder or export holds.

    Run again, after an interruption or later, it adds what is missing. A record of a known id
    that says something else becomes a new version of its memory, unless it is the older one. The
    exit code is 1 when a record was refused; all others are imported.

    Documents are Markdown, text, reStructuredText, PDF, Word, HTML and source code. Of a document
    that has changed the new passages replace the old ones; the links, tags and date of a note are
    kept.

    Args:
        path: File, folder or export archive.
    """
    from ekphory.importers.detect import choose_format, holds_export

    wanted = given.input_format
    if wanted is None and documents.is_mirror and path.is_dir() and not holds_export(path):
        wanted = "documents"
    # Looked at first, so that a misspelt path makes no store.
    chosen = choose_format(path, wanted)
    if chosen == "documents":
        if given.conversation is not None:
            problem = "documents have none"
            raise InvalidInput("conversation", given.conversation, problem, "Leave it out.")
        options = documents.to_options(settings_for(where))
        with open_for_writing(where) as memory:
            run = _follow if documents.watch else _import_documents
            report = run(memory, path, options, given.failures)
    else:
        documents.refuse_for(chosen)
        with open_for_writing(where) as memory:
            report = _import_records(memory, path, chosen, given)
    print_import_report(report, output)
    if report.failed:
        raise typer.Exit(FAILED)


def _import_records(memory: Memory, path: Path, chosen: Format, given: ImportFlags) -> ImportReport:
    from ekphory.importers.run import count_records, import_path

    total = 0
    if message_console().is_terminal:
        with show_note("counting records"):
            total = count_records(path, chosen, given.conversation, memory.scope.project)
    with step_bar() as show:
        return import_path(
            memory,
            path,
            format=chosen,
            failures_path=given.failures,
            on_progress=lambda now: show("records", now.read, total),
            conversation=given.conversation,
        )


def _import_documents(
    memory: Memory, path: Path, options: DocumentOptions, failures: Path | None
) -> ImportReport:
    from ekphory.importers.documents import import_documents

    with step_bar() as show:
        return import_documents(
            memory,
            path,
            options=options,
            failures_path=failures,
            on_progress=lambda now: show("documents", now.done, now.total),
        )


def _follow(
    memory: Memory, path: Path, options: DocumentOptions, failures: Path | None
) -> ImportReport:
    from ekphory.importers.documents import watch_documents

    messages = message_console()

    def tell(now: DocumentProgress) -> None:
        if now.done == now.total:
            messages.print(f"{now.report.describe_counts()}. Watching {path}; Ctrl-C ends it.")
            _print_failures(now.report, messages)

    return watch_documents(memory, path, options=options, failures_path=failures, on_progress=tell)


def print_import_report(report: ImportReport, output: OutputOptions) -> None:
    """Print what became of an import: as JSON where that was asked for."""
    if output.json:
        print_json(report)
        return
    console = result_console()
    console.print(f"{report.describe_counts()}.", soft_wrap=True)
    if report.left_out:
        reasons = ", ".join(f"{count:,} × {reason}" for reason, count in report.left_out.items())
        # What has not changed is not read again, and so tells nothing.
        where = " of what was read now" if report.skipped else ""
        console.print(f"Left out{where}: {reasons}.", soft_wrap=True)
    for reason, places in report.places.items():
        others = ", …" if report.left_out[reason] > len(places) else ""
        shown = make_printable(f"  {reason}: {', '.join(places)}{others}")
        console.print(Text(shown, style="yellow"), soft_wrap=True)
    _print_failures(report, console)


def _print_failures(report: ImportReport, console: Console) -> None:
    for failure in report.examples:
        shown = make_printable(f"  {failure.place}: {failure.message}")
        console.print(Text(shown, style="yellow"), soft_wrap=True)
    if report.failures_path is not None:
        console.print(f"All failures are listed in {report.failures_path}", soft_wrap=True)


@command
def export_memories(
    where: StoreOptions, output: OutputOptions, target: Path = STANDARD_OUTPUT
) -> None:
    """Write a scope's memories to JSON Lines, whole, with their earlier versions.

    `ekphory import` reads the file back without loss. A file appears when it is complete;
    one that is there already is replaced. What has expired or was forgotten is not in it.

    Args:
        target (FILE): Where to write; - for standard output.
    """
    with open_existing(where) as memory:
        write_export(target, output, memory.export)


def write_export(target: Path, output: OutputOptions, export: Callable[..., ExportReport]) -> None:
    """Write an export to a file or to standard output, and tell what is in it.

    Args:
        target: A file, or - for standard output.
        output: How it is told.
        export: Writes it, as `Memory.export` does.
    """
    to_file = target != STANDARD_OUTPUT
    if output.json and not to_file:
        problem = "standard output cannot carry a report besides"
        raise InvalidInput("target", "-", problem, "Name a file")
    with step_bar() as show:
        opened = target if to_file else sys.stdout.buffer
        report = export(opened, on_progress=partial(show, "memories"))
    if output.json:
        print_json(report)
    else:
        console = result_console() if to_file else message_console()
        console.print(_describe_export(report), soft_wrap=True)


def _describe_export(report: ExportReport) -> str:
    """Return what an export holds, in words."""
    left_out = f"; {report.expired:,} expired left out" if report.expired else ""
    place = f" to {report.target}" if report.target is not None else ""
    counts = format_memory_count(report.memories, report.versions)
    return f"{counts} exported{place}{left_out}."


_MIB = 1 << 20


@command
def backup(
    output: OutputOptions, *, target: Path, store: str | None = None, catalog: Path | None = None
) -> None:
    """Copy a whole store, all scopes and the server's catalog, while others write.

    It holds every write that was acknowledged before it began.

    Args:
        target (DIR|FILE.tar): A new folder, or a new .tar file.
        store (DIR): Directory of the store; else EKPHORY_STORE, else a folder in your data
            directory.
        catalog (FILE): The server's catalog; else that of EKPHORY_CONFIG, else in the store.
    """
    from ekphory.backup import back_up

    with show_copied_bytes() as tell:
        place, catalog = store or read_settings().store, catalog_for(catalog)
        report = back_up(place, target, catalog=catalog, on_progress=tell)
    print_result(output, report, _describe_copy(report, f"backed up to {report.target}"))


@command
def restore(
    output: OutputOptions, *, source: Path, store: str | None = None, catalog: Path | None = None
) -> None:
    """Make a new store of a backup, after every byte of it was checked.

    Neither the store nor the catalog must be there yet.

    Args:
        source (DIR|FILE.tar): What `ekphory backup` wrote.
        store (DIR): Directory of the store; else EKPHORY_STORE, else a folder in your data
            directory.
        catalog (FILE): Where the server's catalog is put; else in the store.
    """
    from ekphory.backup import restore as put_back

    with show_copied_bytes() as tell:
        place = store or read_settings().store
        report = put_back(source, place, catalog=catalog, on_progress=tell)
    print_result(output, report, _describe_copy(report, f"restored to {report.store}"))


@contextmanager
def show_copied_bytes() -> Iterator[Callable[[int, int], None]]:
    """Show how much is copied, by its bytes."""
    with step_bar() as show:
        yield lambda done, total: show("MiB", done // _MIB, -(-total // _MIB))


def _describe_copy(report: BackupReport | RestoreReport, ending: str) -> str:
    counts = format_memory_count(report.memories, report.history)
    size = f"{report.files:,} files, {report.bytes / _MIB:,.1f} MiB"
    return f"{counts} ({size}) {ending}."
