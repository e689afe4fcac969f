"""Training conversations as a set of questions over collections as large as real ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from random import Random

from ekphory.evaluation.collection import Collection
from ekphory.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory.evaluation.provenance import BenchmarkFile, Source
from ekphory.training.question_groups import QuestionGroup
from ekphory.training.reranker.training_split import rows_of
from ekphory.training.training_sources import SOURCES

GROUPS_PER_POOL = {"synthetic_persona_chat": 2, "sgd": 2, "qmsum": 1, "crd3": 1}
"""Some hundred passages each, as one of LoCoMo's conversations has."""
QUESTIONS_PER_POOL = 60
MOST_POOLS = 12
NAME = "training_conversations"

_SOURCE = Source(
    "training conversations, rows held back", "as of each file", "see docs/training.md"
)


def gate_conversations(folder: Path, *, pools: int = MOST_POOLS, seed: int = 0) -> Dataset:
    """Put conversations that no reranker was trained on into pools, with their questions.

    Args:
        folder: Holds the files of `GROUPS_PER_POOL`.
        pools: Most pools; fewer where the rows do not suffice.
        seed: Decides order, names and wording.

    Raises:
        DatasetError: A file is missing or malformed, or there is no question.
    """
    streams = {
        name: SOURCES[name].groups(
            rows_of("held_back", SOURCES[name].rows(folder)),
            Random(f"{seed}:{name}"),  # noqa: S311  no secret
        )
        for name in GROUPS_PER_POOL
    }
    collection = Collection()
    for number in range(pools):
        drawn = [list(islice(streams[name], most)) for name, most in GROUPS_PER_POOL.items()]
        if number and not all(drawn):
            break
        _add_pool(collection, str(number), list(chain.from_iterable(drawn)), seed)
    files = tuple(
        BenchmarkFile(SOURCES[name].name, SOURCES[name].sha256(folder), None)
        for name in GROUPS_PER_POOL
    )
    return collection.dataset(NAME, source=_SOURCE, files=files)


def _add_pool(
    collection: Collection, pool: str, groups: Sequence[QuestionGroup], seed: int
) -> None:
    place = f"training conversations, pool {pool}"
    for passage in chain.from_iterable(_passages(n, group) for n, group in enumerate(groups)):
        collection.add_passage(place, pool=pool, passage=passage)
    asked = [(n, question) for n, group in enumerate(groups) for question in group.questions]
    random = Random(f"{seed}:questions:{pool}")  # noqa: S311  no secret
    chosen = random.sample(asked, min(QUESTIONS_PER_POOL, len(asked)))
    for number, (group, question) in enumerate(chosen):
        query = EvaluationQuery(
            pool=pool, id=str(number), text=question.text, category=groups[group].source
        )
        collection.add_query(place, query=query)
        for row in question.positives:
            collection.add_judgement(place, key=query.key, passage_id=f"{group}:{row}", gain=1)


def _passages(number: int, group: QuestionGroup) -> Iterator[Passage]:
    for row, text in enumerate(group.passages):
        placement = group.placements[row] if group.placements else None
        speaker, mark, said = text.partition(": ")
        yield Passage(
            id=f"{number}:{row}",
            text=said if mark else text,
            speaker=speaker if mark else "",
            session=None if placement is None else f"{number}:{placement.session}",
            sequence=row,
        )
