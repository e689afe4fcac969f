"""Exports the layers that readers share, and what was trained above them, in 8-bit integers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models import onnx_graph
from ekphory.models.late_bound import Linear
from ekphory.models.model_record import (
    MODEL_FILE,
    RECORD_FILE,
    RECORD_FORMAT,
    TOKENIZER_FILE,
    content_revision,
    read_checked,
    read_reranker_record,
)
from ekphory.models.onnx_reranker import PairTokens
from ekphory.models.onnx_session import OnnxSession, pad_batch
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory.models.shared_layers import (
    HIDDEN,
    LOGITS,
    MASK,
    SHARED_KIND,
    SHARED_LAYOUT,
    TAGS,
    WORDS,
    SharedLayers,
    cut_graph,
)
from ekphory_lab.training import static_int8

if TYPE_CHECKING:
    from onnx import ModelProto

HEAD_FILE = "ekphory_heads.safetensors"
_BATCH = 16
_WIDTH = 384
_SECOND_LAYER = "LayerNormalization_54_0"
"""What the second layer of an exported reranker gives."""


class _UpperWriter(onnx_graph.EncoderWriter):
    """Writes the trained layers, from hidden states to logits of pairs and of tokens."""

    def __init__(
        self,
        weights: onnx_graph.EncoderWeights,
        heads: Mapping[str, Linear],
        arithmetic: onnx_graph.Arithmetic,
    ) -> None:
        super().__init__(weights, arithmetic)
        self.heads = heads

    def _embed(self) -> str:
        return HIDDEN

    def write(self) -> ModelProto:
        """Return the graph: hidden states and mask to `logits`, and to `tags` where there are any.

        Their shapes are (batch, kinds) and (batch, tokens, tags).
        """
        graph = self.graph
        hidden = self.last_layer()
        start, end = (graph.constant(np.array([place])) for place in (0, 1))
        tokens = graph.node("Slice", [hidden, start, end, end])
        first = graph.node("Squeeze", [tokens, end])
        joined = graph.node(
            "Concat", [first, self.mean(hidden, self.present())], attributes={"axis": 1}
        )
        graph.name_output(self.linear(joined, self.heads[LOGITS]), LOGITS)
        outputs = [onnx_graph.float_output(LOGITS, ["batch", len(self.heads[LOGITS].bias)])]
        if TAGS in self.heads:
            head = self.heads[TAGS]
            product = graph.node("MatMul", [hidden, graph.constant(head.weight.T.copy())])
            tagged = graph.node("Add", [product, graph.constant(head.bias)])
            graph.name_output(tagged, TAGS)
            outputs.append(onnx_graph.float_output(TAGS, ["batch", "tokens", len(head.bias)]))
        width = int(self.weights.words.shape[1])
        states = onnx_graph.float_output(HIDDEN, ["batch", "tokens", width])
        return graph.model(outputs, inputs=(MASK,), given=(states,))


def quantised_upper_layers(
    source: Path, shared: SharedLayers, ranged: Sequence[PairTokens]
) -> bytes:
    """Return the model of a run in 8 bits.

    Args:
        source: Folder `model` of the run.
        shared: The lower layers.
        ranged: Pairs over which activations are ranged.
    """
    weights, heads = _read(source)

    def build(encoder: onnx_graph.EncoderWeights, arithmetic: onnx_graph.Arithmetic) -> ModelProto:
        return _UpperWriter(encoder, heads, arithmetic).write()

    model = static_int8.quantised(build, weights, _batches(shared, ranged))
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def export_shared_layers(source: Path, target: Path) -> str:
    """Write the first two layers of an exported reranker; readers are trained above them.

    Args:
        source: Directory of the reranker; its vectors of words must be those of the bundled one.
        target: Made if needed.

    Returns:
        The revision of what was written.

    Raises:
        ModelError: It is no such reranker, its file is damaged, or its words are others.
    """
    from onnx import TensorProto, helper, load_from_string, shape_inference
    from onnx.utils import Extractor

    record = read_reranker_record(source)
    content = read_checked(source / MODEL_FILE, record.files[MODEL_FILE])
    _check_words(content, source)
    model = shape_inference.infer_shapes(load_from_string(content))
    shape: list[str | int | None] = ["batch", "tokens", _WIDTH]
    for name in (WORDS, _SECOND_LAYER):
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        model.graph.value_info.append(info)
    given = [each.name for each in model.graph.input]
    part = Extractor(model).extract_model([*given, WORDS], [_SECOND_LAYER])
    part.graph.node.append(helper.make_node("Identity", [_SECOND_LAYER], [HIDDEN]))
    part.graph.output[0].name = HIDDEN
    del part.graph.value_info[:]
    content = part.SerializeToString(deterministic=True)
    files = {MODEL_FILE: hashlib.sha256(content).hexdigest()}
    revision = content_revision(files, prompts={})
    target.mkdir(parents=True, exist_ok=True)
    (target / MODEL_FILE).write_bytes(content)
    written = {
        "format": RECORD_FORMAT,
        "kind": SHARED_KIND,
        "name": "ekphory-shared-layers",
        "revision": revision,
        "layout": SHARED_LAYOUT,
        "kinds": [],
        "words": SMALL_RERANKER,
        "licence": record.licence,
        "source": f"the first two layers of {record.name}@{record.revision}",
        "files": files,
    }
    (target / RECORD_FILE).write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return revision


def _check_words(reranker: bytes, source: Path) -> None:
    directory = bundled_directory(SMALL_RERANKER)
    tokenizer = Tokenizer.from_file(str(directory / TOKENIZER_FILE))
    tokens = range(tokenizer.get_vocab_size())
    every_token = pad_batch([tokens], [[0] * len(tokens)])
    own, bundled = (
        OnnxSession(cut_graph(each, WORDS), name=str(source)).compute([WORDS], every_token)[0]
        for each in (reranker, (directory / MODEL_FILE).read_bytes())
    )
    if not np.array_equal(own, bundled):
        raise ModelError(
            f"{source}: has other vectors of words than the bundled {SMALL_RERANKER}. "
            "Name a reranker that was trained from the same base."
        )


def shared_record(shared: SharedLayers) -> dict[str, str]:
    """Return what a model's record says of the lower layers."""
    return {"name": shared.name, "revision": shared.revision}


def _read(source: Path) -> tuple[onnx_graph.EncoderWeights, dict[str, Linear]]:
    from safetensors.numpy import load_file

    weights = onnx_graph.load_encoder_weights(source)
    path = source / HEAD_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Name the folder `model` of a reader's run.")
    kept = load_file(path)
    heads = {LOGITS: Linear(kept["weight"], kept["bias"])}
    if "tag_weight" in kept:
        heads[TAGS] = Linear(kept["tag_weight"], kept["tag_bias"])
    return weights, heads


def _batches(
    shared: SharedLayers, tokens: Sequence[PairTokens]
) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    ordered = sorted(tokens, key=len)
    for start in range(0, len(ordered), _BATCH):
        yield shared.run(ordered[start : start + _BATCH])
