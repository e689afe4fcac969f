"""What a benchmark is, where it comes from, and how its lines are read."""

from __future__ import annotations

import gzip
import hashlib
import json
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from ekphory.errors import DatasetError, InvalidInput, shorten
from ekphory.types import to_utc

# Where benchmark files come from: sources, licences, and the hashes that are known.


@dataclass(frozen=True, slots=True)
class Source:
    """Where a benchmark comes from.

    Attributes:
        title: Its name and publication.
        licence: Under what terms; "none stated" where its source states none.
        obtain: How a user gets the original.
    """

    title: str
    licence: str
    obtain: str


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """One file that was read.

    Attributes:
        name: File name, with its folder inside the benchmark.
        sha256: Hash of its bytes, hexadecimal.
        benchmark: Name of the benchmark that is known to have this file; None where unknown.
    """

    name: str
    sha256: str
    benchmark: str | None

    @property
    def verified(self) -> bool:
        """Whether the hash is known."""
        return self.benchmark is not None


UNKNOWN = Source("unknown set of the user's own", "not known", "It is the user's own.")

LOCOMO = Source(
    "LoCoMo (Maharana et al., ACL 2024)",
    "CC BY-NC 4.0",
    "Download data/locomo10.json from https://github.com/snap-research/locomo",
)

_SOURCES = files("ekphory_lab.evaluation").joinpath("sources.toml").read_text(encoding="utf-8")
SOURCES: dict[str, Source] = {}
KNOWN_HASHES: dict[str, str] = {}
"""Benchmark by the SHA-256 of one of its files."""
for _name, _row in tomllib.loads(_SOURCES).items():
    KNOWN_HASHES |= dict.fromkeys(_row.pop("hashes"), _name)
    SOURCES[_name] = Source(**_row)


def read_hashes(folder: Path, names: Sequence[str]) -> tuple[BenchmarkFile, ...]:
    """Hash the files of a benchmark and look the hashes up.

    Args:
        folder: The benchmark's folder.
        names: The files, relative to it.

    Raises:
        DatasetError: One of the files is missing.
    """
    hashed = []
    for name in names:
        path = folder / name
        if not path.is_file():
            raise DatasetError(
                f"{path}: no such file. Give a benchmark that has {name}; how to get the "
                "originals: "
                + "; ".join(f"{known}: {source.obtain}" for known, source in SOURCES.items())
            )
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        hashed.append(BenchmarkFile(name, digest, KNOWN_HASHES.get(digest)))
    return tuple(hashed)


def benchmark_of(files: Sequence[BenchmarkFile]) -> str | None:
    """Return the one known benchmark that all these files belong to; None where there is none."""
    names = {file.benchmark for file in files}
    return names.pop() if len(names) == 1 else None


def source_of(files: Sequence[BenchmarkFile], *, otherwise: Source) -> Source:
    """Return the source of the benchmark these files belong to, or the other one."""
    return SOURCES.get(benchmark_of(files) or "", otherwise)


# What a benchmark is: passages in pools, queries, qrels, and where it all came from.

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
        answers: Reference answers, each of them right; empty where the set gives none.
    """

    pool: str
    id: str
    text: str
    category: str = ""
    at: datetime | None = None
    phrasings: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

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
    """

    name: str
    pools: Mapping[str, tuple[Passage, ...]]
    queries: tuple[EvaluationQuery, ...]
    qrels: Mapping[tuple[str, str], Mapping[str, int]]
    source: Source
    files: tuple[BenchmarkFile, ...]

    @property
    def size(self) -> int:
        """How many passages there are in all pools."""
        return sum(map(len, self.pools.values()))

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


def chosen_categories(dataset: Dataset, categories: Iterable[str] | None) -> Dataset:
    """Keep the queries of these categories; None leaves LoCoMo's adversarial ones out.

    They have no answer in the conversation, so LoCoMo's retrieval protocol excludes them. A set
    with any category outside LoCoMo's five is returned as it is.
    """
    if categories is not None:
        return only_categories(dataset, set(categories))
    present = {query.category for query in dataset.queries}
    if not present <= LOCOMO_CATEGORIES.keys():
        return dataset
    return only_categories(dataset, present - {ADVERSARIAL})


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
    )


def _other_phrasings(query: EvaluationQuery) -> list[EvaluationQuery]:
    others = [text for text in dict.fromkeys(query.phrasings) if text != query.text]
    return [
        replace(query, id=f"{query.id}#{number}", text=text, phrasings=())
        for number, text in enumerate(others, start=2)
    ]


