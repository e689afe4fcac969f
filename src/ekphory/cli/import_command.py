"""`ekphory import`: remember what a file, folder or export holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.document_options import DocumentFlags
from ekphory.cli.endings import FAILED
from ekphory.cli.json_output import print_json
from ekphory.cli.memory_printing import printable
from ekphory.cli.open_store import open_for_writing, settings_for
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.cli.progress import running_note, step_bar
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.importers import DocumentOptions, Format, ImportReport
    from ekphory.importers.documents import DocumentProgress
    from ekphory.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFlags:
    """What to read, and where to list what cannot be."""

    input_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="ekphory, locomo, jsonl, documents, text, chatgpt, claude, mem0, zep or "
            "langmem; found out when left out. ekphory is what `ekphory export` wrote.",
        ),
    ] = None
    failures: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to list what failed; else PATH.failed.jsonl beside it."
        ),
    ] = None
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="LoCoMo: import this conversation only.")
    ] = None


@command
def import_records(
    path: Annotated[Path, typer.Argument(help="File, folder or export archive.")],
    where: StoreOptions,
    output: OutputOptions,
    documents: DocumentFlags,
    given: ImportFlags,
) -> None:
    """Remember what a file, folder or export holds.

    Run again, after an interruption or later, it adds what is missing. The exit code is 1 when
    a record was refused; all others are imported.

    Documents are Markdown, text, reStructuredText, PDF, Word and HTML. Of a document that has
    changed the new passages replace the old ones.
    """
    from ekphory.importers.detect import choose_format

    # Looked at first, so that a misspelt path makes no store.
    chosen = choose_format(path, given.input_format)
    if chosen == "documents":
        _refuse_conversation(given)
        options = documents.to_options(settings_for(where))
        with open_for_writing(where) as memory:
            if documents.watch:
                report = _follow(memory, path, options, given.failures)
            else:
                report = _import_documents(memory, path, options, given.failures)
    else:
        documents.refuse_for(chosen)
        with open_for_writing(where) as memory:
            report = _import_records(memory, path, chosen, given)
    _print_report(report, output)
    if report.failed:
        raise typer.Exit(FAILED)


def _refuse_conversation(given: ImportFlags) -> None:
    if given.conversation is not None:
        raise InvalidInput(
            "conversation", given.conversation, "documents have none", "Leave it out."
        )


def _import_records(
    memory: Memory,
    path: Path,
    chosen: Format,
    given: ImportFlags,
) -> ImportReport:
    from ekphory.importers import import_path

    with running_note("reading") as note:
        return import_path(
            memory,
            path,
            format=chosen,
            failures_path=given.failures,
            on_progress=lambda so_far: note(_counts(so_far)),
            conversation=given.conversation,
        )


def _import_documents(
    memory: Memory, path: Path, options: DocumentOptions, failures: Path | None
) -> ImportReport:
    from ekphory.importers import import_documents

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
    from ekphory.importers import watch_documents

    messages = message_console()

    def tell(now: DocumentProgress) -> None:
        if now.done == now.total:
            messages.print(f"{_counts(now.report)}. Watching {path}; Ctrl-C ends it.")

    return watch_documents(memory, path, options=options, failures_path=failures, on_progress=tell)


def _counts(report: ImportReport) -> str:
    replaced = f"{report.forgotten:,} forgotten, " if report.forgotten else ""
    return (
        f"{report.added:,} added, {replaced}{report.skipped:,} already there, "
        f"{report.failed:,} failed"
    )


def _print_report(report: ImportReport, output: OutputOptions) -> None:
    if output.json:
        print_json(report)
        return
    console = result_console()
    console.print(f"{_counts(report)}.", soft_wrap=True)
    if report.left_out:
        console.print(f"Left out: {_reasons(report.left_out)}.", soft_wrap=True)
    for failure in report.examples:
        console.print(
            Text(f"  {printable(failure.place)}: {printable(failure.message)}", style="yellow"),
            soft_wrap=True,
        )
    if report.failures_path is not None:
        console.print(f"All failures are listed in {report.failures_path}", soft_wrap=True)


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} × {reason}" for reason, count in left_out.items())
