"""What a benchmark is: passages in pools, queries, qrels, and where it all came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from ekphory.errors import DatasetError, InvalidInput
from ekphory.evaluation.provenance import BenchmarkFile, Source

LOCOMO_CATEGORIES: Mapping[str, str] = {
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
"""LoCoMo's numbers and names; REALTALK uses the first three."""

ADVERSARIAL = "5"
PHRASINGS = ("first", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One searchable text.

    Attributes:
        id: Unique within its pool.
        text: The text; of a BEIR document title and text.
        speaker: Who says it; empty where nobody does.
        at: When, in UTC; None where unknown.
        session: Name of the session; None where the pool has none.
        sequence: Position within the pool; None where unknown.
    """

    id: str
    text: str
    speaker: str = ""
    at: datetime | None = None
    session: str | None = None
    sequence: int | None = None

    @property
    def indexed_text(self) -> str:
        """What every system indexes: `speaker: text`, or the text alone without a speaker."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuery:
    """One question put to one pool.

    Attributes:
        pool: The pool that is searched.
        id: Unique within its pool.
        text: The question.
        category: Kind of question; empty where the set has no kinds.
        at: When it is asked, in UTC; None where the set does not say.
        phrasings: Other ways to put the same question.
    """

    pool: str
    id: str
    text: str
    category: str = ""
    at: datetime | None = None
    phrasings: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Pool and id, which together are unique."""
        return self.pool, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A benchmark, ready to be run. Every query has at least one relevant passage.

    Attributes:
        name: Short name.
        pools: Passages by pool; each pool is searched by itself.
        queries: All queries.
        qrels: Gain by passage id, by query key.
        source: Where it comes from, under what licence.
        files: The files that were read, with their hashes.
        label_errors: Keys of the queries whose labels are known to be wrong.
    """

    name: str
    pools: Mapping[str, tuple[Passage, ...]]
    queries: tuple[EvaluationQuery, ...]
    qrels: Mapping[tuple[str, str], Mapping[str, int]]
    source: Source
    files: tuple[BenchmarkFile, ...]
    label_errors: frozenset[tuple[str, str]] = frozenset()

    @property
    def verified(self) -> bool:
        """Whether every file has a hash that is known."""
        return all(file.verified for file in self.files)

    @property
    def sha256(self) -> str:
        """The file's SHA-256; of several files, that of their hashes, each on a line, sorted."""
        digests = sorted(file.sha256 for file in self.files)
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def without_adversarial(dataset: Dataset) -> Dataset:
    """Leave out the adversarial questions of a set that uses LoCoMo's category numbers.

    They have no answer in the conversation, so LoCoMo's retrieval protocol excludes them. A set
    with any category outside LoCoMo's five is returned as it is.
    """
    categories = {query.category for query in dataset.queries}
    if not categories <= LOCOMO_CATEGORIES.keys():
        return dataset
    return only_categories(dataset, categories - {ADVERSARIAL})


def only_categories(dataset: Dataset, categories: set[str]) -> Dataset:
    """Keep the queries of these categories, with their qrels and all passages.

    Raises:
        DatasetError: The set has no query of these categories.
    """
    queries = tuple(query for query in dataset.queries if query.category in categories)
    if not queries:
        present = ", ".join(sorted({query.category for query in dataset.queries}))
        raise DatasetError(
            f"{dataset.name}: no query has one of the categories {sorted(categories)}. "
            f"It has: {present or 'none'}."
        )
    qrels = {query.key: dataset.qrels[query.key] for query in queries}
    return replace(dataset, queries=queries, qrels=qrels)


def ask_phrasings(dataset: Dataset, which: str) -> Dataset:
    """Choose how often a question is asked that can be put in several ways.

    Args:
        dataset: The set.
        which: `first` asks each question once; `all` makes every other phrasing a query of its
            own, with the same qrels, and the id `<id>#2`, `<id>#3`, …. The intervals of a report
            take the phrasings of a question for independent, and so are too narrow then.

    Raises:
        InvalidInput: `which` is neither.
        DatasetError: `all` of a set that has no other phrasings.
    """
    if which not in PHRASINGS:
        raise InvalidInput("phrasings", which, "unknown", f"Use {' or '.join(PHRASINGS)}.")
    if which == "first":
        return dataset
    origins = {
        asked: query for query in dataset.queries for asked in (query, *_other_phrasings(query))
    }
    if len(origins) == len(dataset.queries):
        raise DatasetError(
            f"{dataset.name}: no query has other phrasings. Ask the first ones alone."
        )
    return replace(
        dataset,
        queries=tuple(origins),
        qrels={asked.key: dataset.qrels[origin.key] for asked, origin in origins.items()},
        label_errors=frozenset(
            asked.key for asked, origin in origins.items() if origin.key in dataset.label_errors
        ),
    )


def _other_phrasings(query: EvaluationQuery) -> list[EvaluationQuery]:
    others = [text for text in dict.fromkeys(query.phrasings) if text != query.text]
    return [
        replace(query, id=f"{query.id}#{number}", text=text, phrasings=())
        for number, text in enumerate(others, start=2)
    ]
