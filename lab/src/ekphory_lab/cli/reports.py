"""How the lab's commands show and write a report, and the models that the environment names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import HEAVY_HEAD, Box

from ekphory.cli.command import message_console, result_console, step_bar
from ekphory.cli.options import FileOutputOptions
from ekphory.cli.output import print_json, write_json
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.models.embedder import EmbeddingModel
    from ekphory_lab.evaluation.runner import Means
    from ekphory_lab.evaluation.tables import ReportTable


def show_report(
    document: object,
    output: FileOutputOptions,
    shown: Iterable[ReportTable | str],
    lines: Iterable[str] = (),
    *,
    box: Box = HEAVY_HEAD,
) -> None:
    """Print the whole report as JSON, or its tables and sentences; write it where that is wanted.

    Args:
        document: What JSON gets.
        output: What the user asked for.
        shown: What is shown instead.
        lines: What is said below.
        box: How tables are framed.
    """
    if output.json:
        print_json(document)
        return
    console = result_console()
    for each in chain(shown, lines):
        if isinstance(each, str):
            console.print(each, soft_wrap=True)
        else:
            console.print(each.for_terminal(box))
    if output.json_file is not None:
        write_json(document, output.json_file)
    name_written_file(output.json_file)


def name_written_file(path: Path | None) -> None:
    """Say which file was written; None stands for one that nobody asked for."""
    if path is not None:
        message_console().print(f"Written: {path}", style="dim")


def load_chosen_embedder(chosen: str | None) -> EmbeddingModel | None:
    """Load this embedder, else the one that the environment names; None for the bundled one."""
    from ekphory.models.loading import load_configured_embedder

    settings = read_settings()
    return load_configured_embedder(replace(settings, embedder=chosen or settings.embedder))


@contextmanager
def measuring(embedder: str | None = None) -> Iterator[Means]:
    """Yield what a measurement is made with: the models that are configured, and a shown progress.

    Args:
        embedder: In place of the embedder that the environment names.
    """
    from ekphory.models.loading import load_configured_chat, load_configured_reranker
    from ekphory.retrieval.pipeline import OptionalModels
    from ekphory_lab.evaluation.runner import Means

    settings = read_settings()
    reranker, chat = load_configured_reranker(settings), load_configured_chat(settings)
    models = OptionalModels(reranker=reranker, chat=chat)
    with step_bar() as progress:
        yield Means(embedder=load_chosen_embedder(embedder), models=models, progress=progress)
