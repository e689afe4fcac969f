"""Loaders of benchmarks: BEIR's form, conversations, and the files of LoCoMo and other authors."""

from __future__ import annotations

import re
from collections.abc import Collection as Sized
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from ekphory.errors import DatasetError, shorten
from ekphory.importers.locomo import LocomoConversation, read_conversations
from ekphory.importers.source import Unreadable, stream_elements
from ekphory_lab.evaluation import datasets

# Loader of retrieval sets: BEIR's and TREC's forms as they are met, and LMEB's.

POOL = ""
"""Without scenes a set is one pool without a name."""

_BEIR_COLUMNS = ("query-id", "corpus-id", "score")

_IDS = ("_id", "id")
_QUERY_COLUMNS = ("query-id", "query_id", "qid", "_id", "id")
_PASSAGE_COLUMNS = ("corpus-id", "corpus_id", "doc_id", "docid", "pid")
_SCENE_IDS = ("scene_id", *_QUERY_COLUMNS)
_CANDIDATES = ("candidate_doc_ids", "candidates", "corpus_ids", "doc_ids")
_QRELS = ("qrels/test.tsv", "qrels.tsv", "qrels/dev.tsv", "qrels/train.tsv", "qrels.txt")
_TREC_COLUMNS = ("query-id", "iteration", "corpus-id", "score")


def has_pools(folder: Path) -> bool:
    """Whether the folder is of the conversation form, whose qrels name a pool."""
    file = folder / "qrels.tsv"
    if not file.is_file() or (folder / "candidates.jsonl").is_file():
        return not any((folder / name).is_file() for name in _QRELS)
    with file.open(encoding="utf-8", errors="replace") as lines:
        return "pool" in lines.readline().rstrip().split("\t")


def load_retrieval(folder: Path) -> datasets.Dataset:
    """Load a set of documents, queries and qrels, such as those of finance or healthcare.

    `corpus.jsonl` and `queries.jsonl` (or gzipped) have `_id` or `id`, `text` and perhaps
    `title`; qrels are `qrels.tsv`, `qrels/*.tsv`, with or without a first line of names, or TREC's
    `qrels.txt`. With `candidates.jsonl`, as LMEB has it, a query searches the documents that it or
    its scene (`scene_id`) names, and no others. Other fields are passed over.

    Args:
        folder: The folder of the unpacked set.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the line.
    """
    corpus, queries = (_present(folder, f"{name}.jsonl") for name in ("corpus", "queries"))
    qrels = next((name for name in _QRELS if (folder / name).is_file()), _QRELS[0])
    scenes = "candidates.jsonl"
    names = [corpus, queries, qrels, *([scenes] if (folder / scenes).is_file() else [])]
    files = datasets.read_hashes(folder, names)
    documents: dict[str, datasets.Passage] = {}
    for row in datasets.read_json_lines(folder / corpus):
        title, text = row.text_or_empty("title"), row.text("text")
        passage = datasets.Passage(id=_first(row, _IDS), text=f"{title} {text}".strip())
        if passage.id in documents:
            raise row.error("_id", f"id {passage.id!r} is twice in the corpus")
        documents[passage.id] = passage
    pools = _read_scenes(folder / scenes) if scenes in names else {POOL: list(documents)}
    collection = datasets.Collection()
    for pool, ids in pools.items():
        for each in dict.fromkeys(ids):
            if each not in documents:
                raise DatasetError(f"{scenes}: document {each!r} of {pool!r} is not in {corpus}.")
            collection.add_passage(scenes, pool=pool, passage=documents[each])
    pool_of: dict[str, str] = {}
    for row in datasets.read_json_lines(folder / queries):
        query_id, scene = _first(row, _IDS), row.label("scene_id")
        pool = next((each for each in (scene, query_id) if each in pools), POOL)
        if pool not in pools:
            raise row.error("scene_id", f"{scenes} has no documents for it, nor for the query")
        query = datasets.EvaluationQuery(pool=pool, id=query_id, text=row.text("text"))
        collection.add_query(row.place, query=query)
        pool_of[query.id] = query.pool
    for row, gain in _read_qrels(folder / qrels):
        query_id = _first(row, _QUERY_COLUMNS)
        collection.add_judgement(
            row.place,
            key=(pool_of.get(query_id, POOL), query_id),
            passage_id=_first(row, _PASSAGE_COLUMNS),
            gain=gain,
        )
    return _named(collection, files, folder)


def _present(folder: Path, name: str) -> str:
    zipped = f"{name}.gz"
    return zipped if (folder / zipped).is_file() and not (folder / name).is_file() else name


def _first(row: datasets.Row, names: Iterable[str]) -> str:
    """Return the first of these fields that the line has."""
    found = next((name for name in names if row.fields.get(name) is not None), None)
    if found is None:
        raise row.error(next(iter(names)), "this field is missing")
    return row.label(found)


