"""The scenes: a hundred queries with cue words, over one store of a hundred and twenty memories."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ekphory.types import MemoryType

Cue = Literal["importance", "semantic", "procedural", "episodic"]
_TYPES: dict[str, MemoryType] = {"e": "episodic", "s": "semantic", "p": "procedural"}


@dataclass(frozen=True, slots=True)
class SceneMemory:
    """One memory.

    Attributes:
        id: Unique in all scenes.
        text: What was noted.
        type: What kind of memory it is.
        importance: In [0, 1].
    """

    id: str
    text: str
    type: MemoryType
    importance: float


@dataclass(frozen=True, slots=True)
class SceneQuery:
    """One query.

    Attributes:
        id: Unique in all scenes.
        cue: What its words ask for.
        text: The query.
        relevant: Ids of the memories that answer.
    """

    id: str
    cue: Cue
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Scene:
    """Memories about one subject, and queries for them.

    Attributes:
        name: The subject.
        memories: What is known of it.
        queries: What is asked of it.
    """

    name: str
    memories: tuple[SceneMemory, ...]
    queries: tuple[SceneQuery, ...]


@cache
def scenes() -> tuple[Scene, ...]:
    """Read the scenes that come with ekphory."""
    text = files("ekphory.evaluation.cues").joinpath("scenes.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)["scenes"]
    return tuple(_scene(f"s{number}", each) for number, each in enumerate(given, start=1))


def _scene(prefix: str, given: dict[str, Any]) -> Scene:
    return Scene(
        given["name"],
        tuple(
            SceneMemory(f"{prefix}-m{place}", text, _TYPES[letter], importance)
            for place, (letter, importance, text) in enumerate(given["memories"])
        ),
        tuple(
            SceneQuery(
                f"{prefix}-q{place}", cue, text, frozenset(f"{prefix}-m{row}" for row in relevant)
            )
            for place, (cue, text, relevant) in enumerate(given["queries"])
        ),
    )
