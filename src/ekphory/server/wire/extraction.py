"""The learning of features from episodes, on the wire."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ExtractionFailure(BaseModel):
    """An episode from which nothing could be learnt."""

    uid: str
    reason: str
    attempts: int


class ExtractionAnswer(BaseModel):
    """How far the learning is."""

    enabled: bool = Field(description="Whether a language model is configured.")
    waiting: int = Field(description="Episodes that are still to be read.")
    failed: int = Field(description="Episodes that were given up.")
    unqueued: int = Field(
        description="Episodes that could not be queued since the server started, and are not read."
    )
    out_of_order: str | None = Field(description="Why nothing can be learnt at the moment.")
    failures: list[ExtractionFailure] = Field(description="The newest of those given up.")


class TriedAgain(BaseModel):
    """How many episodes are read anew."""

    waiting: int
