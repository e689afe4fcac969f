"""Loader of LoCoMo's own file, and the cleaning of its evidence."""

from __future__ import annotations

import re
from collections.abc import Collection as Sized
from collections.abc import Container, Iterable
from pathlib import Path

from ekphory.evaluation.collection import Collection
from ekphory.evaluation.datasets import (
    Dataset,
    EvaluationQuery,
    Passage,
    only_categories,
    without_adversarial,
)
from ekphory.evaluation.provenance import LOCOMO, benchmark_of, read_hashes, source_of
from ekphory.importers.locomo import LocomoConversation, LocomoTurn, read_conversations

_TURN = re.compile(r"D:?(\d+):(\d+)")
"""A turn's id; also `D:11:26`, and several in one text, both of which the file has."""


def load_locomo(path: Path, *, categories: Sized[str] | None = None) -> Dataset:
    """Load LoCoMo's own file: one pool per conversation, one passage per turn.

    A question's id is its position among its conversation's questions. Evidence that names no
    turn of the conversation is dropped, and so are questions that have no other.

    Args:
        path: `locomo10.json`, or any file of that form.
        categories: Keep only questions of these categories; None keeps all but the adversarial.

    Raises:
        DatasetError: The file is missing or does not have LoCoMo's form.
    """
    files = read_hashes(path.parent, (path.name,))
    collection = Collection()
    for conversation in read_conversations(path):
        _add_conversation(collection, conversation)
    name = benchmark_of(files) or path.stem
    dataset = collection.dataset(name, source=source_of(files, otherwise=LOCOMO), files=files)
    if categories is not None:
        return only_categories(dataset, set(categories))
    return without_adversarial(dataset)


def evidence_ids(evidence: Iterable[str], *, known: Container[str]) -> list[str]:
    """Clean the evidence of a question: every turn that it names and that exists, once.

    Args:
        evidence: The texts in the file: `D1:3`, but also `D8:6; D9:17`, `D:11:26`, `D30:05`, `D`.
        known: Ids of the conversation's turns.
    """
    named = (
        f"D{int(match[1])}:{int(match[2])}" for text in evidence for match in _TURN.finditer(text)
    )
    return [turn for turn in dict.fromkeys(named) if turn in known]


def _add_conversation(collection: Collection, conversation: LocomoConversation) -> None:
    for turn in conversation.turns:
        place = f"{conversation.id}, session {turn.session}"
        collection.add_passage(place, pool=conversation.id, passage=_passage(turn))
    known = {turn.id for turn in conversation.turns}
    for position, question in enumerate(conversation.questions):
        place = f"{conversation.id}, question {position}"
        query = EvaluationQuery(
            pool=conversation.id,
            id=str(position),
            text=question.text,
            category=str(question.category),
        )
        collection.add_query(place, query=query)
        for turn_id in evidence_ids(question.evidence, known=known):
            collection.add_judgement(place, key=query.key, passage_id=turn_id, gain=1)


def _passage(turn: LocomoTurn) -> Passage:
    return Passage(
        id=turn.id,
        text=turn.text,
        speaker=turn.speaker,
        at=turn.at,
        session=str(turn.session),
        sequence=turn.sequence,
    )
