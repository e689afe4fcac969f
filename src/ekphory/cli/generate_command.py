"""`ekphory train generate`: make memories with queries and hard negatives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import step_bar

if TYPE_CHECKING:
    from ekphory.training.memories.vocabulary import Split


@command
def generate(
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON Lines file to write.")],
    output: OutputOptions,
    count: Annotated[int, typer.Option(help="How many samples.")] = 500_000,
    seed: Annotated[int, typer.Option(help="Other seeds give other samples.")] = 0,
    split: Annotated[str, typer.Option(help="train or test: they share no wording.")] = "train",
) -> None:
    """Generate queries, each with the memory that answers and seven hard negatives."""
    from ekphory.training.memories.generate import generate as generate_samples
    from ekphory.training.memories.writing import write_samples

    samples = generate_samples(cast("Split", split), seed=seed, count=count)
    with step_bar() as progress:
        report = write_samples(samples, out, progress=lambda done: progress("samples", done, count))
    if output.json:
        print_json({"file": out, "report": report})
        return
    console = result_console()
    console.print(f"{out}: {report.samples:,} samples in {report.seconds:.1f} s", soft_wrap=True)
    for title, counts in (("answers", report.types), ("negatives", report.negatives)):
        named = ", ".join(f"{name} {number:,}" for name, number in counts.items())
        console.print(f"{title}: {named}", soft_wrap=True)
