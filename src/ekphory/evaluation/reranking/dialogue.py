"""Questions that only the dialogue before them explains, asked with it and without.

The conversations are fictional and ekphory's own; the questions, what was said before them and
their answers were written by hand. The dialogue names what the question leaves out, and does not
give the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from ekphory.evaluation.collection import Collection
from ekphory.evaluation.datasets import Dataset, EvaluationQuery, Passage
from ekphory.evaluation.metrics import reciprocal_rank
from ekphory.evaluation.provenance import Source, read_hashes
from ekphory.evaluation.reranking.candidates import CandidateList, FloatArray
from ekphory.evaluation.reranking.scored_lists import Judge
from ekphory.evaluation.rows import Row, read_json_lines
from ekphory.evaluation.stats import Estimate, PairedTest, bootstrap_intervals, paired_test

NAME = "dialogue_context"
TURNS_FILE = "dialogue_turns.jsonl"
QUESTIONS_FILE = "dialogue_questions.jsonl"
SOURCE = Source("Questions in a dialogue, by ekphory", "Apache-2.0", "It comes with ekphory.")


@dataclass(frozen=True, slots=True)
class DialogueSet:
    """The questions and their conversations.

    Attributes:
        dataset: Conversations, questions without their dialogue, and judgements.
        contexts: What was said before each question, oldest turn first, by query key.
    """

    dataset: Dataset
    contexts: Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueScores:
    """MRR of one contender.

    Attributes:
        contender: Its name.
        questions: How many there are.
        with_context, without_context: MRR and its 95 % interval.
        difference: With minus without.
        kinds: Questions, MRR with and MRR without the dialogue, by what the question leaves out.
    """

    contender: str
    questions: int
    with_context: Estimate
    without_context: Estimate
    difference: PairedTest
    kinds: Mapping[str, tuple[int, float, float]]


def load_dialogue_set(folder: Path | None = None) -> DialogueSet:
    """Read the set that comes with ekphory, or two files of its form.

    Raises:
        DatasetError: A file is missing or malformed; names the file and the line.
    """
    place = folder or Path(str(files("ekphory.evaluation.reranking")))
    hashes = read_hashes(place, (TURNS_FILE, QUESTIONS_FILE))
    collection = Collection()
    for row in read_json_lines(place / TURNS_FILE):
        collection.add_passage(row.place, pool=row.text("pool"), passage=_turn(row))
    contexts: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in read_json_lines(place / QUESTIONS_FILE):
        query = EvaluationQuery(
            pool=row.text("pool"),
            id=row.text("id"),
            text=row.text("text"),
            category=row.text("leaves_out"),
            at=row.moment("at"),
        )
        collection.add_query(row.place, query=query)
        for answer in row.texts("answers"):
            collection.add_judgement(row.place, key=query.key, passage_id=answer, gain=1)
        contexts[query.key] = row.texts("context")
    return DialogueSet(collection.dataset(NAME, source=SOURCE, files=hashes), contexts)


def measure_dialogue(dialogue: DialogueSet, judge: Judge) -> DialogueScores:
    """Rank the candidates of every question with the dialogue before it and without."""
    pairs = np.array(
        [
            [
                _reciprocal_rank(dialogue, judge, found, dialogue.contexts[found.key]),
                _reciprocal_rank(dialogue, judge, found, ()),
            ]
            for found in judge.candidates.own
        ]
    )
    kinds = [query.category for query in dialogue.dataset.queries]
    with_context, without_context = bootstrap_intervals(pairs)
    return DialogueScores(
        contender=judge.contender.name,
        questions=len(pairs),
        with_context=with_context,
        without_context=without_context,
        difference=paired_test(pairs[:, 1], pairs[:, 0]),
        kinds={kind: _of_kind(pairs, kinds, kind) for kind in sorted(set(kinds))},
    )


def _of_kind(pairs: FloatArray, kinds: Sequence[str], kind: str) -> tuple[int, float, float]:
    chosen = pairs[[each == kind for each in kinds]]
    return len(chosen), float(chosen[:, 0].mean()), float(chosen[:, 1].mean())


def _reciprocal_rank(
    dialogue: DialogueSet, judge: Judge, found: CandidateList, context: tuple[str, ...]
) -> float:
    asked = replace(found.asked, context=context)
    scored = judge.score(replace(found, asked=asked))
    ranking = [found.ids[place] for place in scored.order()]
    return reciprocal_rank(dialogue.dataset.qrels[found.key], ranking)


def _turn(row: Row) -> Passage:
    return Passage(
        id=row.text("id"),
        text=row.text("text"),
        speaker=row.text("speaker"),
        at=row.moment("at"),
        session=row.label("session"),
        sequence=row.integer("sequence"),
    )
