"""What a query is found to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Intent = Literal["lookup", "temporal", "preference", "procedural", "comparison", "chain"]

INTENTS: tuple[Intent, ...] = (
    "lookup",
    "temporal",
    "preference",
    "procedural",
    "comparison",
    "chain",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHints:
    """What the words of a query say about the memories that are wanted; each in [0, 1], 0: nothing.

    Attributes:
        importance: Important ones, as in "the most important".
        episodic: What happened, as in "last time".
        semantic: Preferences and standing facts, as in "my preference".
        procedural: How something is done, as in "how do I".
    """

    importance: float = 0.0
    episodic: float = 0.0
    semantic: float = 0.0
    procedural: float = 0.0

    @property
    def given(self) -> dict[str, float]:
        """Give the hints that say something, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) > 0}


NO_HINTS = QueryHints()


@dataclass(frozen=True, slots=True)
class QueryClass:
    """What kind of query it is.

    Attributes:
        intent: `lookup` one fact, also where nothing else is recognised; `temporal` when, how long,
            in what order, or within what time; `preference` tastes, habits and opinions;
            `procedural` how something is done; `comparison` several things against each other;
            `chain` something described through something else, which must be found first.
        complexity: In [0, 1]; grows with clauses, names and length.
        signals: Names of the rules that spoke, in the order in which they are listed; no text.
        hints: What is said about the memories that are wanted.
    """

    intent: Intent
    complexity: float
    signals: tuple[str, ...] = ()
    hints: QueryHints = NO_HINTS
