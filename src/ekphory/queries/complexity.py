"""How much a query asks for at once."""

from __future__ import annotations

from ekphory.queries.words import Words

_JOINS = frozenset(
    "and or but because if while although unless und oder aber weil wenn et ou mais si parce y o "
    "pero porque".split()
)


def complexity(words: Words) -> float:
    """Compute a number in [0, 1] from clauses, names and length; 0 for a plain question.

    0.2 for each further clause, 0.1 for each name or number after the first, and 0.02 for each
    word after the eighth.
    """
    clauses = words.kinds.count("k") + sum(word in _JOINS for word in words.lower)
    names = sum(word[0].isupper() or word[0].isdigit() for word in words.given[1:] if word != "I")
    length = sum(word[0].isalnum() for word in words.lower) - 8
    return round(min(1.0, 0.2 * clauses + 0.1 * max(0, names - 1) + 0.02 * max(0, length)), 2)
