"""Written conversations on which nothing is trained: what choices and calibrations are made on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ekphory.errors import DatasetError
from ekphory_lab.evaluation import datasets
from ekphory_lab.training.texts import Row, read_conversations, sha256_of_texts

DEVELOPMENT_CONVERSATIONS = Path(__file__).parent / "development_conversations"
NAME = "development_conversations"
CONVERSATIONS_PER_POOL: Mapping[str, int] = {"friends": 6, "texting": 6, "assistant": 3}
"""Some hundred turns, as many as one of LoCoMo's conversations has."""

_SOURCE = datasets.Source(
    "conversations written for ekphory", "Apache-2.0", "comes with ekphory-lab"
)


def development_set(folder: Path = DEVELOPMENT_CONVERSATIONS) -> datasets.Dataset:
    """Put the conversations into pools, some of a kind together, with their questions.

    Raises:
        DatasetError: There is no file, one cannot be read, or is not of two speakers.
    """
    rows = read_conversations(folder)
    collection = datasets.Collection()
    for kind, size in CONVERSATIONS_PER_POOL.items():
        chosen = [row for row in rows if row["kind"] == kind]
        for start in range(0, len(chosen), size):
            together = _of_one_pair(chosen[start : start + size])
            _add_pool(collection, f"{kind}-{start // size}", together)
    file = datasets.BenchmarkFile(NAME, sha256_of_texts(folder), None)
    return collection.dataset(NAME, source=_SOURCE, files=(file,))


def _of_one_pair(rows: Sequence[Row]) -> list[Row]:
    """Let the same two speak everywhere: a name then tells no conversation from the others."""
    pair = _speakers(rows[0])
    return [_renamed(row, dict(zip(_speakers(row), pair, strict=True))) for row in rows]


def _speakers(row: Row) -> list[str]:
    found = list(dict.fromkeys(turn["speaker"] for turn in row["turns"]))
    if len(found) != 2:
        raise DatasetError(f"{row['id']}: {len(found)} speakers. A conversation has two.")
    # Whoever begins: a user stays the user.
    return sorted(found, reverse=True) if row["kind"] == "assistant" else found


def _renamed(row: Row, names: Mapping[str, str]) -> Row:
    known = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def told(text: str) -> str:
        return known.sub(lambda found: names[found[0]], text)

    turns = [
        {**turn, "speaker": names[turn["speaker"]], "text": told(turn["text"])}
        for turn in row["turns"]
    ]
    questions = [{**asked, "query": told(asked["query"])} for asked in row["questions"]]
    return {**row, "turns": turns, "questions": questions}


def _add_pool(collection: datasets.Collection, pool: str, rows: Sequence[Row]) -> None:
    for row in rows:
        for place, turn in enumerate(row["turns"]):
            passage = datasets.Passage(
                id=f"{row['id']}:{place}",
                text=turn["text"],
                speaker=turn["speaker"],
                at=datetime.fromisoformat(turn["at"]),
                session=f"{row['id']}:{turn['session']}",
                sequence=place,
            )
            collection.add_passage(row["id"], pool=pool, passage=passage)
    for row in rows:
        for number, asked in enumerate(row["questions"]):
            query = datasets.EvaluationQuery(
                pool=pool,
                id=f"{row['id']}:{number}",
                text=asked["query"],
                category=asked["category"],
            )
            answers = (f"{row['id']}:{place}" for place in asked["turns"])
            collection.add_answered(row["id"], query=query, answers=answers)
