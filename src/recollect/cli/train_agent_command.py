"""`recollect train agent`: how sure the local agent is of what it finds."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.command import command
from recollect.cli.consoles import result_console
from recollect.cli.json_output import print_json
from recollect.cli.options import OutputOptions
from recollect.cli.progress import running_note


@command
def agent(
    output: OutputOptions,
    stories: Annotated[int, typer.Option(min=1, help="How many stories to generate.")] = 40,
    seed: Annotated[int, typer.Option(help="The first story's seed.")] = 1,
) -> None:
    """Fit the curves that turn a link of a chain into a probability, on generated stories."""
    from recollect.training.agent.link_calibration import fit_links

    with running_note("following chains through generated stories"):
        fit = fit_links(stories=stories, seed=seed)
    if output.json:
        print_json(fit)
        return
    console = result_console()
    console.print(f"LINK_CURVE = {fit.links}", soft_wrap=True)
    console.print(f"EVIDENCE_CURVE = {fit.evidence}", soft_wrap=True)
    console.print(
        f"{fit.observations:,} links; on held-out stories the expected calibration error is "
        f"{fit.links_error:.3f} of names ({fit.links_right:.2f} right) and "
        f"{fit.evidence_error:.3f} of memories ({fit.evidence_right:.2f} right)",
        soft_wrap=True,
    )
