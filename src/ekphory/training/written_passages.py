"""Long written passages, of which a step only wants that their vectors stay what they were.

A model that learns conversations and short memories forgets what it knows of written text, and a
search in documents finds less. Whole paragraphs under the anchor hold that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from random import Random

import numpy as np

from ekphory.training.drawn_ages import DrawnAges, drawn_ages
from ekphory.training.embedder_config import EmbedderConfig
from ekphory.training.group_stream import Epoch, mixed_groups
from ekphory.training.teacher import BaseModel, FloatMatrix
from ekphory.training.training_rows import shortened

_FEWEST_WORDS, _MOST_WORDS = 8, 150
_FROM_A_GROUP = 4


@dataclass(frozen=True, slots=True)
class WrittenPassages:
    """The written passages of one step.

    Attributes:
        texts: What is encoded.
        base: The base model's vectors of them, rows of length 1.
        given: Age and type of each; None where they have neither.
    """

    texts: tuple[str, ...]
    base: FloatMatrix
    given: DrawnAges | None


def written_passages(
    config: EmbedderConfig, epochs: Mapping[str, Epoch], base: BaseModel, *, first: int
) -> Iterator[WrittenPassages | None]:
    """Give the written passages of each step from `first` on; None for steps without any.

    Args:
        config: How many a step has, and the share of steps in which they have an age and a type.
        epochs: What makes each source's groups.
        base: Gives the vectors that are to be kept.
        first: Which step comes first; a step's passages depend on nothing before it.
    """
    size = config.written.passages_per_step
    if not size:
        yield from repeat(None, config.steps - first)
        return
    texts = islice(_texts(epochs, config.written.mix, seed=config.seed), first * size, None)
    for step in range(first, config.steps):
        chosen = tuple(islice(texts, size))
        random = Random(f"{config.seed}:written:{step}")  # noqa: S311  no secret
        aged = random.random() < config.memories.aged_groups
        given = drawn_ages(size, random) if aged else None
        yield WrittenPassages(chosen, np.asarray(base.encode(chosen), np.float32), given)


def _texts(epochs: Mapping[str, Epoch], shares: Mapping[str, float], *, seed: int) -> Iterator[str]:
    random = Random(f"{seed}:written")  # noqa: S311  no secret
    for group in mixed_groups(epochs, shares, seed=seed + 1):
        for _ in range(_FROM_A_GROUP):
            start = random.randrange(len(group.passages))
            wanted = random.randint(_FEWEST_WORDS, _MOST_WORDS)
            yield _paragraph(group.passages[start:], wanted)


def _paragraph(passages: Sequence[str], words: int) -> str:
    """Put neighbouring passages together until there are so many words."""
    text = passages[0]
    for passage in passages[1:]:
        if len(text.split()) >= words:
            break
        text = f"{text} {passage}"
    return shortened(text, words)
