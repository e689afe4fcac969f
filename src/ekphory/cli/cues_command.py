"""`ekphory eval cues`: what the words for type and importance in a query are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json, write_json
from ekphory.cli.options import EmbedderOption, FileOutputOptions
from ekphory.cli.progress import step_bar
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.evaluation.cues.measure import CueReport


@command
def cues(output: FileOutputOptions, embedder: EmbedderOption = None) -> None:
    """Ask for what is important, for preferences, procedures and events; with and without hints."""
    from ekphory.evaluation.cues.measure import measure_cues, report_json
    from ekphory.evaluation.cues.scenes import scenes
    from ekphory.models.loading import load_embedder

    settings = read_settings()
    model = load_embedder(
        embedder or settings.embedder,
        model=settings.embedder_model,
        api_key=settings.embedder_api_key,
    )
    with step_bar() as progress:
        report = measure_cues(scenes(), embedder=model, progress=progress)
    if output.json:
        print_json(report_json(report))
        return
    result_console().print(_table(report))
    if output.json_file is not None:
        write_json(report_json(report), output.json_file)
        message_console().print(f"Written: {output.json_file}", style="dim")


def _table(report: CueReport) -> Table:
    title = f"MRR over {report.memories} memories, {report.embedder}"
    table = Table(title=title, title_justify="left")
    table.add_column("asks for")
    for header in ("queries", "with hints", "without", "difference", "95 %", "p"):
        table.add_column(header, justify="right")
    for each in report.scores:
        test = each.difference
        table.add_row(
            each.cue,
            str(each.queries),
            f"{each.with_hints.mean:.3f}",
            f"{each.without_hints.mean:.3f}",
            f"{test.difference:+.3f}",
            f"{test.low:+.3f} to {test.high:+.3f}",
            "<.001" if test.p_value < 0.001 else f"{test.p_value:.3f}",
        )
    return table
