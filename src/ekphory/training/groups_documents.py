"""Question groups of the documents written for training: two subjects, close neighbours in each.

What is searched is claims, questions and keywords, as people search papers and manuals; they keep
what the model knows of documents while conversations are learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from ekphory.training.question_groups import GroupBuilder, QuestionGroup
from ekphory.training.training_rows import Row

SOURCE = "documents"
_SUBJECTS = 2
_TITLED = 0.7


def document_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Give one epoch of groups, each with all documents of two subjects."""
    shuffled = random.sample(list(rows), len(rows))
    for start in range(0, len(shuffled), _SUBJECTS):
        builder = GroupBuilder(SOURCE)
        for row in shuffled[start : start + _SUBJECTS]:
            _add_subject(builder, row, random)
        group = builder.build()
        if group is not None:
            yield group


def _add_subject(builder: GroupBuilder, row: Row, random: Random) -> None:
    for document in row["documents"]:
        titled = random.random() < _TITLED
        text = f"{document['title']}. {document['text']}" if titled else document["text"]
        place = builder.add_passage(text)
        for search in document["searches"]:
            builder.add_question(search, [place])
