"""The embedder that users see: it knows age, type and importance; loaded and saved."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, TypeGuard, get_args

import numpy as np

from ekphory.errors import InvalidInput, MissingExtra, ModelError
from ekphory.models import late_bound
from ekphory.models.embedder import FloatMatrix
from ekphory.models.loading import ONNX_FOLDER, Runtime, load_local_embedder
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    MODEL_FILE,
    RECORD_FILE,
    TOKENIZER_FILE,
    read_checked,
    read_record,
)
from ekphory.models.onnx_models import OnnxEmbedder
from ekphory.models.torch_embedder import (
    AGENTRANK_FILE,
    SavedFormat,
    TorchEmbedder,
    TorchOptions,
    write_agentrank_components,
)
from ekphory.types import MemoryType

# How it is saved: float weights, and the ONNX model in the folder `onnx`.

Formats = Sequence[SavedFormat] | None
_EXPORTED = (RECORD_FILE, MODEL_FILE, TOKENIZER_FILE, LATE_BOUND_FILE)
_LOADED_FIRST = (RECORD_FILE, AGENTRANK_FILE)
"""Files of other layouts: a directory with one of them is loaded as that, whatever lies beside."""
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_ANOTHER = "Give another directory"


def save_embedder(
    model: OnnxEmbedder | TorchEmbedder, directory: Path, *, formats: Formats, results: Results
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
        is_replaced = name == AGENTRANK_FILE and "agentrank" in (formats or ())
        if (directory / name).exists() and not is_replaced:
            problem = f"holds {name}, which would be loaded instead of what is saved"
            raise InvalidInput("path", str(directory), problem, _ANOTHER)
    (directory / AGENTRANK_FILE).unlink(missing_ok=True)
    if isinstance(model, OnnxEmbedder):
        _save_exported(model, directory, formats)
    else:
        _save_torch(model, directory, formats)
    if "agentrank" in (formats or ()):
        write_agentrank_components(directory)
    write_card(model, directory, results=results)


def _save_torch(model: TorchEmbedder, directory: Path, formats: Formats) -> None:
    _forget_export(directory)
    model.save(directory)
    if "onnx" in (formats or model.formats):
        # Optional: needs the [export] extra.
        from ekphory.models.onnx_export import ModelDescription, export_embedder

        description = ModelDescription(name=model.identity.name)
        export_embedder(directory, directory / ONNX_FOLDER, description=description)


def _known_formats(formats: Iterable[SavedFormat]) -> tuple[SavedFormat, ...]:
    known = get_args(SavedFormat)
    given = tuple(formats) if _is_list(formats) else ()
    if not given or any(each not in known for each in given):
        remedy = f"Give a list of {' and '.join(map(repr, known))}, or leave it out"
        raise InvalidInput("formats", formats, "must be a list of formats", remedy)
    # AgentRank's file stands beside the float weights.
    return (*given, "transformers") if "agentrank" in given else given


def _save_exported(model: OnnxEmbedder, directory: Path, formats: Formats) -> None:
    """Write what is known of a model that was loaded from ONNX: its files, and its float weights.

    The weights stand beside the folder it was loaded from, or are unpacked from 8 bits.
    """
    _check_source(model)
    source = model.directory
    has_weights = source.name == ONNX_FOLDER and _has_weights(source.parent)
    beside = source.parent if has_weights else None
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


def _has_weights(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _WEIGHTS)


def _same(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve()


def _copy_weights(source: Path, target: Path) -> None:
    if _same(source, target):
        return
    # Of another model's files none may stay that is read before the copied ones.
    for name in (*_WEIGHTS, late_bound.COMPONENTS_FILE):
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
    """Return whether there are float weights in the directory now."""
    if not model.record.is_unpackable:
        if not asked:
            return False
        problem = f"{model.identity.name} was loaded from ONNX and has no float weights"
        remedy = "Leave 'transformers' out, or save the model that it was exported from"
        raise InvalidInput("formats", "transformers", problem, remedy)
    try:
        # Optional: needs the [export] extra.
        from ekphory.models.onnx_export import unpack_embedder

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


# Its card: a README.md with the metadata that model hubs read.

Results = Mapping[str, Mapping[str, float]]
"""Measured values by data set and metric."""
CARD_FILE = "README.md"
_TAGS = ("sentence-transformers", "embeddings", "retrieval", "agents", "memory")
_AGED = """
With age in days and type, added where they are given:

