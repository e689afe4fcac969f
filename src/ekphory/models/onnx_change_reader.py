"""Runs a change reader on the CPU with ONNX Runtime.

The model is the upper half of an encoder: it takes the hidden states that the lower layers of the
bundled reranker give, so that its own weights are few. It reads

    [CLS] producer: older statement (8 May 2023) [SEP] producer: newer statement (2 June 2024) [SEP]

with type id 0 up to and with the first [SEP], and 1 after it. Who said them stands there only where
it is not the same for both: it tells then whether they are of the same person. Of a long statement
the window that shares most words with the other one is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds, StatementPair
from ekphory.models.embedder import list_distinct_words, replace_lone_surrogates
from ekphory.models.onnx_models import BatchedRun, PairLayout, PairTokens
from ekphory.models.shared_layers import LOGITS, UpperModel
from ekphory.threads import Workers
from ekphory.types import MemoryRecord, format_date

MOST_STATEMENT_TOKENS = 80
"""The date included, which is never cut."""
LAYOUT_NAME = "ekphory-change-2"
RECORD_KIND = "change reader"


class StatementLayout(PairLayout):
    """Turns pairs of statements into tokens. Safe to call from several threads."""

    def pairs(self, pairs: Sequence[StatementPair]) -> list[PairTokens]:
        """Tokenise pairs."""
        return [self._pair(pair) for pair in pairs]

    def _pair(self, pair: StatementPair) -> PairTokens:
        first = [self._start, *self._statement(pair.older, pair.newer), self._end]
        second = [*self._statement(pair.newer, pair.older), self._end]
        return PairTokens(first + second, [0] * len(first) + [1] * len(second))

    def _statement(self, record: MemoryRecord, other: MemoryRecord) -> list[int]:
        date = self._ids(f"({format_date(record.at)})")
        same = record.index_prefix == other.index_prefix
        text = replace_lone_surrogates(record.text if same else record.indexed_text)
        words = list_distinct_words(replace_lone_surrogates(other.text))
        room = MOST_STATEMENT_TOKENS - len(date)
        return [*self._best_ids(text, words, most=MOST_STATEMENT_TOKENS, room=room), *date]


class OnnxChangeReader:
    """A change reader in a directory of `model.onnx` and `model.json`.

    Attributes:
        name: Name and revision.
        thresholds: As its record says.
    """

    def __init__(self, directory: Path) -> None:
        """Load the model and the layers that it shares.

        Raises:
            ModelError: A file is missing or changed, or belongs to another reranker.
        """
        self._upper = UpperModel(
            directory, kind=RECORD_KIND, layout=LAYOUT_NAME, kinds=CHANGE_KINDS
        )
        self.name = self._upper.name
        self.thresholds = ChangeThresholds(**self._upper.record["thresholds"])
        self._layout = StatementLayout(self._upper.tokenizer)
        self._workers = Workers(1)

    def read(self, pairs: Sequence[StatementPair]) -> NDArray[np.float32]:
        """Return the probability of each kind, shape (pairs, kinds)."""
        logits = np.empty((len(pairs), len(CHANGE_KINDS)), np.float32)
        BatchedRun(self._workers, self._layout.pairs, self._run).fill(logits, pairs)
        return np.asarray(softmax(self._upper.scaled(logits)), np.float32)

    def _run(self, tokens: Sequence[PairTokens]) -> NDArray[np.float32]:
        return self._upper.run([LOGITS], tokens)[0]


def softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the shares that logits stand for, by row."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float64)
