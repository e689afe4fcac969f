"""A file that says what the scores of one reranker are worth."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from ekphory.errors import InvalidInput
from ekphory.models.reranker_record import CalibrationCard

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
            f"is no calibration of a reranker ({type(error).__name__}: {error})",
            "Make one with `ekphory train reranker-calibration`",
        ) from error
    return FittedCalibration(reranker, card)
