"""Loaders of the conversation form and the multi-hop form.

Both are a folder of three files: `corpus.jsonl.gz` (or `corpus.jsonl`) with `pool`, `id`, `text`
and, for conversations, `speaker`, `at`, `session`, `sequence`; `queries.jsonl` with `pool`, `id`,
`text`, `category` and perhaps `at` and `phrasings`; `qrels.tsv` with `pool`, `query-id`,
`corpus-id`, `score`.
"""

from __future__ import annotations

from collections.abc import Collection as Sized
from pathlib import Path

from ekphory.evaluation.collection import Collection
from ekphory.evaluation.datasets import (
    Dataset,
    EvaluationQuery,
    Passage,
    only_categories,
    without_adversarial,
)
from ekphory.evaluation.provenance import UNKNOWN, benchmark_of, read_hashes, source_of
from ekphory.evaluation.rows import Row, read_json_lines, read_qrels

_QRELS_COLUMNS = ("pool", "query-id", "corpus-id", "score")


def load_conversation(folder: Path, *, categories: Sized[str] | None = None) -> Dataset:
    """Load conversations with their questions.

    Args:
        folder: The folder of the three files.
        categories: Keep only questions of these categories. None keeps all, except that a set
            with LoCoMo's category numbers loses the adversarial ones.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    dataset = _load(folder)
    if categories is not None:
        return only_categories(dataset, set(categories))
    return without_adversarial(dataset)


def load_multihop(folder: Path, *, categories: Sized[str] | None = None) -> Dataset:
    """Load questions that need several passages: the same three files, nobody speaking.

    Args:
        folder: The folder of the three files.
        categories: Keep only questions of these categories; None keeps all.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    dataset = _load(folder)
    return dataset if categories is None else only_categories(dataset, set(categories))


def _load(folder: Path) -> Dataset:
    corpus = "corpus.jsonl" if (folder / "corpus.jsonl").is_file() else "corpus.jsonl.gz"
    files = read_hashes(folder, (corpus, "queries.jsonl", "qrels.tsv"))
    collection = Collection()
    for row in read_json_lines(folder / corpus):
        collection.add_passage(row.place, pool=row.text("pool"), passage=_passage(row))
    for row in read_json_lines(folder / "queries.jsonl"):
        collection.add_query(row.place, query=_query(row))
    for row, gain in read_qrels(folder / "qrels.tsv", columns=_QRELS_COLUMNS):
        key = (row.text("pool"), row.text("query-id"))
        collection.add_judgement(row.place, key=key, passage_id=row.text("corpus-id"), gain=gain)
    name = benchmark_of(files) or folder.resolve().name
    return collection.dataset(name, source=source_of(files, otherwise=UNKNOWN), files=files)


def _passage(row: Row) -> Passage:
    return Passage(
        id=row.text("id"),
        text=row.text("text"),
        speaker=row.text_or_empty("speaker"),
        at=row.moment("at"),
        session=row.label("session") or None,
        sequence=row.integer("sequence"),
    )


def _query(row: Row) -> EvaluationQuery:
    return EvaluationQuery(
        pool=row.text("pool"),
        id=row.text("id"),
        text=row.text("text"),
        category=row.label("category"),
        at=row.moment("at"),
        phrasings=row.texts("phrasings"),
    )
