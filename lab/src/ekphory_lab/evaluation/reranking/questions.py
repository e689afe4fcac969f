"""Questions that only the dialogue before them explains, and questions in twelve languages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ekphory_lab.evaluation import datasets, metrics
from ekphory_lab.evaluation.loaders import read_turn
from ekphory_lab.evaluation.reranking.candidates import CandidateList, Judge

# Questions that only the dialogue before them explains, asked with it and without.
#
# The conversations are fictional and ekphory's own; the questions, what was said before them and
# their answers were written by hand. The dialogue names what the question leaves out, and does not
# give the answer.

DIALOGUE_NAME = "dialogue_context"
TURNS_FILE = "dialogue_turns.jsonl"
QUESTIONS_FILE = "dialogue_questions.jsonl"
DIALOGUE_SOURCE = datasets.Source(
    "Questions in a dialogue, by ekphory", "Apache-2.0", "It comes with ekphory-lab."
)


@dataclass(frozen=True, slots=True)
class DialogueSet:
    """The questions and their conversations.

    Attributes:
        dataset: Conversations, questions without their dialogue, and judgements.
        contexts: What was said before each question, oldest turn first, by query key.
    """

    dataset: datasets.Dataset
    contexts: Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueScores:
    """MRR of one contender.

    Attributes:
        contender: Its name.
        questions: How many there are.
        with_context, without_context: MRR and its 95 % interval.
        difference: With minus without.
    """

    contender: str
    questions: int
    with_context: metrics.Estimate
    without_context: metrics.Estimate
    difference: metrics.PairedTest


def load_dialogue_set() -> DialogueSet:
    """Read the set that comes with ekphory-lab."""
    place = Path(__file__).parent
    hashes = datasets.read_hashes(place, (TURNS_FILE, QUESTIONS_FILE))
    collection = datasets.Collection()
    for row in datasets.read_json_lines(place / TURNS_FILE):
        collection.add_passage(row.place, pool=row.text("pool"), passage=read_turn(row))
    contexts: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in datasets.read_json_lines(place / QUESTIONS_FILE):
        query = datasets.EvaluationQuery(
            pool=row.text("pool"),
            id=row.text("id"),
            text=row.text("text"),
            category=row.text("leaves_out"),
            at=row.moment("at"),
        )
        collection.add_answered(row.place, query=query, answers=row.texts("answers"))
        contexts[query.key] = row.texts("context")
    return DialogueSet(
        collection.dataset(DIALOGUE_NAME, source=DIALOGUE_SOURCE, files=hashes), contexts
    )


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
    with_context, without_context = metrics.bootstrap_intervals(pairs)
    return DialogueScores(
        contender=judge.contender.name,
        questions=len(pairs),
        with_context=with_context,
        without_context=without_context,
        difference=metrics.paired_test(pairs[:, 1], pairs[:, 0]),
    )


def _reciprocal_rank(
    dialogue: DialogueSet, judge: Judge, found: CandidateList, context: tuple[str, ...]
) -> float:
    asked = replace(found.asked, context=context)
    scored = judge.score(replace(found, asked=asked))
    ranking = [found.ids[place] for place in scored.order()]
    return metrics.reciprocal_rank(dialogue.dataset.qrels[found.key], ranking)


# Ten questions in each of twelve languages: what a reranker is worth beyond English.
#
# Questions and answers were written by hand for ekphory, the same ten in every language. The ten
# answers of a language are the candidates of each of its questions.

LANGUAGES_NAME = "languages"
LANGUAGES_FILE = "languages.jsonl"
LANGUAGES_SOURCE = datasets.Source(
    "Questions in twelve languages, by ekphory", "Apache-2.0", "It comes with ekphory-lab."
)


def load_language_set(folder: Path | None = None) -> datasets.Dataset:
    """Read the set that comes with ekphory-lab, or a file of its form; a language is a category.

    Raises:
        DatasetError: The file is missing or malformed; names the file and the line.
    """
    place = folder or Path(__file__).parent
    hashes = datasets.read_hashes(place, (LANGUAGES_FILE,))
    rows = list(datasets.read_json_lines(place / LANGUAGES_FILE))
    collection = datasets.Collection()
    for row in rows:
        # A session of its own, so that none is the neighbour of another.
        answer = datasets.Passage(
            id=row.text("id"), text=row.text("answer"), session=row.text("id")
        )
        collection.add_passage(row.place, pool=row.text("language"), passage=answer)
    for row in rows:
        language, own_id = row.text("language"), row.text("id")
        query = datasets.EvaluationQuery(
            pool=language, id=own_id, text=row.text("question"), category=language
        )
        collection.add_answered(row.place, query=query, answers=[own_id])
    return collection.dataset(LANGUAGES_NAME, source=LANGUAGES_SOURCE, files=hashes)
