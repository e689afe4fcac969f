"""`ekphory search`: find the memories that answer a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, search_json
from ekphory.cli.memory_printing import hit_table
from ekphory.cli.open_store import open_existing
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.cli.trace_printing import score_table, stage_table
from ekphory.results import SearchResult
from ekphory.types import TimeUse


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What to find, and how."""

    k: Annotated[int, typer.Option("--k", "-k", help="How many hits, 1 to 1000.")] = 10
    filter: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="Only memories for which this condition holds."),
    ] = None
    pool: Annotated[
        list[str] | None, typer.Option(help="Only this pool; repeatable, else all.")
    ] = None
    min_score: Annotated[
        float | None, typer.Option(help="Only hits of at least this probability, 0 to 1.")
    ] = None
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The moment of asking, ISO 8601; else the current one."),
    ] = None
    time: Annotated[
        TimeUse,
        typer.Option(
            help="What a time in the question does: boost what lies in it, filter, or ignore."
        ),
    ] = "boost"
    timezone: Annotated[
        str, typer.Option(metavar="NAME", help="Where its days begin, such as Europe/Berlin.")
    ] = "UTC"
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A turn of the dialogue before the question, oldest first; repeatable.",
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help="The pipeline to rank with; else EKPHORY_PRESET, else balanced."),
    ] = None


@command
def search(
    query: Annotated[str, typer.Argument(help='A question or some words; "" lists the newest.')],
    asked: SearchOptions,
    where: StoreOptions,
    output: OutputOptions,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every stage did, and all raw scores.")
    ] = False,
) -> None:
    """Find the memories that answer a question, best first.

    The number before a hit is the probability that it answers. Nothing found is an empty
    result, with exit code 0.
    """
    with open_existing(where) as memory:
        result = memory.search(
            query,
            k=asked.k,
            now=asked.now,
            pools=asked.pool,
            filter=asked.filter,
            min_score=asked.min_score,
            preset=asked.preset,
            context=asked.context or (),
            time=asked.time,
            timezone=asked.timezone,
        )
    if output.json:
        print_json(search_json(query, result))
        return
    _print_hits(result)
    if explain:
        _print_stages(result)


def _print_hits(result: SearchResult) -> None:
    if result.hits:
        result_console().print(hit_table(result.hits))
    elif result.abstained:
        message_console().print("No memory reaches --min-score.")
    else:
        message_console().print("No memory matches.")


def _print_stages(result: SearchResult) -> None:
    console = result_console()
    console.print()
    console.print(stage_table(result.trace))
    if result.hits:
        console.print(score_table(result.hits))
