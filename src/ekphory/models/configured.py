"""The models that the settings name."""

from __future__ import annotations

from dataclasses import replace
from typing import cast, get_args

from ekphory.config import Settings
from ekphory.errors import InvalidInput
from ekphory.models.bundled_reranker import bundled_reranker
from ekphory.models.calibrated_reranker import CalibratedReranker
from ekphory.models.calibration_file import read_calibration
from ekphory.models.chat import Chat
from ekphory.models.chat_loading import load_chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_embedder
from ekphory.models.rerank_scores import ScoreScale
from ekphory.models.reranker import RerankingModel
from ekphory.models.reranker_loading import load_reranker

NO_RERANKER = "none"
"""What is named where not even the bundled reranker is wanted."""


def configured_embedder(settings: Settings) -> EmbeddingModel | None:
    """Load the embedder that is named; None where none is, which means the bundled one.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.embedder is None:
        return None
    return load_embedder(
        settings.embedder, model=settings.embedder_model, api_key=settings.embedder_api_key
    )


def configured_reranker(settings: Settings) -> RerankingModel | None:
    """Load the reranker that is named, else the bundled one; None for `none`, or without either.

    Raises:
        InvalidInput: It cannot be what is named, or the calibration is another one's.
        MissingExtra: It needs the `[torch]` extra.
        ModelError: It cannot be loaded, or ranks known pairs wrongly.
    """
    if settings.reranker is None:
        return bundled_reranker()
    if settings.reranker.lower() == NO_RERANKER:
        return None
    model = named_reranker(settings.reranker, settings)
    if settings.reranker_calibration is None:
        return model
    return CalibratedReranker(model, read_calibration(settings.reranker_calibration))


def chosen_reranker(spec: str, settings: Settings) -> RerankingModel | None:
    """Load what a program names in place of the settings' reranker, whose calibration is not its.

    Raises:
        InvalidInput, MissingExtra, ModelError: As `configured_reranker`.
    """
    card = settings.reranker_calibration if spec == settings.reranker else None
    return configured_reranker(replace(settings, reranker=spec, reranker_calibration=card))


def named_reranker(spec: str, settings: Settings) -> RerankingModel:
    """Load any reranker; a service is asked as the settings say.

    Raises:
        InvalidInput, MissingExtra, ModelError: As `load_reranker`.
    """
    scale = settings.reranker_scores
    if scale is not None and scale not in get_args(ScoreScale):
        known = " or ".join(get_args(ScoreScale))
        raise InvalidInput("EKPHORY_RERANKER_SCORES", scale, "no scale of scores", f"Give {known}")
    return load_reranker(
        spec,
        model=settings.reranker_model,
        protocol=settings.reranker_protocol,
        api_key=settings.reranker_api_key,
        scores=cast("ScoreScale | None", scale),
    )


def configured_chat(settings: Settings) -> Chat | None:
    """Load the language model that is named; None where none is.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.chat_url is None:
        return None
    return load_chat(settings.chat_url, model=settings.chat_model, api_key=settings.chat_api_key)
