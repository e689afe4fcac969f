"""Fits all probabilities, and puts them together as the file that searches read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError
from ekphory.models.bundled_reranker import SMALL_RERANKER, bundled_reranker, model_id
from ekphory.models.fitted_file import FittedFile
from ekphory.models.onnx_embedder import load_bundled
from ekphory.retrieval.calibration import (
    Calibration,
    FusionCalibration,
    LexicalCalibration,
    LexicalCurve,
    ScopeCurves,
)
from ekphory.retrieval.fitted_probabilities import MEANING, PROBABILITIES_KIND, WORDS
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import ACCURATE, BALANCED, FAST
from ekphory.retrieval.probability import READ_FEATURES
from ekphory.training.fusion_calibration import CalibrationFit, fit_fusion_calibration
from ekphory.training.probability_fit import (
    EMPTY_BELOW,
    HitFit,
    Searching,
    fit_hits,
    observed,
)
from ekphory.training.probability_scopes import data_hashes, probability_scopes

COMMAND = "ekphory train calibration --data DIR"
Told = Callable[[str], None]


def fit_probabilities(
    directory: Path, *, checkpoints: Path | None = None, on_progress: Told
) -> FittedFile:
    """Fit the first stage's curves, then those of the hits, for the bundled models.

    Args:
        directory: Holds what `probability_scopes` reads.
        checkpoints: Folder in which what was observed is kept, so that an interrupted run goes on;
            None keeps nothing.
        on_progress: Told in words what is being done.

    Raises:
        DatasetError: A file is missing or malformed, the reranker is not installed, or the folder
            holds what was observed with other data or models.
    """
    reranker = bundled_reranker()
    if reranker is None:
        raise DatasetError(f"{SMALL_RERANKER} is not installed. Install the package again.")
    embedder = load_bundled()
    hashes = data_hashes(directory)
    models = {"embedder": embedder.identity.model_id, SMALL_RERANKER: model_id(reranker) or ""}
    if checkpoints is not None:
        _keep_apart(checkpoints, {"data": hashes, "models": models, "features": READ_FEATURES})
    on_progress("the first stage's curves")
    first = fit_fusion_calibration(directory)
    words, meaning, even = _curves(first)
    plan: dict[str, tuple[Pipeline, ScopeCurves]] = {
        WORDS: (FAST, words),
        MEANING: (BALANCED, meaning),
        SMALL_RERANKER: (ACCURATE, even),
    }
    fits: dict[str, HitFit] = {}
    for name, (preset, curves) in plan.items():
        reads = name == SMALL_RERANKER
        searching = Searching(
            preset=preset,
            first_stage=curves,
            embedder=embedder,
            reranker=reranker if reads else None,
        )
        asked = observed(
            probability_scopes(directory),
            searching,
            checkpoints=None if checkpoints is None else checkpoints / name,
            on_progress=partial(_tell, on_progress, name),
        )
        fits[name] = fit_hits(asked, reads=reads)
    return FittedFile(
        kind=PROBABILITIES_KIND,
        command=COMMAND,
        models=models,
        data=hashes,
        seed=0,
        measured=_measured(first, fits),
        values={
            "first_stage": {WORDS: _plain(first["fast"]), MEANING: _plain(first["balanced"])},
            "hits": {name: asdict(fit.curves) for name, fit in fits.items()},
        },
    )


def _keep_apart(checkpoints: Path, made_of: dict[str, Any]) -> None:
    """Write down what the observations in a folder are made of, or check it."""
    place = checkpoints / "made-of.json"
    content = json.dumps(made_of, indent=2, sort_keys=True) + "\n"
    if not place.exists():
        checkpoints.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
    elif place.read_text(encoding="utf-8") != content:
        raise DatasetError(
            f"{checkpoints}: holds what was observed with other data or models. "
            "Remove it, or name another folder."
        )


def _tell(on_progress: Told, name: str, told: str) -> None:
    on_progress(f"{name}: {told}")


def _curves(first: dict[str, CalibrationFit]) -> tuple[ScopeCurves, ScopeCurves, ScopeCurves]:
    by_words, by_meaning = first["fast"], first["balanced"]
    if not isinstance(by_words.documents.curve, LexicalCurve) or not isinstance(
        by_words.turns.curve, LexicalCurve
    ):
        raise TypeError("the curves of words alone must be those of a lexical share")
    if not isinstance(by_meaning.documents.curve, Calibration) or not isinstance(
        by_meaning.turns.curve, Calibration
    ):
        raise TypeError("the curves of meaning must be those of a weighted sum")
    documents = by_meaning.documents.curve
    return (
        LexicalCalibration(documents=by_words.documents.curve, turns=by_words.turns.curve),
        FusionCalibration(documents=documents, turns=by_meaning.turns.curve),
        FusionCalibration(documents=documents, turns=documents),
    )


def _plain(fit: CalibrationFit) -> dict[str, dict[str, float]]:
    return {"documents": asdict(fit.documents.curve), "turns": asdict(fit.turns.curve)}


def _measured(first: dict[str, CalibrationFit], fits: dict[str, HitFit]) -> dict[str, float]:
    stages = {
        f"first stage, {preset}, {kind}: calibration error": found.expected_calibration_error
        for preset, fit in first.items()
        for kind, found in (("documents", fit.documents), ("turns", fit.turns))
    }
    best = {
        f"{name}, {kind}: error of the best hit": error
        for name, fit in fits.items()
        for kind, error in fit.errors.items()
    }
    empty = {
        f"{name}, {kind}: empty at {EMPTY_BELOW:g} of those without an answer": share
        for name, fit in fits.items()
        for kind, share in fit.empty.items()
    }
    asked = {f"{name}: questions": float(fit.questions) for name, fit in fits.items()}
    return {
        name: round(value, 4)
        for name, value in chain(stages.items(), best.items(), empty.items(), asked.items())
    }
