"""`ekphory demo`: a year of somebody's life, remembered and searched in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ekphory.cli.chain_printing import hop_line
from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, search_json
from ekphory.cli.memory_printing import history_table, hit_table, printable
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import running_note
from ekphory.cli.trace_printing import score_table, stage_table
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.cli.demo_scenes import Answer, Scene, Showing


@command
def demo(
    output: OutputOptions,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the store in this directory; else it is deleted."),
    ] = None,
) -> None:
    """Remember a bundled conversation and search it, in a store of its own.

    Touches none of your stores. With --keep you can go on asking it.
    """
    from ekphory.cli.demo_scenes import show
    from ekphory.memory import Memory

    with (
        _directory(keep) as directory,
        Memory(directory, embedder=read_settings().embedder) as memory,
        running_note("remembering and searching"),
    ):
        showing = show(memory)
    if output.json:
        print_json(_as_json(showing, keep))
    else:
        _print_showing(showing, keep)


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="ekphory-demo-") as temporary:
        yield Path(temporary) / "memories"


def _as_json(showing: Showing, keep: Path | None) -> dict[str, object]:
    return {
        "store": keep,
        "added": showing.added,
        "seconds": showing.seconds,
        "searches": [
            {"shows": scene.shows, "filter": scene.filter, "pool": scene.pool}
            | search_json(scene.query, result)
            for scene, result in showing.scenes
        ],
        "history": showing.versions,
        "questions": showing.answers,
        "answered": showing.answered,
    }


def _print_showing(showing: Showing, keep: Path | None) -> None:
    console = result_console()
    console.print(Rule("ekphory: a year with Mara, who renovates a flat", style="cyan"))
    console.print(
        f"{showing.added} memories of eight conversations added in {showing.seconds:.1f} s: "
        "durable, indexed, searchable at once.\n"
    )
    for scene, result in showing.scenes:
        _print_command(console, scene)
        console.print(hit_table(result.hits))
        console.print()
    _print_explanation(console, showing)
    console.print(Text("What changes is kept as history:", style="bold"))
    console.print(history_table(showing.versions))
    console.print()
    console.print(_answer_table(showing))
    for answer in showing.answers:
        _print_chain(console, answer)
    _print_next_steps(keep)


def _print_chain(console: Console, answer: Answer) -> None:
    if not answer.hops:
        return
    command = f'ekphory ask "{answer.question.text}"'
    console.print(Text.assemble(("Hop by hop\n", "bold"), (f"$ {command}", "cyan")))
    for hop in answer.hops:
        console.print(hop_line(hop), soft_wrap=True)
    console.print(Text(f"  {printable(answer.hit.text)}\n"), soft_wrap=True)


def _print_command(console: Console, scene: Scene) -> None:
    words = f'ekphory search "{scene.query}" --k 3'
    if scene.filter is not None:
        words += f' --filter "{scene.filter}"'
    if scene.pool is not None:
        words += f" --pool {scene.pool}"
    console.print(Text.assemble((f"{scene.shows.capitalize()}\n", "bold"), (f"$ {words}", "cyan")))


def _print_explanation(console: Console, showing: Showing) -> None:
    _, result = showing.scenes[0]
    console.print(Text("What the first search did, as --explain shows it:", style="bold"))
    console.print(stage_table(result.trace))
    console.print(score_table(result.hits))


def _answer_table(showing: Showing) -> Table:
    speed = median(answer.milliseconds for answer in showing.answers)
    table = Table(
        title=f"{showing.answered} of {len(showing.answers)} questions find an expected memory "
        f"among the first three; {speed:.0f} ms each",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        expand=True,
    )
    table.add_column("", no_wrap=True)
    table.add_column("question", ratio=2, overflow="fold")
    table.add_column("shows", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("found", ratio=3, no_wrap=True, overflow="ellipsis")
    for answer in showing.answers:
        table.add_row(*_answer_cells(answer))
    return table


def _answer_cells(answer: Answer) -> tuple[Text, ...]:
    found = answer.rank is not None
    return (
        Text("✓", style="green") if found else Text("✗", style="red"),
        Text(answer.question.text),
        Text(answer.question.shows, style="dim"),
        Text(str(answer.rank) if found else "–"),
        Text(printable(answer.hit.text), style="" if found else "dim"),
    )


def _print_next_steps(keep: Path | None) -> None:
    console = message_console()
    if keep is not None:
        console.print(f"\nThe store is kept in {keep}. Ask it something else:")
        console.print(f'  ekphory search "Who is Bram?" --store "{keep}"', style="cyan")
    console.print("\nNow with memories of your own:")
    console.print('  ekphory add "I prefer Python over JavaScript" --producer me', style="cyan")
    console.print("  ekphory import PATH-OF-A-CHAT-EXPORT", style="cyan")
    console.print('  ekphory search "what language do I like?" --explain', style="cyan")
