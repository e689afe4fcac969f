"""A reranker of one's own whose scores were fitted to be probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ekphory.errors import InvalidInput
from ekphory.models.model_record import CalibrationCard
from ekphory.models.reranker import (
    Judgement,
    RelevanceScores,
    RerankingModel,
    RerankPassage,
    RerankQuery,
    bundled_name,
    check_scores,
    is_remote,
    judge_passages,
    log_odds,
    model_id,
)

# The file.

_KIND = "reranker calibration"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class FittedCalibration:
    """A calibration and whose it is.

    Attributes:
        reranker: The reranker's name.
        card: The curve, over the log-odds of the scores that the reranker gives.
    """

    reranker: str
    card: CalibrationCard


def write_calibration(path: Path, fitted: FittedCalibration) -> None:
    """Write the file that `read_calibration` reads; what was there is replaced."""
    content = {"kind": _KIND, "format": _FORMAT, "reranker": fitted.reranker, **asdict(fitted.card)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_calibration(path: Path | str) -> FittedCalibration:
    """Read what `ekphory train reranker-calibration` wrote.

    Raises:
        InvalidInput: There is no such file, or it holds something else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content.pop("kind") != _KIND or content.pop("format") != _FORMAT:
            raise ValueError("another kind or format")
        reranker = str(content.pop("reranker"))
        slope, intercept = float(content.pop("slope")), float(content.pop("intercept"))
        if not (math.isfinite(slope) and slope > 0 and math.isfinite(intercept)):
            raise ValueError("a curve that does not rise")
        card = CalibrationCard(slope=slope, intercept=intercept, **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput(
            "calibration",
            str(path),
            f"must be a calibration of a reranker ({type(error).__name__}: {error})",
            "Make one with `ekphory train reranker-calibration`",
        ) from error
    return FittedCalibration(reranker, card)


# The reranker.


class CalibratedReranker:
    """Gives σ(slope · logit(s) + intercept) where the reranker gives s. As safe for threads.

    Attributes:
        name, is_remote, bundled_name: The reranker's own.
        calibration: What its scores are worth.
    """

    is_calibrated = True

    def __init__(self, model: RerankingModel, fitted: FittedCalibration) -> None:
        """Put a calibration behind a reranker.

        Raises:
            InvalidInput: It was fitted for another one.
        """
        if fitted.reranker != model.name:
            raise InvalidInput(
                "calibration",
                fitted.reranker,
                f"must have been fitted for {model.name!r}",
                "Fit one for it with `ekphory train reranker-calibration`",
            )
        self._model = model
        self.name = model.name
        self.is_remote = is_remote(model)
        self.bundled_name = bundled_name(model)
        self.calibration = fitted.card

    def __repr__(self) -> str:
        return f"CalibratedReranker({self._model!r})"

    @property
    def batch_size(self) -> int:
        """The reranker's own."""
        return self._model.batch_size

    @property
    def model_id(self) -> str | None:
        """The reranker's own, where it states one."""
        return model_id(self._model)

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Return the probability that each passage answers; shape (len(passages),).

        Raises:
            ServiceError, ModelError: The reranker failed.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return probabilities, and beside them what the reranker itself shows or gives."""
        own = judge_passages(self._model, query, passages)
        given = check_scores(own.scores, count=len(passages))
        return Judgement(self.calibration.scaling.probabilities(log_odds(given)), own.raw)
