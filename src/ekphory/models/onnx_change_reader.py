"""Runs a change reader on the CPU with ONNX Runtime.

The model is the upper half of an encoder: it takes the hidden states that the lower layers of the
bundled reranker give, so that its own weights are few. It reads

    [CLS] producer: older statement (8 May 2023) [SEP] producer: newer statement (2 June 2024) [SEP]

with type id 0 up to and with the first [SEP], and 1 after it. Of a long statement the window that
shares most words with the other one is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds, StatementPair
from ekphory.models.embedder import (
    find_best_piece,
    find_best_tokens,
    list_distinct_words,
    replace_lone_surrogates,
)
from ekphory.models.model_record import (
    MODEL_FILE,
    RECORD_FILE,
    TOKENIZER_FILE,
    read_checked,
    read_reranker_record,
)
from ekphory.models.onnx_reranker import PairTokens, copy_plain, find_special_token
from ekphory.models.onnx_session import BatchedRun, OnnxSession, load_tokenizer
from ekphory.models.reranker import bundled_directory
from ekphory.protocol_buffers import encode_field, read_fields
from ekphory.threads import Workers
from ekphory.types import MemoryRecord, format_date

MOST_STATEMENT_TOKENS = 80
"""The date included, which is never cut."""
LAYOUT_NAME = "ekphory-change-1"
RECORD_KIND = "change reader"
LOGITS, HIDDEN, MASK = "logits", "hidden", "attention_mask"


class StatementLayout:
    """Turns pairs of statements into tokens. Safe to call from several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a BERT-like tokenizer, which is copied."""
        self._tokenizer = copy_plain(tokenizer)
        self._start = find_special_token(tokenizer, "[CLS]")
        self._end = find_special_token(tokenizer, "[SEP]")

    def pairs(self, pairs: Sequence[StatementPair]) -> list[PairTokens]:
        """Tokenise pairs."""
        return [self._pair(pair) for pair in pairs]

    def _pair(self, pair: StatementPair) -> PairTokens:
        first = [self._start, *self._statement(pair.older, pair.newer), self._end]
        second = [*self._statement(pair.newer, pair.older), self._end]
        return PairTokens(first + second, [0] * len(first) + [1] * len(second))

    def _statement(self, record: MemoryRecord, other: MemoryRecord) -> list[int]:
        date = self._ids(f"({format_date(record.at)})")
        room = MOST_STATEMENT_TOKENS - len(date)
        text = replace_lone_surrogates(record.indexed_text)
        ids = self._ids(text) if len(text) <= MOST_STATEMENT_TOKENS * 20 else None
        if ids is None or len(ids) > room:
            words = list_distinct_words(replace_lone_surrogates(other.text))
            piece = find_best_piece(text, words, most_tokens=MOST_STATEMENT_TOKENS)
            ids = self._ids(piece)
            if len(ids) > room:
                offsets = self._tokenizer.encode(piece, add_special_tokens=False).offsets
                start, end = find_best_tokens(piece, offsets, words, most=room)
                ids = ids[start:end]
        return [*ids, *date]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


# The lower layers: those of the bundled reranker.

SHARED_OUTPUT = "LayerNormalization_54_0"
"""What the second of its six layers gives."""


class SharedLayers:
    """The lower layers of a bundled reranker, as they are in its file."""

    def __init__(self, directory: Path, *, output: str = SHARED_OUTPUT) -> None:
        """Load them.

        Raises:
            ModelError: A file is missing or changed.
        """
        record = read_reranker_record(directory)
        self.revision = record.revision
        self.tokenizer = load_tokenizer(directory / TOKENIZER_FILE, record.files[TOKENIZER_FILE])
        model = read_checked(directory / MODEL_FILE, record.files[MODEL_FILE])
        self._session = OnnxSession(cut_graph(model, output), name=str(directory))
        self._output = output

    def run(self, pairs: Sequence[PairTokens]) -> dict[str, NDArray[Any]]:
        """Return what the upper layers take.

        Returns:
            `hidden`, the states of a batch, shape (pairs, tokens, width); and `attention_mask`,
            shape (pairs, tokens), 1 for each token and 0 for padding.
        """
        ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
        (hidden,) = self._session.run([self._output], ids, type_ids=type_ids)
        lengths = np.array([len(each) for each in ids])
        mask = np.arange(hidden.shape[1]) < lengths[:, None]
        return {HIDDEN: hidden, MASK: mask.astype(np.int64)}


def cut_graph(model: bytes, output: str) -> bytes:
    """Return the part of an ONNX model that ends with one of its tensors, as its only output.

    A model is a message of Protocol Buffers whose field 7 is the graph; of a graph field 1 is a
    node, in the order in which they are computed, and field 12 an output. Weights that nothing uses
    any more are dropped by ONNX Runtime.

    Raises:
        ModelError: No node computes that tensor.
    """
    parts = [
        encode_field(_GRAPH, _cut(field.value, output))
        if field.number == _GRAPH and isinstance(field.value, bytes)
        else bytes(field.encoded)
        for field in read_fields(model)
    ]
    return b"".join(parts)


_GRAPH, _NODE, _OUTPUT = 7, 1, 12
_NODES_OUTPUT, _OUTPUTS_NAME = 2, 1


def _cut(graph: bytes, output: str) -> bytes:
    parts, done = [], False
    for field in read_fields(graph):
        if field.number == _NODE and not done and isinstance(field.value, bytes):
            parts.append(bytes(field.encoded))
            outputs = (each for each in read_fields(field.value) if each.number == _NODES_OUTPUT)
            done = any(each.value == output.encode() for each in outputs)
        elif field.number not in (_NODE, _OUTPUT):
            parts.append(bytes(field.encoded))
    if not done:
        raise ModelError(f"No node of the model gives {output!r}. Reinstall ekphory.")
    name = encode_field(_OUTPUTS_NAME, output.encode())
    return b"".join([*parts, encode_field(_OUTPUT, name)])


# The reader.


class OnnxChangeReader:
    """A change reader in a directory of `model.onnx` and `model.json`.

    Attributes:
        name: Name and revision.
        thresholds: As its record says.
    """

    def __init__(self, directory: Path, *, threads: int = 1) -> None:
        """Load the model and the layers that it shares.

        Raises:
            ModelError: A file is missing or changed, or belongs to another reranker.
        """
        record = _read_record(directory)
        shared = SharedLayers(bundled_directory(record["shared"]["name"]))
        if shared.revision != record["shared"]["revision"]:
            raise ModelError(
                f"{directory}: was trained above revision {record['shared']['revision']} of "
                f"{record['shared']['name']}, and this is {shared.revision}. Train it anew."
            )
        self.name = f"{record['name']}@{record['revision']}"
        self.thresholds = ChangeThresholds(**record["thresholds"])
        self._temperature = float(record["temperature"])
        self._bias = np.array(record["bias"], np.float32)
        self._shared = shared
        self._layout = StatementLayout(shared.tokenizer)
        model = read_checked(directory / MODEL_FILE, record["files"][MODEL_FILE])
        self._session = OnnxSession(model, name=str(directory))
        self._workers = Workers(threads)

    def __repr__(self) -> str:
        return f"OnnxChangeReader({self.name!r})"

    def read(self, pairs: Sequence[StatementPair]) -> NDArray[np.float32]:
        """Return the probability of each kind, shape (pairs, kinds)."""
        logits = np.empty((len(pairs), len(CHANGE_KINDS)), np.float32)
        BatchedRun(self._workers, self._layout.pairs, self._run).fill(logits, pairs)
        scaled = softmax(logits / self._temperature + self._bias)
        return np.asarray(scaled, np.float32)

    def _run(self, tokens: Sequence[PairTokens]) -> NDArray[np.float32]:
        return self._session.compute([LOGITS], self._shared.run(tokens))[0]


def softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the shares that logits stand for, by row."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float64)


def _read_record(directory: Path) -> Mapping[str, Any]:
    path = directory / RECORD_FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = record["kind"], record["layout"], tuple(record["kinds"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path}: not the record of a change reader ({error}). Reinstall ekphory."
        ) from error
    if found != (RECORD_KIND, LAYOUT_NAME, CHANGE_KINDS):
        raise ModelError(f"{path}: is of another layout ({found[1]}). Export the model again.")
    return record
