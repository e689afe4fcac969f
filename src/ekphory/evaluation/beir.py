"""Loader of BEIR's form: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`."""

from __future__ import annotations

from pathlib import Path

from ekphory.evaluation.collection import Collection
from ekphory.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory.evaluation.provenance import UNKNOWN, benchmark_of, read_hashes, source_of
from ekphory.evaluation.rows import Row, read_json_lines, read_qrels

POOL = ""
"""A BEIR set is one pool without a name."""

_QRELS_COLUMNS = ("query-id", "corpus-id", "score")


def load_beir(folder: Path, *, split: str = "test") -> Dataset:
    """Load a BEIR set; a document's text is its title and its text.

    Args:
        folder: The folder of the unpacked set.
        split: Which judgements to take: `test`, `dev` or `train`.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    qrels = f"qrels/{split}.tsv"
    files = read_hashes(folder, ("corpus.jsonl", "queries.jsonl", qrels))
    collection = Collection()
    for row in read_json_lines(folder / "corpus.jsonl"):
        collection.add_passage(row.place, pool=POOL, passage=_passage(row))
    for row in read_json_lines(folder / "queries.jsonl"):
        query = EvaluationQuery(pool=POOL, id=row.text("_id"), text=row.text("text"))
        collection.add_query(row.place, query=query)
    for row, gain in read_qrels(folder / qrels, columns=_QRELS_COLUMNS):
        key = (POOL, row.text("query-id"))
        collection.add_judgement(row.place, key=key, passage_id=row.text("corpus-id"), gain=gain)
    name = benchmark_of(files) or folder.resolve().name
    return collection.dataset(name, source=source_of(files, otherwise=UNKNOWN), files=files)


def _passage(row: Row) -> Passage:
    title, text = row.text_or_empty("title"), row.text("text")
    return Passage(id=row.text("_id"), text=f"{title} {text}".strip())
