"""The lower layers that the readers of statements and dialogues share.

A model above them needs only layers of its own, so that its weights are few. The vectors of words
are those of the bundled reranker, in whose file they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import ModelError
from ekphory.models.embedder import FloatMatrix
from ekphory.models.model_record import MODEL_FILE, RECORD_FILE, read_checked, read_reranker_record
from ekphory.models.onnx_models import (
    OnnxSession,
    PairTokens,
    load_session,
    load_tokenizer,
    pad_batch,
)
from ekphory.models.reranker import bundled_directory
from ekphory.protocol_buffers import encode_field, read_fields
from ekphory.threads import once_a_process

HIDDEN, MASK = "hidden", "attention_mask"
LOGITS, TAGS = "logits", "tags"
"""What a model above them gives: of each pair, and of each token."""
SHARED_LAYERS = Path(str(files("ekphory.models"))) / "bundled" / "shared-layers"
SHARED_KIND, SHARED_LAYOUT = "shared layers", "ekphory-shared-1"
WORDS = "Mul_5_0"
"""What a reranker's graph calls the vectors of words, which the shared layers take."""


class SharedLayers:
    """Two layers, and the vectors of words of a bundled reranker.

    Attributes:
        name, revision: What a model above them names.
        tokenizer: The reranker's.
    """

    def __init__(self, directory: Path = SHARED_LAYERS) -> None:
        """Load them.

        Raises:
            ModelError: A file is missing or changed.
        """
        record = _read_record(directory, (SHARED_KIND, SHARED_LAYOUT, ()))
        self.name, self.revision = str(record["name"]), str(record["revision"])
        words = bundled_directory(record["words"])
        hashes = read_reranker_record(words).files
        self.tokenizer = load_tokenizer(words, hashes)
        reranker = read_checked(words / MODEL_FILE, hashes[MODEL_FILE])
        self._words = OnnxSession(cut_graph(reranker, WORDS), name=str(words))
        self._session = load_session(directory, record["files"])

    def run(self, pairs: Sequence[PairTokens]) -> dict[str, NDArray[Any]]:
        """Return what the upper layers take.

        Returns:
            `hidden`, the states of a batch, shape (pairs, tokens, width); and `attention_mask`,
            shape (pairs, tokens), 1 for each token and 0 for padding.
        """
        ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
        inputs = pad_batch(ids, type_ids)
        (words,) = self._words.compute([WORDS], inputs)
        (hidden,) = self._session.compute([HIDDEN], {**inputs, WORDS: words})
        return {HIDDEN: hidden, MASK: inputs[MASK]}


@once_a_process
def load_shared_layers() -> SharedLayers:
    """Return those that come with ekphory; loaded once a process, then shared by both readers.

    Raises:
        ModelError: Their files are missing or broken.
    """
    return SharedLayers()


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


class UpperModel:
    """A model above the shared layers, in a directory of `model.onnx` and `model.json`.

    Attributes:
        record: What `model.json` says.
        name: Name and revision.
        tokenizer: That of the shared layers.
    """

    def __init__(self, directory: Path, *, kind: str, layout: str, kinds: Sequence[str]) -> None:
        """Load the model and the layers that it shares.

        Args:
            directory: Where the files are.
            kind: What the model is, as its record says.
            layout: How its input is put into tokens, likewise.
            kinds: What its logits are of, likewise.

        Raises:
            ModelError: A file is missing or changed, of another layout, or belongs to other layers.
        """
        self.record = _read_record(directory, (kind, layout, tuple(kinds)))
        self._shared, wanted = load_shared_layers(), self.record["shared"]
        if self._shared.revision != wanted["revision"]:
            told = f"was trained above revision {wanted['revision']} of {wanted['name']}"
            problem = f"{directory}: {told}, and this is {self._shared.revision}"
            raise ModelError(f"{problem}. Train it anew.")
        self.name = f"{self.record['name']}@{self.record['revision']}"
        self.tokenizer = self._shared.tokenizer
        self._session = load_session(directory, self.record["files"])
        self._temperature = float(self.record["temperature"])
        self._bias = np.array(self.record["bias"], np.float32)

    def run(self, outputs: Sequence[str], tokens: Sequence[PairTokens]) -> list[FloatMatrix]:
        """Compute some outputs for a batch."""
        return self._session.compute(outputs, self._shared.run(tokens))

    def scaled(self, logits: FloatMatrix) -> FloatMatrix:
        """Return logits with the temperature and the bias that were fitted."""
        return logits / self._temperature + self._bias


def _read_record(directory: Path, wanted: tuple[str, str, tuple[str, ...]]) -> dict[str, Any]:
    path = directory / RECORD_FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kinds = record["kinds" if "kinds" in record else "classes"]
        found = record["kind"], record["layout"], tuple(kinds)
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{path}: not the record of a {wanted[0]} ({error})"
        raise ModelError(f"{problem}. Reinstall ekphory.") from error
    if found != wanted:
        raise ModelError(f"{path}: is of another layout ({found[1]}). Export the model again.")
    return record
