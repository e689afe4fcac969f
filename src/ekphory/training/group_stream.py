"""The endless stream of question groups that a run trains on, mixed from all sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from ekphory.errors import InvalidInput
from ekphory.training.long_messages import is_long, with_long_messages
from ekphory.training.question_groups import QuestionGroup
from ekphory.training.training_sources import SOURCES

Epoch = Callable[[Random], Iterator[QuestionGroup]]
"""Makes all groups of a source once; the generator decides order, names and wording."""


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The sources of a run.

    Attributes:
        epochs: What makes each source's groups.
        hashes: SHA-256 of each file, by its name.
    """

    epochs: Mapping[str, Epoch]
    hashes: Mapping[str, str]


def load_training_data(folder: Path, names: Sequence[str]) -> TrainingData:
    """Read the files of the named sources.

    Raises:
        DatasetError: A file is missing or malformed.
        InvalidInput: A source is not known.
    """
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise InvalidInput("mix", unknown, "no such source", f"Known are {', '.join(SOURCES)}.")
    sources = {name: SOURCES[name] for name in names}
    epochs = {name: partial(each.groups, each.rows(folder)) for name, each in sources.items()}
    hashes = {each.name: each.sha256(folder) for each in sources.values()}
    return TrainingData(epochs, hashes)


def mixed_groups(
    epochs: Mapping[str, Epoch],
    shares: Mapping[str, float],
    *,
    seed: int,
    long_messages: float = 0.0,
) -> Iterator[QuestionGroup]:
    """Give groups without end; the same seed gives the same groups.

    Args:
        epochs: What makes each source's groups; a source begins anew when it is used up.
        shares: How often a source is drawn; need not sum to 1.
        seed: Decides everything.
        long_messages: Share of the groups in which a speaker's turns are put together.
    """
    names = [name for name in shares if shares[name] > 0]
    weights = [shares[name] for name in names]
    streams = {name: _endless(epochs[name], f"{seed}:{name}") for name in names}
    draw = Random(seed)  # noqa: S311  no secret
    joining = Random(f"{seed}:long messages")  # noqa: S311  no secret
    while True:
        group = next(streams[draw.choices(names, weights)[0]])
        drawn = joining.random() < long_messages
        joined = drawn and not group.dated and not is_long(group)
        yield with_long_messages(group, joining) if joined else group


def _endless(epoch: Epoch, seed: str) -> Iterator[QuestionGroup]:
    number = 0
    while True:
        yield from epoch(Random(f"{seed}:{number}"))  # noqa: S311  no secret
        number += 1
