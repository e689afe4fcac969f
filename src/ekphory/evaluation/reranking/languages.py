"""Ten questions in each of twelve languages: what a reranker is worth beyond English.

Questions and answers were written by hand for ekphory, the same ten in every language. The ten
answers of a language are the candidates of each of its questions.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ekphory.evaluation.collection import Collection
from ekphory.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory.evaluation.provenance import Source, read_hashes
from ekphory.evaluation.rows import read_json_lines

NAME = "languages"
LANGUAGES_FILE = "languages.jsonl"
SOURCE = Source("Questions in twelve languages, by ekphory", "Apache-2.0", "Comes with ekphory")


def load_language_set(folder: Path | None = None) -> Dataset:
    """Read the set that comes with ekphory, or a file of its form; a language is a category.

    Raises:
        DatasetError: The file is missing or malformed; names the file and the line.
    """
    place = folder or Path(str(files("ekphory.evaluation.reranking")))
    hashes = read_hashes(place, (LANGUAGES_FILE,))
    rows = list(read_json_lines(place / LANGUAGES_FILE))
    collection = Collection()
    for row in rows:
        # A session of its own, so that none is the neighbour of another.
        answer = Passage(id=row.text("id"), text=row.text("answer"), session=row.text("id"))
        collection.add_passage(row.place, pool=row.text("language"), passage=answer)
    for row in rows:
        language, own_id = row.text("language"), row.text("id")
        query = EvaluationQuery(
            pool=language, id=own_id, text=row.text("question"), category=language
        )
        collection.add_query(row.place, query=query)
        collection.add_judgement(row.place, key=query.key, passage_id=own_id, gain=1)
    return collection.dataset(NAME, source=SOURCE, files=hashes)
