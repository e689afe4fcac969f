"""`ekphory cluster import`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import FAILED, command, show_note
from ekphory.cli.options import OutputOptions
from ekphory.cli.transfer_commands import print_import_report
from ekphory.scope import Scope

_bulk_option = partial(typer.Option, metavar="N")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFlags:
    """Where a bulk import goes, and on what it runs."""

    store: Annotated[
        str,
        typer.Option(metavar="URI", help="s3://…, gs://…, az://…, or a directory that all share."),
    ]
    shards: Annotated[
        int | None, _bulk_option(help="Shards of a new store, for its whole life [16].")
    ] = None
    org: Annotated[str | None, typer.Option(help="Organisation of every record.")] = None
    project: Annotated[str | None, typer.Option(help="Project of every record.")] = None
    cpus: Annotated[
        int | None, _bulk_option(help="Processors of this machine; by default all.")
    ] = None
    failures: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to list what failed; else ekphory-failed/PATH.jsonl beside it.",
        ),
    ] = None


@command
def import_in_bulk(
    uri: Annotated[
        str, typer.Argument(help="File or folder of .jsonl or .parquet, here or on object storage.")
    ],
    given: BulkFlags,
    output: OutputOptions,
) -> None:
    """Remember what files hold, on all machines of a Ray cluster.

    Without `RAY_ADDRESS` all of it runs here. Run again, after an interruption or later, it adds
    what is missing. The exit code is 1 when a record was refused; all others are imported.
    """
    from ekphory.cluster.bulk import BulkOptions
    from ekphory.cluster.bulk import import_in_bulk as run

    options = BulkOptions(
        store=given.store,
        shards=given.shards,
        scope=Scope(org=given.org, project=given.project),
        cpus=given.cpus,
        failures=given.failures,
    )
    with show_note("starting Ray") as note:
        report = run(
            uri,
            options,
            on_progress=lambda now: note(f"{now.added:,} added, {now.skipped:,} already there"),
        )
    print_import_report(report, output)
    if report.failed:
        raise typer.Exit(FAILED)
