"""Ages and types drawn at random: what must not decide where a question names neither."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from ekphory.models.late_bound import AGE_BUCKETS, Codes
from ekphory.types import MEMORY_TYPES

FEWEST_TOGETHER, MOST_TOGETHER = 6, 24
"""How many neighbouring passages share an age, as the turns of a session do."""


@dataclass(frozen=True, slots=True)
class DrawnAges:
    """Age bucket and type of each passage of a group, shape (passages,) each."""

    ages: Codes
    types: Codes


def drawn_ages(passages: int, random: Random) -> DrawnAges:
    """Draw an age for each session of a group, and a type for each passage."""
    ages: list[int] = []
    while len(ages) < passages:
        together = random.randint(FEWEST_TOGETHER, MOST_TOGETHER)
        ages += [random.randrange(AGE_BUCKETS)] * together
    types = [random.randrange(len(MEMORY_TYPES)) for _ in range(passages)]
    return DrawnAges(np.array(ages[:passages], np.int64), np.array(types, np.int64))
