"""Scopes on which probabilities are fitted: documents, long messages, chats and statements."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError
from ekphory_lab.evaluation import datasets
from ekphory_lab.evaluation.stated_probabilities import AskedScope, dataset_scopes
from ekphory_lab.training.texts import (
    DOCUMENTS,
    Row,
    clean_text,
    each_row,
    read_conversations,
    read_documents,
    sha256_of_texts,
)

# Written conversations, put together to pools as large as real ones.

DEVELOPMENT_CONVERSATIONS = Path(__file__).parent / "development_conversations"
"""Nothing is trained on them: choices and calibrations are made on them."""
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
            together = chosen[start : start + size]
            # The same two speak everywhere: a name then tells no conversation from the others.
            pair = _speakers(together[0])
            together = [
                _renamed(row, dict(zip(_speakers(row), pair, strict=True))) for row in together
            ]
            _add_pool(collection, f"{kind}-{start // size}", together)
    file = datasets.BenchmarkFile(NAME, sha256_of_texts(folder), None)
    return collection.dataset(NAME, source=_SOURCE, files=(file,))


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


# The scopes.

SQUAD_SENTENCES = "squad_sentences.jsonl.gz"
PASSAGES = "nq_gold.jsonl.gz"
POLICIES = "policyqa.jsonl.gz"
TIMED = "timeqa_train.jsonl.gz"
STATEMENTS = Path(__file__).parent / "statements"
"""Small stores of plain statements, written for ekphory, with questions."""
_DOCUMENTS = {5: 60, 20: 60, 60: 60, 200: 60, 600: 160, 5_000: 320}
_LONG = {10: 60, 50: 60, 200: 160}
_REFERENCE = {200: 60, 2_000: 320}
_PAPERS = {120: 60, 960: 320}
"""How many questions a scope of so many memories is asked at most."""
_SENTENCES_OF_A_MESSAGE = 5
_EVERY_SINGLE, _EVERY_QUESTION_OF_ALL = 2, 3
_QUESTIONS_OF_A_SIZE = 320
_UNANSWERED_SHARE = 0.15
_UNRELATED = 4
_EVERY_POLICY_QUESTION = 2
_TIMED_PAGES, _PAGES_TOGETHER, _QUESTIONS_OF_A_PAGE, _WORDS_OF_A_HEADING = 160, 40, 2, 8


def data_hashes(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of all that the scopes are made of, by name."""
    files = (SQUAD_SENTENCES, PASSAGES, POLICIES, TIMED)
    texts = [path.read_bytes() for path in sorted(STATEMENTS.glob("*.json"))]
    return {
        "documents": sha256_of_texts(DOCUMENTS),
        **{name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in files},
        "development_conversations": sha256_of_texts(DEVELOPMENT_CONVERSATIONS),
        "statements": hashlib.sha256(b"\n".join(texts)).hexdigest(),
    }


def probability_scopes(directory: Path) -> Iterator[AskedScope]:
    """Yield scopes of 5 to 5,000 memories of every kind.

    Args:
        directory: Holds `squad_sentences.jsonl.gz`, `nq_gold.jsonl.gz`, `policyqa.jsonl.gz` and
            `timeqa_train.jsonl.gz`.

    Raises:
        DatasetError: A file is missing or malformed.
    """
    rows = each_row(directory / SQUAD_SENTENCES)
    for size, most in _DOCUMENTS.items():
        for chunk in _chunks(rows, size, most):
            names = {text: str(place) for place, text in enumerate(chunk)}
            yield AskedScope("documents", _numbered(chunk), _questions(rows, names, chunk, most))
    for size, most in _LONG.items():
        yield from _long_scopes(rows, size, most)
    passages = each_row(directory / PASSAGES)
    for size, most in _REFERENCE.items():
        yield _reference_scope(passages, size, most)
    yield _policy_scope(each_row(directory / POLICIES))
    yield from _timed_scopes(list(each_row(directory / TIMED)))
    yield from paper_scopes()
    yield from conversation_scopes()
    yield from statement_scopes()


