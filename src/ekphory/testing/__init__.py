"""Parts for tests, ours and those of people who build on ekphory.

`HashEmbedder`, `OverlapReranker` and `ScriptedChat` stand in for models and need no weights;
`reranker_contract` holds what every reranker must pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import ServiceError
from ekphory.models.chat import DEFAULT_CHAT_OPTIONS, ChatMessage, ChatOptions
from ekphory.models.embedder import EmbedderIdentity, FloatMatrix
from ekphory.models.reranker import RelevanceScores, RerankPassage, RerankQuery

__all__ = ["HashEmbedder", "OverlapReranker", "ScriptedChat"]


class HashEmbedder:
    """Embeds a text as the normalised sum of one fixed random vector for each of its words.

    Needs no weights and follows `EmbeddingModel` in full: texts that share words are near.
    """

    def __init__(self, *, dimension: int = 32, window_words: int = 100) -> None:
        self.identity = EmbedderIdentity("hash-embedder", "1", dimension)
        self._window_words = window_words

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages; shape (len(texts), dimension)."""
        rows = [self._vector(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.identity.dimension)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries, the same way as passages."""
        return self.encode(texts)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split into runs of `window_words` words, each behind the prefix."""
        words = text.split()
        size = self._window_words
        runs = [words[start : start + size] for start in range(0, len(words), size)]
        return [prefix + " ".join(run) for run in runs] if len(runs) > 1 else [prefix + text]

    def _vector(self, text: str) -> FloatMatrix:
        total = np.zeros(self.identity.dimension)
        for word in re.findall(r"\w+", text.lower()):
            total += _word_vector(word, len(total))
        length = float(np.linalg.norm(total))
        return np.asarray(total / length if length else np.eye(len(total))[0], np.float32)


@lru_cache(maxsize=50_000)
def _word_vector(word: str, dimension: int) -> NDArray[np.float64]:
    return np.random.default_rng(crc32(word.encode())).standard_normal(dimension)


class OverlapReranker:
    """Scores a passage by the share of the question's words that its text holds.

    Needs no weights and follows the `RerankingModel` protocol in full.
    """

    name = "overlap-reranker"

    def __init__(self, *, batch_size: int = 16) -> None:
        self.batch_size = batch_size

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Score each passage in [0, 1]."""
        asked = _words(query.text)
        shares = [len(asked & _words(passage.text)) / max(len(asked), 1) for passage in passages]
        return np.array(shares, np.float32)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class ScriptedChat:
    """Gives its answers one after another, and fails as a service does where one is an error.

    Follows the `Chat` protocol; `asked` holds what it was asked so far.
    """

    name = "scripted-chat"

    def __init__(self, answers: Iterable[str | ServiceError]) -> None:
        self._answers = iter(answers)
        self.asked: list[tuple[ChatMessage, ...]] = []

    def complete(
        self, messages: Sequence[ChatMessage], *, options: ChatOptions = DEFAULT_CHAT_OPTIONS
    ) -> str:
        """Return the next answer.

        Raises:
            ServiceError: The next answer is one, or there is none left.
        """
        del options
        self.asked.append(tuple(messages))
        answer = next(self._answers, ServiceError("scripted-chat: no answer is left"))
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        options: ChatOptions = DEFAULT_CHAT_OPTIONS,
    ) -> dict[str, Any]:
        """Return the next answer, which holds a JSON object; the schema is not looked at."""
        del schema
        answer: dict[str, Any] = json.loads(self.complete(messages, options=options))
        return answer
