"""Candidates that somebody else found, such as BGE-M3's best hundred: a file of ranked ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from ekphory.errors import DatasetError
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery, Passage, Row, read_json_lines
from ekphory_lab.evaluation.reranking.candidates import (
    FIRST_STAGE_SCORES,
    CandidateIdentity,
    CandidateList,
    CandidateSet,
)

_REMEDY = "Give a row for every question: query_id, passage_ids best first, perhaps pool and scores"


@dataclass(frozen=True, slots=True)
class GivenList:
    """One row of the file.

    Attributes:
        place: Where it stands, for errors.
        ids: Passages, best first.
        scores: One for each, falling; 1 / rank where the row has none.
    """

    place: str
    ids: tuple[str, ...]
    scores: tuple[float, ...]


GivenLists = Mapping[tuple[str | None, str], GivenList]
"""By pool, None where the row names none, and question."""


def read_given(file: Path) -> GivenLists | None:
    """Read the file; None where its first row is of another form.

    Raises:
        DatasetError: There is no row, one after the first is malformed, or a question has two.
    """
    found: dict[tuple[str | None, str], GivenList] = {}
    for row in read_json_lines(file):
        if not found and "query_id" not in row.fields:
            return None
        pool = row.label("pool") if "pool" in row.fields else None
        key = (pool, row.label("query_id"))
        if key in found:
            raise row.error("query_id", "this question has two rows")
        found[key] = _read_list(row)
    if not found:
        raise DatasetError(f"{file}: holds no candidates. Name another file, or remove this one.")
    return found


def _read_list(row: Row) -> GivenList:
    ids = row.texts("passage_ids")
    scores = row.fields.get("scores")
    if len(set(ids)) != len(ids):
        raise row.error("passage_ids", "a passage is named twice")
    if scores is None:
        return GivenList(row.place, ids, tuple(1 / rank for rank in range(1, len(ids) + 1)))
    numbers = scores if isinstance(scores, list) else []
    fits = len(numbers) == len(ids) and all(isinstance(each, int | float) for each in numbers)
    if not fits or any(later > earlier for earlier, later in pairwise(numbers)):
        raise row.error("scores", "a falling number for each passage is needed here")
    return GivenList(row.place, ids, tuple(map(float, numbers)))


def given_candidates(
    dataset: Dataset, lists: GivenLists, *, file: Path, top: int
) -> CandidateSet | None:
    """Return the candidates of a set; None where the file has none of its questions.

    A reranker gets each passage with the turns around it. Scores in [0, 1] stand for probabilities,
    others are replaced by 1 / rank: what the row `none` says of calibration is then nothing.

    Args:
        dataset: The questions and the pools.
        lists: What `read_given` read.
        file: Where from; the report says which.
        top: How many candidates to keep for each question.

    Raises:
        DatasetError: A question of the set has no row, or a passage is not in its pool.
    """
    named = {query.key: _list_of(query, lists) for query in dataset.queries}
    if not any(named.values()):
        return None
    passages = {pool: _with_neighbours(each) for pool, each in dataset.pools.items()}
    own = []
    for query in dataset.queries:
        given = named[query.key]
        if given is None:
            raise DatasetError(
                f"{file.name}: no candidates for question {query.id!r} of pool {query.pool!r} of "
                f"{dataset.name}. {_REMEDY}."
            )
        unknown = [each for each in given.ids if each not in passages[query.pool]]
        if unknown:
            raise DatasetError(
                f"{given.place}: passage {unknown[0]!r} is not in pool {query.pool!r}. {_REMEDY}."
            )
        own.append(_candidate_list(query, given, top))
    identity = CandidateIdentity(
        dataset=dataset.name,
        data=dataset.sha256,
        queries=len(dataset.queries),
        embedder=f"{file.name} (given)",
        first_stage=hashlib.sha256(file.read_bytes()).hexdigest(),
        top=top,
    )
    return CandidateSet(identity, passages, tuple(own), ())


def _list_of(query: EvaluationQuery, lists: GivenLists) -> GivenList | None:
    return lists.get(query.key) or lists.get((None, query.id))


def _candidate_list(query: EvaluationQuery, given: GivenList, top: int) -> CandidateList:
    scores = given.scores[:top]
    places = range(1, len(scores) + 1)
    is_share = all(0 <= score <= 1 for score in scores)
    columns = dict.fromkeys(FIRST_STAGE_SCORES, scores)
    columns["probability"] = scores if is_share else tuple(1 / place for place in places)
    asked = RerankQuery(query.text, now=query.at)
    return CandidateList(query.key, query.pool, asked, given.ids[:top], columns)


def _with_neighbours(passages: Iterable[Passage]) -> dict[str, RerankPassage]:
    found: dict[str, RerankPassage] = {}
    for session, turns in groupby(passages, key=lambda passage: passage.session):
        told: Sequence[Passage] = list(turns)
        around: list[str | None] = [None, *(each.indexed_text for each in told), None]
        for place, each in enumerate(told):
            before, after = (around[place], around[place + 2]) if session else (None, None)
            found[each.id] = RerankPassage(each.indexed_text, before, after, each.at)
    return found