```python
embedder.encode(["I prefer tea"], days_ago=3, memory_type="semantic")
```
"""


def write_card(
    model: OnnxEmbedder | TorchEmbedder, directory: Path, *, results: Results | None = None
) -> None:
    """Write `README.md` of a model that was saved; what stood there is replaced.

    Args:
        model: As it was loaded or saved.
        directory: Where it stands.
        results: What was measured; None where nothing was.

    Raises:
        InvalidInput: A result is not a number.
    """
    results = results or {}
    rows = [row.values() if isinstance(row, Mapping) else [None] for row in results.values()]
    measured = [value for row in rows for value in row]
    if any(not isinstance(value, int | float) or not math.isfinite(value) for value in measured):
        problem, remedy = "must be numbers", "Give {data set: {metric: number}}"
        raise InvalidInput("results", dict(results), problem, remedy)
    identity, aged = model.identity, "" if model.late_bound is None else _AGED
    record = model.record if isinstance(model, OnnxEmbedder) else None
    licence, source = (record.licence, record.source) if record else ("", "")
    front = _metadata(identity.name, licence, results).items()
    metadata = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front)
    template = files("ekphory.models").joinpath("model_card.md").read_text(encoding="utf-8")
    told = {"identity": identity, "source": source, "aged": aged, "table": _table(results)}
    (directory / CARD_FILE).write_text(template.format(metadata=metadata, **told), encoding="utf-8")


def _metadata(name: str, licence: str, results: Results) -> dict[str, Any]:
    """Return the keys of the front matter; each value is JSON, which YAML reads."""
    measured = [
        {
            "task": {"type": "retrieval", "name": "Agent memory retrieval"},
            "dataset": {"type": dataset.lower().replace(" ", "-"), "name": dataset},
            "metrics": [
                {"type": name.lower(), "value": value, "name": name} for name, value in row.items()
            ],
        }
        for dataset, row in results.items()
    ]
    metrics = {metric.lower() for row in results.values() for metric in row}
    return {
        **({"license": licence.lower()} if licence else {}),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": list(_TAGS),
        **({"metrics": sorted(metrics)} if metrics else {}),
        "model-index": [{"name": name, "results": measured}],
    }


def _table(results: Results) -> str:
    if not results:
        return "None were given when it was saved."
    lines = ["| data | metric | value |", "|---|---|---|"]
    for dataset, row in results.items():
        lines += [f"| {dataset} | {metric} | {value:.4g} |" for metric, value in row.items()]
    return "\n".join(lines)


# The embedder.

AgeInDays = float | None


class Embedder:
    """An embedding model for memories. Safe to call from several threads.

        embedder = Embedder.from_pretrained("bundled")
        embedder.encode(["I prefer tea"], days_ago=3, memory_type="semantic")

    It follows `EmbeddingModel`, so that `Memory(path, embedder=embedder)` takes it.

    Attributes:
        identity: Name, revision and dimension.
        late_bound: Vectors of age and type; None for a model that knows neither.
    """

    def __init__(self, model: OnnxEmbedder | TorchEmbedder) -> None:
        """Wrap a loaded model; `from_pretrained` loads one."""
        self._model = model
        self.identity = model.identity
        self.late_bound = model.late_bound

    @classmethod
    def from_pretrained(
        cls,
        path_or_id: str | Path = "bundled",
        *,
        runtime: Runtime | None = None,
        options: TorchOptions | None = None,
    ) -> Self:
        """Load a model.

        Args:
            path_or_id: `bundled`; a directory as `save_pretrained`, `ekphory train export`,
                AgentRank or sentence-transformers writes it; or a hub id.
            runtime: What runs it; None takes ONNX Runtime where the directory has an ONNX model and
                no options are given, else torch.
            options: How torch loads it.

        Raises:
            InvalidInput: The path does not exist, or has no model for this runtime.
            MissingExtra: The model needs the `[torch]` extra.
            ModelError: The model cannot be loaded.
        """
        return cls(load_local_embedder(path_or_id, runtime=runtime, options=options))

    def __repr__(self) -> str:
        return f"Embedder({self.identity})"

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        days_ago: AgeInDays | Sequence[AgeInDays] = None,
        memory_type: MemoryType | Sequence[MemoryType | None] | None = None,
    ) -> FloatMatrix:
        """Embed memories; returns shape (len(texts), dimension), rows of length 1.

        Without age and type a vector is what plain sentence-transformers gives. For a memory with
        an age and no type the type head predicts one, where the model has the head.

        Args:
            texts: The memories; a single text counts as a list of one.
            days_ago: Age in days, one for all or one for each; None adds none.
            memory_type: Likewise.

        Raises:
            InvalidInput: No text, an age or type that is none, too few or too many of them, or a
                model that knows neither.
            ModelError: The model gives numbers that are not finite.
        """
        passages = list_texts(texts)
        ages = _one_for_each("days_ago", days_ago, len(passages))
        types = _one_for_each("memory_type", memory_type, len(passages))
        bound = [age is not None or kind is not None for age, kind in zip(ages, types, strict=True)]
        if not any(bound):
            return self._model.encode(passages)
        parts = self.late_bound
        if parts is None:
            problem = f"{self.identity.name} knows neither age nor type"
            remedy = "Leave it out, or load a model with both"
            if days_ago is not None:
                raise InvalidInput("days_ago", days_ago, problem, remedy)
            raise InvalidInput("memory_type", memory_type, problem, remedy)
        reading = self._model.read(passages)
        buckets, codes = _age_codes(ages), _type_codes(types, ages, reading)
        return parts.bound(reading.content, buckets=buckets, types=codes)

    def encode_query(self, texts: str | Sequence[str]) -> FloatMatrix:
        """Embed queries, with the model's query prompt; they have no age and no type."""
        return self._model.encode_query(list_texts(texts))

    def importance(self, texts: str | Sequence[str]) -> late_bound.FloatVector:
        """Predict how important each memory is, in [0, 1]; shape (len(texts),).

        Raises:
            ModelError: The model has no importance head.
        """
        return self._require(self.read(list_texts(texts)).importance, "importance head")

    def memory_type(self, texts: str | Sequence[str]) -> list[MemoryType]:
        """Predict the type of each memory.

        Raises:
            ModelError: The model has no type head.
        """
        logits = self._require(self.read(list_texts(texts)).type_logits, "type head")
        return late_bound.predict_types(logits)

    def read(self, texts: Sequence[str]) -> late_bound.PassageReading:
        """Read passages in one pass: what is stored, and what the heads say of them."""
        return self._model.read(texts)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, each starting with `prefix`."""
        return self._model.windows(text, prefix=prefix)

    def save_pretrained(
        self,
        path: str | Path,
        *,
        formats: Sequence[SavedFormat] | None = None,
        results: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Write a directory that `from_pretrained` loads, with a model card.

        `transformers` loads in plain `AutoModel` and `SentenceTransformer` too, and with
        `agentrank` in the package `agentrank`, for which it needs torch; `onnx` stands in
        the folder `onnx` of the same directory and needs no torch. An ONNX model that stood there
        and is not written anew is removed: it belongs to other weights. The one that this model
        itself was loaded from stays.

        A model that was loaded from ONNX keeps both formats where its float weights stand beside
        the folder `onnx`, or can be unpacked from 8 bits, as those of `bundled` can. Unpacking
        needs the `[export]` extra; without it, and without `formats`, only `onnx` is written.

        Args:
            path: Made if needed.
            formats: What to write; None writes `transformers`, and for BERT-like encoders with mean
                pooling `onnx` too. Of a model that torch runs `transformers` is always written.
            results: What the card's `model-index` says: measured values by data set and metric.

        Raises:
            InvalidInput: There is no such format, the model cannot be saved in it, a result is
                not a number, or the directory
                holds another model that would be loaded instead.
            MissingExtra: The format needs the `[export]` extra.
            ModelError: The model cannot be exported as ONNX, or the files it was loaded from are
                gone or changed.
        """
        save_embedder(self._model, Path(path), formats=formats, results=results or {})

    def _require(self, given: FloatMatrix | None, part: str) -> FloatMatrix:
        if given is None:
            problem = f"{self.identity}: has no {part}"
            raise ModelError(f"{problem}. Load a model that was trained with one.")
        return given


