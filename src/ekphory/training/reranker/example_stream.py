"""Examples of all sources, mixed by share: those that are trained on, and those held back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random

from ekphory.errors import DatasetError, InvalidInput
from ekphory.training.long_messages import with_long_messages
from ekphory.training.question_groups import QuestionGroup
from ekphory.training.reranker.examples import RerankExample
from ekphory.training.reranker.group_examples import CandidateCounts, group_examples
from ekphory.training.reranker.hard_cases import SOURCE as HARD_CASES_SOURCE
from ekphory.training.reranker.hard_cases import hard_case_examples
from ekphory.training.reranker.memory_examples import SOURCE as MEMORIES_SOURCE
from ekphory.training.reranker.memory_examples import memory_examples
from ekphory.training.reranker.training_split import Part, rows_of
from ekphory.training.teacher import BaseModel
from ekphory.training.training_rows import Row
from ekphory.training.training_sources import SOURCES

_SHUFFLED = 100
"""Examples among which the next is drawn, so that a step sees many conversations."""
_LONG_MESSAGES_SHARE = 0.25
_GENERATED: Mapping[str, Callable[..., Iterator[RerankExample]]] = {
    MEMORIES_SOURCE: memory_examples,
    HARD_CASES_SOURCE: hard_case_examples,
}
KNOWN_SOURCES = (*SOURCES, *_GENERATED)


def mixed_examples(
    folder: Path,
    mix: Mapping[str, float],
    base: BaseModel,
    *,
    part: Part,
    counts: CandidateCounts,
    seed: int,
) -> Iterator[RerankExample]:
    """Give examples without end; the same seed gives the same ones.

    Args:
        folder: Holds the training files.
        mix: How often each source is drawn; need not sum to 1.
        base: The dense half of the first stage that finds candidates.
        part: Which rows of the files; generated sources differ by seed instead.
        counts: How many candidates compete for a question of a file.
        seed: Decides everything.

    Raises:
        DatasetError: A file is missing or malformed.
        InvalidInput: A source is not known.
        MissingExtra: bm25s is not installed.
    """
    unknown = [name for name in mix if name not in KNOWN_SOURCES]
    if unknown:
        raise InvalidInput(
            "mix", unknown, "no such source", f"Known are {', '.join(KNOWN_SOURCES)}."
        )
    drawn = [name for name in mix if mix[name] > 0]
    streams: dict[str, Iterator[RerankExample]] = {}
    for name in drawn:
        own = f"{seed}:{part}:{name}"
        if name in _GENERATED:
            stream = _GENERATED[name](base, seed=2 * seed + (part == "held_back"))
        else:
            rows = rows_of(part, SOURCES[name].rows(folder))
            stream = _file_examples(name, rows, base, own, counts)
        streams[name] = _shuffled(stream, Random(own))  # noqa: S311  no secret
    return _drawn(streams, [mix[name] for name in drawn], Random(f"{seed}:{part}"))  # noqa: S311


def _drawn(
    streams: Mapping[str, Iterator[RerankExample]], weights: Sequence[float], draw: Random
) -> Iterator[RerankExample]:
    names = list(streams)
    while True:
        yield next(streams[draw.choices(names, weights)[0]])


def _file_examples(
    name: str, rows: Sequence[Row], base: BaseModel, seed: str, counts: CandidateCounts
) -> Iterator[RerankExample]:
    random = Random(f"{seed}:candidates")  # noqa: S311  no secret
    for group in _endless(name, partial(SOURCES[name].groups, rows), seed):
        long = random.random() < _LONG_MESSAGES_SHARE and not group.dated
        told = with_long_messages(group, random) if long else group
        yield from group_examples(told, base, random, counts=counts)


def _endless(
    name: str, epoch: Callable[[Random], Iterator[QuestionGroup]], seed: str
) -> Iterator[QuestionGroup]:
    for number in count():
        found = False
        for group in epoch(Random(f"{seed}:{number}")):  # noqa: S311  no secret
            found = True
            yield group
        if not found:
            raise DatasetError(f"{name}: its file holds no question. Give the whole file.")


def _shuffled(stream: Iterator[RerankExample], random: Random) -> Iterator[RerankExample]:
    """Give each example a random time after it was made; the stream has no end."""
    waiting = list(islice(stream, _SHUFFLED))
    for example in stream:
        place = random.randrange(len(waiting))
        yield waiting[place]
        waiting[place] = example
