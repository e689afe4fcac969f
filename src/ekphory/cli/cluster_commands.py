"""`ekphory cluster`: what is done to a whole store of shards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ekphory.cli.command import FAILED, command, message_console, print_result, step_bar
from ekphory.cli.options import STANDARD_OUTPUT, OutputOptions
from ekphory.cli.transfer_commands import show_copied_bytes, write_export
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.cluster.moving import MoveReport
    from ekphory.cluster.operations import ShardReports


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStore:
    """Which store of shards.

    Attributes:
        store (URI): s3://…, gs://…, az://…, or a directory that all share.
    """

    store: str


@command
def reshard(where: ClusterStore, output: OutputOptions, *, shards: int) -> None:
    """Change the number of shards, while nobody serves the store.

    Vectors are copied. When it breaks off, run it again: it goes on. Searches find the same before
    and after.

    Args:
        shards (N): How many there will be.
    """
    from ekphory.cluster.bulk import load_chosen_embedder
    from ekphory.cluster.moving import reshard as run

    with step_bar() as show:
        tell, embedder = partial(show, "memories"), load_chosen_embedder()
        report = run(where.store, embedder, count=shards, on_progress=tell)
    _print_move(report, output)


@command
def reembed(where: ClusterStore, output: OutputOptions, *, embedder: str | None = None) -> None:
    """Embed all shards anew with another model, while nobody serves the store.

    When it breaks off, run it again: it goes on. Set the model for all machines afterwards.

    Args:
        embedder (MODEL): Model directory or /v1/embeddings URL; else EKPHORY_EMBEDDER, else the
            bundled model.
    """
    from ekphory.cluster.moving import move
    from ekphory.models.loading import load_configured_embedder, load_embedder

    settings = read_settings()
    chosen = replace(settings, embedder=embedder or settings.embedder)
    model = load_configured_embedder(chosen) or load_embedder()
    with step_bar() as show:
        report = move(where.store, model, on_progress=partial(show, "memories"))
    _print_move(report, output)


def _print_move(report: MoveReport, output: OutputOptions) -> None:
    shown = (
        f"{report.store} has {report.shards:,} shards, with vectors of {report.embedder}. "
        f"{report.memories:,} memories and earlier versions and {report.revisions:,} decisions "
        "were moved."
    )
    print_result(output, report, shown)


@command
def optimize(where: ClusterStore, output: OutputOptions) -> None:
    """Merge the files of all shards, drop old versions, and build their indexes.

    Others may go on reading and writing. It can be stopped and run again.
    """
    _do_in_shards("optimize", where, output)


@command
def purge(where: ClusterStore, output: OutputOptions) -> None:
    """Rewrite all shards without what was forgotten.

    Others may go on reading and writing. It can be stopped and run again.
    """
    _do_in_shards("purge", where, output)


@command
def verify(where: ClusterStore, output: OutputOptions) -> None:
    """Read every row of all shards, and compare it with its checksum.

    The exit status is 1 where there is damage.
    """
    reports = _do_in_shards("verify", where, output)
    for damage in reports.damage:
        told = f"{damage.file}: {damage.rows:,} rows: {damage.problem}."
        message_console().print(told, style="red")
    if reports.damage:
        raise typer.Exit(FAILED)


def _do_in_shards(verb: str, where: ClusterStore, output: OutputOptions) -> ShardReports:
    from ekphory.cluster.bulk import load_chosen_embedder
    from ekphory.cluster.operations import do_in_shards

    with step_bar() as show:
        reports = do_in_shards(where.store, load_chosen_embedder(), verb, on_progress=show)
    print_result(output, reports, f"{verb}: {len(reports.shards):,} shards are done.")
    return reports


@command
def backup(where: ClusterStore, output: OutputOptions, *, target: str) -> None:
    """Copy a store while it is served, each shard in one state; the copy is a store itself.

    Run again, it copies what has changed since and removes what is gone.

    Args:
        target (URI): A new place, or that of an earlier copy.
    """
    from ekphory.cluster.bulk import load_chosen_embedder
    from ekphory.cluster.operations import back_up

    with show_copied_bytes() as tell:
        report = back_up(where.store, load_chosen_embedder(), target, on_progress=tell)
    shown = (
        f"{report.memories:,} memories and earlier versions in {report.shards:,} shards are in "
        f"{report.target}; {report.copied:,} objects of {report.bytes:,} bytes were copied."
    )
    print_result(output, report, shown)


@command
def export(where: ClusterStore, output: OutputOptions, target: Path = STANDARD_OUTPUT) -> None:
    """Write what all shards hold to JSON Lines, whole, with earlier versions and decisions.

    `ekphory import` and `ekphory cluster import` read it. A file appears when it is complete.

    Args:
        target (FILE): Where to write; - for standard output.
    """
    from ekphory.cluster.bulk import load_chosen_embedder
    from ekphory.cluster.operations import export as run

    write_export(target, output, partial(run, where.store, load_chosen_embedder()))


@command
def erase(where: ClusterStore, output: OutputOptions, *, org: str, user: str) -> None:
    """Erase all memories of a person in an organisation, and print a receipt.

    They go from all shards, with earlier versions, decisions, and the bytes in the files; no text
    is in the receipt. Others may go on. When it breaks off, run it again.

    Args:
        org: The organisation.
        user: The person.
    """
    from ekphory.cluster.bulk import load_chosen_embedder
    from ekphory.cluster.operations import erase as run

    with step_bar() as show:
        tell, embedder = partial(show, "shards"), load_chosen_embedder()
        receipt = run(where.store, embedder, org=org, user=user, on_progress=tell)
    lines = [
        f"{receipt.erased:,} memories and earlier versions of {user} in {org} were erased from "
        f"{receipt.store} by {receipt.erased_at}."
    ]
    for each in receipt.shards:
        lines.append(f"shard {each.shard}, version {each.version}: {each.erased:,}")
        lines += [f"  {digest}" for digest in each.sha256]
    print_result(output, receipt, "\n".join(lines))
