"""Which parts of episodic memory a project uses, on the wire."""

from __future__ import annotations

from pydantic import BaseModel

from ekphory.server.wire.names import InProject


class EpisodicConfig(BaseModel):
    """Which parts are in use."""

    enabled: bool
    long_term_memory_enabled: bool
    short_term_memory_enabled: bool


class ConfigureEpisodic(InProject):
    """Parts to be switched; those that are null stay."""

    enabled: bool | None = None
    long_term_memory_enabled: bool | None = None
    short_term_memory_enabled: bool | None = None


class PartConfig(BaseModel):
    """Whether a part is in use."""

    enabled: bool


class ConfigurePart(InProject):
    """A part to be switched; null changes nothing."""

    enabled: bool | None = None
