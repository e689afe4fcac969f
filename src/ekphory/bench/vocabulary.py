"""The words of generated memories: hand-written topics, and coined names without end."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate

NAMES = 1_000_000
"""How many coined names there are."""
_NAME_TAIL = 2.5
_FREQUENT_NAMES = 20


@dataclass(frozen=True, slots=True)
class Ranked:
    """Words from frequent to rare.

    Attributes:
        words: In the order of their frequency.
        cumulative: Sums of the weights 1 / (rank + 2), as Zipf's law with Mandelbrot's offset.
    """

    words: tuple[str, ...]
    cumulative: tuple[float, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Ranked:
        """Rank words by their order."""
        weights = (1 / (rank + 2) for rank in range(1, len(words) + 1))
        return cls(tuple(words), tuple(accumulate(weights)))

    def draw(self, source: random.Random) -> str:
        """Draw a word by its frequency."""
        return source.choices(self.words, cum_weights=self.cumulative)[0]


@dataclass(frozen=True, slots=True)
class Topic:
    """What one conversation is about.

    Attributes:
        nouns, verbs, adjectives: Its own words.
    """

    nouns: Ranked
    verbs: Ranked
    adjectives: Ranked

    def compound(self, noun: str) -> str:
        """Join the noun with the one that always follows it, as collocations do."""
        words = self.nouns.words
        return f"{noun} {words[(words.index(noun) * 5 + 3) % len(words)]}"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All words and phrases.

    Attributes:
        topics: From frequent to rare.
        general: Words that every topic shares, by the name of their slot.
        phrases: Sentences of a memory, with slots.
        frames: Questions, with slots.
        syllables: What names are coined from.
    """

    topics: tuple[Topic, ...]
    general: Mapping[str, Ranked]
    phrases: Ranked
    frames: tuple[str, ...]
    syllables: tuple[str, ...]

    def name(self, number: int) -> str:
        """Coin the name with that number; always the same one."""
        source = random.Random(f"name {number}")  # noqa: S311  no secret
        return "".join(source.choices(self.syllables, k=source.randint(2, 4))).capitalize()

    def draw_name(self, source: random.Random) -> str:
        """Draw a coined name: few are frequent, most are rare, and new ones keep coming."""
        number = int(_FREQUENT_NAMES * (1 - source.random()) ** -_NAME_TAIL)
        return self.name(min(number, NAMES))


@cache
def vocabulary() -> Vocabulary:
    """Read the words that lie beside this file."""
    text = files("ekphory.bench").joinpath("words.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)
    slots = {
        "day": "days",
        "month": "months",
        "person": "people",
        "relative": "relatives",
        "quality": "qualities",
        "adverb": "adverbs",
        "thing": "things",
    }
    topics = (
        Topic(*(_ranked(topic[kind]) for kind in ("nouns", "verbs", "adjectives")))
        for topic in given["topics"]
    )
    return Vocabulary(
        topics=tuple(topics),
        general={slot: _ranked(given[key]) for slot, key in slots.items()},
        phrases=Ranked.of(given["phrases"]),
        frames=tuple(given["frames"]),
        syllables=tuple(given["syllables"].split()),
    )


def _ranked(words: str) -> Ranked:
    return Ranked.of(words.split())