def _read_scenes(file: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in datasets.read_json_lines(file):
        named = next((name for name in _CANDIDATES if name in row.fields), _CANDIDATES[0])
        found[_first(row, _SCENE_IDS)] = list(row.texts(named))
    return found


def _read_qrels(file: Path) -> Iterator[tuple[datasets.Row, int]]:
    """Yield each judgement with its gain; a first line may name the columns."""
    names: Sequence[str] = _TREC_COLUMNS if file.suffix == ".txt" else _BEIR_COLUMNS
    for place, cells in datasets.read_cells(
        file, separator=None if file.suffix == ".txt" else "\t"
    ):
        if set(cells) & {*_QUERY_COLUMNS, *_PASSAGE_COLUMNS}:
            names = cells
            continue
        if len(cells) != len(names):
            raise DatasetError(f"{place}: {len(cells)} cells, not {len(names)}.")
        row = datasets.Row(place, dict(zip(names, cells, strict=True)))
        try:
            gain = int(row.text(names[-1]))
        except ValueError as error:
            raise row.error(names[-1], "a whole number is needed here") from error
        yield row, gain


# Loaders of the conversation form and the multi-hop form.
#
# Both are a folder of three files: `corpus.jsonl.gz` (or `corpus.jsonl`) with `pool`, `id`, `text`
# and, for conversations, `speaker`, `at`, `session`, `sequence`; `queries.jsonl` with `pool`, `id`,
# `text`, `category` and perhaps `at`, `phrasings` and `answer`; `qrels.tsv` with the columns
# `pool`, `query-id`, `corpus-id` and `score`.


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
    files = datasets.read_hashes(folder, (corpus, "queries.jsonl", "qrels.tsv"))
    collection = datasets.Collection()
    for row in datasets.read_json_lines(folder / corpus):
        collection.add_passage(row.place, pool=row.text("pool"), passage=read_turn(row))
    for row in datasets.read_json_lines(folder / "queries.jsonl"):
        query = datasets.EvaluationQuery(
            pool=row.text("pool"),
            id=row.text("id"),
            text=row.text("text"),
            category=row.label("category"),
            at=row.moment("at"),
            phrasings=row.texts("phrasings"),
            answers=_read_answers(row),
        )
        collection.add_query(row.place, query=query)
    for row, gain in _read_qrels(folder / "qrels.tsv"):
        key = (row.text("pool"), row.text("query-id"))
        collection.add_judgement(row.place, key=key, passage_id=row.text("corpus-id"), gain=gain)
    return _named(collection, files, folder)


def _named(
    collection: datasets.Collection, files: tuple[datasets.BenchmarkFile, ...], folder: Path
) -> datasets.Dataset:
    name = datasets.benchmark_of(files) or folder.resolve().name
    # Where no hash of a set is known, it is believed by its name.
    known_by_hash = name in datasets.KNOWN_HASHES.values()
    otherwise = datasets.UNKNOWN if known_by_hash else datasets.SOURCES.get(name, datasets.UNKNOWN)
    source = datasets.source_of(files, otherwise=otherwise)
    return collection.dataset(name, source=source, files=files)


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


def _read_answers(row: datasets.Row) -> tuple[str, ...]:
    return tuple(filter(None, (row.label("answer"), *row.texts("answer_aliases"))))


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
        passage = datasets.Passage(
            id=turn.id,
            text=turn.text,
            speaker=turn.speaker,
            at=turn.at,
            session=str(turn.session),
            sequence=turn.sequence,
        )
        collection.add_passage(place, pool=conversation.id, passage=passage)
    known = {turn.id for turn in conversation.turns}
    for position, question in enumerate(conversation.questions):
        place = f"{conversation.id}, question {position}"
        query = datasets.EvaluationQuery(
            pool=conversation.id,
            id=str(position),
            text=question.text,
            category=str(question.category),
            answers=(question.answer,) if question.answer else (),
        )
        answers = evidence_ids(question.evidence, known=known)
        collection.add_answered(place, query=query, answers=answers)


# Files of questions with reference answers as their authors publish them: HotpotQA (Yang et al.,
# EMNLP 2018), 2WikiMultiHopQA in the same form, MuSiQue (Trivedi et al., TACL 2022), and
# LongMemEval (Wu et al., ICLR 2025).

_Fields: TypeAlias = Mapping[str, Any]
_Paragraph: TypeAlias = tuple[str, bool]
"""The text of a paragraph, and whether the answer rests on it."""

_PUBLISHED = {
    "haystack_sessions": "longmemeval",
    "evidences": "2wikimultihopqa",
    "supporting_facts": "hotpotqa",
    "paragraphs": "musique",
}
"""The set by a field that its questions have, and no earlier one's."""
_ABSTENTION = "_abs"
_WEEKDAY = re.compile(r"\s*\(\w+\)\s*")


def load_questions(path: Path, *, categories: Sized[str] | None = None) -> datasets.Dataset:
    """Load a set of questions, most of them with reference answers, by its form.

    A folder has the conversation form. A file is LoCoMo's, HotpotQA's, 2WikiMultiHopQA's, MuSiQue's
    or LongMemEval's own. The paragraphs of all questions of HotpotQA, 2WikiMultiHopQA and MuSiQue
    are one corpus, which every question searches, as HippoRAG (Gutiérrez et al., NeurIPS 2024) has
    it; a question of LongMemEval searches its own sessions. Questions that are not to be answered
    are left out: LoCoMo's adversarial ones, MuSiQue's that are not answerable, LongMemEval's for
    abstention.

    Args:
        path: The folder or the file.
        categories: Keep only questions of these categories; None keeps the protocol's.

    Raises:
        DatasetError: A file is missing, cut short or malformed; names the file and the place.
    """
    if path.is_dir():
        return load_conversation(path, categories=categories)
    files = datasets.read_hashes(path.parent, (path.name,))
    rows = _read_published(path)
    first = next(rows, None)
    if first is None:
        raise DatasetError(f"{path.name}: it has no question. Fetch the file again.")
    name = next((each for field, each in _PUBLISHED.items() if field in first.fields), None)
    if name is None:
        return load_locomo(path, categories=categories)
    collection = datasets.Collection()
    passages: dict[str, str] = {}
    for row in chain([first], rows):
        try:
            if name == "longmemeval":
                _add_haystack(collection, row)
            else:
                _add_paragraphs(collection, row, passages)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            problem = f"not the form of {name} ({error!r})"
            raise DatasetError(f"{row.place}: {problem}. Fetch the file again.") from error
    source = datasets.source_of(files, otherwise=datasets.SOURCES[name])
    dataset = collection.dataset(path.stem, source=source, files=files)
    return dataset if categories is None else datasets.only_categories(dataset, set(categories))


def _read_published(path: Path) -> Iterator[datasets.Row]:
    if path.suffix == ".jsonl":
        yield from datasets.read_json_lines(path)
        return
    for found in stream_elements(path, "question"):
        if isinstance(found, Unreadable):
            raise DatasetError(f"{found.place}: {found.field}: {found.message}")
        place, element = found
        if not isinstance(element, dict):
            raise DatasetError(f"{place}: not an object but {shorten(element)}.")
        yield datasets.Row(place, element)


def _add_paragraphs(
    collection: datasets.Collection, row: datasets.Row, passages: dict[str, str]
) -> None:
    """Add a question, and those of its paragraphs that `passages`, ids by text, has not yet."""
    fields: _Fields = row.fields
    if not fields.get("answerable", True):
        return
    is_musique = "paragraphs" in fields
    paragraphs = list((_musique_paragraphs if is_musique else _hotpot_paragraphs)(fields))
    for text, _ in paragraphs:
        if text not in passages:
            passages[text] = str(len(passages))
            passage = datasets.Passage(id=passages[text], text=text)
            collection.add_passage(row.place, pool=POOL, passage=passage)
    query_id = row.text("id" if is_musique else "_id")
    query = datasets.EvaluationQuery(
        pool=POOL,
        id=query_id,
        text=row.text("question"),
        # MuSiQue's ids begin with how the hops lie: `2hop__`, `3hop1__`.
        category=query_id.partition("__")[0] if is_musique else row.label("type"),
        answers=_read_answers(row),
    )
    supporting = [passages[text] for text, supports in paragraphs if supports]
    collection.add_answered(row.place, query=query, answers=supporting)


def _hotpot_paragraphs(fields: _Fields) -> Iterator[_Paragraph]:
    named = {title for title, _ in fields["supporting_facts"]}
    for title, sentences in fields["context"]:
        yield f"{title}\n{' '.join(map(str.strip, sentences))}", title in named


def _musique_paragraphs(fields: _Fields) -> Iterator[_Paragraph]:
    for each in fields["paragraphs"]:
        yield f"{each['title']}\n{each['paragraph_text']}", each["is_supporting"]


def _add_haystack(collection: datasets.Collection, row: datasets.Row) -> None:
    """Add a question with a pool of its own: the turns of its sessions."""
    fields: _Fields = row.fields
    pool = row.text("question_id")
    if pool.endswith(_ABSTENTION):
        return
    sessions = zip(
        *(fields[f"haystack_{each}"] for each in ("session_ids", "dates", "sessions")), strict=True
    )
    marked, in_answer_sessions = [], []
    sequence = 0
    for number, (session, date, turns) in enumerate(sessions):
        for turn in turns:
            passage = datasets.Passage(
                id=f"{number}:{sequence}",
                text=turn["content"],
                speaker=turn["role"],
                at=_read_date(date),
                session=session,
                sequence=sequence,
            )
            collection.add_passage(row.place, pool=pool, passage=passage)
            sequence += 1
            if session in fields["answer_session_ids"]:
                in_answer_sessions.append(passage.id)
                marked += [passage.id] if turn.get("has_answer") else []
    query = datasets.EvaluationQuery(
        pool=pool,
        id=pool,
        text=row.text("question"),
        category=row.label("question_type"),
        at=_read_date(fields["question_date"]),
        answers=_read_answers(row),
    )
    collection.add_answered(row.place, query=query, answers=marked or in_answer_sessions)


def _read_date(text: str) -> datetime:
    """Read a moment such as `2023/05/20 (Sat) 02:21`."""
    return datetime.strptime(_WEEKDAY.sub(" ", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
