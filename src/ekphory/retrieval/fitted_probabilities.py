"""The curves that `ekphory train calibration` fitted, and which models they hold for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ekphory.errors import ModelError
from ekphory.models.bundled_reranker import bundled_name, model_id
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.fitted_file import FITTED, FittedFile, read_fitted, require_models
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.calibration import (
    Calibration,
    FusionCalibration,
    LexicalCalibration,
    LexicalCurve,
    ProbabilityCurve,
)
from ekphory.retrieval.probability import AnswerCurve, HitCurves

PROBABILITIES_KIND = "probabilities"
PROBABILITIES_FILE = FITTED / "probabilities.json"
"""The package's own curves."""
WORDS, MEANING = "words", "meaning"
"""A search by words alone, and one by words and meaning."""


@dataclass(frozen=True, slots=True)
class FittedProbabilities:
    """What the file holds.

    Attributes:
        file: Where it comes from.
        words, meaning: Curves of the first stage.
        hits: By `WORDS`, `MEANING` or the name of a reranker.
    """

    file: FittedFile
    words: LexicalCalibration
    meaning: FusionCalibration
    hits: Mapping[str, HitCurves]

    def curve_for(self, embedder: EmbedderIdentity, *, words_alone: bool) -> HitCurves | None:
        """Return the curve of the first stage's hits; None for an embedder of another name.

        Raises:
            ModelError: The embedder is another revision of the one that it was fitted with.
        """
        if words_alone:
            return self.hits[WORDS]
        return self.hits[MEANING] if self._is_for("embedder", embedder.model_id) else None

    def curve_for_reader(self, reranker: RerankingModel) -> HitCurves | None:
        """Return the curve of what a reranker has read; None for one that has none.

        Raises:
            ModelError: The reranker is another revision of the one that it was fitted with.
        """
        name = bundled_name(reranker)
        if name is None or name not in self.hits:
            return None
        if not self._is_for(name, model_id(reranker) or ""):
            return None
        return self.hits[name]

    def _is_for(self, role: str, model: str) -> bool:
        fitted = self.file.models.get(role, "")
        if fitted.partition("@")[0] != model.partition("@")[0]:
            return False
        require_models(self.file, {role: model})
        return True


@cache
def fitted_probabilities(path: Path = PROBABILITIES_FILE) -> FittedProbabilities:
    """Read what `ekphory train calibration` wrote, once a process.

    Raises:
        ModelError: There is no such file, it cannot be read, or it holds something else.
    """
    file = read_fitted(path, kind=PROBABILITIES_KIND)
    try:
        return probabilities_of(file)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: holds no curves ({type(error).__name__}: {error}). Write it anew with "
            f"`{file.command}`."
        ) from error


def probabilities_of(file: FittedFile) -> FittedProbabilities:
    """Return the curves of a file that was read."""
    first: Mapping[str, Any] = file.values["first_stage"]
    return FittedProbabilities(
        file,
        LexicalCalibration(
            documents=LexicalCurve(**first[WORDS]["documents"]),
            turns=LexicalCurve(**first[WORDS]["turns"]),
        ),
        FusionCalibration(
            documents=Calibration(**first[MEANING]["documents"]),
            turns=Calibration(**first[MEANING]["turns"]),
        ),
        {name: _hit_curves(curves) for name, curves in file.values["hits"].items()},
    )


def _hit_curves(values: Mapping[str, Any]) -> HitCurves:
    return HitCurves(
        AnswerCurve(**values["answers"]),
        AnswerCurve(**values["answerable"]),
        AnswerCurve(**values["least"]),
        float(values["sharpness"]),
    )


@dataclass(frozen=True, slots=True)
class FirstStageCurves:
    """The first stage's curves, read from the package's file when a search needs them.

    Attributes:
        of: `words` for the lexical share alone; `meaning` for its weighted sum with the cosine, and
            `even` for the same where words weigh among turns what they weigh among documents.
    """

    of: Literal["words", "meaning", "even"]

    def among(self, turn_share: float) -> ProbabilityCurve:
        """Return the curve in a scope of which this share, in [0, 1], are turns."""
        fitted = fitted_probabilities()
        if self.of == "words":
            return fitted.words.among(turn_share)
        return fitted.meaning.among(turn_share if self.of == "meaning" else 0.0)


MEANING_CURVES = FirstStageCurves("meaning")
EVEN_CURVES = FirstStageCurves("even")
WORD_CURVES = FirstStageCurves("words")
