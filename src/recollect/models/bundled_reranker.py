"""The reranker that comes with recollect, where it does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.models.model_record import RECORD_FILE
from recollect.models.rerank_input import RerankPassage, RerankQuery
from recollect.models.reranker import Judgement, RelevanceScores

if TYPE_CHECKING:
    from recollect.models.onnx_reranker import OnnxReranker

BUNDLED_NAME = "recollect-rerank-small"
_FOLDER = "reranker"
"""Among the bundled models."""


class BundledReranker:
    """A reranker that is loaded when it is first needed, once a process. Safe for threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __repr__(self) -> str:
        return f"BundledReranker({str(self._directory)!r})"

    @property
    def name(self) -> str:
        """Known before it is loaded."""
        return BUNDLED_NAME

    @property
    def batch_size(self) -> int:
        """How many passages are best given at a time."""
        return self._model.batch_size

    @property
    def is_calibrated(self) -> bool:
        """Whether its record has a calibration."""
        return self._model.is_calibrated

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


def bundled_reranker(directory: Path | None = None) -> BundledReranker | None:
    """Give the reranker that comes with recollect; None where this installation has none.

    Args:
        directory: Where to look; None for the place among the bundled models.
    """
    place = _bundled_directory() if directory is None else directory
    return BundledReranker(place) if (place / RECORD_FILE).is_file() else None


_LOCK = threading.Lock()


def _bundled_directory() -> Path:
    return Path(str(files("recollect.models"))) / "bundled" / _FOLDER


@cache
def _loaded(directory: Path) -> OnnxReranker:
    # Loaded late: ONNX Runtime is slow to import, and not every process reranks.
    from recollect.models.onnx_reranker import OnnxReranker

    return OnnxReranker(directory)
