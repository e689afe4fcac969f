"""How the bundled cross-encoder reads a question and a memory: training and inference both use it.

    [CLS] context / context / question [SEP] target (8 May 2023) [SEP] before [SEP] after [SEP]

The type id is 0 up to and with the first [SEP] and 1 after it. What is long is cut: of the question
its beginning counts, of the context and of the turn before their end, of the turn after its
beginning, and of the target the window that shares most words with the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.encodable import encodable
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.spoken_date import spoken_date
from ekphory.models.telling_window import (
    CHARACTERS_PER_TOKEN,
    distinct_words,
    telling_piece,
    telling_tokens,
)

LAYOUT_NAME = "ekphory-turn-2"
"""Stands in a model's record; another layout needs another name."""
MOST_QUERY_TOKENS = 64
MOST_TARGET_TOKENS = 128
"""The date included, which is never cut."""
MOST_NEIGHBOUR_TOKENS = 12
MOST_TOKENS = 1 + MOST_QUERY_TOKENS + 1 + MOST_TARGET_TOKENS + 1 + 2 * (MOST_NEIGHBOUR_TOKENS + 1)
TURN_MARK = " / "
_KEPT_TEXTS = 2048
_LONGEST_KEPT = 512
"""In characters: what is kept takes a few megabytes."""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The question's side of a pair, tokenised once for all passages.

    Attributes:
        ids: Token ids from [CLS] to the first [SEP].
        words: The question's words, by which a long target is cut; those of the context not.
    """

    ids: list[int]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class PairTokens:
    """What the model reads: token ids and type ids of equal length, at most `MOST_TOKENS`."""

    ids: list[int]
    type_ids: list[int]


class CrossEncoderLayout:
    """Turns questions and passages into tokens. Safe to call from several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a copy of the tokenizer that neither pads nor cuts.

        Raises:
            ModelError: It knows no [CLS] or [SEP].
        """
        own = Tokenizer.from_str(tokenizer.to_str())
        own.no_padding()
        own.no_truncation()
        # "[SEP]" in a stored text is text, and ends no part.
        own.encode_special_tokens = True
        self._tokenizer = own
        # A turn is the target of one pair and the neighbour of two others, in search after search.
        self._kept = lru_cache(_KEPT_TEXTS)(self._tokenised)
        self._start = _special(own, "[CLS]")
        self._end = _special(own, "[SEP]")

    def query(self, query: RerankQuery) -> QueryTokens:
        """Tokenise the question's side."""
        asked = self._beginning(query.text, MOST_QUERY_TOKENS)
        said = self._said_before(query.context, MOST_QUERY_TOKENS - len(asked))
        ids = [self._start, *said, *asked, self._end]
        return QueryTokens(ids, distinct_words(encodable(query.text)))

    def pair(self, query: QueryTokens, passage: RerankPassage) -> PairTokens:
        """Tokenise a passage's side, and put the question's before it."""
        parts = [
            self._target(passage, query.words),
            self._ending(passage.before or "", MOST_NEIGHBOUR_TOKENS),
            self._beginning(passage.after or "", MOST_NEIGHBOUR_TOKENS),
        ]
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        tail = [token for part in parts for token in (*part, self._end)]
        type_ids = [0] * len(query.ids) + [1] * len(tail)
        return PairTokens(query.ids + tail, type_ids)

    def pairs(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[PairTokens]:
        """Tokenise a question with each of some passages."""
        asked = self.query(query)
        return [self.pair(asked, passage) for passage in passages]

    def _said_before(self, context: Sequence[str], room: int) -> list[int]:
        if not context or room <= 0:
            return []
        return self._ending(TURN_MARK.join([*context[-room:], ""]), room)

    def _target(self, passage: RerankPassage, words: frozenset[str]) -> list[int]:
        date = () if passage.at is None else self._ids(f"({spoken_date(passage.at)})")
        room = MOST_TARGET_TOKENS - len(date)
        text = telling_piece(encodable(passage.text), words, most_tokens=MOST_TARGET_TOKENS)
        ids = self._ids(text)
        if len(ids) > room:
            offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
            start, end = telling_tokens(text, offsets, words, most=room)
            ids = ids[start:end]
        return [*ids, *date]

    def _beginning(self, text: str, most: int) -> list[int]:
        return list(self._ids(encodable(text[: most * CHARACTERS_PER_TOKEN]))[:most])

    def _ending(self, text: str, most: int) -> list[int]:
        return list(self._ids(encodable(text[-most * CHARACTERS_PER_TOKEN :]))[-most:])

    def _ids(self, text: str) -> tuple[int, ...]:
        return self._kept(text) if len(text) <= _LONGEST_KEPT else self._tokenised(text)

    def _tokenised(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _special(tokenizer: Tokenizer, token: str) -> int:
    known = tokenizer.token_to_id(token)
    if known is None:
        raise ModelError(
            f"The tokenizer knows no {token}, which the layout {LAYOUT_NAME!r} needs. "
            "Give a tokenizer of a BERT-like model."
        )
    return int(known)