def list_texts(texts: str | Sequence[str]) -> list[str]:
    """Return texts as a list, a single one as a list of one.

    Raises:
        InvalidInput: One of them is not a string.
    """
    if isinstance(texts, str):
        return [texts]
    listed = list(texts) if isinstance(texts, Iterable) else [texts]
    if any(not isinstance(text, str) for text in listed):
        raise InvalidInput("texts", texts, "must be a string", "Give a text, or a list of texts")
    return listed


def _is_list(value: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _one_for_each(field: str, value: object, count: int) -> list[object]:
    if not _is_list(value):
        return [value] * count
    values = list(value)
    if len(values) != count:
        problem = f"{len(values)} for {count} texts"
        raise InvalidInput(field, values, problem, "Give one for all, or one for each")
    return values


def _age_codes(ages: Sequence[object]) -> late_bound.Codes:
    given = [0.0 if age is None else _number(age) for age in ages]
    missing = [age is None for age in ages]
    return np.where(missing, late_bound.NO_AGE, late_bound.age_buckets(given))


def _number(age: object) -> float:
    if isinstance(age, bool) or not isinstance(age, int | float | np.number):
        raise InvalidInput("days_ago", age, "must be a number of days", "Give a number, or None")
    return float(age)


def _type_codes(
    types: Sequence[object], ages: Sequence[object], reading: late_bound.PassageReading
) -> late_bound.Codes:
    """Codes of the given types, and of predicted ones where only an age is given."""
    missing = np.array([kind is None for kind in types])
    given = late_bound.type_codes(["unknown" if kind is None else str(kind) for kind in types])
    codes = np.where(missing, late_bound.NO_TYPE, given)
    if reading.type_logits is not None:
        with_age = np.array([age is not None for age in ages])
        codes = np.where(missing & with_age, np.argmax(reading.type_logits, axis=1), codes)
    return codes
