"""Putting a dataset together: ids checked for doubles, qrels for loose ends."""

from __future__ import annotations

from ekphory.errors import DatasetError
from ekphory.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory.evaluation.provenance import BenchmarkFile, Source


class Collection:
    """Gathers passages, then queries, then qrels, and gives a dataset.

    `place` is where a value was read, for the error.
    """

    def __init__(self) -> None:
        self._pools: dict[str, dict[str, Passage]] = {}
        self._queries: dict[tuple[str, str], EvaluationQuery] = {}
        self._qrels: dict[tuple[str, str], dict[str, int]] = {}

    def add_passage(self, place: str, *, pool: str, passage: Passage) -> None:
        """Take a passage into a pool.

        Raises:
            DatasetError: The pool already has a passage with that id.
        """
        passages = self._pools.setdefault(pool, {})
        if passage.id in passages:
            raise DatasetError(f"{place}: id {passage.id!r} is twice in pool {pool!r}.")
        passages[passage.id] = passage

    def add_query(self, place: str, *, query: EvaluationQuery) -> None:
        """Take a query.

        Raises:
            DatasetError: Its pool already has a query with that id, or there is no such pool.
        """
        if query.pool not in self._pools:
            raise DatasetError(f"{place}: pool {query.pool!r} has no passages.")
        if query.key in self._queries:
            raise DatasetError(f"{place}: query {query.id!r} is twice in {query.pool!r}.")
        self._queries[query.key] = query

    def add_judgement(
        self, place: str, *, key: tuple[str, str], passage_id: str, gain: int
    ) -> None:
        """Take one judgement of one passage for one query.

        Raises:
            DatasetError: The query or the passage was not read before.
        """
        pool, query_id = key
        if key not in self._queries:
            raise DatasetError(f"{place}: query {query_id!r} of pool {pool!r} does not exist.")
        if passage_id not in self._pools[pool]:
            raise DatasetError(
                f"{place}: passage {passage_id!r} is not in pool {pool!r}. "
                "The corpus file is cut short, or belongs to another version of the set."
            )
        self._qrels.setdefault(key, {})[passage_id] = gain

    def dataset(self, name: str, *, source: Source, files: tuple[BenchmarkFile, ...]) -> Dataset:
        """Give the dataset; queries without a relevant passage are left out.

        Raises:
            DatasetError: No query has a relevant passage.
        """
        qrels = {
            key: gains
            for key, gains in self._qrels.items()
            if any(gain > 0 for gain in gains.values())
        }
        queries = tuple(query for key, query in self._queries.items() if key in qrels)
        if not queries:
            raise DatasetError(f"{name}: no query has a relevant passage.")
        return Dataset(
            name=name,
            pools={pool: tuple(passages.values()) for pool, passages in self._pools.items()},
            queries=queries,
            qrels=qrels,
            source=source,
            files=files,
        )
