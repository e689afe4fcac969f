"""Texts that say the same in the same words: Jaccard similarity of their word sets."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

Words = frozenset[str]


def words(text: str, *, shortest: int = 3) -> Words:
    """Give the distinct words of a text in lower case, without those shorter than `shortest`."""
    return frozenset(re.findall(rf"\b\w{{{shortest},}}\b", text.lower()))


def jaccard(first: Words, second: Words) -> float:
    """Give the share of words that two texts have in common; 1 where neither has any."""
    common = len(first & second)
    union = len(first) + len(second) - common
    return common / union if union else 1.0


def without_near_duplicates(
    groups: Sequence[Hashable | None], texts: Sequence[Words], *, threshold: float
) -> list[int]:
    """Keep of each set of near duplicates within a group the one that comes first.

    Args:
        groups: Group of each text, best text first; None is compared with nothing.
        texts: Its words, as parallel sequence.
        threshold: A similarity above this makes two texts near duplicates.

    Returns:
        Places of those that are kept, ascending.
    """
    kept: dict[Hashable, list[Words]] = {}
    places: list[int] = []
    for place, (group, text) in enumerate(zip(groups, texts, strict=True)):
        others = [] if group is None else kept.setdefault(group, [])
        if not any(_exceeds(text, other, threshold) for other in others):
            others.append(text)
            places.append(place)
    return places


def _exceeds(first: Words, second: Words, threshold: float) -> bool:
    smaller, larger = sorted((len(first), len(second)))
    # No more is common than the smaller set, and no fewer are in the union than the larger one.
    if larger and smaller / larger <= threshold:
        return False
    return jaccard(first, second) > threshold
