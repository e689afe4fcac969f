"""Writes an embedder's directory: float weights, and the ONNX model in its folder `onnx`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from ekphory.errors import InvalidInput, MissingExtra, ModelError
from ekphory.models.embedder_components import COMPONENTS_FILE
from ekphory.models.model_directory import ONNX_FOLDER
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    RECORD_FILE,
    TOKENIZER_FILE,
    read_checked,
    read_record,
)
from ekphory.models.onnx_embedder import OnnxEmbedder
from ekphory.models.torch_embedder import TorchEmbedder
from ekphory.models.torch_layouts import AGENTRANK_FILE, SavedFormat

_EXPORTED = (RECORD_FILE, MODEL_FILE, TOKENIZER_FILE, LATE_BOUND_FILE)
_LOADED_FIRST = (RECORD_FILE, AGENTRANK_FILE)
"""Files of other layouts: a directory with one of them is loaded as that, whatever lies beside."""
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_ANOTHER = "Give another directory"


def save_embedder(
    model: OnnxEmbedder | TorchEmbedder, directory: Path, *, formats: Sequence[SavedFormat] | None
) -> None:
    """Write the model; `Embedder.save_pretrained` says what in which format.

    Raises:
        InvalidInput: There is no such format, or the directory or the model does not allow it.
        MissingExtra: The format needs the `[export]` extra.
        ModelError: The model cannot be exported as ONNX, or the files it was loaded from are
            gone or changed.
    """
    formats = None if formats is None else _known_formats(formats)
    for name in _LOADED_FIRST:
        if (directory / name).exists():
            problem = f"holds {name}, which would be loaded instead of what is saved"
            raise InvalidInput("path", str(directory), problem, _ANOTHER)
    if isinstance(model, OnnxEmbedder):
        _save_exported(model, directory, formats)
        return
    _forget_export(directory)
    model.save(directory)
    if "onnx" in (formats or model.formats):
        _export(directory, name=model.identity.name)


def _known_formats(formats: Iterable[SavedFormat]) -> tuple[SavedFormat, ...]:
    known = get_args(SavedFormat)
    listed = isinstance(formats, Iterable) and not isinstance(formats, str)
    given = tuple(formats) if listed else ()
    if not given or any(each not in known for each in given):
        remedy = f"Give a list of {' and '.join(map(repr, known))}, or leave it out"
        raise InvalidInput("formats", formats, "is no list of formats", remedy)
    return given


def _save_exported(
    model: OnnxEmbedder, directory: Path, formats: Sequence[SavedFormat] | None
) -> None:
    """Write what is known of a model that was loaded from ONNX: its files, and its float weights.

    The weights stand beside the folder it was loaded from, or are unpacked from 8 bits.
    """
    _check_source(model)
    source = model.directory
    beside = source.parent if _has_weights_beside(source) else None
    if formats is not None and "transformers" not in formats:
        written = beside is not None and _same(beside, directory)
    elif beside is not None:
        _copy_weights(beside, directory)
        written = True
    else:
        written = _unpack(model, directory, asked=formats is not None)
    if not written and _has_weights(directory):
        problem = "holds float weights that saving ONNX alone would leave beside it"
        raise InvalidInput("path", str(directory), problem, _ANOTHER)
    if formats is None or "onnx" in formats:
        _copy_export(source, directory / ONNX_FOLDER)
    elif not _same(source, directory / ONNX_FOLDER):
        _forget_export(directory)


def _check_source(model: OnnxEmbedder) -> None:
    """Raise `ModelError` unless the model's files are still those that were loaded."""
    source = model.directory
    if read_record(source) != model.record:
        raise ModelError(
            f"{source / RECORD_FILE}: the record of another model than {model.identity}, which was "
            "loaded from there. Load the model anew, from where its files are now."
        )
    for name, sha256 in model.record.files.items():
        read_checked(source / name, sha256)


def _has_weights_beside(exported: Path) -> bool:
    return exported.name == ONNX_FOLDER and _has_weights(exported.parent)


def _has_weights(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _WEIGHTS)


def _same(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve()


def _copy_weights(source: Path, target: Path) -> None:
    if _same(source, target):
        return
    # Of another model's files none may stay that is read before the copied ones.
    for name in (*_WEIGHTS, COMPONENTS_FILE):
        (target / name).unlink(missing_ok=True)
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(ONNX_FOLDER))


def _copy_export(source: Path, target: Path) -> None:
    if _same(source, target):
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in _EXPORTED:
        (target / name).unlink(missing_ok=True)
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)


def _unpack(model: OnnxEmbedder, directory: Path, *, asked: bool) -> bool:
    """Tell whether there are float weights in the directory now."""
    # Optional: the trainers are above the models, and need the [export] extra.
    from ekphory.training.unpack import is_unpackable, unpack_embedder

    if not is_unpackable(model.record):
        if not asked:
            return False
        problem = f"{model.identity.name} was loaded from ONNX and has no float weights"
        remedy = "Leave 'transformers' out, or save the model that it was exported from"
        raise InvalidInput("formats", "transformers", problem, remedy)
    try:
        unpack_embedder(model.directory, directory)
    except MissingExtra:
        if asked:
            raise
        return False
    return True


def _forget_export(directory: Path) -> None:
    """Remove an ONNX model that was made of other weights: it would be loaded instead of them."""
    folder = directory / ONNX_FOLDER
    if not (folder / RECORD_FILE).is_file():
        return
    for name in _EXPORTED:
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _export(directory: Path, *, name: str) -> None:
    # Optional: the exporter, which is above the models, needs the [export] extra.
    from ekphory.training.export import ModelDescription, export_embedder

    export_embedder(
        directory,
        directory / ONNX_FOLDER,
        description=ModelDescription(name=name),
        quantisation="float32",
    )
