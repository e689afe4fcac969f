"""Loaders of benchmarks: BEIR, conversations, LoCoMo."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from collections.abc import Collection as Sized
from pathlib import Path

from ekphory.importers.locomo import LocomoConversation, LocomoTurn, read_conversations
from ekphory_lab.evaluation import datasets

# Loader of BEIR's form: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`.

POOL = ""
"""A BEIR set is one pool without a name."""

_BEIR_COLUMNS = ("query-id", "corpus-id", "score")


def load_beir(folder: Path) -> datasets.Dataset:
    """Load a BEIR set with its test judgements; a document's text is its title and its text.

    Args:
        folder: The folder of the unpacked set.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    files = ("corpus.jsonl", "qrels/test.tsv")
    return _load(folder, files, _BEIR_COLUMNS, _read_document, _read_beir_query)


def _read_document(row: datasets.Row) -> tuple[str, datasets.Passage]:
    title, text = row.text_or_empty("title"), row.text("text")
    return POOL, datasets.Passage(id=row.text("_id"), text=f"{title} {text}".strip())


def _read_beir_query(row: datasets.Row) -> datasets.EvaluationQuery:
    return datasets.EvaluationQuery(pool=POOL, id=row.text("_id"), text=row.text("text"))


# Loaders of the conversation form and the multi-hop form.
#
# Both are a folder of three files: `corpus.jsonl.gz` (or `corpus.jsonl`) with `pool`, `id`, `text`
# and, for conversations, `speaker`, `at`, `session`, `sequence`; `queries.jsonl` with `pool`, `id`,
# `text`, `category` and perhaps `at` and `phrasings`; `qrels.tsv` with the columns `pool`,
# `query-id`, `corpus-id` and `score`.


def load_conversation(folder: Path, *, categories: Sized[str] | None = None) -> datasets.Dataset:
    """Load conversations with their questions.

    Args:
        folder: The folder of the three files.
        categories: Keep only questions of these categories. None keeps all, except that a set
            with LoCoMo's category numbers loses the adversarial ones.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    return datasets.chosen_categories(_load_pools(folder), categories)


def load_multihop(folder: Path, *, categories: Sized[str] | None = None) -> datasets.Dataset:
    """Load questions that need several passages: the same three files, nobody speaking.

    Args:
        folder: The folder of the three files.
        categories: Keep only questions of these categories; None keeps all.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    dataset = _load_pools(folder)
    return dataset if categories is None else datasets.only_categories(dataset, set(categories))


def _load_pools(folder: Path) -> datasets.Dataset:
    corpus = "corpus.jsonl" if (folder / "corpus.jsonl").is_file() else "corpus.jsonl.gz"
    columns = ("pool", *_BEIR_COLUMNS)
    files = (corpus, "qrels.tsv")
    return _load(folder, files, columns, _read_pool_passage, _read_pool_query)


def _read_pool_passage(row: datasets.Row) -> tuple[str, datasets.Passage]:
    return row.text("pool"), read_turn(row)


def read_turn(row: datasets.Row) -> datasets.Passage:
    """Read a passage of the conversation form."""
    return datasets.Passage(
        id=row.text("id"),
        text=row.text("text"),
        speaker=row.text_or_empty("speaker"),
        at=row.moment("at"),
        session=row.label("session") or None,
        sequence=row.integer("sequence"),
    )


def _read_pool_query(row: datasets.Row) -> datasets.EvaluationQuery:
    return datasets.EvaluationQuery(
        pool=row.text("pool"),
        id=row.text("id"),
        text=row.text("text"),
        category=row.label("category"),
        at=row.moment("at"),
        phrasings=row.texts("phrasings"),
    )


def _load(
    folder: Path,
    names: tuple[str, str],
    columns: tuple[str, ...],
    read_passage: Callable[[datasets.Row], tuple[str, datasets.Passage]],
    read_query: Callable[[datasets.Row], datasets.EvaluationQuery],
) -> datasets.Dataset:
    corpus, qrels = names
    files = datasets.read_hashes(folder, (corpus, "queries.jsonl", qrels))
    collection = datasets.Collection()
    for row in datasets.read_json_lines(folder / corpus):
        pool, passage = read_passage(row)
        collection.add_passage(row.place, pool=pool, passage=passage)
    for row in datasets.read_json_lines(folder / "queries.jsonl"):
        collection.add_query(row.place, query=read_query(row))
    for row, gain in datasets.read_qrels(folder / qrels, columns=columns):
        key = (row.text("pool") if "pool" in columns else POOL, row.text("query-id"))
        collection.add_judgement(row.place, key=key, passage_id=row.text("corpus-id"), gain=gain)
    name = datasets.benchmark_of(files) or folder.resolve().name
    # Where no hash of a set is known, it is believed by its name.
    known_by_hash = name in datasets.KNOWN_HASHES.values()
    otherwise = datasets.UNKNOWN if known_by_hash else datasets.SOURCES.get(name, datasets.UNKNOWN)
    return collection.dataset(
        name, source=datasets.source_of(files, otherwise=otherwise), files=files
    )


# Loader of LoCoMo's own file, and the cleaning of its evidence.

_TURN = re.compile(r"D:?(\d+):(\d+)")
"""A turn's id; also `D:11:26`, and several in one text, both of which the file has."""


def load_locomo(path: Path, *, categories: Sized[str] | None = None) -> datasets.Dataset:
    """Load LoCoMo's own file: one pool per conversation, one passage per turn.

    A question's id is its position among its conversation's questions. Evidence that names no
    turn of the conversation is dropped, and so are questions that have no other.

    Args:
        path: `locomo10.json`, or any file of that form.
        categories: Keep only questions of these categories; None keeps all but the adversarial.

    Raises:
        DatasetError: The file is missing or does not have LoCoMo's form.
    """
    files = datasets.read_hashes(path.parent, (path.name,))
    collection = datasets.Collection()
    for conversation in read_conversations(path):
        _add_conversation(collection, conversation)
    name = datasets.benchmark_of(files) or path.stem
    dataset = collection.dataset(
        name, source=datasets.source_of(files, otherwise=datasets.LOCOMO), files=files
    )
    return datasets.chosen_categories(dataset, categories)


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


def _add_conversation(collection: datasets.Collection, conversation: LocomoConversation) -> None:
    for turn in conversation.turns:
        place = f"{conversation.id}, session {turn.session}"
        collection.add_passage(place, pool=conversation.id, passage=_locomo_passage(turn))
    known = {turn.id for turn in conversation.turns}
    for position, question in enumerate(conversation.questions):
        place = f"{conversation.id}, question {position}"
        query = datasets.EvaluationQuery(
            pool=conversation.id,
            id=str(position),
            text=question.text,
            category=str(question.category),
        )
        answers = evidence_ids(question.evidence, known=known)
        collection.add_answered(place, query=query, answers=answers)


def _locomo_passage(turn: LocomoTurn) -> datasets.Passage:
    return datasets.Passage(
        id=turn.id,
        text=turn.text,
        speaker=turn.speaker,
        at=turn.at,
        session=str(turn.session),
        sequence=turn.sequence,
    )
