"""Settings from the environment; no other module reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from platformdirs import user_data_path

PREFIX = "RECOLLECT_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds where a command line says nothing.

    Attributes:
        store: Directory or Lance URI of the store.
        embedder: What `load_embedder` takes; None for the bundled model.
        org, project, agent, user, session: The scope; None leaves a field unbound.
    """

    store: str
    embedder: str | None = None
    org: str | None = None
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read `RECOLLECT_STORE`, `RECOLLECT_EMBEDDER`, `RECOLLECT_PROJECT` and their like.

    Args:
        environment: Where to read; None for that of the process. An empty value counts as none.
    """
    given = os.environ if environment is None else environment
    return Settings(
        store=given.get(PREFIX + "STORE") or default_store(),
        embedder=given.get(PREFIX + "EMBEDDER") or None,
        org=given.get(PREFIX + "ORG") or None,
        project=given.get(PREFIX + "PROJECT") or None,
        agent=given.get(PREFIX + "AGENT") or None,
        user=given.get(PREFIX + "USER") or None,
        session=given.get(PREFIX + "SESSION") or None,
    )


def default_store() -> str:
    """Give the store's place in the user's data directory."""
    return str(user_data_path("recollect", appauthor=False) / "memories")
