"""The rerankers that come with ekphory, where they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.models.reranker import (
    Judgement,
    RelevanceScores,
    RerankingModel,
    RerankPassage,
    RerankQuery,
)
from ekphory.threads import ForkSafeLock

if TYPE_CHECKING:
    from ekphory.models.model_record import CalibrationCard
    from ekphory.models.onnx_reranker import OnnxReranker

SMALL_RERANKER = "ekphory-rerank-small"
"""Six layers: what is meant where none is named."""
TINY_RERANKER = "ekphory-rerank-tiny"
"""Three layers that follow the six."""
BUNDLED_RERANKERS: Mapping[str, str] = {
    SMALL_RERANKER: "reranker",
    TINY_RERANKER: "reranker-tiny",
}
"""Their folders among the bundled models."""


class BundledReranker:
    """A reranker that is loaded when it is first needed, once a process. Safe for threads."""

    def __init__(self, directory: Path, *, name: str = SMALL_RERANKER) -> None:
        self._directory = directory
        self._name = name

    def __repr__(self) -> str:
        return f"BundledReranker({str(self._directory)!r}, name={self._name!r})"

    @property
    def name(self) -> str:
        """Known before it is loaded."""
        return self._name

    @property
    def bundled_name(self) -> str:
        """The name, by which `bundled_name` knows that it came with ekphory."""
        return self._name

    @property
    def model_id(self) -> str:
        """`name@revision` of its record, known before it is loaded."""
        return _recorded_id(self._directory)

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        return self._model.batch_size

    @property
    def is_calibrated(self) -> bool:
        """Whether its record has a calibration."""
        return self._model.is_calibrated

    @property
    def calibration(self) -> CalibrationCard | None:
        """That of its record."""
        return self._model.calibration

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """As `OnnxReranker.score`."""
        return self._model.score(query, passages)

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """As `OnnxReranker.judge`."""
        return self._model.judge(query, passages)

    @property
    def _model(self) -> OnnxReranker:
        with _LOCK:
            return _loaded(self._directory)


def bundled_name(model: RerankingModel) -> str | None:
    """Name the reranker that came with ekphory and that the model is, or wraps; None if none."""
    name = getattr(model, "bundled_name", None)
    return name if isinstance(name, str) else None


def model_id(model: RerankingModel) -> str | None:
    """Return `name@revision` of a reranker; None for a model that states no revision."""
    stated = getattr(model, "model_id", None)
    return stated if isinstance(stated, str) else None


def bundled_reranker(
    name: str = SMALL_RERANKER, *, directory: Path | None = None
) -> BundledReranker | None:
    """Return a reranker that comes with ekphory; None where this installation has none.

    Args:
        name: One of `BUNDLED_RERANKERS`.
        directory: Where to look; None for its folder among the bundled models.
    """
    place = bundled_directory(name) if directory is None else directory
    return BundledReranker(place, name=name) if (place / "model.json").is_file() else None


_LOCK = ForkSafeLock()


def bundled_directory(name: str) -> Path:
    """Return the folder of a bundled reranker; `name` is one of `BUNDLED_RERANKERS`."""
    return Path(str(files("ekphory.models"))) / "bundled" / BUNDLED_RERANKERS[name]


@cache
def _recorded_id(directory: Path) -> str:
    # Loaded late: the record says how scores are read.
    from ekphory.models.model_record import read_reranker_record

    return read_reranker_record(directory).model_id


@cache
def _loaded(directory: Path) -> OnnxReranker:
    # Loaded late: ONNX Runtime is slow to import, and not every process reranks.
    from ekphory.models.onnx_reranker import OnnxReranker

    return OnnxReranker(directory)
