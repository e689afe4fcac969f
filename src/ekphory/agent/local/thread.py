"""A thread: the links found so far from an anchor towards what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ekphory.types import Hit


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a thread.

    Attributes:
        query: What was looked for.
        answer: The name that was found; empty for the last step, which ends at a memory.
        hit: The memory that states it.
        score: How well it fits, above 0; orders threads.
        margin: That score over the next one's.
        support: What was found after it says for it, in [0, 1].
        confidence: Probability in [0, 1] that it is right.
    """

    query: str
    answer: str
    hit: Hit
    score: float
    margin: float = 1.0
    support: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Thread:
    """The links so far.

    Attributes:
        entity: What the next step starts from.
        links: In order.
    """

    entity: str
    links: tuple[Link, ...] = ()

    @property
    def priority(self) -> float:
        """The geometric mean of the links' scores; 1 without a link."""
        if not self.links:
            return 1.0
        return prod(link.score for link in self.links) ** (1 / len(self.links))

    @property
    def confidence(self) -> float:
        """Probability in [0, 1] that all links are right."""
        return prod(link.confidence for link in self.links)

    @property
    def chain(self) -> tuple[str, ...]:
        """What was found so far, each `query: answer`."""
        return tuple(f"{link.query}: {link.answer}" for link in self.links if link.answer)

    def then(self, link: Link) -> Thread:
        """Give the thread with one more link."""
        return Thread(link.answer or self.entity, (*self.links, link))
