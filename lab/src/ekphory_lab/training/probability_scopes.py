"""Scopes on which probabilities are fitted: documents, long messages, chats and statements."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.systems import newest_moment, passage_fields
from ekphory_lab.training.development_set import DEVELOPMENT_CONVERSATIONS, development_set
from ekphory_lab.training.texts import (
    DOCUMENTS,
    clean_text,
    each_row,
    read_documents,
    sha256_of_texts,
)

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


@dataclass(frozen=True, slots=True)
class Scope:
    """What is written into one scope, and what is asked of it.

    Attributes:
        kind: `documents`, `long`, `reference`, `policies`, `timed`, `papers`, `turns` or
            `statements`.
        passages: As `Memory.add_many` takes them.
        questions: Which passages answer each; none where the answer is not there.
        now: When it is asked; None for the present.
    """

    kind: str
    passages: list[dict[str, Any]]
    questions: Mapping[str, frozenset[str]]
    now: datetime | None = None


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


def probability_scopes(directory: Path) -> Iterator[Scope]:
    """Yield scopes of 5 to 5,000 memories of every kind.

    Args:
        directory: Holds `squad_sentences.jsonl.gz`, `nq_gold.jsonl.gz`, `policyqa.jsonl.gz` and
            `timeqa_train.jsonl.gz`.

    Raises:
        DatasetError: A file is missing or malformed.
    """
    rows = each_row(directory / SQUAD_SENTENCES)
    for size, most in _DOCUMENTS.items():
        yield from _document_scopes(rows, size, most)
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


def statement_scopes(folder: Path = STATEMENTS) -> Iterator[Scope]:
    """Yield the written stores of statements; each is also asked what was asked of another one."""
    paths = sorted(folder.glob("*.json"))
    stores = [store for path in paths for store in json.loads(path.read_text(encoding="utf-8"))]
    for number, store in enumerate(stores):
        unrelated = stores[(number + 1) % len(stores)]["questions"][:_UNRELATED]
        questions = {asked["query"]: frozenset[str]() for asked in unrelated}
        for asked in store["questions"]:
            questions[asked["query"]] = frozenset(str(place) for place in asked["answers"])
        memories = enumerate(store["memories"])
        passages = [{"id": str(place), "text": text} for place, text in memories]
        yield Scope("statements", passages, questions)


def paper_scopes(folder: Path = DOCUMENTS) -> Iterator[Scope]:
    """Yield the written documents, some and all together; each is also asked what others answer."""
    documents = [paper for file in read_documents(folder) for paper in file["documents"]]
    for size, most in _PAPERS.items():
        chunks = (documents[start : start + size] for start in range(0, len(documents), size))
        for chunk in itertools.islice(chunks, _QUESTIONS_OF_A_SIZE // most):
            others = (paper for paper in documents if paper not in chunk)
            yield _paper_scope(chunk, others, most)


def _paper_scope(
    papers: Sequence[Mapping[str, Any]], others: Iterator[Mapping[str, Any]], most: int
) -> Scope:
    every = [(query, str(n)) for n, paper in enumerate(papers) for query in paper["searches"]]
    step = max(1, len(every) // most)
    unanswered = itertools.islice(others, round(most * _UNANSWERED_SHARE))
    questions = {paper["searches"][0]: frozenset[str]() for paper in unanswered}
    questions |= {query: frozenset({name}) for query, name in every[::step][:most]}
    passages = [
        {"id": str(n), "text": f"{paper['title']}. {paper['text']}"}
        for n, paper in enumerate(papers)
    ]
    return Scope("papers", passages, questions)


def conversation_scopes(folder: Path = DEVELOPMENT_CONVERSATIONS) -> Iterator[Scope]:
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


def _joined(pools: Sequence[Scope]) -> Scope:
    questions = {query: names for pool in pools for query, names in pool.questions.items()}
    asked = list(questions)[::_EVERY_QUESTION_OF_ALL]
    return Scope(
        "turns",
        [passage for pool in pools for passage in pool.passages],
        {query: questions[query] for query in asked},
        max((pool.now for pool in pools if pool.now), default=None),
    )


def _single(pool: Scope) -> Iterator[Scope]:
    conversations: dict[str, list[dict[str, Any]]] = {}
    for passage in pool.passages:
        conversations.setdefault(passage["id"].rpartition(":")[0], []).append(passage)
    for passages in conversations.values():
        names = {passage["id"] for passage in passages}
        others = [query for query, found in pool.questions.items() if not found & names]
        questions = {query: frozenset[str]() for query in others[:: len(others) // _UNRELATED]}
        for query, found in pool.questions.items():
            if found <= names:
                questions[query] = found
        yield Scope("turns", passages, questions, pool.now)


def pool_scopes(folder: Path) -> Iterator[Scope]:
    """Yield the written conversations, some of a kind together, with all their questions."""
    conversations = development_set(folder)
    for pool, passages in conversations.pools.items():
        asked = [query for query in conversations.queries if query.pool == pool]
        yield Scope(
            "turns",
            [passage_fields(passage) for passage in passages],
            {query.text: frozenset(conversations.qrels[query.key]) for query in asked},
            newest_moment(passages),
        )


def _document_scopes(rows: Iterator[Mapping[str, Any]], size: int, most: int) -> Iterator[Scope]:
    for chunk in _chunks(rows, size, most):
        sentences = {text: str(place) for place, text in enumerate(chunk)}
        yield Scope(
            "documents",
            [{"id": name, "text": text} for text, name in sentences.items()],
            _questions(rows, sentences, chunk, most),
        )


def _long_scopes(rows: Iterator[Mapping[str, Any]], size: int, most: int) -> Iterator[Scope]:
    for chunk in _chunks(rows, size * _SENTENCES_OF_A_MESSAGE, most):
        texts = list(chunk)
        message_of = {
            text: str(place // _SENTENCES_OF_A_MESSAGE) for place, text in enumerate(texts)
        }
        messages: dict[str, list[str]] = {}
        for text in texts:
            messages.setdefault(message_of[text], []).append(text)
        yield Scope(
            "long",
            [{"id": name, "text": " ".join(parts)} for name, parts in messages.items()],
            _questions(rows, message_of, chunk, most),
        )


def _reference_scope(rows: Iterator[Mapping[str, Any]], size: int, most: int) -> Scope:
    """Return passages of a reference work, each of which answers one question."""
    asked: dict[str, list[str]] = {}
    for row in rows:
        asked.setdefault(row["passage"], []).append(row["query"])
        if len(asked) == size:
            break
    name_of = {text: str(place) for place, text in enumerate(asked)}
    passages = [{"id": name, "text": text} for text, name in name_of.items()]
    return Scope("reference", passages, _questions(rows, name_of, asked, most, key="passage"))


def _policy_scope(rows: Iterable[Mapping[str, Any]]) -> Scope:
    """Return segments of many privacy policies, and what was asked of one of them or another."""
    name_of: dict[str, str] = {}
    questions: dict[str, set[str]] = {}
    for row in rows:
        name = name_of.setdefault(row["passage"], str(len(name_of)))
        questions.setdefault(row["query"], set()).add(name)
    asked = list(questions)[::_EVERY_POLICY_QUESTION]
    return Scope(
        "policies",
        [{"id": name, "text": text} for text, name in name_of.items()],
        {query: frozenset(questions[query]) for query in asked},
    )


def _timed_scopes(rows: Sequence[Mapping[str, Any]]) -> Iterator[Scope]:
    """Yield pages about what changed with time, forty together, with questions that name times."""
    for start in range(0, _TIMED_PAGES, _PAGES_TOGETHER):
        pages = rows[start : start + _PAGES_TOGETHER]
        yield Scope(
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


def _chunks(
    rows: Iterator[Mapping[str, Any]], size: int, most: int
) -> Iterator[dict[str, list[str]]]:
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
    rows: Iterator[Mapping[str, Any]],
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
