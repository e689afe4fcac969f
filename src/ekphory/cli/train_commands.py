"""`ekphory train`: make the models that the package bundles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.fitted_target import TargetOption, fitted_target
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import running_note
from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What the exported model's record says and its weights do not."""

    name: Annotated[str | None, typer.Option(help="The model's name; else that of SOURCE.")] = None
    query_prompt: Annotated[str, typer.Option(help="What stands before every query.")] = ""
    passage_prompt: Annotated[str, typer.Option(help="What stands before every memory.")] = ""
    licence: Annotated[str, typer.Option(help="SPDX identifier of the weights' licence.")] = ""
    origin: Annotated[str, typer.Option(help="Where the weights come from.")] = ""


@command
def calibration(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder with the training data.")],
    output: OutputOptions,
    target: TargetOption = None,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep what was observed in this folder: an interrupted run goes on from there.",
        ),
    ] = None,
) -> None:
    """Fit the probabilities that hits get, and write them; no evaluation data is read.

    Fitted on scopes of 2 to 5,000 memories: documents, long messages, chats and statements. A
    search by words alone, one by meaning, and what the bundled reranker reads have a curve each.
    """
    from ekphory.models.fitted_file import write_fitted
    from ekphory.retrieval.fitted_probabilities import PROBABILITIES_FILE
    from ekphory.training.probability_file import fit_probabilities

    place = fitted_target(target, PROBABILITIES_FILE.name)
    with running_note("searching") as note:
        file = fit_probabilities(data, checkpoints=checkpoints, on_progress=note)
    write_fitted(place, file)
    if output.json:
        print_json({"target": place, "file": file})
        return
    console = result_console()
    for name, value in file.measured.items():
        console.print(f"{name} {value:g}", markup=False, soft_wrap=True)
    console.print(f"{place}: probabilities for {file.models['embedder']}", soft_wrap=True)


@command
def export(
    source: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory of a sentence-transformers model.")
    ],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Directory to write.")],
    described: RecordOptions,
    output: OutputOptions,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="JSON Lines file of neutral texts, or a folder of conversations; never evaluation "
            "data; repeatable.",
        ),
    ] = None,
) -> None:
    """Export a sentence-transformers model as an ONNX embedder that needs no torch.

    With calibration texts it is quantised to 8-bit integers, without them it stays in float.
    """
    from ekphory.training.calibration import read_calibration
    from ekphory.training.export import ModelDescription, export_embedder

    description = ModelDescription(
        name=described.name or source.resolve().name,
        query_prompt=described.query_prompt,
        passage_prompt=described.passage_prompt,
        licence=described.licence,
        source=described.origin,
    )
    with running_note("exporting"):
        record = export_embedder(
            source,
            target,
            description=description,
            quantisation="int8" if calibration else "float32",
            calibration=read_calibration(calibration or []),
        )
    if output.json:
        print_json({"target": target, "record": record})
    else:
        result_console().print(f"{target}: {record.name}@{record.revision}", soft_wrap=True)


@command
def unpack(
    target: Annotated[Path, typer.Option(metavar="DIR", help="Directory to write.")],
    output: OutputOptions,
    source: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Directory of an exported embedder or reranker, a bundled reranker's name, or "
            "bundled for the embedder.",
        ),
    ] = "bundled",
) -> None:
    """Turn an exported 8-bit model back into weights that training can start from."""
    from ekphory.models.reranker_record import is_reranker
    from ekphory.training.reranker.unpack_reranker import unpack_reranker
    from ekphory.training.unpack import unpack_embedder

    directory = _model_directory(source)
    if is_reranker(directory):
        unpack_reranker(directory, target)
    else:
        unpack_embedder(directory, target)
    if output.json:
        print_json({"target": target})
    else:
        result_console().print(f"{target}: unpacked from {source}", soft_wrap=True)


def _model_directory(source: str) -> Path:
    from ekphory.models.bundled_reranker import BUNDLED_RERANKERS, bundled_directory
    from ekphory.models.onnx_embedder import load_bundled

    if source in BUNDLED_RERANKERS:
        return bundled_directory(source)
    directory = load_bundled().directory if source == "bundled" else Path(source)
    if not directory.is_dir():
        known = ", ".join(("bundled", *BUNDLED_RERANKERS))
        raise InvalidInput("source", source, "no such directory", f"Give one, or {known}.")
    return directory
