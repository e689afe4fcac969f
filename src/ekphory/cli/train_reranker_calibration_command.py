"""`ekphory train reranker-calibration`: what the scores of any reranker are worth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import step_bar
from ekphory.config import read_settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.models.reranker import RerankingModel
    from ekphory.training.reranker.own_calibration import OwnCalibration

PICTURE = ".svg"


@command
def reranker_calibration(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder with the training data.")],
    reranker: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="A directory, hub id or URL; a service is asked as EKPHORY_RERANKER_… say.",
        ),
    ],
    target: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write it, with a picture beside it.")
    ],
    output: OutputOptions,
    read: Annotated[
        int, typer.Option(min=1, help="How many candidates of a question it reads.")
    ] = 50,
) -> None:
    """Fit a reranker's scores to be probabilities, so that a hit's score and min_score hold.

    Name the file in EKPHORY_RERANKER_CALIBRATION, or give it to Reranker.from_pretrained.
    """
    from ekphory.evaluation.reranking.reliability_picture import reliability_svg
    from ekphory.models.calibration_file import FittedCalibration, write_calibration
    from ekphory.models.configured import named_reranker

    _check_target(target)
    model = named_reranker(reranker, read_settings())
    found = _fitted(data, model, read)
    write_calibration(target, FittedCalibration(model.name, found.card))
    if found.reliability is not None:
        picture = reliability_svg(found.reliability, title=model.name)
        target.with_suffix(PICTURE).write_text(picture, encoding="utf-8")
    if output.json:
        print_json({"target": target, "reranker": model.name, "card": found.card})
        return
    result_console().print(_table(model.name, found))


def _check_target(target: Path) -> None:
    # Before minutes of scoring, not after them.
    if target.suffix == PICTURE:
        raise InvalidInput("target", str(target), "is where the picture goes", "Name it card.json")
    place = target if target.exists() else target.parent
    if target.is_dir() or not target.parent.is_dir() or not os.access(place, os.W_OK):
        problem = "is no file that can be written"
        raise InvalidInput("target", str(target), problem, "Name one in a directory that is there")


def _fitted(data: Path, model: RerankingModel, read: int) -> OwnCalibration:
    from ekphory.evaluation.reranking.contenders import model_contender
    from ekphory.evaluation.reranking.first_stage import find_candidates
    from ekphory.evaluation.reranking.scored_lists import Judge
    from ekphory.models.configured import configured_embedder
    from ekphory.models.loading import load_embedder
    from ekphory.training.gate_conversations import gate_conversations
    from ekphory.training.reranker.own_calibration import fit_own_calibration

    dataset = gate_conversations(data)
    embedder = configured_embedder(read_settings()) or load_embedder(None)
    with step_bar() as progress:
        candidates = find_candidates(dataset, embedder=embedder, progress=progress)
        judge = Judge(model_contender(model), candidates, dataset.pools)
        return fit_own_calibration(dataset, judge, read=read, progress=progress)


def _table(name: str, found: OwnCalibration) -> Table:
    card = found.card
    table = Table(title=f"{name}: P = σ({card.slope:.3f} · logit(score) + {card.intercept:.3f})")
    for header in ("precision wanted", "least probability"):
        table.add_column(header)
    for precision, threshold in card.thresholds.items():
        table.add_row(precision, f"{threshold:.4f}")
    table.caption = f"{card.data}; error {card.measured['ece/held back']:.4f}"
    return table