def statement_scopes(folder: Path = STATEMENTS) -> Iterator[AskedScope]:
    """Yield the written stores of statements; each is also asked what was asked of another one."""
    paths = sorted(folder.glob("*.json"))
    stores = [store for path in paths for store in json.loads(path.read_text(encoding="utf-8"))]
    for number, store in enumerate(stores):
        unrelated = stores[(number + 1) % len(stores)]["questions"][:_UNRELATED]
        questions = {asked["query"]: frozenset[str]() for asked in unrelated}
        for asked in store["questions"]:
            questions[asked["query"]] = frozenset(str(place) for place in asked["answers"])
        yield AskedScope("statements", _numbered(store["memories"]), questions)


def paper_scopes(folder: Path = DOCUMENTS) -> Iterator[AskedScope]:
    """Yield the written documents, some and all together; each is also asked what others answer."""
    documents = [paper for file in read_documents(folder) for paper in file["documents"]]
    for size, most in _PAPERS.items():
        chunks = (documents[start : start + size] for start in range(0, len(documents), size))
        for chunk in itertools.islice(chunks, _QUESTIONS_OF_A_SIZE // most):
            others = (paper for paper in documents if paper not in chunk)
            yield _paper_scope(chunk, others, most)


def _paper_scope(papers: Sequence[Row], others: Iterator[Row], most: int) -> AskedScope:
    every = [(query, str(n)) for n, paper in enumerate(papers) for query in paper["searches"]]
    step = max(1, len(every) // most)
    unanswered = itertools.islice(others, round(most * _UNANSWERED_SHARE))
    questions = {paper["searches"][0]: frozenset[str]() for paper in unanswered}
    questions |= {query: frozenset({name}) for query, name in every[::step][:most]}
    texts = (f"{paper['title']}. {paper['text']}" for paper in papers)
    return AskedScope("papers", _numbered(texts), questions)


def conversation_scopes(folder: Path = DEVELOPMENT_CONVERSATIONS) -> Iterator[AskedScope]:
    """Yield the written conversations: some of a kind together, all together, and single ones.

    Single ones are also asked what others answer, in which the same two speak.
    """
    pools = list(pool_scopes(folder))
    for pool in pools:
        asked = list(pool.questions)[::_EVERY_QUESTION_OF_ALL]
        yield replace(pool, questions={query: pool.questions[query] for query in asked})
    yield _joined(pools)
    for pool in pools:
        yield from list(_single(pool))[::_EVERY_SINGLE]


def _joined(pools: Sequence[AskedScope]) -> AskedScope:
    questions = {query: names for pool in pools for query, names in pool.questions.items()}
    asked = list(questions)[::_EVERY_QUESTION_OF_ALL]
    return AskedScope(
        "turns",
        [passage for pool in pools for passage in pool.passages],
        {query: questions[query] for query in asked},
        max((pool.now for pool in pools if pool.now), default=None),
    )


def _single(pool: AskedScope) -> Iterator[AskedScope]:
    conversations: dict[str, list[Mapping[str, Any]]] = {}
    for passage in pool.passages:
        conversations.setdefault(passage["id"].rpartition(":")[0], []).append(passage)
    for passages in conversations.values():
        names = {passage["id"] for passage in passages}
        others = [query for query, found in pool.questions.items() if not found & names]
        questions = {query: frozenset[str]() for query in others[:: len(others) // _UNRELATED]}
        for query, found in pool.questions.items():
            if found <= names:
                questions[query] = found
        yield AskedScope("turns", passages, questions, pool.now)


def pool_scopes(folder: Path) -> Iterator[AskedScope]:
    """Yield the written conversations, some of a kind together, with all their questions."""
    yield from dataset_scopes(development_set(folder), kind="turns")


def _long_scopes(rows: Iterator[Row], size: int, most: int) -> Iterator[AskedScope]:
    for chunk in _chunks(rows, size * _SENTENCES_OF_A_MESSAGE, most):
        texts, together = list(chunk), _SENTENCES_OF_A_MESSAGE
        messages = (texts[start : start + together] for start in range(0, len(texts), together))
        names = {text: str(place // together) for place, text in enumerate(texts)}
        yield AskedScope(
            "long",
            _numbered(" ".join(parts) for parts in messages),
            _questions(rows, names, chunk, most),
        )


def _reference_scope(rows: Iterator[Row], size: int, most: int) -> AskedScope:
    """Return passages of a reference work, each of which answers one question."""
    asked: dict[str, list[str]] = {}
    for row in rows:
        asked.setdefault(row["passage"], []).append(row["query"])
        if len(asked) == size:
            break
    names = {text: str(place) for place, text in enumerate(asked)}
    questions = _questions(rows, names, asked, most, key="passage")
    return AskedScope("reference", _numbered(asked), questions)


def _policy_scope(rows: Iterable[Row]) -> AskedScope:
    """Return segments of many privacy policies, and what was asked of one of them or another."""
    name_of: dict[str, str] = {}
    questions: dict[str, set[str]] = {}
    for row in rows:
        name = name_of.setdefault(row["passage"], str(len(name_of)))
        questions.setdefault(row["query"], set()).add(name)
    asked = list(questions)[::_EVERY_POLICY_QUESTION]
    return AskedScope(
        "policies", _numbered(name_of), {query: frozenset(questions[query]) for query in asked}
    )


def _timed_scopes(rows: Sequence[Row]) -> Iterator[AskedScope]:
    """Yield pages about what changed with time, forty together, with questions that name times."""
    for start in range(0, _TIMED_PAGES, _PAGES_TOGETHER):
        pages = rows[start : start + _PAGES_TOGETHER]
        yield AskedScope(
            "timed",
            [
                {"id": f"{page['id']}:{place}", "text": clean_text(text)}
                for page in pages
                for place, text in enumerate(page["paragraphs"])
                if len(text.split()) > _WORDS_OF_A_HEADING
            ],
            {
                asked["query"]: frozenset(f"{page['id']}:{place}" for place in asked["paragraphs"])
                for page in pages
                for asked in page["questions"][:_QUESTIONS_OF_A_PAGE]
            },
        )


def _numbered(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"id": str(place), "text": text} for place, text in enumerate(texts)]


def _chunks(rows: Iterator[Row], size: int, most: int) -> Iterator[dict[str, list[str]]]:
    """Yield sentences with their questions, so many at a time, until there are enough questions."""
    asked = 0
    while asked < _QUESTIONS_OF_A_SIZE:
        chunk: dict[str, list[str]] = {}
        for row in rows:
            chunk.setdefault(row["sentence"], []).append(row["query"])
            if len(chunk) == size:
                break
        asked += min(sum(map(len, chunk.values())), most)
        if len(chunk) < size:
            raise DatasetError(f"{SQUAD_SENTENCES}: must hold more sentences.")
        yield chunk


def _questions(
    rows: Iterator[Row],
    answer_of: Mapping[str, str],
    chunk: Mapping[str, Sequence[str]],
    most: int,
    *,
    key: str = "sentence",
) -> dict[str, frozenset[str]]:
    """Return questions that the scope answers, spread over it, and some that it does not."""
    every = [(query, answer_of[text]) for text, queries in chunk.items() for query in queries]
    step = max(1, len(every) // most)
    answered: dict[str, set[str]] = {}
    for query, name in every[::step][:most]:
        answered.setdefault(query, set()).add(name)
    unanswered = itertools.islice(rows, round(len(answered) * _UNANSWERED_SHARE))
    others = {row["query"]: frozenset[str]() for row in unanswered if row[key] not in chunk}
    return others | {query: frozenset(names) for query, names in answered.items()}