# Putting a dataset together: ids checked for doubles, qrels for loose ends.


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

    def add_answered(self, place: str, *, query: EvaluationQuery, answers: Iterable[str]) -> None:
        """Take a query, and the passages that answer it, each with the gain 1.

        Raises:
            DatasetError: As `add_query` and `add_judgement`.
        """
        self.add_query(place, query=query)
        for answer in answers:
            self.add_judgement(place, key=query.key, passage_id=answer, gain=1)

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
        """Return the dataset; queries without a relevant passage are left out.

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


# Reading the lines of benchmark files, one at a time, with errors that name file and line.

_REMEDY = "Fetch the file again, or correct this line."
Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class Row:
    """One line's fields, and where it stands.

    Attributes:
        place: File and line, such as `queries.jsonl:17`.
        fields: Value by field name.
    """

    place: str
    fields: dict[str, object]

    def text(self, name: str) -> str:
        """Return a field that must be a text."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.error(name, "a text is needed here")
        return value

    def text_or_empty(self, name: str) -> str:
        """Return a text field; a missing or null one is empty."""
        return "" if self.fields.get(name) is None else self.text(name)

    def label(self, name: str) -> str:
        """Return a field, a text or a whole number, as a text; a missing one is empty."""
        value = self.fields.get(name)
        return str(value) if _is_integer(value) else self.text_or_empty(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that must be a list of texts; a missing one is empty."""
        value = self.fields.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.error(name, "a list of texts is needed here")
        return tuple(value)

    def integer(self, name: str) -> int | None:
        """Return a whole number; None where it is missing or null."""
        value = self.fields.get(name)
        if value is not None and not _is_integer(value):
            raise self.error(name, "a whole number is needed here")
        return value

    def moment(self, name: str) -> datetime | None:
        """Return a moment in UTC; None where it is missing or null."""
        if self.fields.get(name) is None:
            return None
        try:
            return to_utc(self.text(name), field=name)
        except InvalidInput as error:
            raise self.error(name, "an ISO 8601 moment is needed here") from error

    def error(self, name: str, problem: str) -> DatasetError:
        """Build the error for one of this line's fields."""
        value = self.fields.get(name)
        return DatasetError(f"{self.place}: {name}={shorten(value)}: {problem}. {_REMEDY}")


def read_json_lines(path: Path) -> Iterator[Row]:
    """Read JSON Lines, gzipped where the name ends in `.gz`; empty lines are passed over.

    Raises:
        DatasetError: A line is not a JSON object, or the file breaks off.
    """
    for place, line in _numbered(path):
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{place}: not JSON ({error}). {_REMEDY}") from error
        if not isinstance(fields, dict):
            raise DatasetError(f"{place}: not a JSON object but {shorten(fields)}. {_REMEDY}")
        yield Row(place, fields)


def read_each(file: Path, build: Callable[[Mapping[str, Any]], Built], *, what: str) -> list[Built]:
    """Read JSON Lines, and build something of each.

    Args:
        file: What is read.
        build: Raises a KeyError, TypeError or ValueError where the fields are others.
        what: What is built, for errors.

    Raises:
        DatasetError: A line is not of that form, or there is none.
    """
    found = []
    for row in read_json_lines(file):
        try:
            found.append(build(row.fields))
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{row.place}: is not a {what}: {error!r}.") from error
    if not found:
        raise DatasetError(f"{file}: holds no {what}. Give one JSON object a line.")
    return found


def read_cells(path: Path, *, separator: str | None) -> Iterator[tuple[str, list[str]]]:
    """Read the cells of each line, with its place; None separates at blanks.

    Raises:
        DatasetError: A line is not UTF-8.
    """
    for place, line in _numbered(path):
        try:
            yield place, line.decode().split(separator)
        except UnicodeDecodeError as error:
            raise DatasetError(f"{place}: not UTF-8 ({error}). {_REMEDY}") from error


def _numbered(path: Path) -> Iterator[tuple[str, bytes]]:
    number = 0
    try:
        for number, line in enumerate(_lines(path), start=1):
            if line.strip():
                yield f"{path.name}:{number}", line.rstrip(b"\r\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(
            f"{path.name}:{number + 1}: the compressed file breaks off or is damaged "
            f"({error}). Fetch the file again."
        ) from error


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        yield from stream


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
