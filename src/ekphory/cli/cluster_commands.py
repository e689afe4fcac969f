"""`ekphory cluster import` and `serve`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import FAILED, command, show_note
from ekphory.cli.options import OutputOptions
from ekphory.cli.server_commands import (
    LoadOptions,
    ServedStore,
    make_server_options,
    print_listening,
    say_stopped,
)
from ekphory.cli.transfer_commands import print_import_report
from ekphory.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFlags:
    """What a store of shards is made of, and on what it runs.

    Attributes:
        shards (N): Shards of a new store, for its whole life [16].
        cpus (N): Processors of this machine; by default all.
    """

    shards: int | None = None
    cpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFlags:
    """Where a bulk import goes.

    Attributes:
        org: Organisation of every record.
        project: Project of every record.
        failures (FILE): Where to list what failed; else ekphory-failed/PATH.jsonl beside it.
    """

    store: Annotated[
        str,
        typer.Option(metavar="URI", help="s3://…, gs://…, az://…, or a directory that all share."),
    ]
    org: str | None = None
    project: str | None = None
    failures: Path | None = None


@command
def import_in_bulk(
    uri: str,
    given: BulkFlags,
    cluster: ClusterFlags,
    output: OutputOptions,
) -> None:
    """Remember what files hold, on all machines of a Ray cluster.

    Without `RAY_ADDRESS` all of it runs here. Run again, after an interruption or later, it adds
    what is missing. The exit code is 1 when a record was refused; all others are imported.

    Args:
        uri: File or folder of .jsonl or .parquet, here or on object storage.
    """
    from ekphory.cluster.bulk import BulkOptions
    from ekphory.cluster.bulk import import_in_bulk as run

    options = BulkOptions(
        store=given.store,
        shards=cluster.shards,
        scope=Scope(org=given.org, project=given.project),
        cpus=cluster.cpus,
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


@command
def serve_cluster(
    served: ServedStore, load: LoadOptions, cluster: ClusterFlags, output: OutputOptions
) -> None:
    """Serve a store of shards over HTTP, on all machines of a Ray cluster.

    Without `RAY_ADDRESS` all of it runs here, in as many processes as --workers says. The store is
    made where there is none. It answers what `ekphory serve` does about memories and projects.
    """
    options = make_server_options(served, load)
    from ekphory.cluster.serving import ClusterOptions
    from ekphory.cluster.serving import serve_cluster as run

    with say_stopped():
        run(
            ClusterOptions(
                server=options,
                shards=cluster.shards,
                replicas=options.workers,
                cpus=cluster.cpus,
            ),
            on_listening=partial(print_listening, output),
        )
